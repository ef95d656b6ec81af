"""Where readings jump: rows between which gain or background changes at once, as between two runs of an instrument.

Binary segmentation: the row is sought at which splitting a segment, with a gain and a background of its own for either side,
lowers the sum of squares most; then segments are split in the same way as long as Schwarz' criterion gains by it. A split costs
three unknowns: two values and the place. Sums over any segment are differences of running sums, so that a search is one pass over
numbers that every row has one of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)
#: Unknowns of a split: a gain, a background and the row.
UNKNOWNS = 3


class _Split(NamedTuple):
    """The best row at which to split a segment, and how much that lowers the weighted mean square."""

    row: int
    gain: float


def find_jumps(y: Array, energies: Array, weights: Array, *, fewest: int, most: int) -> Array:
    """First rows of the segments but the first, in order.

    Parameters
    ----------
    y, energies, weights : ndarray of shape (m,)
        Readings, predicted energies, and weights that add up to one.
    fewest : int
        Readings of a segment, at least.
    most : int
        Segments at most.
    """
    count = 1 / max(float(weights @ weights), _TINY)
    columns = np.stack((np.ones_like(y), energies, energies**2, y, y * energies, y * y), axis=1)
    sums = np.vstack((np.zeros(6), np.cumsum(weights[:, np.newaxis] * columns, axis=0)))
    left = float(_squares(sums[-1:])[0])
    ends = [0, y.size]
    splits = {(0, y.size): _best_split(sums, 0, y.size, fewest)}
    while len(ends) - 1 < most:
        segment, split = max(splits.items(), key=lambda item: item[1].gain)
        after = max(left - split.gain, _TINY)
        if split.gain <= 0 or count * np.log(max(left, _TINY) / after) <= UNKNOWNS * np.log(max(count, 2.0)):
            break
        left = after
        del splits[segment]
        for part in ((segment[0], split.row), (split.row, segment[1])):
            splits[part] = _best_split(sums, *part, fewest)
        ends = sorted([*ends, split.row])
    return np.array(ends[1:-1], dtype=np.intp)


def segments(m: int, jumps: Array) -> Array:
    """Indicators of the segments between jumps, shape (m, segments)."""
    codes = np.searchsorted(jumps, np.arange(m), side="right")
    indicators: Array = np.eye(jumps.size + 1)[codes]
    return indicators


def _best_split(sums: Array, low: int, high: int, fewest: int) -> _Split:
    rows = np.arange(low + fewest, high - fewest + 1)
    if rows.size == 0:
        return _Split(low, 0.0)
    whole = float(_squares(sums[[high]] - sums[[low]])[0])
    gains = whole - _squares(sums[rows] - sums[low]) - _squares(sums[high] - sums[rows])
    best = int(np.argmax(gains))
    return _Split(int(rows[best]), float(gains[best]))


def _squares(sums: Array) -> Array:
    """Least weighted sums of squares ``Σ w (y − b − g e)²``, from the sums over the segments."""
    w, e, ee, y, ye, yy = np.moveaxis(sums, -1, 0)
    mass = np.maximum(w, _TINY)
    spread, common, total = ee - e * e / mass, ye - e * y / mass, yy - y * y / mass
    explained = np.where(spread > 1e-12 * np.abs(ee), common**2 / np.maximum(spread, _TINY), 0.0)
    squares: Array = np.maximum(total - explained, 0.0)
    return squares
