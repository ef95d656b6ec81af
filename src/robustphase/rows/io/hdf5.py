"""Rows of an HDF5 dataset.

A dataset in one piece, without filters, is read from the file directly: the HDF5 library runs on one thread at a time, in all
of the process. Everything else goes through h5py, under one lock per file. Parts that were never written would be made up by the
library from a fill value; such datasets are refused.
"""

from __future__ import annotations

import math
import os
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from robustphase.rows.io.limits import (
    DataError,
    check_chunks,
    check_matrix,
    check_room,
    explained,
    require,
    working_dtype,
)
from robustphase.rows.io.npy import PlainFile
from robustphase.rows.io.prefetch import ReadAheadRows
from robustphase.rows.source import Array

MAGIC = b"\x89HDF\r\n\x1a\n"


class _FileLock:
    """A lock that can be referred to weakly."""

    def __init__(self) -> None:
        self.lock = Lock()


_locks: WeakValueDictionary[str, _FileLock] = WeakValueDictionary()
_locks_guard = Lock()


def lock_of(path: str) -> _FileLock:
    """The lock of a file, the same one for everybody who has it open."""
    with _locks_guard:
        return _locks.setdefault(os.path.realpath(path), _FileLock())


def open_hdf5(path: str | os.PathLike[str]) -> Any:
    """An HDF5 file, open for reading."""
    h5py = require("h5py", extra="io", purpose="reading HDF5 files")
    with explained(path, "HDF5"):
        return h5py.File(path, "r")


def find_dataset(file: Any, name: str) -> Any:
    """A dataset by name, or an error that lists those present."""
    h5py = require("h5py", extra="io", purpose="reading HDF5 files")
    with explained(file.filename, "HDF5"):
        item = file.get(name)
        if isinstance(item, h5py.Dataset):
            return item
        present: list[str] = []
        file.visititems(lambda path, entry: present.append(path) if isinstance(entry, h5py.Dataset) else None)
    listed = ", ".join(present[:20]) or "none"
    raise DataError(f"'{file.filename}' has no dataset named {name}; the datasets in it: {listed}.")


def check_stored(dataset: Any) -> None:
    """Refuse datasets of which a part is not in the file."""
    where = name_of(dataset)
    if dataset.is_virtual or dataset.external:
        raise DataError(f"{where} keeps its numbers in other files; copy them into one dataset first.")
    if dataset.shape is None or 0 in dataset.shape:
        return
    if dataset.chunks is None:
        complete = dataset.id.get_storage_size() >= math.prod(dataset.shape) * dataset.id.get_type().get_size()
    else:
        wanted = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True))
        complete = dataset.id.get_num_chunks() == wanted
    if not complete:
        raise DataError(
            f"{where} was created but not written in full; the missing numbers would be made up. Write it again."
        )


def read_hdf5_array(dataset: Any) -> Array:
    """A small dataset, such as the responses, in memory."""
    where = name_of(dataset)
    with explained(dataset.file.filename, "HDF5"):
        check_stored(dataset)
        if dataset.dtype.hasobject:
            raise DataError(f"{where} holds entries of type {dataset.dtype}; numbers are needed.")
        check_room(math.prod(dataset.shape or (0,)) * dataset.dtype.itemsize, where)
        if dataset.chunks is not None:
            check_room(2 * math.prod(dataset.chunks) * dataset.dtype.itemsize, f"one chunk of {where}")
        with lock_of(dataset.file.filename).lock:
            return np.asarray(dataset[()])


def name_of(dataset: Any) -> str:
    """What to call a dataset in errors."""
    return f"'{dataset.file.filename}' (dataset {(dataset.name or '?').lstrip('/')})"


class Hdf5Rows(ReadAheadRows):
    """The rows of an h5py dataset.

    Parameters
    ----------
    dataset : h5py.Dataset of shape (m, n)
        The rows.
    owned : h5py.File, optional
        A file to close with the source.
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.
    """

    def __init__(
        self, dataset: Any, *, owned: Any = None, block_rows: int | None = None, threads: int | None = None
    ) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        with explained(dataset.file.filename, "HDF5"):
            self.where = name_of(dataset)
            self.shape = check_matrix(() if dataset.shape is None else dataset.shape, self.where)
            self.dtype = working_dtype(dataset.dtype, self.where)
            check_stored(dataset)
            if dataset.chunks is not None:
                self.chunk_rows = check_chunks(self.shape, dataset.dtype.itemsize, dataset.chunks, self.where)
            self._dataset, self._owned = dataset, owned
            self._lock = lock_of(dataset.file.filename)
            self._plain = self._plain_file()

    def close(self) -> None:
        """Close what this source opened."""
        if self._plain is not None:
            self._plain.close()
        if self._owned is not None:
            self._owned.close()

    def _plain_file(self) -> PlainFile | None:
        """The file itself, if the rows lie in it as they do in memory."""
        dataset = self._dataset
        offset = dataset.id.get_offset() if dataset.chunks is None else None
        same_type = dataset.dtype == self.dtype and dataset.id.get_type().get_size() == self.dtype.itemsize
        if offset is None or not same_type or dataset.file.driver != "sec2" or dataset.file.mode != "r":
            return None
        self._offset = int(offset)
        try:
            file = PlainFile(dataset.file.filename)
        except OSError:  # Moved or deleted since it was opened: h5py still has it.
            return None
        # Trust is good: the first and the last row must be what the library reads.
        for row in (0, self.shape[0] - 1):
            plain = np.empty((1, self.shape[1]), self.dtype)
            try:
                file.read_into(plain, self._offset + row * plain.nbytes)
            except DataError:
                plain = np.empty((0, 0), self.dtype)
            if plain.tobytes() != np.asarray(dataset[row : row + 1]).tobytes():
                file.close()
                return None
        return file

    def _fetch(self, start: int, stop: int, out: Array) -> None:
        if self._plain is not None:
            self._plain.read_into(out, self._offset + start * self.shape[1] * self.dtype.itemsize)
            return
        with self._lock.lock:
            if self._dataset.dtype == self.dtype:
                self._dataset.read_direct(out, np.s_[start:stop])
            else:
                np.copyto(out, self._dataset[start:stop], casting="unsafe")
