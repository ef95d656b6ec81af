"""Which rows go to which worker of a cluster, and their way there and back.

A pass that walks k strands in step needs row ``j`` and row ``j + m // k`` on the same worker. So each worker gets one range of
every strand, cut at the same places; with fixed places the sums of a pass are the same in every run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from robustphase.rows.source import Array

#: A cut moves to the end of a chunk that is nearer than this share of a worker's rows.
SNAP = 0.1


class Place(NamedTuple):
    """The rows of one worker.

    Attributes
    ----------
    worker : str
        Its address.
    threads : int
        Its threads.
    ranges : tuple of (int, int)
        First and last row (exclusive) of each range, in the order in which the worker holds them.
    """

    worker: str
    threads: int
    ranges: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(stop - start for start, stop in self.ranges)

    def swept(self, strands: int) -> tuple[tuple[int, int], ...]:
        """Ranges of the per-sample arrays of a pass over so many strands."""
        return self.ranges if strands == 1 else self.ranges[:1]


def spread(edges: Sequence[int], threads: Mapping[str, int], strands: int) -> list[Place]:
    """Places for rows that are nowhere yet: as many rows for each worker as it has threads.

    Parameters
    ----------
    edges : sequence of int
        0, and the end of every chunk.
    threads : mapping of str to int
        Threads of each worker, by address.
    strands : int
        Strands that a pass may walk in step; one strand is served as well. Rows left over go to the last worker.
    """
    m = edges[-1]
    count = m // strands
    # Workers with more threads first, so that the cuts do not depend on the addresses.
    workers = sorted(threads, key=lambda worker: (-threads[worker], worker))[: max(1, count)]
    shares = np.cumsum([0, *(threads[worker] for worker in workers)])
    wanted = np.rint(shares * (count / shares[-1])).astype(int)
    cuts = [0, *(_snapped(int(cut), edges, SNAP * count / len(workers)) for cut in wanted[1:-1]), count]
    places = []
    for worker, (low, high) in zip(workers, pairwise(cuts), strict=True):
        ranges = [(strand * count + low, strand * count + high) for strand in range(strands)]
        if high == count and strands * count < m:
            ranges.append((strands * count, m))
        if high > low or len(ranges) > strands:
            places.append(Place(worker, threads[worker], tuple(ranges)))
    return places


def _snapped(cut: int, edges: Sequence[int], reach: float) -> int:
    """The end of a chunk near a cut, or the cut itself."""
    index = bisect_left(edges, cut)
    nearest = min(edges[max(0, index - 1) : index + 1], key=lambda edge: abs(edge - cut))
    return nearest if abs(nearest - cut) <= reach else cut


def stay(edges: Sequence[int], holders: Sequence[str], threads: Mapping[str, int]) -> list[Place]:
    """Places for rows that are in memory already: where they are; one strand only.

    Parameters
    ----------
    edges : sequence of int
        0, and the end of every chunk.
    holders : sequence of str
        Address of the worker that holds each chunk.
    threads : mapping of str to int
        Threads of each worker, by address.
    """
    held: dict[str, list[tuple[int, int]]] = {}
    for (start, stop), holder in zip(pairwise(edges), holders, strict=True):
        if start < stop:
            held.setdefault(holder, []).append((start, stop))
    return [Place(holder, threads.get(holder, 1), tuple(ranges)) for holder, ranges in held.items()]


class Cut(NamedTuple):
    """Rows ``low`` to ``high`` (exclusive) of a chunk, and how many rows the chunk should have."""

    chunk: int
    rows: int
    low: int
    high: int


def cuts_of(edges: Sequence[int], start: int, stop: int) -> list[Cut]:
    """The parts of chunks that make up a range of rows."""
    cuts = []
    for chunk in range(bisect_right(edges, start) - 1, bisect_left(edges, stop)):
        begin, end = edges[chunk], edges[chunk + 1]
        if max(start, begin) < min(stop, end):
            cuts.append(Cut(chunk, end - begin, max(start, begin) - begin, min(stop, end) - begin))
    return cuts


def take(values: Array, ranges: Sequence[tuple[int, int]]) -> Array:
    """The entries in some ranges, one after the other; a view where there is one range."""
    parts = [values[start:stop] for start, stop in ranges]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def put(out: Array, ranges: Sequence[tuple[int, int]], values: Array) -> None:
    """Undo :func:`take`."""
    begin = 0
    for start, stop in ranges:
        out[start:stop] = values[begin : begin + stop - start]
        begin += stop - start
