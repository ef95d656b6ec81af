"""The likelihood that candidates are compared by: one noise law for all of them, and a share of bad samples as stated.

With clean residuals r of a Student density p of three degrees of freedom at scale σ, bad responses of density f and a share ε
of them, the score of a candidate is the weighted mean of ``log[(1 − ε) p(r/σ)/σ / f + ε]``: how much better it explains the
responses than no signal at all. All functions take residuals of several candidates at once, one column each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from robustphase.constants import empirical
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.likelihood.noise_model import NOISE

Array = NDArray[Any]


@dataclass(frozen=True)
class ComparisonOptions:
    """Constants of the comparison."""

    degrees: float = empirical(3.0, "degrees of freedom: tails heavier than those of most noise, so that none decides")
    level: float = empirical(
        0.9,
        "share of the clean residuals that sets their scale: most, or explaining half of the data well looks precise",
    )
    crowded: float = empirical(0.2, "level beyond which an adversary may own the majority of ordinary-looking samples")
    sinking: float = empirical(
        4.5, "power with which the density floor sinks beyond: only surprising samples tell then"
    )

    @property
    def quantile(self) -> float:
        """Size below which that share of the residuals of scale one lies."""
        return float(stdtrit(self.degrees, 0.5 + self.level / 2))

    @property
    def peak(self) -> float:
        """Density of a residual of zero at scale one."""
        return exp(lgamma((self.degrees + 1) / 2) - lgamma(self.degrees / 2)) / sqrt(self.degrees * pi)


COMPARISON = ComparisonOptions()


def comparison_floor(levels: Array) -> Array:
    """Floor of the density of bad responses at which candidates are compared, shape (k,)."""
    excess = np.minimum(1.0, COMPARISON.crowded / np.maximum(levels, np.finfo(np.float64).tiny))
    floors: Array = DENSITY.floor * excess**COMPARISON.sinking
    return floors


def residual_scales(residuals: Array, active: Array, levels: Array) -> Array:
    """Scale of the clean residuals of each candidate, from the smallest ``0.9 (1 − ε)`` of them, shape (k,).

    Parameters
    ----------
    residuals : ndarray of shape (m, k)
        Response minus prediction.
    active : ndarray of bool, shape (m, 1) or (m, k)
        Which samples count.
    levels : ndarray of shape (1,) or (k,)
        ε.
    """
    k = residuals.shape[1]
    scales, shares = np.empty(k), np.broadcast_to(COMPARISON.level * (1 - levels), (k,))
    chosen, quantile = np.broadcast_to(active, residuals.shape), COMPARISON.quantile
    # One candidate at a time: a copy of all residuals would be the largest array of a fit.
    for index, column in enumerate(residuals.T):
        sizes = np.abs(column[chosen[:, index]])
        rank = min(int(shares[index] * sizes.size), sizes.size - 1)
        sizes.partition(rank)
        scales[index] = max(sizes[rank] / quantile, NOISE.tiny_scale)
    return scales


def compare(residuals: Array, density: Array, scales: Array, levels: Array) -> tuple[Array, Array]:
    """Weights of iterated least squares, and the ratio of the mixture to the density of bad responses; both (m, k)."""
    degrees, precision = COMPARISON.degrees, residuals.dtype
    peaks = ((1 - levels) * COMPARISON.peak / scales).astype(precision)
    # In place: the arrays of all candidates are the largest of a fit. A square is many times as fast as a power. A residual
    # that overflows here, in single precision soon, has the density and the weight zero, as it should.
    with np.errstate(over="ignore"):
        spread = residuals / scales.astype(precision)
        spread *= spread
        spread /= degrees
        spread += 1
        ratio = spread * spread if degrees == 3.0 else spread ** ((degrees + 1) / 2)
    np.divide(peaks, ratio, out=ratio)
    ratio /= density
    weights = ratio / spread
    ratio += levels.astype(precision)
    weights /= ratio
    weights *= (degrees + 1) / degrees
    return weights, ratio


def score(ratio: Array, weights: Array) -> Array:
    """Weighted mean log ratio of each candidate, shape (k,): larger is better. Weights of shape (m, 1) or (m, k)."""
    total = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    value: Array = (weights * np.log(ratio)).sum(axis=0) / total
    return value
