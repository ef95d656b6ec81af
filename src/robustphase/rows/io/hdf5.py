"""Rows of an HDF5 dataset.

A dataset in one piece, without filters, is read from the file directly: the HDF5 library runs on one thread at a time, in all of
the process. Everything else goes through h5py, under one lock per file. Parts that were never written would be made up by the
library from a fill value; such datasets are refused, and so are links to other files and chunks that unpack to more than they
should. A file given by its path is opened by a child process first (see ``hdf5_probe``), since the library does not survive every
damage.

A dataset need not be a matrix with one sample in every row (:class:`Hdf5Stack`): it may be a stack of patterns, a matrix with one
sample in every column, or what MATLAB writes (``save -v7.3``): there the axes come in the opposite order, and complex numbers are
pairs called ``real`` and ``imag``. All are read in place, a range of samples at a time, and turned in memory.
"""

from __future__ import annotations

import itertools
import math
import os
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from robustphase.rows.io.hdf5_probe import OutsideError, probe, resolved
from robustphase.rows.io.limits import (
    DataError,
    MissingNameError,
    check_chunks,
    check_matrix,
    check_room,
    explained,
    require,
    shortened,
    working_dtype,
)
from robustphase.rows.io.npy import PlainFile
from robustphase.rows.io.prefetch import ReadAheadRows
from robustphase.rows.io.stacks import layout_of
from robustphase.rows.io.unpacking import check_unpacks, encoded_limit
from robustphase.rows.source import Array

MAGIC = b"\x89HDF\r\n\x1a\n"
#: Filters by their registered numbers: those that pack, with the name that ``unpacking`` has for them; those that state in
#: their parameters what they unpack to (nbit, scale-offset); and those that keep the size but for a checksum (shuffle,
#: Fletcher).
PACKERS = {
    1: "zlib",
    4: "szip",
    32000: "lzf",
    32001: "blosc",
    32004: "lz4 in HDF5",
    32008: "lz4 in HDF5",
    32015: "zstd",
}
STATED_SIZE, SAME_SIZE = frozenset((5, 6)), frozenset((2, 3))
FLETCHER32, BITSHUFFLE = 3, 32008


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


def open_hdf5(path: str | os.PathLike[str], name: str | None = None) -> Any:
    """An HDF5 file, open for reading, after another process has opened it and the dataset ``name`` and lived."""
    h5py = require("h5py", extra="io", purpose="reading HDF5 files")
    with explained(path, "HDF5"):
        why = probe(path, name)
        if why is not None:
            raise DataError(f"'{os.fspath(path)}' cannot be read as HDF5: {why}.")
        return h5py.File(path, "r")


def find_dataset(file: Any, name: str) -> Any:
    """A dataset by name, or an error that lists those present."""
    h5py = require("h5py", extra="io", purpose="reading HDF5 files")
    with explained(file.filename, "HDF5"):
        try:
            item = resolved(file, name, h5py)
        except OutsideError as error:
            raise DataError(f"in '{file.filename}', {error}.") from error
        if isinstance(item, h5py.Dataset):
            # What is damaged in their description is told here, and not wherever somebody asks for it first.
            item.shape, item.dtype  # noqa: B018
            return item
        present: list[str] = []
        file.visititems(lambda path, entry: present.append(path) if isinstance(entry, h5py.Dataset) else None)
    if isinstance(item, h5py.Group) and "MATLAB_sparse" in item.attrs:
        raise DataError(f"in '{file.filename}', {name} is a sparse matrix. In MATLAB: {name} = full({name})")
    # MATLAB keeps what cells refer to under names that begin so.
    shown = [path for path in present if not path.startswith("#")]
    raise MissingNameError(f"'{file.filename}' has no dataset named {name}", "the datasets in it:", shown, "none")


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
            raise DataError(f"{where} holds entries of type {shortened(dataset.dtype)}; numbers are needed.")
        check_room(math.prod(dataset.shape or (0,)) * dataset.dtype.itemsize, where)
        if dataset.chunks is not None:
            check_room(2 * math.prod(dataset.chunks) * dataset.dtype.itemsize, f"one chunk of {where}")
        with lock_of(dataset.file.filename).lock:
            PackedChunks(dataset, where).check_rows(0, dataset.shape[0] if dataset.shape else 0)
            return np.asarray(dataset[()])


def name_of(dataset: Any) -> str:
    """What to call a dataset in errors."""
    return f"'{dataset.file.filename}' (dataset {(dataset.name or '?').lstrip('/')})"


class PackedChunks:
    """The chunks of a dataset, and what they unpack to; each is looked at once. The caller holds the lock of the file."""

    def __init__(self, dataset: Any, where: str) -> None:
        self._dataset, self._where = dataset, where
        self._packer: tuple[int, str, int] | None = None
        self._seen: set[int] = set()
        if dataset.chunks is None:
            return
        self._bytes = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(index) for index in range(plist.get_nfilters())]
        for index, (code, _, values, _) in enumerate(filters):
            if code in STATED_SIZE:
                _check_stated(values, self._bytes, where)
            elif code in PACKERS:
                if self._packer is not None:
                    raise DataError(f"{where} is packed twice; write it again with one filter that packs, or none.")
                checked = sum(4 for later, *_ in filters[index + 1 :] if later == FLETCHER32)
                if code != BITSHUFFLE or (len(values) > 4 and values[4] != 0):
                    self._packer = index, PACKERS[code], checked
            elif code not in SAME_SIZE:
                raise DataError(
                    f"{where} uses the HDF5 filter {code}, and how much its chunks unpack to cannot be known beforehand; "
                    "write it again with gzip (h5repack -f GZIP=4), or without a filter."
                )

    def check_rows(self, start: int, stop: int) -> None:
        """Refuse chunks with rows ``start`` to ``stop`` that are longer than the dataset declares, packed or unpacked."""
        chunks, shape = self._dataset.chunks, self._dataset.shape
        if chunks is None:
            return
        columns = [range(0, size, chunk) for size, chunk in zip(shape[1:], chunks[1:], strict=True)]
        for stripe in range(start // chunks[0], -(-stop // chunks[0])):
            if stripe not in self._seen:
                for corner in itertools.product((stripe * chunks[0],), *columns):
                    self._check_chunk(corner)
                self._seen.add(stripe)

    def _check_chunk(self, corner: tuple[int, ...]) -> None:
        stored = self._dataset.id.get_chunk_info_by_coord(corner)
        if stored.size > encoded_limit(self._bytes):
            raise DataError(f"a chunk of {self._where} is longer than the dataset allows; the file is damaged.")
        if self._packer is None or stored.filter_mask >> self._packer[0] & 1:
            return
        _, codec, checksum = self._packer
        _, data = self._dataset.id.read_direct_chunk(corner)
        check_unpacks(codec, data[: len(data) - checksum], self._bytes, f"a chunk of {self._where}")


def _check_stated(values: tuple[int, ...], most: int, where: str) -> None:
    """Refuse a filter of the library whose parameters state another size than the chunks have: number and bytes of entries."""
    if len(values) > 4 and values[2] * values[4] > most:
        raise DataError(f"{where} declares chunks that unpack to more than their shape; the file is damaged.")


class Hdf5Rows(ReadAheadRows):
    """The rows of an h5py dataset; a file that it owns is closed with it."""

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
            self._packed = PackedChunks(dataset, self.where)
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
            self._packed.check_rows(start, stop)
            if self._dataset.dtype == self.dtype:
                self._dataset.read_direct(out, np.s_[start:stop])
            else:
                np.copyto(out, self._dataset[start:stop], casting="unsafe")


#: Names of the parts of a complex number in files of MATLAB.
PARTS = ("real", "imag")


def is_pair(dtype: np.dtype[Any]) -> bool:
    """Whether a type is MATLAB's for complex numbers."""
    return dtype.names == PARTS and len({dtype[name] for name in PARTS}) == 1 and dtype[PARTS[0]].kind in "fiu"


def number_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the numbers that a stored type stands for."""
    return np.result_type(dtype[PARTS[0]], np.complex64) if is_pair(dtype) else dtype


def as_numbers(values: Array) -> Array:
    """Complex numbers of their pairs; other arrays are returned as they are."""
    if not is_pair(values.dtype):
        return values
    numbers: Array = np.empty(values.shape, number_type(values.dtype))
    numbers.real, numbers.imag = values[PARTS[0]], values[PARTS[1]]
    return numbers


def read_matlab_array(dataset: Any) -> Array:
    """A small dataset of a MATLAB file in memory, with the axes as MATLAB has them."""
    check_numbers(dataset)
    return as_numbers(read_hdf5_array(dataset)).T


def check_numbers(dataset: Any) -> None:
    """Refuse what MATLAB keeps in datasets beside numbers: text, and arrays without entries."""
    kind = dataset.attrs.get("MATLAB_class", b"double")
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind == "char" or "MATLAB_empty" in dataset.attrs:
        what = "text" if kind == "char" else "an empty array"
        raise DataError(f"{name_of(dataset)} is {what}; an array of numbers is needed.")


class Hdf5Stack(ReadAheadRows):
    """The samples of an h5py dataset with two or three axes; a file that it owns is closed with it.

    With ``transpose`` the samples are the last axis, as the author of the file counts axes. ``matlab`` has written the axes in
    the opposite order.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        transpose: bool = False,
        matlab: bool = False,
        owned: Any = None,
        block_rows: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        with explained(dataset.file.filename, "HDF5"):
            self.where = name_of(dataset)
            stored = () if dataset.shape is None else tuple(dataset.shape)
            if matlab:
                check_numbers(dataset)
            layout = layout_of(stored[::-1] if matlab else stored, self.where, transpose=transpose)
            self.shape, self.pattern_shape = layout.rows, layout.pattern
            self.dtype = working_dtype(number_type(dataset.dtype), self.where)
            check_stored(dataset)
            # Axis of the samples in the file, and the order of axes that puts it first and the pattern as it is meant.
            self._axis = len(stored) - 1 if transpose != matlab else 0
            others = [axis for axis in range(len(stored)) if axis != self._axis]
            self._order = (self._axis, *(reversed(others) if matlab else others))
            if dataset.chunks is not None:
                chunk = dataset.chunks[self._axis], math.prod(dataset.chunks[axis] for axis in others)
                self.chunk_rows = check_chunks(self.shape, dataset.dtype.itemsize, chunk, self.where)
            self._dataset, self._owned, self._checked = dataset, owned, False
            self._lock = lock_of(dataset.file.filename)
            self._packed = PackedChunks(dataset, self.where)

    def close(self) -> None:
        """Close what this source opened."""
        if self._owned is not None:
            self._owned.close()

    def _fetch(self, start: int, stop: int, out: Array) -> None:
        index = tuple(slice(start, stop) if axis == self._axis else slice(None) for axis in range(len(self._order)))
        with self._lock.lock:
            if not self._checked:
                # Where samples are not the first axis, a few of them need chunks from everywhere.
                self._packed.check_rows(0, self._dataset.shape[0])
                self._checked = True
            values = self._dataset[index]
        turned = as_numbers(values).transpose(self._order).reshape(out.shape)
        np.copyto(out, turned, casting="unsafe")
