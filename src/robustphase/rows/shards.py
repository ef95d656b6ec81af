"""What one worker of a cluster holds, and what it does in a pass.

A shard is a list of pieces, arrays of consecutive rows, taken as they are where that is possible. It is swept like any other
source: cache-sized blocks, one thread per stretch. Blocks end where pieces end, so that they are views; only pieces too
small to be worth a block of their own are copied together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from robustphase.rows.blocked import BLOCK_BYTES, BlockedRows
from robustphase.rows.io.limits import DataError, working_dtype
from robustphase.rows.parcels import unpack
from robustphase.rows.placement import Cut
from robustphase.rows.source import NATIVE_DTYPES, Array, Parts

#: A block may end early, at the end of a piece, if this share of it is filled.
FILLED = 0.25


class Shard(BlockedRows):
    """Pieces one below the other.

    Parameters
    ----------
    pieces : sequence of ndarray of shape (b, n)
        The rows; not copied.
    dtype : numpy.dtype
        Type in which to compute.
    owned : bool, default=True
        Whether the memory of the pieces is the shard's own. If not, Dask counts it where the pieces are kept.
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.
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

    def _blocks(self, low: int, high: int, strands: int, step: int) -> Iterator[tuple[int, int]]:
        count = self.shape[0] // strands
        edges = sorted({edge - strand * count for strand in range(strands) for edge in self._edges})
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

    Parameters
    ----------
    chunks : sequence of array-like
        The chunks, in the order of their rows.
    cuts : sequence of Cut
        How many rows each of them should have, and which of them are wanted.
    columns : int
        How many columns all of them should have.
    stored : numpy.dtype
        The type that the array declares.
    owned : bool
        Whether nobody else keeps the chunks. Small ones are then copied together once, and not in every pass.
    threads, block_rows : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.
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


def sweep_shard(shard: Shard, kernel: bytes, strands: int, *per_row: Array) -> Parts:
    """One pass over one shard: the task that a worker is given."""
    return shard.reduce(unpack(kernel), per_row, strands=strands)
