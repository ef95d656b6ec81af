"""The yardstick: least squares started at the truth and told which samples are clean.

No method can be expected to do better on Gaussian noise. With heavy tails some do, because they also weigh down clean samples
with large noise; their ratio is then below one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Most Gauss-Newton steps, and the relative step at which they stop.
STEPS, SETTLED = 30, 1e-10


def oracle_least_squares(
    A: NDArray[Any], y: NDArray[Any], truth: NDArray[Any], *, background: float | None = None
) -> NDArray[Any]:
    """Least squares on clean samples, by Gauss-Newton steps from the truth.

    Parameters
    ----------
    A : ndarray of shape (m, n)
        Covariates of the clean samples, real or complex.
    y : ndarray of shape (m,)
        Their responses.
    truth : ndarray of shape (n,)
        Where to start.
    background : float, optional
        The noise mean, from which a background is fitted as well. Default: none is.

    Returns
    -------
    ndarray of shape (n,)
    """
    x, constant = truth, background or 0.0
    with_background = [] if background is None else [np.ones((y.size, 1))]
    for _ in range(STEPS):
        projections = A @ x
        slopes = 2.0 * projections.conj()[:, np.newaxis] * A
        parts = [slopes.real, -slopes.imag] if np.iscomplexobj(slopes) else [slopes]
        design = np.hstack((*parts, *with_background))
        # Normal equations: designs are well conditioned but for what does not show at all, and this is the cost of every world.
        normal = design.T @ design
        if len(parts) == 2:
            # The phase is free: held by a term of its own, which the right side knows nothing of, it stays as it is.
            phase = np.concatenate((-x.imag, x.real, np.zeros(len(with_background))))
            normal += np.outer(phase, phase) * normal.trace() / (2 * x.size * (phase @ phase))
        step = np.linalg.lstsq(normal, design.T @ (y - np.abs(projections) ** 2 - constant), rcond=None)[0]
        x = x + (step[: x.size] if len(parts) == 1 else step[: x.size] + 1j * step[x.size : 2 * x.size])
        constant += float(step[-1]) if with_background else 0.0
        if np.linalg.norm(step) <= SETTLED * np.linalg.norm(x):
            break
    return x
