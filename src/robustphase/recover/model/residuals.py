"""Statistics of the residuals of one signal, robust and in the order of the predictions."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from robustphase.recover.model.figure_options import FIGURES
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


NORMAL_MAD = 1.4826


def clip(residuals: Array, scales: Array, keep: Array) -> tuple[Array, Array]:
    """Kept residuals over their scale, clipped and centred, zero where they are not kept; and their means before."""
    clipped = np.clip(residuals / np.maximum(scales, _TINY), -FIGURES.clip, FIGURES.clip)
    clipped = np.where(keep, clipped, 0.0)
    means = clipped.sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
    return clipped - np.where(keep, means, 0.0), means


def slope_along(predictions: Array, residuals: Array) -> tuple[float, float]:
    """Slope of responses along predictions, and its standard error."""
    if predictions.size < FIGURES.fewest:
        return 1.0, np.inf
    centred = predictions - predictions.mean()
    squares = float(centred @ centred)
    if not 0 < squares < np.inf:
        return 1.0, np.inf
    slope = float(centred @ residuals) / squares
    left = (residuals - residuals.mean() - slope * centred) * centred
    return 1.0 + slope, float(np.sqrt(left @ left)) / squares


def robust_scale(values: Array) -> float:
    """Median absolute deviation from the median, as a standard deviation."""
    if not values.size:
        return 0.0
    return NORMAL_MAD * median(np.abs(values - median(values)))


def median(values: Array) -> float:
    """The upper median; NumPy's own takes several times as long for a few thousand numbers."""
    return float(np.partition(values, values.size // 2)[values.size // 2])


def correlation(a: Array, b: Array) -> float:
    """Correlation; zero for few values or constant ones."""
    if a.size < FIGURES.fewest:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if 0 < size < np.inf else 0.0


def rank_correlation(a: Array, b: Array) -> float:
    """Correlation of the ranks."""
    return correlation(_ranks(a), _ranks(b)) if a.size else 0.0


def _ranks(values: Array) -> Array:
    """Ranks; those of equal values are their mean."""
    order = np.argsort(values)
    ordered = values[order]
    ranks = np.empty(values.size)
    ranks[order] = np.arange(values.size)
    if (ordered[1:] == ordered[:-1]).any():
        return np.asarray(rankdata(values), np.float64)
    return ranks


def unexplained_share(residuals: Array, responses: Array) -> float:
    """Variance of the residuals over that of the responses."""
    if not residuals.size:
        return 1.0
    return float(np.var(residuals) / max(float(np.var(responses)), _TINY))


def unevenness(predictions: Array, residuals: Array, *, counts: bool = False) -> float:
    """Scale of the residuals of the upper third over that of the lower third; both ordered by the prediction."""
    third = predictions.size // 3
    if third < FIGURES.fewest:
        return 1.0
    scale = _root_mean_square if counts else robust_scale
    low, high = scale(residuals[:third]), scale(residuals[-third:])
    return high / low if low > 0 else 1.0


def roughness(predictions: Array, residuals: Array) -> float:
    """Scale of the residuals of the upper third over its median prediction; both ordered by the prediction."""
    third = predictions.size // 3
    if third < FIGURES.fewest:
        return 0.0
    return robust_scale(residuals[-third:]) / max(float(predictions[-third // 2]), _TINY)


def weighed_noise(predictions: Array, residuals: Array) -> float:
    """Root of the mean of ``r²`` weighed by the prediction, with residuals clipped at multiples of the scale of their third."""
    if predictions.size < 3 * FIGURES.fewest:
        return 0.0
    total = 0.0
    for p, r in zip(np.array_split(predictions, 3), np.array_split(residuals, 3), strict=True):
        limit = FIGURES.clip * robust_scale(r)
        total += float(np.square(np.clip(r - median(r), -limit, limit)) @ p)
    return float(np.sqrt(total / max(float(predictions.sum()), _TINY)))


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
