"""Excess: more spread along a direction than clean points explain, and the points that are taken away to end it.

No scale or covariance is given, so each direction is its own yardstick: the variance along it, over the variance its
quartiles suggest. Outliers below a quarter of the data raise the first and hardly the second. How large this ratio is for
clean data depends on their shape, so it is compared with the ratio along ordinary directions of the same data, in which a
bad minority does not stand out.

Order statistics are taken without interpolation, so that doubling every point changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.means.directions import real_columns
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array

#: Interquartile range of a standard normal variable.
NORMAL_IQR = 1.3489795003921634


@dataclass(frozen=True)
class ExcessOptions:
    """What is evidence against points, and how much of them may go."""

    slack: float = 0.1  # empirical: excess that is no evidence however many points there are
    slack_of_few: float = 4.0  # derived: quartiles of N points are known to 2/sqrt(N); of several directions the worst
    blatant: float = 3.0  # empirical: beyond this excess the stated contamination cannot be right, and is no limit
    blatant_alone: float = 50.0  # empirical: the same in one dimension, which has no ordinary directions
    clear: float = 1.5  # empirical: the same when no contamination is stated
    balanced: float = 3.5  # derived: in standard errors; one in 2000 balanced far ends differs more between its sides
    far: float = 8.0  # empirical: in standard deviations; points beyond are taken from balanced far ends too
    costly: float = 2.0  # derived: squares above twice the average; without such a point the mean has less variance
    most: float = 0.45  # derived: nearly half; beyond that nobody can tell good from bad
    rounding: float = 1e-13  # numeric: projections that vary by less of their size are all the same
    distinct: float = 1e-12  # numeric: relative difference of numbers that are not copies of each other


OPTIONS = ExcessOptions()


class Limits(NamedTuple):
    """When points are taken, and how many."""

    slack: float  # Excess that is no evidence
    budget: float  # Share of the points that may be taken
    blatant: float  # Excess beyond which the budget is no limit
    copies: float  # How often each point is there, on average


class Excess(NamedTuple):
    """Spread along one direction, relative to its quartiles and to ordinary directions; 1 is clean."""

    ratio: float
    median: float
    explained: float


class Spread(NamedTuple):
    """Median, and the variance that a normal distribution with the same quartiles would have."""

    median: float
    variance: float


def quartile_spread(values: Array) -> Spread:
    """Median and quartile variance of a one-dimensional array."""
    last = values.size - 1
    quarter, half = (max(int(np.ceil(level * values.size)) - 1, 0) for level in (0.25, 0.5))
    # Each rank with its mirror image: a direction and its opposite must tell the same story.
    parted = np.partition(values, (quarter, half, last - half, last - quarter))
    median = 0.5 * (float(parted[half]) + float(parted[last - half]))
    return Spread(median, (float(parted[last - quarter] - parted[quarter]) / NORMAL_IQR) ** 2)


def distinct_count(values: Array) -> int:
    """How many different numbers there are, up to roundings: copies of a point add weight but no evidence."""
    if values.size == 0:
        return 0
    ordered = np.sort(values)
    return 1 + int(np.count_nonzero(np.diff(ordered) > OPTIONS.distinct * ordered[-1]))


def limits_for(distances: Array, contamination: float | str, *, strict: bool = False) -> Limits:
    """The limits for points at these distances, with a stated contamination, never to be exceeded if ``strict``, or "auto"."""
    distinct = distinct_count(distances)
    slack = float(OPTIONS.slack + OPTIONS.slack_of_few / np.sqrt(distinct))
    copies = distances.size / distinct
    if isinstance(contamination, str):
        return Limits(slack, 0.0, OPTIONS.clear, copies)
    return Limits(slack, contamination, np.inf if strict else OPTIONS.blatant, copies)


def shape_ratio(projections: Array) -> float:
    """Median over directions of the variance over the quartile variance: the shape of the points."""
    ratios = []
    for column in real_columns(projections).T:
        explained = quartile_spread(column).variance
        if explained > 0:
            ratios.append(float(column.var()) / explained)
    return float(np.median(ratios)) if ratios else 1.0


def ordinary_ratio(view: ScaledRows, keep: Array, ordinary: Array, worst: Array) -> float:
    """The shape of the clean points: that along ordinary directions.

    What the ordinary directions share with the worst ones is taken out of them first, since that is where a group of
    bad points would show. In few dimensions only the very worst are taken out; in one there is nothing to compare
    with, and the shape of a normal distribution has to do.
    """
    if view.shape[1] < 2:
        return 1.0
    return shape_ratio(view.inner(away_from(worst, ordinary))[keep])


def away_from(worst: Array, ordinary: Array) -> Array:
    """The ordinary directions without what they share with the worst ones, or in few dimensions with the very worst."""
    known = worst[:, : worst.shape[0] // 2]
    elsewhere: Array = ordinary - known @ (known.conj().T @ ordinary)
    elsewhere /= np.maximum(np.linalg.norm(elsewhere, axis=0), TINY)
    return elsewhere


def excess_of(values: Array, usual: float) -> Excess:
    """Spread of the kept projections on one direction, relative to what their quartiles and the usual ratio explain."""
    median, variance = quartile_spread(values)
    explained = usual * variance
    actual = float(values.var())
    if actual <= (OPTIONS.rounding * float(np.abs(values).max())) ** 2:
        # The points are one point along this direction, up to roundings, which are nobody's outliers.
        return Excess(1.0, median, explained)
    if explained > 0:
        return Excess(actual / explained, median, explained)
    # More than half of the points coincide along this direction: whatever varies at all is an excess.
    return Excess(np.inf if actual > 0 else 1.0, median, explained)


def take_excess(
    projections: Array,
    keep: Array,
    distances: Array,
    usual: float,
    limits: Limits,
    *,
    for_mean: bool = True,
) -> tuple[int, bool]:
    """Take away, in place, the points that cause an excess along any direction.

    Returns how many were taken, and whether no excess had to be left because the budget was used up.
    Directions with an excess below ``1 + limits.slack`` are left alone; once a direction is above, points are taken from its
    far end until no excess is left, because what remains of a group of outliers is still one-sided.
    """
    costly = distances**2 > OPTIONS.costly * float((distances[keep] ** 2).mean())
    columns = real_columns(projections)
    taken, explained = 0, True
    for column in columns.T:
        kept = np.flatnonzero(keep)
        excess = excess_of(column[kept], usual)
        limit = OPTIONS.most if excess.ratio > limits.blatant else limits.budget
        flagged = excess.ratio > 1 + limits.slack
        while flagged and excess.ratio > 1:
            room = int(limit * keep.size) - int(keep.size - kept.size)
            gone = kept[far_end(column[kept], excess, room)]
            if gone.size == 0:
                explained &= excess.ratio <= 1 + limits.slack
                break
            if for_mean and not one_sided(columns[gone], columns[kept], limits.copies):
                deviations = column[gone] - excess.median
                gone = gone[costly[gone] | (deviations**2 > OPTIONS.far**2 * excess.explained)]
                if gone.size == 0:
                    break
            keep[gone] = False
            taken += gone.size
            kept = np.flatnonzero(keep)
            excess = excess_of(column[kept], usual)
    return taken, explained


def one_sided(group: Array, everyone: Array, copies: float = 1.0) -> bool:
    """Whether a group of points at the far end of one direction leans to one side along any of the worst directions.

    A balanced far end is what heavy tails look like, and it does not move the mean. Of a balanced group we take only
    the points beyond ``OPTIONS.far`` standard deviations, where a few could outweigh the rest, and the costly ones.
    """
    deviations = group - np.median(everyone, axis=0)
    # Copies of a point lean the same way without being more evidence.
    balanced = OPTIONS.balanced * np.sqrt(copies)
    by_sum = np.abs(deviations.sum(axis=0)) > balanced * np.linalg.norm(deviations, axis=0)
    by_count = np.abs(np.sign(deviations).sum(axis=0)) > balanced * np.sqrt(len(group))
    return bool(by_sum.any() or by_count.any())


def far_end(values: Array, excess: Excess, room: int) -> Array:
    """Positions of the values farthest from the median whose removal brings the variance down to the explained one.

    At most ``room`` of them, except that values at equal distance go together: copies of a point share its fate, and a
    group of copies larger than the room that is left must not be safe for that.
    """
    deviation = values - excess.median
    size = np.abs(deviation)
    # Values at the median are at no end: where nearly all coincide, copies would go together until none is left.
    room = min(room, values.size - 1, int(np.count_nonzero(size)))
    if room <= 0:
        return np.empty(0, np.intp)
    # Only the farthest can go; sorting all of them would cost more than the rest of the filter.
    far = np.flatnonzero(size >= np.partition(size, size.size - room)[size.size - room])
    order = far[np.argsort(-size[far], kind="stable")]
    gone = deviation[order[:room]]
    left = values.size - np.arange(1, room + 1)
    first = deviation.sum() - np.cumsum(gone)
    second = (deviation**2).sum() - np.cumsum(gone**2)
    enough = second / left - (first / left) ** 2 <= excess.explained
    count = int(np.argmax(enough)) + 1 if enough.any() else room
    chosen: Array = order[size[order] >= size[order[count - 1]]]
    return chosen
