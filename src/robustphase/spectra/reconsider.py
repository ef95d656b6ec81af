"""Reconsider every point once some are known to be bad: taken ones may come back, kept ones may go.

The filter takes points from the far ends of single directions. What it takes shows what is wrong, and with that knowledge all
points can be judged at once, by their :mod:`outlyingness <robustphase.spectra.outlyingness>`. How outlying is too outlying? The
*local false discovery rate* (Efron 2004) tells: among the points at a score, the share that good points explain. Scores of good
points are standard normal; how many points there are at each score is counted. A point's weight is that share, where the count is
above what good points explain by more than its noise.

Hard limits would cut off the tails of the good points, and leave the bad ones that are below. With these weights both errors
cancel: where good and bad overlap, the weighted points have the moments of the good ones.

Points are counted on a grid, smoothed by a normal kernel. A second peak of such a density shows what no direction does: a group
of points that are good but for their scale, such as readings in another unit, leaves the shape along every direction nearly as it
was, so no direction shows it. Whitened points of many dimensions nearly all have one length, and there a group of another length
is a second peak of the density. Heavy tails are not: the density falls all the way. Logarithms of lengths are looked at, on which
heavy tails have no far ends, and a peak counts if it rises above the valley before it by more than the noise of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, derived, numeric
from robustphase.means.excess import OPTIONS as EXCESS
from robustphase.rows import RowSource
from robustphase.rows.source import Array
from robustphase.spectra.outlyingness import OPTIONS as OUTLYINGNESS
from robustphase.spectra.outlyingness import yardstick_of


@dataclass(frozen=True)
class DensityOptions:
    """The kernel and the grid."""

    bandwidth: float = derived(1.06, "times N^(-1/5): the best kernel for a normal density (Silverman)")
    cells: int = numeric(4, "cells of the grid in a bandwidth")
    reach: int = numeric(4, "bandwidths at which the kernel ends")


KERNEL = DensityOptions()


class Density(NamedTuple):
    """Places, how much there is at each per unit, and the bandwidth."""

    grid: Array
    values: Array
    width: float


def smoothed_counts(scores: Array, weights: Array, farthest: float) -> Density:
    """Density of weighted scores in [-farthest, farthest] that have deviation one."""
    width = KERNEL.bandwidth * float(weights.sum()) ** -0.2
    step = width / KERNEL.cells
    grid = np.arange(-farthest, farthest + 2 * step, step)
    return Density(grid, _smooth(_counts(scores, weights, grid[0], step, grid.size), width, step), width)


def _counts(values: Array, weights: Array, first: float, step: float, size: int) -> Array:
    """Weights counted on a grid, each shared by the two neighbours of its value, so that roundings move nothing."""
    position = (values - first) / step
    cell = np.floor(position).astype(np.intp)
    part = position - cell
    counts = np.bincount(cell, weights * (1.0 - part), size) + np.bincount(cell + 1, weights * part, size)
    return np.asarray(counts[:size])


def _smooth(counts: Array, width: float, step: float) -> Array:
    """Counts smoothed by a normal kernel."""
    offsets = np.arange(-KERNEL.reach * KERNEL.cells, KERNEL.reach * KERNEL.cells + 1) * step
    kernel = np.exp(-(offsets**2) / (2 * width**2))
    return np.asarray(np.convolve(counts, kernel / (kernel.sum() * step), mode="same"))


@dataclass(frozen=True)
class PeakOptions:
    """When a peak is one."""

    noise: float = derived(4.0, "standard deviations of a rise; a peak is looked for at some hundred places")
    farthest: float = numeric(3.0, "larger logarithms of lengths over the usual one count as this")
    most: float = numeric(1000.0, "and more deviations as this many: equal lengths deviate by roundings alone")
    fewest: float = derived(0.01, "share of the points below which a group does no harm: it moves variances by less")


PEAKS = PeakOptions()


def some_stand_apart(roots: Array, centre: float, scale: float) -> bool:
    """Whether lengths have a second peak.

    ``roots`` (N,) are cube roots of squared lengths, nearly normal for good points, with this median and deviation.
    """
    relative = scale / centre if centre > 0 else np.inf
    if not np.isfinite(relative) or relative <= np.finfo(np.float64).eps:
        return False
    farthest = min(PEAKS.farthest / relative, PEAKS.most)
    values = np.log(np.maximum(roots, np.exp(-PEAKS.farthest) * centre) / centre) / relative
    seen = smoothed_counts(np.clip(values, -farthest, farthest), np.ones(roots.size), farthest)
    outwards, inwards = seen.values[seen.grid >= 0], seen.values[seen.grid <= 0]
    cell = float(seen.grid[1] - seen.grid[0]) / roots.size
    return any(_beyond_valley(side, seen.width) * cell > PEAKS.fewest for side in (outwards, inwards[::-1]))


def _beyond_valley(density: Array, width: float) -> float:
    """How much lies beyond the valley before the first peak of a density that is followed outwards; zero without a peak."""
    valley = np.minimum.accumulate(density)
    # Variance of a count that a normal kernel has smoothed, of both.
    noise = np.sqrt((density + valley) / (2 * np.sqrt(np.pi) * width))
    peaks = density - valley > PEAKS.noise * noise
    if not peaks.any():
        return 0.0
    lowest = int(np.argmin(density[: int(np.argmax(peaks)) + 1]))
    return float(density[lowest:].sum())


@dataclass(frozen=True)
class ReconsiderOptions:
    """How often points are reconsidered, and when their density is too high."""

    rounds: int = budget(4, "most data settle in two or three")
    settled: float = budget(0.002, "mean change of the weights that is not worth another round")
    noise: float = derived(3.0, "standard deviations of a count; one in 700 counts of good points is higher")
    lowest: float = derived(
        -1.0, "good points between this score and zero, hardly any bad ones among them, tell how many are good"
    )
    share_below: float = derived(0.3413447460685429, "probability of a standard normal variable between -1 and 0")
    highest: float = numeric(12.0, "larger scores count as this one; a good point has none in 10^30 data sets")
    negligible: float = numeric(1e-3, "smaller weights are zero")


OPTIONS = ReconsiderOptions()


class Reconsidered(NamedTuple):
    """Weights of all points in [0, 1], and the mean and covariance of the points with these weights."""

    weights: Array
    mean: Array
    covariance: Array


def enough_points(count: float, dimension: int) -> bool:
    """Whether there are enough points to whiten them."""
    return count >= OUTLYINGNESS.per_dimension * dimension


def reconsider(
    source: RowSource,
    keep: Array,
    usable: Array,
    contamination: float | str,
    *,
    centred: bool,
    short_too: bool = False,
) -> Reconsidered:
    """Weights of all points, given those that were kept, of rows amid zero.

    The stated share of the points may have a weight below one, unless the filter has found more. With ``short_too`` points may
    be bad for being shorter than good ones as well: they lower every variance.
    """
    most = EXCESS.most if isinstance(contamination, str) else max(contamination, 1.0 - float(keep.mean()))
    weights = keep.astype(np.float64)
    for _ in range(OPTIONS.rounds):
        _, scores, _ = yardstick_of(source, weights, usable, centred=centred)
        before, weights = weights, usable.astype(np.float64)
        # The subspace first: what it explains must not be held against points of the same length.
        if scores.shape[1] > 1:
            weights = weights * good_shares(scores[:, 1], weights, most)
        weights = weights * good_shares(scores[:, 0], weights, most, low_too=short_too)
        if float(np.abs(weights - before).mean()) < OPTIONS.settled:
            break
    yardstick, _, covariance = yardstick_of(source, weights, usable, centred=centred)
    return Reconsidered(weights, yardstick.origin, covariance)


def good_shares(scores: Array, weights: Array, most: float, *, low_too: bool = False) -> Array:
    """Share of good points among those at each score: one minus the local false discovery rate, falling away from zero.

    Scores are standard normal for good points. Weights say how much each point counts: what is left of it after other scores.
    The share ``most`` of the points, those with the highest scores, may have less than one; with ``low_too`` those with the
    largest of either sign.
    """
    count, total = scores.size, float(weights.sum())
    clipped = np.clip(scores, -OPTIONS.highest, OPTIONS.highest)
    grid, density, width = smoothed_counts(clipped, weights, OPTIONS.highest)
    below = float(weights[(clipped > OPTIONS.lowest) & (clipped <= 0)].sum()) / OPTIONS.share_below
    # The counts are smoothed, so the density of good points has to be: a normal law with the variances added.
    variance = 1.0 + width**2
    explained = min(below, total) * np.exp(-(grid**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    # Variance of a count that a normal kernel has smoothed.
    noise = np.sqrt(explained / (2 * np.sqrt(np.pi) * width))
    above = density > explained + OPTIONS.noise * noise
    share = np.where(above, explained / np.where(above, density, 1.0), 1.0)
    high = np.minimum.accumulate(np.where(grid > 0, share, 1.0))
    low = np.minimum.accumulate(np.where(grid < OPTIONS.lowest, share, 1.0)[::-1])[::-1]
    low_too = low_too and bool((low < 1.0).any())
    found: Array = np.asarray(np.interp(clipped, grid, np.minimum(high, low) if low_too else high))
    found[found < OPTIONS.negligible] = 0.0
    allowed = round(most * count)
    if allowed < count:
        size = np.abs(scores) if low_too else scores
        limit = np.partition(size, count - allowed - 1)[count - allowed - 1]
        found[size <= limit] = 1.0
    return found
