"""Rows of an HDF5 dataset that is not a matrix with one sample in every row.

That is a stack of patterns, a matrix with one sample in every column, or what MATLAB writes (``save -v7.3``): there the axes come
in the opposite order, and complex numbers are pairs called ``real`` and ``imag``. All are read in place, a range of samples at
a time, and turned in memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robustphase.rows.io.hdf5 import PackedChunks, check_stored, lock_of, name_of, read_hdf5_array
from robustphase.rows.io.limits import DataError, check_chunks, explained, working_dtype
from robustphase.rows.io.prefetch import ReadAheadRows
from robustphase.rows.io.stacks import layout_of
from robustphase.rows.source import Array

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
