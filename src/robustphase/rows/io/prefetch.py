"""Sources whose rows must be fetched: one thread reads ahead while the others compute.

A sweep is cut into *pieces*, ranges of rows worth one read. A reader thread fetches them in order into a few buffers that
circulate: it waits for a free one, fills it and hands it on; a worker runs the kernel over cache-sized blocks of the piece
and gives the buffer back. So reading and computing overlap, files are read front to back, and the memory taken is a handful
of pieces whatever the size of the data.

Unlike in memory, where each thread walks a stretch of its own, workers here take whichever piece comes next. The sums of
the pieces are nevertheless added in the order of the rows, so a result does not depend on the number of threads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

import numpy as np

from robustphase.rows.blocked import BlockedRows, GatheredRows
from robustphase.rows.io.limits import MOST_BYTES_AT_ONCE, DataError, reason
from robustphase.rows.source import Array, Kernel, Parts, add_sums
from robustphase.rows.threads import run_in_threads, single_threaded_blas

#: Pieces fetched in advance, beyond those that are being computed on.
PIECES_AHEAD = 2


class ReadAheadRows(BlockedRows):
    """A row source that fetches ``A[start:stop]`` into memory it is given.

    Subclasses set ``shape``, ``dtype``, ``where`` (the place to name in errors, such as ``'data.h5' (dataset A)``) and, for
    files made of chunks, ``chunk_rows``: rows that the file can only give together, of which pieces are multiples where that is
    affordable. They implement :meth:`_fetch`. Only one thread fetches in a pass, but several passes may run at once: take a
    lock where the format needs one.
    """

    on_disk = True
    where: str = "the data"
    chunk_rows: int = 1

    @abstractmethod
    def _fetch(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out``, C-contiguous and of shape (stop - start, n), with rows ``start`` to ``stop``."""

    def close(self) -> None:
        """Let go of the file; the rows cannot be read any more."""

    def fetch(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out`` with rows; whatever goes wrong in the file is a :class:`DataError`."""
        try:
            self._fetch(start, stop, out)
        except DataError:
            raise
        except Exception as error:
            msg = f"rows {start} to {stop - 1} of {self.where} cannot be read: {reason(error)}."
            raise DataError(msg) from error

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop`` in memory of their own."""
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        self.fetch(start, stop, out)
        return out

    def piece_rows(self, pairing: int = 1) -> int:
        """Rows of one read: a block, extended to whole chunks where those are not too large."""
        block = self._rows_per_block(pairing)
        whole_chunks = -(-block // self.chunk_rows) * self.chunk_rows
        row_bytes = self.shape[1] * self.dtype.itemsize * pairing
        return whole_chunks if whole_chunks * row_bytes <= MOST_BYTES_AT_ONCE else block

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], pairing: int) -> Parts:
        stride = self.shape[0] // pairing
        block, rows = self._rows_per_block(pairing), self.piece_rows(pairing)
        pieces = [Piece(order, low, min(low + rows, stride)) for order, low in enumerate(range(0, stride, rows))]
        gathered, ordered = GatheredRows(stride), _OrderedSums()

        def compute(piece: Piece, buffers: Sequence[Array]) -> None:
            totals: tuple[Array, ...] = ()
            for start in range(piece.start, piece.stop, block):
                stop = min(start + block, piece.stop)
                blocks = [buffer[start - piece.start : stop - piece.start] for buffer in buffers]
                parts = kernel(*blocks, *[values[start:stop] for values in per_row])
                totals = add_sums(totals, parts.sums)
                gathered.put(start, stop, parts.rows)
            ordered.put(piece.order, totals)

        def fetch(piece: Piece, buffers: Sequence[Array]) -> None:
            for member, buffer in enumerate(buffers):
                self.fetch(member * stride + piece.start, member * stride + piece.stop, buffer)

        def room() -> list[Array]:
            return [np.empty((min(rows, stride), self.shape[1]), self.dtype) for _ in range(pairing)]

        with single_threaded_blas():
            fetch_and_compute(pieces, fetch, compute, room, workers=self._thread_count(stride, pairing))
        return Parts(ordered.totals, gathered.arrays)


class Piece(NamedTuple):
    """Rows ``start`` to ``stop`` of each member of the pairs, and the place of the piece in the sweep."""

    order: int
    start: int
    stop: int

    def of(self, buffers: Sequence[Array]) -> list[Array]:
        """The part of each buffer that the rows fill."""
        return [buffer[: self.stop - self.start] for buffer in buffers]


Work = Callable[[Piece, Sequence[Array]], None]


def fetch_and_compute(
    pieces: Sequence[Piece], fetch: Work, compute: Work, room: Callable[[], list[Array]], *, workers: int
) -> None:
    """Fetch all pieces in order on one thread, and compute on them on ``workers`` threads, the calling one included.

    ``fetch(piece, buffers)`` fills the buffers that ``room`` makes for a piece; ``compute(piece, buffers)`` uses them.
    """
    workers = min(workers, len(pieces))
    if len(pieces) <= 1:
        for piece in pieces:
            buffers = piece.of(room())
            fetch(piece, buffers)
            compute(piece, buffers)
        return
    free: SimpleQueue[list[Array] | None] = SimpleQueue()
    ready: SimpleQueue[tuple[Piece, list[Array]] | None] = SimpleQueue()
    for _ in range(min(workers + PIECES_AHEAD, len(pieces))):
        free.put(room())
    failures: list[BaseException] = []

    def read_all() -> None:
        try:
            for piece in pieces:
                buffers = free.get()
                if buffers is None:
                    return
                fetch(piece, piece.of(buffers))
                ready.put((piece, buffers))
        except BaseException as error:  # Raised again in the calling thread.
            failures.append(error)
        finally:
            for _ in range(workers):
                ready.put(None)

    def work(_: int) -> None:
        try:
            while (item := ready.get()) is not None:
                piece, buffers = item
                compute(piece, piece.of(buffers))
                free.put(buffers)
        except BaseException:
            free.put(None)  # Nobody needs further pieces.
            raise

    reader = Thread(target=read_all, name="robustphase-reader", daemon=True)
    reader.start()
    try:
        run_in_threads(work, range(workers))
    finally:
        free.put(None)
        reader.join()
    if failures:
        raise failures[0]


class _OrderedSums:
    """Sums of pieces that may arrive in any order, added in the order of their index."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._early: dict[int, tuple[Array, ...]] = {}
        self._next = 0
        self.totals: tuple[Array, ...] = ()

    def put(self, index: int, sums: tuple[Array, ...]) -> None:
        with self._lock:
            self._early[index] = sums
            while self._next in self._early:
                self.totals = add_sums(self.totals, self._early.pop(self._next))
                self._next += 1
