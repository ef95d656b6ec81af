"""Location and spread of numbers by order statistics: what outliers below a quarter of the data cannot move far.

Order statistics are taken without interpolation, so that doubling every point changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows.source import Array

#: Interquartile range of a standard normal variable.
NORMAL_IQR = 1.3489795003921634


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


def distinct_count(values: Array, rtol: float = 1e-12) -> int:
    """How many different numbers there are, up to roundings: copies of a point add weight but no evidence."""
    if values.size == 0:
        return 0
    ordered = np.sort(values)
    return 1 + int(np.count_nonzero(np.diff(ordered) > rtol * ordered[-1]))


def rank_shares(values: Array) -> Array:
    """Share of the data below each value; of those equal to it, itself included, half are counted."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] > ordered[:-1])))
    ends = np.append(starts[1:], values.size)
    shares = np.empty(values.size)
    shares[order] = np.repeat(0.5 * (starts + ends) / values.size, ends - starts)
    return shares
