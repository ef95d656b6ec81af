"""The noise law that residuals are compared with: a two-piece Student density.

The recovery fits scale, tails and skew of the clean residuals together with the signal and hands out the scale. The rest is
fitted here again, to the residuals with the weights of their samples: the maximisation step of the same mixture.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import gammaln, stdtr, stdtrit

#: Ranges within which tails and skew are looked for.
DEGREES, SKEWS = (1.5, 200.0), (0.2, 5.0)
#: Residuals that are enough to fit four numbers.
SAMPLES = 20_000
#: First step of the search in every direction: centre in scales, the others as logarithms.
FIRST_STEP = 0.3
#: A scale below this share of the size of the responses is rounding, not noise.
ROUNDING = 1e-9


class NoiseLaw(NamedTuple):
    """Student's law with its own scale on either side of the centre.

    Attributes
    ----------
    centre : float
        Its peak. For skewed noise that is not the mean.
    scale : float
        Scale below the centre.
    degrees : float
        Degrees of freedom: small means heavy tails.
    skew : float
        Scale above the centre over the scale below.
    """

    centre: float
    scale: float
    degrees: float
    skew: float

    def density(self, residuals: ArrayLike) -> NDArray[np.float64]:
        """Density at some residuals."""
        _, t = self._standard(residuals)
        return np.exp(_log_peak(self.degrees) - (self.degrees + 1) / 2 * np.log1p(t**2 / self.degrees)) * self._height()

    def quantile(self, probabilities: ArrayLike) -> NDArray[np.float64]:
        """Residuals that are exceeded with probability one minus these."""
        p = np.asarray(probabilities, np.float64)
        below = 1 / (1 + self.skew)
        lower = stdtrit(self.degrees, np.minimum(p * (1 + self.skew) / 2, 0.5))
        upper = stdtrit(self.degrees, np.maximum(0.5 + (p - below) * (1 + self.skew) / (2 * self.skew), 0.5))
        return np.asarray(self.centre + self.scale * np.where(p < below, lower, self.skew * upper), np.float64)

    def tail(self, residuals: ArrayLike) -> NDArray[np.float64]:
        """How probable a residual at least as far out on its side is, given its side."""
        _, t = self._standard(residuals)
        return np.asarray(2 * stdtr(self.degrees, -np.abs(t)), np.float64)

    def _standard(self, residuals: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r = np.asarray(residuals, np.float64) - self.centre
        width = np.where(r > 0, self.skew * self.scale, self.scale)
        return width, r / width

    def _height(self) -> float:
        return 2 / (1 + self.skew) / self.scale


def fit_law(residuals: NDArray[Any], weights: NDArray[Any], scale: float | None = None) -> NoiseLaw | None:
    """The law of largest weighted likelihood.

    Parameters
    ----------
    residuals, weights : ndarray of shape (m,)
        Response minus prediction, and the probability of each sample to be clean; samples that are not finite do not count.
    scale : float, optional
        The scale, where it is known. Default: fitted along.

    Returns
    -------
    NoiseLaw or None
        None where there is no noise to speak of, or fewer than ten samples have weight.
    """
    used = np.isfinite(residuals) & (weights > 0)
    r, w = np.asarray(residuals[used], np.float64), np.asarray(weights[used], np.float64)
    if r.size < 10:
        return None
    # Every so many, after sorting: the same law on fewer points.
    order = np.argsort(r, kind="stable")[:: max(r.size // SAMPLES, 1)]
    r, w = r[order], w[order] / w[order].sum()
    middle, width = _weighted_quantiles(r, w)
    unit = width if scale is None else scale
    if not unit > 0:
        return None

    def loss(point: NDArray[np.float64]) -> float:
        law = _law_at(point, middle, unit, scale)
        _, t = law._standard(r)
        fit = _log_peak(law.degrees) + np.log(law._height()) - (law.degrees + 1) / 2 * np.log1p(t**2 / law.degrees)
        return -float(w @ fit)

    start = np.array([0.0, np.log(5.0), 0.0] + ([] if scale is not None else [0.0]))
    bounds = [(-5.0, 5.0), tuple(np.log(DEGREES)), tuple(np.log(SKEWS))] + ([] if scale is not None else [(-3.0, 3.0)])
    simplex = np.vstack((start, start + FIRST_STEP * np.eye(start.size)))
    options: Any = {"xatol": 1e-3, "fatol": 1e-8, "maxiter": 2000, "initial_simplex": simplex}
    found = minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options)
    return _law_at(found.x, middle, unit, scale)


def _law_at(point: NDArray[np.float64], middle: float, unit: float, scale: float | None) -> NoiseLaw:
    width = unit * float(np.exp(point[3])) if scale is None else scale
    return NoiseLaw(middle + unit * float(point[0]), width, float(np.exp(point[1])), float(np.exp(point[2])))


def _weighted_quantiles(ordered: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Median and half the interquartile range."""
    mass = np.cumsum(weights)
    low, middle, high = ordered[np.minimum(np.searchsorted(mass, (0.25, 0.5, 0.75)), ordered.size - 1)].tolist()
    return middle, (high - low) / 2


def _log_peak(degrees: float) -> float:
    return float(gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi))
