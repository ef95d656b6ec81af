"""Population-Newton steps of many candidates at once.

A step solves the weighted least-squares problem as if the covariates had their population moments: ``Σ w s² a aᴴ`` is then
a multiple of the identity plus one along the signal, and its inverse costs nothing. The weights are those of the mixture
likelihood, so samples that a candidate cannot explain hardly pull.
"""

from __future__ import annotations

import numpy as np

from robustphase.descend.objective import Data, Fit, evaluate
from robustphase.descend.relaxation import Relaxation
from robustphase.rows import adjoint
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


def first_factor(m: int, n: int) -> float:
    """Relaxation of the first step: below one where samples are few and their moments far from the population's."""
    return float(1.9 / (1 + np.sqrt(3 * n / m)) ** 2)


def race(data: Data, signals: Array, backgrounds: Array, steps: int) -> tuple[Array, Array, Fit]:
    """Move all candidates by ``steps`` steps.

    Parameters
    ----------
    data : Data
        The samples.
    signals : ndarray of shape (n, k)
        Candidates, one per column.
    backgrounds : ndarray of shape (k,)
        Their backgrounds.
    steps : int
        Number of steps; each takes two passes for all candidates together.

    Returns
    -------
    signals, backgrounds
        The candidates moved.
    Fit
        How they fit.
    """
    relaxation = Relaxation(first_factor(*data.source.shape))
    fit = evaluate(data, signals, backgrounds)
    for _ in range(steps):
        residuals, weights = fit.residuals, fit.weights
        if data.unknown_mean:
            shift = (weights * residuals).sum(axis=0) / weights.sum(axis=0)
            backgrounds, residuals = backgrounds + shift, residuals - shift
        proposals = newton_proposals(data, signals, fit.projections, residuals, weights)
        signals = signals + relaxation(signals, proposals) * proposals
        fit = evaluate(data, signals, backgrounds)
    return signals, backgrounds, fit


def newton_proposals(data: Data, signals: Array, projections: Array, residuals: Array, weights: Array) -> Array:
    """Steps of all candidates, shape (n, k): one pass."""
    total = weights.sum(axis=0)
    power = abs2(signals).sum(axis=0)
    energy = abs2(projections)
    second, fourth = (weights * energy).sum(axis=0), (weights * energy**2).sum(axis=0)
    # Half of the energy of a complex row lies in the phase, which changes nothing.
    across = np.maximum((1.0 if np.iscomplexobj(signals) else 2.0) * second, 0.2 * power * total)
    profiled = second**2 / total if data.unknown_mean else 0.0
    along = np.maximum(2 * (fourth - profiled) / power, 0.3 * power * total)
    pull = adjoint(data.source, weights * residuals * projections)
    share = np.vecdot(signals.T, pull.T) / power
    proposals: Array = pull / across + signals * (share * (1 / along - 1 / across))
    return proposals


def distinct_signals(signals: Array, scores: Array, most: int, apart: float) -> Array:
    """Indices of the best candidates that differ from all better ones by a fraction ``apart`` of their norm, best first."""
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        signal = signals[:, index]
        others = signals[:, kept]
        overlap = np.abs(others.conj().T @ signal)
        distances = abs2(others).sum(axis=0) + abs2(signal).sum() - 2 * overlap
        if not (distances <= (apart**2) * abs2(signal).sum()).any():
            kept.append(int(index))
        if len(kept) == most:
            break
    return np.array(kept)
