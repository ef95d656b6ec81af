"""Sources that can read any range of rows: cache-sized blocks, threads over contiguous stretches of them.

Arrays in memory and memory maps are read as views. A map that the user made is used as it is, without copies; the system is
told which pages come next.
"""

from __future__ import annotations

import mmap
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from threading import Lock

import numpy as np

from robustphase.rows.source import NATIVE_DTYPES, Array, InBulk, Kernel, Parts, RowSource, add_sums
from robustphase.rows.threads import allowed_threads, run_in_threads, single_threaded_blas

#: Bytes of ``A`` in one block: small enough to be still in a core's cache when the second product comes to it, large
#: enough that the few Python steps per block do not show. 4 MiB measured best, 2 MiB close, 1 MiB a quarter slower.
BLOCK_BYTES = 4 << 20
#: Fewer rows than this make thin, slow matrix products, however wide the rows are.
MIN_BLOCK_ROWS = 64
#: More rows than this make the numbers per row, not the rows, too many for the cache.
MAX_BLOCK_ROWS = 8192
#: The same for kernels that ask for few, large blocks: half of a block is still in cache when the second product comes to it, and
#: arrays of one number per row are small enough for memory to be had without asking the system.
BULK_BYTES, MAX_BULK_ROWS = 8 << 20, 1 << 13
#: Below this much data per thread, starting a thread costs more than it saves.
MIN_BYTES_PER_THREAD = 2 << 20
#: Blocks of a memory map that the system is asked to read in advance.
BLOCKS_AHEAD = 2


class BlockedRows(RowSource):
    """A row source that reads ``A[start:stop]`` on demand, in blocks of about 4 MiB unless ``block_rows`` are given.

    By default it uses as many threads as BLAS is allowed to use at the time of the pass. Where reading rows costs no memory, so
    that blocks may be large, ``reads_views`` is True.
    """

    reads_views: bool = False

    def __init__(self, *, block_rows: int | None = None, threads: int | None = None) -> None:
        if block_rows is not None and block_rows < 1:
            raise ValueError(f"block_rows must be a positive number of rows or None, got {block_rows}")
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be a positive number or None, got {threads}")
        self.block_rows = block_rows
        self.threads = threads

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop`` (exclusive) as an array of :attr:`dtype`; the caller does not write to it."""

    def _take(self, indices: Array) -> Array:
        taken, step = np.empty((indices.size, self.shape[1]), self.dtype), self._rows_per_block(1)

        def take_stretch(stretch: tuple[int, int]) -> None:
            for start, stop in self._blocks(*stretch, 1, step):
                low, high = np.searchsorted(indices, (start, stop))
                if low < high:
                    # Straight to where they belong: indexing would make a copy on the way.
                    np.take(self.read(start, stop), indices[low:high] - start, 0, taken[low:high], mode="clip")

        run_in_threads(take_stretch, self._stretches(self.shape[0], 1))
        return taken

    def _rows_per_block(self, pairing: int, *, in_bulk: bool = False) -> int:
        if self.block_rows is not None:
            return self.block_rows
        row_bytes = max(1, self.shape[1] * self.dtype.itemsize * pairing)
        if in_bulk and self.reads_views:
            return min(max(MIN_BLOCK_ROWS, BULK_BYTES // row_bytes), MAX_BULK_ROWS)
        return min(max(MIN_BLOCK_ROWS, BLOCK_BYTES // row_bytes), MAX_BLOCK_ROWS)

    def _thread_count(self, count: int, pairing: int) -> int:
        """Threads for a pass over ``count`` rows, or pairs of them."""
        bytes_swept = count * self.shape[1] * self.dtype.itemsize * pairing
        return self.threads or max(1, min(allowed_threads(), bytes_swept // MIN_BYTES_PER_THREAD))

    def _stretches(self, count: int, pairing: int) -> list[tuple[int, int]]:
        """Cut ``count`` rows into one contiguous stretch per thread; static, so that results repeat exactly."""
        threads = min(self._thread_count(count, pairing), max(1, count))
        if threads == 1:
            return [(0, count)]
        edges = np.linspace(0, count, threads + 1).astype(int)
        return [(int(low), int(high)) for low, high in pairwise(edges)]

    def _blocks(self, low: int, high: int, pairing: int, step: int) -> Iterable[tuple[int, int]]:
        """Cut a stretch into blocks of about ``step`` rows."""
        return [(start, min(start + step, high)) for start in range(low, high, step)]

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], pairing: int) -> Parts:
        stride = self.shape[0] // pairing
        offsets = [member * stride for member in range(pairing)]
        step = self._rows_per_block(pairing, in_bulk=isinstance(kernel, InBulk))
        gathered = GatheredRows(stride)

        def sweep_stretch(stretch: tuple[int, int]) -> tuple[Array, ...]:
            low, high = stretch
            totals: tuple[Array, ...] = ()
            for start, stop in self._blocks(low, high, pairing, step):
                blocks = [self.read(offset + start, offset + stop) for offset in offsets]
                parts = kernel(*blocks, *[values[start:stop] for values in per_row])
                totals = add_sums(totals, parts.sums)
                gathered.put(start, stop, parts.rows)
            return totals

        stretches = self._stretches(stride, pairing)
        with single_threaded_blas():
            sums_of_stretches = run_in_threads(sweep_stretch, stretches)
        totals: tuple[Array, ...] = ()
        for sums in sums_of_stretches:
            totals = add_sums(totals, sums)
        return Parts(totals, gathered.arrays)


class GatheredRows:
    """Per-sample results put together from blocks; the arrays are made when the first block tells their shapes."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = Lock()
        self._made = False
        self.arrays: tuple[Array, ...] = ()

    def _make(self, rows: tuple[Array, ...]) -> None:
        with self._lock:
            if not self._made:
                self.arrays = tuple(np.empty((self._count, *values.shape[1:]), values.dtype) for values in rows)
                self._made = True

    def put(self, start: int, stop: int, rows: tuple[Array, ...]) -> None:
        """Keep the values of rows ``start`` to ``stop``."""
        if not self._made:
            self._make(rows)
        for array, values in zip(self.arrays, rows, strict=True):
            array[start:stop] = values


class MemoryRows(BlockedRows):
    """A NumPy array as a row source.

    The array is never copied. Types other than the four native ones (integers, booleans, half precision, foreign byte
    order) are converted block by block, in cache.

    Parameters
    ----------
    array : ndarray of shape (m, n)
        The rows.
    block_rows, threads : int, optional
        See :class:`BlockedRows`.
    """

    def __init__(self, array: Array, *, block_rows: int | None = None, threads: int | None = None) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        if array.ndim != 2:
            raise ValueError(f"a row source needs a two-dimensional array, got shape {array.shape}")
        self.array = array
        self.shape = (array.shape[0], array.shape[1])
        # np.dtype equality tells native from byte-swapped types; names alone do not.
        self.reads_views = array.dtype in NATIVE_DTYPES
        self.dtype = array.dtype if self.reads_views else np.result_type(array.dtype.newbyteorder("="), np.float32)
        if self.dtype not in NATIVE_DTYPES:
            raise TypeError(f"rows of dtype {array.dtype} cannot be swept; convert them to float64 or complex128 first")

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop``: a view, or a converted copy of a foreign type."""
        block = self.array[start:stop]
        return block if self.reads_views else block.astype(self.dtype)


class MappedRows(MemoryRows):
    """The rows of a :class:`numpy.memmap`, or of a slice of one, used in place."""

    on_disk = True

    def __init__(self, array: Array, *, block_rows: int | None = None, threads: int | None = None) -> None:
        # Blocks that are instances of np.memmap would carry its bookkeeping through every operation.
        super().__init__(np.asarray(array), block_rows=block_rows, threads=threads)
        self._map = getattr(array, "_mmap", None) if array.flags.c_contiguous else None
        self._advises = isinstance(self._map, mmap.mmap) and hasattr(self._map, "madvise")
        if self._advises:
            # A slice of a map keeps no note of where in the map it begins: the addresses tell.
            self._begin = _address(array) - _address(np.frombuffer(self._map, np.uint8))  # type: ignore[arg-type]

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop``: a view of the map, while the system reads what follows."""
        if self._advises:
            self._advise(stop, stop + BLOCKS_AHEAD * (stop - start))
        return super().read(start, stop)

    def _advise(self, start: int, stop: int) -> None:
        row_bytes = self.array.strides[0]
        first = self._begin + min(start, self.shape[0]) * row_bytes
        last = self._begin + min(stop, self.shape[0]) * row_bytes
        first -= first % mmap.PAGESIZE
        if first < last:
            self._map.madvise(mmap.MADV_WILLNEED, first, last - first)  # type: ignore[union-attr]


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
