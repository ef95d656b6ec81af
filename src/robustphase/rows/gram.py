"""Inner products of all pairs of rows: all that a method which turns with the points needs to know of a few long rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from robustphase.rows.blocked import BLOCK_BYTES, MIN_BLOCK_ROWS, MIN_BYTES_PER_THREAD, MemoryRows
from robustphase.rows.passes import project, rows_at
from robustphase.rows.source import Array, RowSource
from robustphase.rows.threads import allowed_threads, run_in_threads, scratch, single_threaded_blas
from robustphase.rows.wrapped import MaskedRows, ShiftedRows

#: Rows that other sources are multiplied with at a time: no more than this share of all of them is held in memory.
HELD_SHARE = 16


def gram_about(source: RowSource, reference: int) -> Array:
    """``(A − 1 aᵀ)(A − 1 aᵀ)ᴴ`` with the row ``a`` of this index, shape (m, m), in double precision.

    Arrays in memory are read once, in slices of columns. Rows that live elsewhere are read once for every sixteenth of them.
    Hidden rows of :class:`~robustphase.rows.MaskedRows` count as zero before the shift.
    """
    hidden = None
    held: RowSource = source
    if isinstance(source, MaskedRows):
        held, hidden = source.source, source.hidden
    if isinstance(held, MemoryRows):
        return _of_columns(held, reference, hidden)
    return _of_groups(source, reference)


def _of_columns(source: MemoryRows, reference: int, hidden: Array | None) -> Array:
    m, n = source.shape
    double = np.result_type(source.dtype, np.float64)
    array, step = source.array, max(1, BLOCK_BYTES // (m * double.itemsize))

    def sum_over(stretch: tuple[int, int]) -> Array:
        total = np.zeros((m, m), double)
        for low in range(stretch[0], stretch[1], step):
            high = min(low + step, stretch[1])
            part = scratch("gram", (m, high - low), double)
            # Rows that are hidden may hold infinities, and the reference is none of them.
            part[...] = array[:, low:high]
            if hidden is not None:
                part[hidden] = 0
            part -= part[reference].copy()
            total += np.dot(part, part.conj().T)
        return total

    threads = source.threads or max(1, min(allowed_threads(), m * n * source.dtype.itemsize // MIN_BYTES_PER_THREAD))
    edges = np.linspace(0, n, min(threads, n) + 1).astype(int)
    source.passes += 1
    with single_threaded_blas():
        parts = run_in_threads(sum_over, [(int(low), int(high)) for low, high in pairwise(edges)])
    return np.asarray(sum(parts))


def _of_groups(source: RowSource, reference: int) -> Array:
    m = source.shape[0]
    origin = rows_at(source, np.array([reference]))[0].astype(source.dtype)
    shifted = ShiftedRows(source, origin)
    size = max(1, min(MIN_BLOCK_ROWS, m // HELD_SHARE))
    groups = [np.arange(low, min(low + size, m)) for low in range(0, m, size)]
    gram = np.concatenate([project(shifted, rows_at(shifted, group).conj().T) for group in groups], axis=1)
    return np.asarray((gram + gram.conj().T) / 2)
