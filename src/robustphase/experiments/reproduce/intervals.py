"""Confidence intervals for the three kinds of figures: shares, slopes, and sample sizes that are needed.

All at one level. About ten figures of a complete run are compared with an exact value; each comparison errs with probability
one percent, so one run in ten or so would judge a true claim wrongly had its seeds been drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

#: Level of all intervals.
CONFIDENCE = 0.99
#: Resamples of a bootstrap.
RESAMPLES = 1000

Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A figure and its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g}"

    @property
    def interval(self) -> str:
        """The interval as text."""
        return f"[{self.low:.3g}, {self.high:.3g}]"

    def meets(self, low: float, high: float) -> bool:
        """Whether the interval has a point in common with [low, high]; never where nothing could be estimated."""
        return bool(self.low <= high and self.high >= low)


def share(successes: int, runs: int) -> Estimate:
    """A share with the interval of Clopper and Pearson (1934), which never covers less often than it says."""
    exact = stats.binomtest(successes, runs).proportion_ci(CONFIDENCE, method="exact")
    return Estimate(successes / runs, float(exact.low), float(exact.high))


def mean(values: npt.ArrayLike) -> Estimate:
    """A mean with Student's interval."""
    found = np.asarray(values, dtype=np.float64)
    centre = float(found.mean())
    if found.size < 2:
        return Estimate(centre, -np.inf, np.inf)
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, found.size - 1) * found.std(ddof=1) / np.sqrt(found.size))
    return Estimate(centre, centre - reach, centre + reach)


def slope(x: npt.ArrayLike, curves: npt.ArrayLike) -> Estimate:
    """Mean slope of several curves over ``x``, one per row, with Student's interval.

    Each seed gives one curve and one least-squares slope. These are independent, so nothing is assumed of how the values of
    one curve depend on each other.

    Parameters
    ----------
    x : array-like of shape (k,)
        Abscissae, as they enter the fit: take logarithms before.
    curves : array-like of shape (seeds, k)
        Ordinates.
    """
    abscissae = np.asarray(x, dtype=np.float64)
    centred = abscissae - abscissae.mean()
    return mean(np.asarray(curves, dtype=np.float64) @ centred / float(centred @ centred))


def bootstrap(samples: Sequence[Floats], statistic: Callable[[list[Floats]], float], *, seed: int = 0) -> Estimate:
    """A statistic of several independent samples, with the percentile interval of resampling within each.

    Parameters
    ----------
    samples : sequence of ndarray of shape (runs, ...)
        One per setting; runs are resampled.
    statistic : callable
        From the list of samples to a number; resamples for which it is not finite are left out, if they are few.
    seed : int, default=0
        Of the resampling.
    """
    rng = np.random.default_rng(seed)
    found = np.array(
        [statistic([each[rng.integers(len(each), size=len(each))] for each in samples]) for _ in range(RESAMPLES)]
    )
    value = statistic(list(samples))
    finite = found[np.isfinite(found)]
    if not np.isfinite(value) or finite.size < 0.9 * RESAMPLES:
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(finite, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Estimate(value, float(low), float(high))
