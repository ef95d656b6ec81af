"""Does the residual depend on the prediction? For clean samples it cannot.

Noise is independent of the covariates. Attacks on the norm sit on the samples that know most of it, those with the largest
``|aᴴx|``; there the residuals then contradict what the others say. So the dependence of the residual on ``|aᴴx|²`` is fitted
on small values and extended outwards range by range; ranges that contradict all inner ones are given up.
"""

from __future__ import annotations

import numpy as np

from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Ranges of |aᴴx|/‖x‖ beyond the inner one.
RANGES = ((1.0, 1.3), (1.3, 1.645), (1.645, 2.0), (2.0, np.inf))
#: A range contradicts the inner ones when its mean residual is this many standard errors off.
CONTRADICTION = 8.0
#: Fewer samples than this prove nothing.
FEWEST = 20


def consistent_samples(projections: Array, residuals: Array, weights: Array, power: float) -> Array:
    """Which samples lie in ranges that do not contradict the inner ones (boolean, shape (m,)).

    Parameters
    ----------
    projections, residuals, weights : ndarray of shape (m,)
        At the estimate.
    power : float
        ‖x‖².
    """
    energy = abs2(projections) / power
    features = np.stack((energy, np.ones_like(energy)), axis=1)
    level = np.sqrt(energy)
    kept: Array = level < 1.0
    for low, high in RANGES:
        inside = (level >= low) & (level < high)
        few = min((inside & (weights > 0)).sum(), (kept & (weights > 0)).sum()) < FEWEST
        if few or abs(_contradiction(features, residuals, weights, kept, inside)) < CONTRADICTION:
            kept |= inside
    return kept


def _contradiction(features: Array, residuals: Array, weights: Array, inner: Array, outer: Array) -> float:
    """Mean residual of the outer samples against the fit on the inner ones, in standard errors."""
    used = inner & (weights > 0)
    f, w = features[used], weights[used]
    hessian = (f * w[:, np.newaxis]).T @ f
    # Where all inner samples have the same prediction the slope is not determined; the smallest one will do.
    inverse = np.linalg.pinv(hessian, hermitian=True)
    coefficients = inverse @ (f.T @ (w * residuals[used]))
    left = residuals - features @ coefficients
    scores = f * (w * left[used])[:, np.newaxis]
    covariance = inverse @ (scores.T @ scores) @ inverse
    shares = weights[outer] / weights[outer].sum()
    mean, middle = float(shares @ left[outer]), shares @ features[outer]
    variance = float(shares**2 @ (left[outer] - mean) ** 2 + middle @ covariance @ middle)
    return mean / max(float(np.sqrt(variance)), 1e-300)
