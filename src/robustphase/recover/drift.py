r"""Slow drift of gain and background over the rows.

Rows are read one after the other, and meanwhile lamps fade and electronics warm up: ``y = γ(t) |aᴴx|² + b + δ(t) + noise`` with
the place t of the row in the order of reading. Both curves are broken lines with equal pieces, of which there are as many as the
residuals of a fit ask for, by Schwarz' criterion (BIC), none if they ask for none; or they jump, at rows that are found
(:func:`find_jumps`), as between two runs of an instrument, where the same criterion prefers that. Gain one and background zero
are those of the average row, so that the signal keeps its meaning.

A fit that knows of no drift still finds the signal by and large; from its residuals the curves are read, responses are corrected
by them, and the fit is repeated.

Jumps are found by binary segmentation: the row is sought at which splitting a segment, with a gain and a background of its own
for either side, lowers the sum of squares most; then segments are split in the same way as long as Schwarz' criterion gains by
it. A split costs three unknowns: two values and the place. Sums over any segment are differences of running sums, so that a
search is one pass over numbers that every row has one of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.rows.source import Array

#: Unknowns of a split: a gain, a background and the row.
UNKNOWNS = 3


class _Split(NamedTuple):
    """The best row at which to split a segment, and how much that lowers the weighted mean square."""

    row: int
    gain: float


def find_jumps(y: Array, energies: Array, weights: Array, *, fewest: int, most: int) -> Array:
    """First rows of the segments but the first, in order.

    Weights of the readings add up to one. A segment has at least ``fewest`` of them, and there are at most ``most`` segments.
    """
    count = 1 / max(float(weights @ weights), TINY)
    columns = np.stack((np.ones_like(y), energies, energies**2, y, y * energies, y * y), axis=1)
    sums = np.vstack((np.zeros(6), np.cumsum(weights[:, np.newaxis] * columns, axis=0)))
    left = float(_squares(sums[-1:])[0])
    ends = [0, y.size]
    splits = {(0, y.size): _best_split(sums, 0, y.size, fewest)}
    while len(ends) - 1 < most:
        segment, split = max(splits.items(), key=lambda item: item[1].gain)
        after = max(left - split.gain, TINY)
        if split.gain <= 0 or count * np.log(max(left, TINY) / after) <= UNKNOWNS * np.log(max(count, 2.0)):
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
    mass = np.maximum(w, TINY)
    spread, common, total = ee - e * e / mass, ye - e * y / mass, yy - y * y / mass
    explained = np.where(spread > 1e-12 * np.abs(ee), common**2 / np.maximum(spread, TINY), 0.0)
    squares: Array = np.maximum(total - explained, 0.0)
    return squares


DRIFTS = (None, "auto")


@dataclass(frozen=True)
class DriftOptions:
    """Constants of the drift."""

    pieces: tuple[int, ...] = budget(
        (0, 1, 2, 4, 8, 16), "numbers of pieces that are tried for either curve; 0 is no drift"
    )
    fewest: int = derived(30, "readings per knot: with fewer, a knot is known no better than a fifth of the noise")
    least_gain: float = numeric(0.1, "least gain: a detector that reads less at times reads nothing")
    segments: int = budget(32, "segments at most between which readings jump")
    rounds: int = budget(4, "fits at most")
    settled: float = numeric(
        0.05, "change of the curves between two fits, in scales of the noise, at which they have settled"
    )


DRIFT = DriftOptions()


class Drift(NamedTuple):
    """Gains and backgrounds of every reading, both of shape (m, p); one and zero on average.

    ``levels`` (p,) are the constant backgrounds beside them, which no gain multiplies.
    """

    gains: Array
    backgrounds: Array
    levels: Array

    @property
    def any(self) -> bool:
        """Whether anything drifts."""
        return bool(np.any(self.gains != 1) or np.any(self.backgrounds != 0))

    def corrected(self, responses: Array) -> Array:
        """Responses (m, p) as they would have been read without the drift."""
        corrected: Array = (responses - self.backgrounds - self.levels) / self.gains + self.levels
        return corrected


def no_drift(shape: tuple[int, ...]) -> Drift:
    """Nothing drifts."""
    return Drift(np.ones(shape), np.zeros(shape), np.zeros(shape[-1]))


def find_drift(responses: Array, energies: Array, weights: Array) -> Drift:
    """The drift that the residuals of a fit show, of responses (m, p) in the order in which they were read.

    Weights are those of the last least-squares problem: zero for bad readings, smaller where the noise is wider.
    """
    found = [_column(*columns) for columns in zip(responses.T, energies.T, weights.T, strict=True)]
    gains, backgrounds, levels = (np.stack(parts, axis=-1) for parts in zip(*found, strict=True))
    return Drift(gains, backgrounds, levels)


class _Shape(NamedTuple):
    """Functions (m, k) that backgrounds and gains are sums of, and how many unknowns they bring."""

    backgrounds: Array
    gains: Array
    unknowns: int


def _column(y: Array, energies: Array, weights: Array) -> tuple[Array, Array, float]:
    m, mass = y.size, max(float(weights.sum()), TINY)
    w = weights / mass
    unit = max(float(w @ energies), TINY)
    y, e = y / unit, energies / unit
    # As many readings as weigh alike: bad ones do not count.
    count = 1 / max(float(w @ w), TINY)
    best, chosen = np.inf, _Shape(np.ones((m, 1)), np.ones((m, 1)), 2)
    for shape in _shapes(y, e, w, count):
        _, squares = _solved(y, e, w, shape)
        criterion = count * np.log(max(squares, TINY)) + shape.unknowns * np.log(max(count, 2.0))
        if criterion < best:
            best, chosen = criterion, shape
    (offsets, gains), _ = _solved(y, e, w, chosen)
    # Of all rows alike: weights follow the noise, and with it the gain.
    middle, average = float(offsets.mean()), max(float(gains.mean()), TINY)
    steady, even = (part.shape[1] == 1 for part in chosen[:2])
    gains = np.ones(m) if even else np.maximum(gains / average, DRIFT.least_gain)
    return gains, np.zeros(m) if steady else unit * (offsets - middle), 0.0 if even else unit * middle


def _shapes(y: Array, energies: Array, weights: Array, count: float) -> Iterator[_Shape]:
    """What the curves may look like: broken lines of every number of pieces, and steps between the jumps that are found."""
    m = y.size
    lines = [broken_lines(m, pieces) for pieces in DRIFT.pieces if pieces * DRIFT.fewest <= count]
    for one, other in product(lines, lines):
        yield _Shape(one, other, one.shape[1] + other.shape[1])
    jumps = find_jumps(y, energies, weights, fewest=DRIFT.fewest, most=DRIFT.segments)
    if jumps.size == 0:
        return
    constant, steps = broken_lines(m, 0), segments(m, jumps)
    for one, other in ((steps, constant), (constant, steps), (steps, steps)):
        yield _Shape(one, other, one.shape[1] + other.shape[1] + jumps.size)


def _solved(y: Array, energies: Array, weights: Array, shape: _Shape) -> tuple[tuple[Array, Array], float]:
    """Curves of background and gain, and the weighted mean square of what they leave."""
    one, other = shape.backgrounds, shape.gains
    columns = np.hstack((one, other * energies[:, np.newaxis]))
    moments = columns.T @ (weights[:, np.newaxis] * columns)
    solution = np.linalg.lstsq(moments, columns.T @ (weights * y), rcond=1e-12)[0]
    left = y - columns @ solution
    first = one.shape[1]
    return (one @ solution[:first], other @ solution[first:]), float(weights @ (left * left))


def broken_lines(m: int, pieces: int) -> Array:
    """Hat functions of the knots of so many equal pieces, shape (m, pieces + 1); a constant for none."""
    if pieces == 0:
        return np.ones((m, 1))
    places = np.linspace(0.0, pieces, m)[:, np.newaxis]
    hats: Array = np.clip(1 - np.abs(places - np.arange(pieces + 1)), 0.0, None)
    return hats
