"""Confidence intervals of shares, slopes and sample sizes that are needed, and how the latter grow.

All at one level. About ten figures of a complete run are compared with an exact value; each comparison errs with
probability one percent, so one run in ten or so would judge a true claim wrongly had its seeds been drawn anew.

For the sample size that is needed in a dimension, samples are doubled until nine of ten runs reach a goal, and once more.
Where errors fall smoothly, a straight line through the logarithms of their 90 percent quantile, near the goal, says which
size was needed (:func:`size_for_error`); where runs either succeed or fail, the share of those that succeed does
(:func:`size_for_success`). A line through the logarithms of the sizes says how they grow with n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from robustphase.experiments.parallel import Pool

#: Level of all intervals.
CONFIDENCE = 0.99
#: Resamples of a bootstrap.
RESAMPLES = 1000
#: Share of the runs that must reach the goal, where errors fall smoothly, and where runs either succeed or fail: there the
#: middle of the transition is what a moderate number of runs can tell.
SHARE, HALF = 0.9, 0.5
#: Quantiles within this factor of the goal enter the fit: farther away errors saturate.
NEAR = 4.0
#: Most doublings.
DOUBLINGS = 9
#: How far above the claimed one an exponent may be at finite sizes.
SLACK = 0.05

Floats = npt.NDArray[np.float64]
SizeFor: TypeAlias = Callable[[Sequence[int], Floats, float], float]


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
    if np.ptp(found) == 0.0:
        return Estimate(centre, centre, centre)
    interval = stats.ttest_1samp(found, 0.0).confidence_interval(CONFIDENCE)
    return Estimate(centre, float(interval.low), float(interval.high))


def slope(x: npt.ArrayLike, curves: npt.ArrayLike) -> Estimate:
    """Mean slope of several curves over ``x``, one per row, with Student's interval.

    Each seed gives one curve and one least-squares slope. These are independent, so nothing is assumed of how the values of one
    curve depend on each other. Take logarithms before, if they are to enter the fit.
    """
    abscissae = np.asarray(x, dtype=np.float64)
    centred = abscissae - abscissae.mean()
    return mean(np.asarray(curves, dtype=np.float64) @ centred / float(centred @ centred))


def bootstrap(samples: Sequence[Floats], statistic: Callable[[list[Floats]], float], *, seed: int = 0) -> Estimate:
    """A statistic of several independent samples, with the percentile interval of resampling within each.

    Resamples for which the statistic is not finite are left out, if they are few.
    """

    def of_runs(*chosen: npt.NDArray[np.intp]) -> float:
        return statistic([each[runs] for each, runs in zip(samples, chosen, strict=True)])

    value = statistic(list(samples))
    if not np.isfinite(value):
        return Estimate(value, float("nan"), float("nan"))
    found = stats.bootstrap(
        [np.arange(len(each)) for each in samples],
        of_runs,
        n_resamples=RESAMPLES,
        vectorized=False,
        method="percentile",
        random_state=np.random.default_rng(seed),
    ).bootstrap_distribution
    finite = found[np.isfinite(found)]
    if finite.size < 0.9 * RESAMPLES:
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(finite, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Estimate(value, float(low), float(high))


class Curve(NamedTuple):
    """Errors of independent runs, shape (runs, sizes), at increasing sample sizes in one dimension."""

    n: int
    sizes: tuple[int, ...]
    errors: Floats


class Growth(NamedTuple):
    """Needed sample sizes, with their intervals, and the exponent of their growth."""

    needed: tuple[Estimate, ...]
    exponent: Estimate


def error_curve(
    error: Callable[[tuple[int, int, int]], float], n: int, first: int, goal: float, seeds: int, pool: Pool
) -> Curve:
    """Errors at ``first``, twice, four times as many samples …, one size beyond the first that is enough for the goal.

    ``error`` maps ``(n, m, seed)`` to an error.
    """
    sizes: list[int] = []
    errors: list[list[float]] = []
    enough = 0
    while enough < 2 and len(sizes) <= DOUBLINGS:
        m = first * 2 ** len(sizes)
        sizes.append(m)
        # Fresh worlds at every size: one unlucky world must not bend the whole curve.
        errors.append(pool.map(error, [(n, m, seed + seeds * len(sizes)) for seed in range(seeds)]))
        enough += bool(np.quantile(errors[-1], SHARE) <= goal)
        pool.say(
            f"n={n}, m={m}: {SHARE:.0%} of the errors below {np.quantile(errors[-1], SHARE):.3g} (goal {goal:.3g})"
        )
    return Curve(n, tuple(sizes), np.array(errors).T)


def size_for_error(sizes: Sequence[int], errors: Floats, goal: float) -> float:
    """Sample size at which the 90 percent quantile meets the goal; NaN if the curve does not come near it."""
    quantiles = _quantile(errors)
    near = (quantiles <= NEAR * goal) & (quantiles >= goal / NEAR)
    if near.sum() < 2:
        return float("nan")
    incline, level = _line(np.log(np.asarray(sizes, dtype=np.float64)[near]), np.log(quantiles[near]))
    return float(np.exp((np.log(goal) - level) / incline)) if incline < 0 else float("nan")


def size_for_success(sizes: Sequence[int], errors: Floats, goal: float) -> float:
    """Sample size from which on half of the errors are below the goal; NaN if that is not within the sizes."""
    shares = (errors <= goal).mean(axis=0)
    short = np.flatnonzero(shares < HALF)
    if short.size == 0 or short[-1] == len(sizes) - 1:
        return float("nan")
    i = int(short[-1])
    part = (HALF - shares[i]) / (shares[i + 1] - shares[i])
    return float(np.exp((1 - part) * np.log(sizes[i]) + part * np.log(sizes[i + 1])))


def growth(curves: Sequence[Curve], goal: float, size_for: SizeFor = size_for_error) -> Growth:
    """Needed sizes of all dimensions and the exponent, with bootstrap intervals over the runs."""
    samples = [curve.errors for curve in curves]
    dimensions = np.log([curve.n for curve in curves])

    def size_of(curve: Curve, resampled: list[Floats]) -> float:
        return size_for(curve.sizes, resampled[0], goal)

    def exponent(resampled: list[Floats]) -> float:
        sizes = [size_for(c.sizes, errors, goal) for c, errors in zip(curves, resampled, strict=True)]
        if not np.isfinite(sizes).all():
            return float("nan")
        return _line(dimensions, np.log(sizes))[0]

    return Growth(
        tuple(bootstrap([curve.errors], partial(size_of, curve)) for curve in curves),
        bootstrap(samples, exponent),
    )


def exponent_of(function: Callable[[float], float], dimensions: Sequence[int]) -> float:
    """Exponent that the same fit finds for a formula."""
    return _line(np.log(dimensions), np.log([function(n) for n in dimensions]))[0]


def _quantile(errors: Floats) -> Floats:
    """The quantile of every column, as NumPy defines it; a bootstrap asks for thousands."""
    ordered = np.sort(errors, axis=0)
    place = SHARE * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    between: Floats = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return between


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope and intercept by least squares."""
    centred = x - x.mean()
    incline = float(centred @ y / (centred @ centred))
    return incline, float(y.mean() - incline * x.mean())
