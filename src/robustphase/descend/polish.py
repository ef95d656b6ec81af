"""The last, efficient step: maximum likelihood with the noise law fitted along.

Signal, background, scale, tails and skew of the noise and the share of bad samples are fitted together, by iterated weighted
least squares. The background is free even where the noise mean is known to be zero: then the equation for the signal is
unbiased whatever the noise law, skewed ones included, because noise is independent of the covariates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.gauss_newton import gauss_newton_step
from robustphase.descend.objective import Data
from robustphase.descend.relaxation import Relaxation
from robustphase.likelihood.noise import NoiseFit, first_guess, fit_noise
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


class Polished(NamedTuple):
    """A polished candidate.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        The estimate.
    background : float
        Mean of the residuals as weighted.
    noise : NoiseFit
        The fitted law, and for each sample the probability to be clean.
    projections, residuals : ndarray of shape (m,)
        At the estimate before its last, negligible move.
    moves : tuple of float
        Relative length of each step.
    converged : bool
        Whether the last one was negligible.
    """

    signal: Array
    background: float
    noise: NoiseFit
    projections: Array
    residuals: Array
    moves: tuple[float, ...]
    converged: bool


def polish(
    data: Data,
    signal: Array,
    background: float,
    scale: float,
    *,
    last: NoiseFit | None = None,
    max_iter: int = 25,
    max_inner: int = 20,
    tol: float = 3e-4,
) -> Polished:
    """Maximum-likelihood fit from a good start.

    Parameters
    ----------
    data : Data
        The samples.
    signal, background, scale
        Where to start.
    last : NoiseFit, optional
        A noise law to start from.
    max_iter, max_inner : int
        Most steps, and most iterations of conjugate gradients in each.
    tol : float
        Stop when a step is shorter than this fraction of the signal and than a fiftieth of the noise allows to tell.
    """
    shares = data.weights / data.weights.sum()
    noise = first_guess(scale, data.contamination) if last is None else last
    signals, backgrounds = signal[:, np.newaxis], np.array([background])
    relaxation = Relaxation(1.0, least=1.0)
    moves: list[float] = []
    converged = False
    while len(moves) < max_iter and not converged:
        projections = project(data.source, signals)
        residuals = data.responses[:, np.newaxis] - abs2(projections) - backgrounds
        noise = fit_noise(residuals[:, 0], data.density, shares, noise, data.contamination)
        step = gauss_newton_step(
            data.source,
            signals,
            projections,
            residuals,
            (noise.weights * data.weights)[:, np.newaxis],
            fit_background=True,
            max_inner=max_inner,
            tol=max(min(0.1, 3 * moves[-1]) if moves else 0.1, 1e-6),
        )
        relaxation = relaxation.after(step.signals)
        factor = relaxation.factors(signals)
        power = float(abs2(signals).sum())
        moves.append(float(np.linalg.norm(step.signals)) / np.sqrt(power))
        signals, backgrounds = signals + factor * step.signals, backgrounds + factor * step.backgrounds
        converged = moves[-1] < 1e-12 or (moves[-1] < tol and moves[-1] < 0.02 * noise.scale / power)
    return Polished(
        signals[:, 0], float(backgrounds[0]), noise, projections[:, 0], residuals[:, 0], tuple(moves), converged
    )
