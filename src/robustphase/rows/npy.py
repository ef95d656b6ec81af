"""Headers of ``.npy`` arrays, believed only as far as the bytes that follow bear them out."""

from __future__ import annotations

import math
import warnings
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from robustphase.rows.errors import DataError, reason
from robustphase.rows.limits import in_bytes

MAGIC = b"\x93NUMPY"


class NpyHeader(NamedTuple):
    """What an ``.npy`` header declares.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array.
    dtype : numpy.dtype
        Type of its entries: numbers, or text.
    column_major : bool
        Whether columns lie together instead of rows.
    offset : int
        Where the entries begin, in bytes from the beginning of the header.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    column_major: bool
    offset: int

    @property
    def data_bytes(self) -> int:
        """Bytes that the entries take."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(file: BinaryIO, size: int, where: str) -> NpyHeader:
    """Read and check a header.

    Parameters
    ----------
    file : binary file
        At the beginning of the header; afterwards at the first entry.
    size : int
        Bytes of header and entries together, as the file system or the archive tells it.
    where : str
        What to call the array in errors.
    """
    counted = _Counted(file)
    try:
        version = np.lib.format.read_magic(counted)  # type: ignore[arg-type]
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise DataError(f"{where} holds records of several fields; an array of plain numbers is needed.")
        with warnings.catch_warnings():
            # Headers written by Python 2 are read all the same.
            warnings.simplefilter("ignore")
            shape, column_major, dtype = readers[version](counted)  # type: ignore[arg-type]
    except DataError:
        raise
    except Exception as error:  # The header is evaluated as a literal: anything may be wrong with it.
        raise DataError(f"{where} has a damaged .npy header: {reason(error)}.") from error
    if dtype.hasobject:
        msg = f"{where} holds Python objects, which are never loaded because they can run code. Save plain numbers."
        raise DataError(msg)
    if any(isinstance(count, bool) or count < 0 for count in shape):
        raise DataError(f"{where} declares the impossible shape {shape}; its header is damaged.")
    header = NpyHeader(shape, dtype, bool(column_major), counted.position)
    present = size - header.offset
    if present != header.data_bytes:
        shapes = " x ".join(map(str, shape)) or "one"
        raise DataError(
            f"{where} declares {shapes} numbers of type {dtype}, {in_bytes(header.data_bytes)}, but "
            f"{in_bytes(max(0, present))} follow: it was cut off, written over, or its header is wrong."
        )
    return header


class _Counted:
    """A file that knows how far it was read, also where ``tell`` does not work."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.position = file, 0

    def read(self, count: int) -> bytes:
        data = self._file.read(count)
        self.position += len(data)
        return data
