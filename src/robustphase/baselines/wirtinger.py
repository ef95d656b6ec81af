"""Wirtinger flow: plain least squares by gradient descent from a spectral start (Candès, Li and Soltanolkotabi, 2015).

The reference point of every comparison: as accurate as it gets on clean data with Gaussian noise, and defenceless.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.result import BaselineResult
from robustphase.initialise.start import plain_spectral_start
from robustphase.rows import squared_loss_gradient
from robustphase.rows.source import Array
from robustphase.validation import check_samples

#: Gradient step in units of 1/‖x₀‖²: close to the best for curvatures between 2 and 6, with room for a rough start.
STEP = 0.2


def wirtinger_flow(
    A: Any, y: Any, *, start: Array | None = None, max_iter: int = 500, tol: float = 1e-6
) -> BaselineResult:
    """Least squares ``min Σ (|aᴴx|² − y)²`` by gradient descent.

    Parameters
    ----------
    A : array-like of shape (m, n)
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the plain spectral start.
    max_iter : int, default=500
        Most gradient steps.
    tol : float, default=1e-6
        Stop when a step moves the signal by less than this fraction of its norm.

    Returns
    -------
    BaselineResult
    """
    samples = check_samples(A, y)
    x0 = plain_spectral_start(samples.source, samples.responses) if start is None else np.asarray(start)
    step = STEP / max(float(np.linalg.norm(x0)) ** 2, np.finfo(np.float64).tiny)
    x, iteration, converged = x0, 0, False
    while iteration < max_iter and not converged:
        move = step * squared_loss_gradient(samples.source, samples.responses, x).total
        size, length = float(np.linalg.norm(move)), float(np.linalg.norm(x))
        # Bad data can make the flow diverge: keep each step below half of the signal, as every careful user would.
        if size > 0.5 * length > 0:
            move *= 0.5 * length / size
        x = x - move
        iteration += 1
        converged = size <= tol * length
    return BaselineResult(x, x0, iteration, converged)
