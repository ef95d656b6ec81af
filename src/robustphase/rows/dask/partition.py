"""Which rows go to which worker of a cluster, and how it holds them.

A pass that pairs row ``j`` with row ``j + m // 2`` needs both on the same worker. So each worker gets the same range of
both halves (:func:`partition`), unless the rows are in memory already and nothing is paired (:func:`in_place`); with fixed
places the sums of a pass are the same in every run.

A worker holds its rows as a *shard*: a list of pieces, arrays of consecutive rows, taken as they are where that is
possible. It is swept like any other source: cache-sized blocks, one thread per stretch. Blocks end where pieces end, so
that they are views; only pieces too small to be worth a block of their own are copied together. It may hold numbers beside its
rows, one for every row, that never come here (:class:`Beside`).
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from robustphase.rows.blocked import BLOCK_BYTES, BlockedRows
from robustphase.rows.dask.serialise import deserialise
from robustphase.rows.io.limits import DataError, require, working_dtype
from robustphase.rows.source import NATIVE_DTYPES, Array, Parts

#: A cut moves to the end of a chunk that is nearer than this share of a worker's rows.
SNAP = 0.1
#: A block may end early, at the end of a piece, if this share of it is filled.
FILLED = 0.25


class Place(NamedTuple):
    """The rows of one worker."""

    worker: str  # Its address
    threads: int  # Its threads
    #: First and last row (exclusive) of each range, in the order in which the worker holds them.
    ranges: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(stop - start for start, stop in self.ranges)

    def swept(self, pairing: int) -> tuple[tuple[int, int], ...]:
        """Ranges of the per-sample arrays of a pass with such a pairing."""
        return self.ranges if pairing == 1 else self.ranges[:1]


def partition(edges: Sequence[int], threads: Mapping[str, int], pairing: int) -> list[Place]:
    """Places for rows that are nowhere yet: as many rows for each worker as it has threads.

    ``edges`` are 0 and the end of every chunk, ``pairing`` how many rows a pass may see together; passes that pair nothing are
    served as well. Rows left over go to the last worker.
    """
    m = edges[-1]
    stride = m // pairing
    # Workers with more threads first, so that the cuts do not depend on the addresses.
    workers = sorted(threads, key=lambda worker: (-threads[worker], worker))[: max(1, stride)]
    shares = np.cumsum([0, *(threads[worker] for worker in workers)])
    wanted = np.rint(shares * (stride / shares[-1])).astype(int)
    cuts = [0, *(_snapped(int(cut), edges, SNAP * stride / len(workers)) for cut in wanted[1:-1]), stride]
    places = []
    for worker, (low, high) in zip(workers, pairwise(cuts), strict=True):
        ranges = [(member * stride + low, member * stride + high) for member in range(pairing)]
        # By name: where workers outnumber the rows, the cut of an earlier one may be the end of all rows too.
        if worker == workers[-1] and pairing * stride < m:
            ranges.append((pairing * stride, m))
        if high > low or len(ranges) > pairing:
            places.append(Place(worker, threads[worker], tuple(ranges)))
    return places


def _snapped(cut: int, edges: Sequence[int], reach: float) -> int:
    """The end of a chunk near a cut, or the cut itself."""
    index = bisect_left(edges, cut)
    nearest = min(edges[max(0, index - 1) : index + 1], key=lambda edge: abs(edge - cut))
    return nearest if abs(nearest - cut) <= reach else cut


def in_place(edges: Sequence[int], holders: Sequence[str], threads: Mapping[str, int]) -> list[Place]:
    """Places for rows that are in memory already: where they are, so that pairs may lie apart.

    ``edges`` are 0 and the end of every chunk; ``holders`` the workers that hold the chunks.
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


class Shard(BlockedRows):
    """Pieces (b, n) one below the other, not copied.

    ``dtype`` is that in which to compute. If the memory of the pieces is not ``owned``, Dask counts it where the pieces are
    kept.
    """

    def __init__(
        self,
        pieces: Sequence[Array],
        dtype: np.dtype[Any],
        *,
        owned: bool = True,
        block_rows: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        self.pieces, self.dtype, self.owned = list(pieces), dtype, owned
        self._edges = [0, *accumulate(piece.shape[0] for piece in self.pieces)]
        self.shape = (self._edges[-1], self.pieces[0].shape[1])

    def __sizeof__(self) -> int:
        # Dask decides by this number when a worker holds too much.
        return object.__sizeof__(self) + (sum(piece.nbytes for piece in self.pieces) if self.owned else 0)

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop``: a view where they lie in one piece."""
        first = bisect_right(self._edges, start) - 1
        parts = []
        while start < stop:
            begin, end = self._edges[first], min(self._edges[first + 1], stop)
            parts.append(self.pieces[first][start - begin : end - begin])
            start, first = end, first + 1
        block = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return block if block.dtype in NATIVE_DTYPES else block.astype(self.dtype)

    def _blocks(self, low: int, high: int, pairing: int, step: int) -> Iterator[tuple[int, int]]:
        stride = self.shape[0] // pairing
        edges = sorted({edge - member * stride for member in range(pairing) for edge in self._edges})
        while low < high:
            stop = min(low + step, high)
            edge = edges[bisect_right(edges, stop) - 1]
            if edge - low >= FILLED * step:
                stop = edge
            yield low, stop
            low = stop


def make_shard(
    chunks: Sequence[Any],
    cuts: Sequence[Cut],
    columns: int,
    stored: np.dtype[Any],
    *,
    owned: bool,
    threads: int | None,
    block_rows: int | None,
) -> Shard:
    """A shard of the chunks of a Dask array, after checking that they are what the array said they would be.

    ``cuts`` say how many rows each chunk should have and which of them are wanted, ``columns`` and ``stored`` how many columns,
    and of which type, the array declares. Where nobody else keeps the chunks (``owned``), small ones are copied together once,
    and not in every pass.
    """
    pieces = []
    for chunk, cut in zip(chunks, cuts, strict=True):
        piece = np.asarray(chunk)
        if piece.shape != (cut.rows, columns):
            raise DataError(
                f"a chunk of the Dask array has shape {piece.shape} where the array declares {(cut.rows, columns)}; "
                "give map_blocks and from_delayed the shapes that their functions return."
            )
        if piece.dtype.kind not in "fciub" or not np.can_cast(piece.dtype, stored, "same_kind"):
            raise DataError(f"a chunk of the Dask array holds {piece.dtype} where the array declares {stored}.")
        if (cut.low, cut.high) != (0, cut.rows):
            # A view would keep the whole chunk in memory.
            piece = piece[cut.low : cut.high].copy()
        pieces.append(piece.astype(stored, copy=False))
    if owned:
        pieces = merged(pieces)
    dtype = working_dtype(stored, "the Dask array")
    return Shard(pieces, dtype, owned=owned, threads=threads, block_rows=block_rows)


def called(functions: Sequence[Callable[[], Sequence[Any]]]) -> list[Any]:
    """What functions return, one after the other."""
    return [value for function in functions for value in function()]


def remake_shard(recipe: bytes, *described: Any, **options: Any) -> Shard:
    """A shard of chunks that are made here, as a recipe says; see :func:`make_shard`."""
    return make_shard(deserialise(recipe)(), *described, **options)


def merged(pieces: Sequence[Array]) -> list[Array]:
    """Neighbours copied together while they are smaller than a block; large pieces stay what and where they are."""
    done: list[Array] = []
    waiting: list[Array] = []
    for piece in pieces:
        if waiting and sum(part.nbytes for part in waiting) + piece.nbytes > BLOCK_BYTES:
            done.append(np.concatenate(waiting) if len(waiting) > 1 else waiting[0])
            waiting = []
        waiting.append(piece)
    if waiting:
        done.append(np.concatenate(waiting) if len(waiting) > 1 else waiting[0])
    return done


def sweep_shard(shard: Shard, kernel: bytes, pairing: int, *per_row: Array | Shard) -> Parts:
    """One pass over one shard: the task that a worker is given.

    What it holds beside its rows comes as a shard of one column.
    """
    columns = [values.read(0, values.shape[0])[:, 0] if isinstance(values, Shard) else values for values in per_row]
    return shard.reduce(deserialise(kernel), columns, pairing=pairing)


class Beside:
    """A Dask array with one number for every row of another one; a pass takes it among its per-sample arrays.

    ``array`` (m, 1) holds the numbers in double precision, in the chunks of the rows; workers find them under ``name``.
    """

    def __init__(self, values: Any, rows: Any) -> None:
        dask_array = require("dask.array", extra="dask", purpose="fitting a Dask array")
        if not isinstance(values, dask_array.Array):
            raise TypeError(f"the numbers beside the rows must be a dask.array.Array, got {type(values).__name__}.")
        if values.shape != rows.shape[:1]:
            raise ValueError(f"A has {rows.shape[0]} rows but y has shape {values.shape}; each row needs exactly one.")
        self.array = values.rechunk((rows.chunks[0],)).astype(np.float64)[:, np.newaxis]
        self.shape: tuple[int, ...] = values.shape
        self.name = uuid.uuid4().hex
