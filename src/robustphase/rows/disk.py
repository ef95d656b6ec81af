"""Rows that lie one after the other in a file, and rows of a memory map.

A plain file is read with positioned reads rather than through a map: a file that shrinks or a disk that fails is then an error
and not the end of the process, and address space is not needed for all of it. A map that the user made is used as it is,
without copies; the system is told which pages come next.
"""

from __future__ import annotations

import mmap
import os
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from robustphase.rows.errors import DataError
from robustphase.rows.memory import NATIVE_DTYPES, MemoryRows
from robustphase.rows.npy import read_npy_header
from robustphase.rows.readahead import ReadAheadRows
from robustphase.rows.source import Array

#: Blocks of a memory map that the system is asked to read in advance.
BLOCKS_AHEAD = 2


def working_dtype(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """The type in which rows of a stored type are computed on: as in memory, whatever the byte order."""
    if dtype.kind not in "fciub":
        raise DataError(f"{where} holds entries of type {dtype}; numbers are needed.")
    native = np.result_type(dtype.newbyteorder("="), np.float32)
    if native not in NATIVE_DTYPES:
        raise DataError(f"{where} holds entries of type {dtype}; convert them to float64 or complex128 first.")
    return native


def check_matrix(shape: tuple[int, ...], where: str) -> tuple[int, int]:
    """Refuse what is not a matrix with at least one entry."""
    if len(shape) != 2:
        raise DataError(f"{where} has shape {shape}; covariates need two dimensions (samples x features).")
    if 0 in shape:
        raise DataError(f"{where} is empty: shape {shape}; at least one row and one column are needed.")
    return int(shape[0]), int(shape[1])


class PlainFile:
    """A file open for positioned reads, from any number of threads; closed by ``close``, or when forgotten."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = Lock()
        self.close = finalize(self, os.close, self._descriptor)

    def read_into(self, out: Array, position: int) -> None:
        """Fill a C-contiguous array with the bytes from ``position`` on."""
        view = memoryview(out.reshape(-1).view(np.uint8).data)
        while len(view):
            # A closed descriptor may already be another file's.
            if not self.close.alive:
                raise DataError(f"'{self.path}' has been closed; open it again to read its rows.")
            got = self._read_some(view, position)
            if got == 0:
                raise DataError(f"'{self.path}' ends early: {len(view)} bytes are missing at byte {position}.")
            view, position = view[got:], position + got

    def _read_some(self, view: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [view], position)
        with self._lock:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            data = os.read(self._descriptor, len(view))
            view[: len(data)] = data
            return len(data)


class FileRows(ReadAheadRows):
    """Rows that lie in a file as they would in memory: an ``.npy`` file, or an array stored plainly inside another file.

    Parameters
    ----------
    path : path
        The file.
    shape : tuple of int
        ``(m, n)``.
    dtype : numpy.dtype
        Type of the entries in the file, of either byte order. Types that cannot be computed with are converted.
    offset : int
        Where the first entry is, in bytes.
    column_major : bool, default=False
        Whether columns lie together. Reading rows then takes one small read per column, which is slower.
    where : str, optional
        What to call the array in errors.
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        offset: int,
        column_major: bool = False,
        where: str | None = None,
        block_rows: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        self.where = where or f"'{os.fspath(path)}'"
        self.shape = check_matrix(shape, self.where)
        self.dtype = working_dtype(dtype, self.where)
        self._stored, self._offset, self._column_major = dtype, offset, column_major
        self._file = PlainFile(path)
        if column_major:
            # One read per column and piece: long ones, so that there are few.
            self.chunk_rows = max(1, (32 << 20) // (self.shape[1] * self.dtype.itemsize))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fetch(self, start: int, stop: int, out: Array) -> None:
        direct = self._stored == self.dtype and not self._column_major
        if self._column_major:
            raw = self._columns(start, stop)
        else:
            raw = out if direct else np.empty(out.shape, self._stored)
            self._file.read_into(raw, self._offset + start * self.shape[1] * self._stored.itemsize)
        if not direct:
            np.copyto(out, raw, casting="unsafe")

    def _columns(self, start: int, stop: int) -> Array:
        m, n = self.shape
        columns = np.empty((n, stop - start), self._stored)
        for index, column in enumerate(columns):
            self._file.read_into(column, self._offset + (index * m + start) * self._stored.itemsize)
        return columns.T


def open_npy(path: str | os.PathLike[str], *, block_rows: int | None = None, threads: int | None = None) -> FileRows:
    """The rows of an ``.npy`` file."""
    where = f"'{os.fspath(path)}'"
    with open(path, "rb") as file:
        header = read_npy_header(file, os.fstat(file.fileno()).st_size, where)
    return FileRows(
        path,
        header.shape,
        header.dtype,
        offset=header.offset,
        column_major=header.column_major,
        block_rows=block_rows,
        threads=threads,
    )


class MappedRows(MemoryRows):
    """The rows of a :class:`numpy.memmap`, used in place.

    Parameters
    ----------
    array : numpy.memmap of shape (m, n)
        The rows; a slice of a map will do.
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.
    """

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
