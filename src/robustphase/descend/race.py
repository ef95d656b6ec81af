"""Population-Newton steps of many candidates at once.

A step solves the weighted least-squares problem as if the covariates had their population moments: ``Σ w s² a aᴴ`` is then
a multiple of the identity plus one along the signal, and its inverse costs nothing. The weights are those of the mixture
likelihood, so samples that a candidate cannot explain hardly pull.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.objective import evaluate, real_unknowns
from robustphase.descend.relaxation import Relaxation
from robustphase.likelihood import mixture_weights, residual_scales
from robustphase.rows.data import Data, as_columns
from robustphase.rows.passes import abs2, adjoint_block, multiply_block
from robustphase.rows.scratch import in_single_precision
from robustphase.rows.slices import in_slices
from robustphase.rows.source import Array, Parts

#: Responses and predictions beyond this many units are that many: their squares still fit into single precision.
LARGEST = 1e15
#: Powers and masses below it count as it, so that nothing is divided by zero.
_TINY = 1e-150


def first_factor(m: int, unknowns: int) -> float:
    """Relaxation of the first step: below one where samples are few and their moments far from the population's."""
    return float(1.9 / (1 + np.sqrt(3 * unknowns / m)) ** 2)


class Field(NamedTuple):
    """Candidates in a race.

    Attributes
    ----------
    signals : ndarray of shape (n, k)
        One candidate per column.
    backgrounds : ndarray of shape (k,)
        Their backgrounds.
    scales, scores : ndarray of shape (k,)
        Scale of their clean residuals, and how well they fit; both as last seen, one step ago.
    relaxation : Relaxation
        How long their steps have become.
    """

    signals: Array
    backgrounds: Array
    scales: Array
    scores: Array
    relaxation: Relaxation

    def only(self, chosen: Array) -> Field:
        """Some of the candidates."""
        return Field(
            self.signals[:, chosen],
            self.backgrounds[chosen],
            self.scales[chosen],
            self.scores[chosen],
            self.relaxation.only(chosen),
        )


def line_up(
    data: Data, signals: Array, backgrounds: Array, scales: Array | None = None, scores: Array | None = None
) -> Field:
    """Candidates at the start of a race; one pass to see how they fit, unless scales and scores are known."""
    if scales is None or scores is None:
        fit = evaluate(data, signals, backgrounds)
        scales, scores = fit.scales, fit.scores
    relaxation = Relaxation(first_factor(data.source.shape[0], real_unknowns(signals)))
    return Field(signals, backgrounds, scales, scores, relaxation)


def race(data: Data, field: Field, steps: int) -> tuple[Field, Array]:
    """Move all candidates by ``steps`` steps, one pass each for all together; and what each gained, shape (k,).

    The gain is that of the score, as seen in the first and in the last pass.
    """
    signals, backgrounds, scales = field.signals, field.backgrounds, field.scales
    relaxation, scores = field.relaxation, []
    for _ in range(steps):
        pulled = pull(data, signals, backgrounds, scales)
        proposals, shifts = newton_proposals(signals, pulled, unknown_mean=data.unknown_mean)
        relaxation = relaxation.after(proposals)
        signals, backgrounds = signals + relaxation.factors(signals) * proposals, backgrounds + shifts
        # The scale before the step: a fresh one would ask for a pass of its own, and is the same in the end.
        scales = residual_scales(pulled.residuals, data.weights > 0, data.contamination)
        scores.append(pulled.scores)
    return Field(signals, backgrounds, scales, scores[-1], relaxation), scores[-1] - scores[0]


class Pull(NamedTuple):
    """Weighted sums over the samples, for k candidates.

    Attributes
    ----------
    force : ndarray of shape (n, k)
        ``Σ w r s a``.
    mass, drift, second, fourth : ndarray of shape (k,)
        ``Σ w``, ``Σ w r``, ``Σ w |s|²`` and ``Σ w |s|⁴``.
    scores : ndarray of shape (k,)
        Mean log-likelihood ratio.
    residuals : ndarray of shape (m, k)
        ``r = y − |s|² − b``.
    """

    force: Array
    mass: Array
    drift: Array
    second: Array
    fourth: Array
    scores: Array
    residuals: Array


def pull(data: Data, signals: Array, backgrounds: Array, scales: Array) -> Pull:
    """What the samples ask of each candidate, with weights for residuals of the given scales: one pass.

    It is made in single precision: a race need not know its candidates better than to a thousandth.
    """
    b, unit, contamination = backgrounds.astype(np.float32), scales.astype(np.float32), data.contamination
    rounded = signals.astype(np.complex64 if np.iscomplexobj(signals) else np.float32)

    def kernel(block: Array, y: Array, density: Array, w: Array) -> Parts:
        rows = in_single_precision(block)
        projections = multiply_block(rows, rounded)
        # Rows without weight may be too long for single precision.
        projections[(w == 0).all(axis=1)] = 0
        energy = np.minimum(abs2(projections), LARGEST)
        residuals = y - energy
        residuals -= b
        weights, ratio = mixture_weights(residuals, density, unit, contamination)
        weights *= w
        score = (w * np.log(ratio, out=ratio)).sum(axis=0, dtype=np.float64)
        pulling = weights * residuals
        mass, drift = weights.sum(axis=0, dtype=np.float64), pulling.sum(axis=0, dtype=np.float64)
        weights *= energy
        second = weights.sum(axis=0, dtype=np.float64)
        weights *= energy
        pulling = pulling * projections
        force = adjoint_block(rows, pulling)
        return Parts(sums=(force, mass, drift, second, weights.sum(axis=0, dtype=np.float64), score), rows=(residuals,))

    responses = np.clip(as_columns(data.responses), -LARGEST, LARGEST)
    per_row = [values.astype(np.float32) for values in (responses, as_columns(data.density), as_columns(data.weights))]
    parts = data.source.reduce(in_slices(kernel, signals.shape[1]), per_row)
    force, mass, drift, second, fourth, score = parts.sums
    return Pull(force, mass, drift, second, fourth, score / data.weights.sum(axis=0), parts.rows[0])


def newton_proposals(signals: Array, pulled: Pull, *, unknown_mean: bool) -> tuple[Array, Array]:
    """Steps of all candidates, shape (n, k), and of their backgrounds, shape (k,)."""
    mass, second, fourth = pulled.mass, pulled.second, pulled.fourth
    mass, power = np.maximum(mass, _TINY), np.maximum(abs2(signals).sum(axis=0), _TINY)
    # Half of the energy of a complex row lies in the phase, which changes nothing.
    across = np.maximum((1.0 if np.iscomplexobj(signals) else 2.0) * second, 0.2 * power * mass)
    profiled = second**2 / mass if unknown_mean else 0.0
    along = np.maximum(2 * (fourth - profiled) / power, 0.3 * power * mass)
    # A candidate that explains no sample, or vanishes, has no curvature and no force: it stays where it is.
    across, along = np.maximum(across, _TINY), np.maximum(along, _TINY)
    shifts = pulled.drift / mass if unknown_mean else np.zeros_like(mass)
    # A background that moves takes Σ w s a from the force; for the population that is a multiple of the signal.
    force = pulled.force - signals * (shifts * second / power)
    share = np.vecdot(signals.T, force.T) / power
    proposals: Array = force / across + signals * (share * (1 / along - 1 / across))
    return proposals, shifts


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
