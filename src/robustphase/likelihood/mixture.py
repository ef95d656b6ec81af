"""The mixture of a Student density for clean residuals and the marginal density for bad responses.

All functions take residuals of several candidates at once, one column each.
"""

from __future__ import annotations

from math import exp, lgamma, pi, sqrt

import numpy as np
from scipy.special import stdtrit

from robustphase.likelihood.types import Array

#: Degrees of freedom while candidates are compared: heavier tails than the model's noise may have.
DEGREES = 3.0
#: Share of the clean residuals that sets their scale: most of them, so that a candidate that explains half of the data very
#: well and the rest not at all does not look precise.
LEVEL = 0.9
_QUANTILE = float(stdtrit(DEGREES, 0.5 + LEVEL / 2))
_PEAK = exp(lgamma((DEGREES + 1) / 2) - lgamma(DEGREES / 2)) / sqrt(DEGREES * pi)
#: Smallest scale, in units of the responses: below it residuals are roundings.
TINY_SCALE = 1e-12


def residual_scales(residuals: Array, active: Array, contamination: float) -> Array:
    """Scale of the clean residuals of each candidate, from the smallest ``0.9 (1 − ε)`` of them, shape (k,).

    ``active`` says which samples count: of shape (m,), (m, 1) or (m, k).
    """
    scales = np.empty(residuals.shape[1])
    chosen = np.broadcast_to(active if active.ndim == 2 else active[:, np.newaxis], residuals.shape)
    # One candidate at a time: a copy of all residuals would be the largest array of a fit.
    for index, column in enumerate(residuals.T):
        sizes = np.abs(column[chosen[:, index]])
        rank = min(int(LEVEL * (1 - contamination) * sizes.size), sizes.size - 1)
        sizes.partition(rank)
        scales[index] = max(sizes[rank] / _QUANTILE, TINY_SCALE)
    return scales


def mixture_weights(residuals: Array, density: Array, scales: Array, contamination: float) -> tuple[Array, Array]:
    """Weights of iterated least squares, and the ratio of the mixture to the marginal density; both (m, k)."""
    # A residual that overflows here, in single precision soon, has the density and the weight zero, as it should.
    with np.errstate(over="ignore"):
        spread = residuals / scales
        spread *= spread
        spread /= DEGREES
        spread += 1
        # In this order, and in place: the arrays of all candidates are the largest of a fit.
        total = ((1 - contamination) * _PEAK / scales) / (spread * spread)
    total /= density if density.ndim == 2 else density[:, np.newaxis]
    weights = total / spread
    total += contamination
    weights /= total
    weights *= (DEGREES + 1) / DEGREES
    return weights, total


def score(ratio: Array, weights: Array) -> Array:
    """Weighted mean log ratio of each candidate, shape (k,): larger is better. Weights of shape (m,), (m, 1) or (m, k)."""
    if weights.ndim == 1:
        weights = weights[:, np.newaxis]
    value: Array = (weights * np.log(ratio)).sum(axis=0) / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    return value
