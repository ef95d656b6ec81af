"""Rows held in memory."""

from __future__ import annotations

import numpy as np

from robustphase.rows.blocked import BlockedRows
from robustphase.rows.source import Array

NATIVE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex64), np.dtype(np.complex128))


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
