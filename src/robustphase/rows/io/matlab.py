"""Arrays in files of MATLAB before its version 7.3 (``save -v6``, ``save -v7``), which hold up to 4 GB a variable.

Such a file is a sequence of variables, each packed or not, with its size in front: flags, dimensions, name, real part, imaginary
part, each again with its size in front. The layout is read here and not by SciPy, whose reader does not survive every damage
(a few changed bytes end the process). Nothing is believed before it is held against the bytes that are there: a variable must lie
within the file, and one that is packed must not unpack to more than it can or than memory holds. Only arrays of numbers are read;
cells, structures, objects and sparse matrices are refused with the line of MATLAB that cures it. Later files are HDF5
(see ``hdf5``).
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from robustphase.rows.io.limits import DataError, MissingNameError, check_room, explained
from robustphase.rows.io.npy import HIGHEST_RATIO
from robustphase.rows.source import Array

#: How the files begin; the second is HDF5 with a block of MATLAB's own in front.
MAGIC, MAGIC_73 = b"MATLAB 5", b"MATLAB 7"
#: Bytes of the head, and where it says in which order the bytes of numbers are.
HEAD, ORDER = 128, slice(126, 128)
#: Type numbers of a variable, and of a packed one.
MATRIX, PACKED = 14, 15
#: Types of stored numbers.
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
#: Classes of arrays of numbers with the types they have in memory, and the names of other classes.
NUMBERS = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
OTHERS = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function_handle"}
COMPLEX_FLAG = 0x0800
#: Lines of MATLAB that make numbers of other kinds.
CURES = {"sparse": "{0} = full({0})", "cell": "{0} = cell2mat({0})", "char": "{0} = double({0})"}
#: Bytes of a variable before its numbers: flags, dimensions and the longest name that MATLAB allows, several times over.
BEGINNING = 1 << 12


class _Variable(NamedTuple):
    """Where a variable is, and what it declares."""

    position: int
    length: int
    packed: bool
    name: str
    kind: int
    is_complex: bool
    shape: tuple[int, ...]


def read_mat_array(path: str | os.PathLike[str], name: str) -> Array:
    """One array of a file, in memory, with the axes as MATLAB has them."""
    where = f"'{os.fspath(path)}' (variable {name})"
    with explained(path, "a MATLAB file"), open(path, "rb") as file:
        order = _byte_order(file, os.fspath(path))
        listed = list(_variables(file, order, os.fspath(path)))
        matching = [found for found in listed if found.name == name]
        if len(matching) > 1:
            raise DataError(f"'{os.fspath(path)}' has several variables named {name}; it is damaged. Save it again.")
        if not matching:
            numbers = [found.name for found in listed if found.kind in NUMBERS]
            missing = f"'{os.fspath(path)}' has no variable named {name}"
            raise MissingNameError(missing, "its arrays of numbers:", numbers, "none")
        (found,) = matching
        if found.kind not in NUMBERS:
            kind = OTHERS.get(found.kind, "unknown")
            cure = CURES.get(kind, "save an array of numbers instead of {0}").format(name)
            raise DataError(f"{where} is of the class {kind}; an array of numbers is needed. In MATLAB: {cure}")
        return _numbers(file, found, order, where)


def _byte_order(file: BinaryIO, path: str) -> str:
    head = file.read(HEAD)
    order = {b"IM": "<", b"MI": ">"}.get(head[ORDER])
    if len(head) < HEAD or order is None:
        raise DataError(f"'{path}' has a damaged head and cannot be read as a MATLAB file.")
    return order


def _variables(file: BinaryIO, order: str, path: str) -> Iterator[_Variable]:
    """All variables of a file; those that are longer than it, or that claim to unpack to more than they can, are refused."""
    size, position = os.fstat(file.fileno()).st_size, HEAD
    while position < size:
        file.seek(position)
        tag = file.read(8)
        kind, count = struct.unpack(f"{order}II", tag) if len(tag) == 8 else (0, size)
        if position + 8 + count > size or kind not in (MATRIX, PACKED):
            raise DataError(f"'{path}' was cut off or is damaged at byte {position}.")
        begin, packed = file.read(min(count, BEGINNING)), kind == PACKED
        if packed:
            begin = _begin_of_packed(begin, count, order, path)
        try:
            name, kind, is_complex, shape, _ = _describe(begin, order)
        except (struct.error, ValueError, UnicodeDecodeError, KeyError) as error:
            raise DataError(f"'{path}' holds a variable that cannot be read; the file is damaged.") from error
        yield _Variable(position + 8, count, packed, name, kind, is_complex, shape)
        position += 8 + count


def _begin_of_packed(data: bytes, count: int, order: str, path: str) -> bytes:
    try:
        begin = zlib.decompressobj().decompress(data, BEGINNING)
        kind, unpacked = struct.unpack_from(f"{order}II", begin)
    except (zlib.error, struct.error) as error:
        raise DataError(f"'{path}' holds a packed variable that cannot be unpacked; the file is damaged.") from error
    if kind != MATRIX or unpacked > HIGHEST_RATIO * (count + 1):
        raise DataError(f"'{path}' holds a variable that claims to unpack to more than it can; the file is damaged.")
    return begin[8:]


def _element(data: bytes, at: int, order: str) -> tuple[int, int, int, int]:
    """Type, first byte and length of the element at a place, and where the next one begins."""
    (first,) = struct.unpack_from(f"{order}I", data, at)
    if first >> 16:  # Up to four bytes, in the tag itself.
        return first & 0xFFFF, at + 4, first >> 16, at + 8
    kind, count = struct.unpack_from(f"{order}II", data, at)
    return kind, at + 8, count, at + 8 + -(-count // 8) * 8


def _describe(data: bytes, order: str) -> tuple[str, int, bool, tuple[int, ...], int]:
    """Name, class, whether complex, shape, and where the numbers begin."""
    _, at, count, after = _element(data, 0, order)
    (flags,) = struct.unpack_from(f"{order}I", data, at)
    if count != 8:
        raise ValueError("flags")
    if flags & 0xFF not in NUMBERS and flags & 0xFF not in OTHERS:
        return "", 0, False, (), after  # What MATLAB keeps for itself.
    _, at, count, after = _element(data, after, order)
    shape = struct.unpack_from(f"{order}{count // 4}i", data, at)
    if count < 8 or count % 4 or min(shape) < 0:
        raise ValueError("shape")
    _, at, count, after = _element(data, after, order)
    if at + count > len(data):
        raise ValueError("name")
    return data[at : at + count].decode("ascii"), flags & 0xFF, bool(flags & COMPLEX_FLAG), shape, after


def _numbers(file: BinaryIO, found: _Variable, order: str, where: str) -> Array:
    dtype = np.dtype(NUMBERS[found.kind])
    entries = math.prod(found.shape)
    # Both parts as stored, in at most eight bytes each, and the array.
    check_room((2 if found.is_complex else 1) * entries * (8 + dtype.itemsize) + found.length, where)
    file.seek(found.position)
    data = file.read(found.length)
    if found.packed:
        most = (2 if found.is_complex else 1) * (8 * entries + 16) + BEGINNING
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(data, most)[8:]
        except zlib.error as error:
            raise DataError(f"{where} cannot be unpacked; the file is damaged.") from error
    *_, at = _describe(data, order)
    real, at = _part(data, at, order, entries, where)
    if not found.is_complex:
        return real.astype(dtype).reshape(found.shape, order="F")
    imaginary, _ = _part(data, at, order, entries, where)
    values: Array = np.empty(entries, np.result_type(dtype, np.complex64))
    values.real, values.imag = real, imaginary
    return values.reshape(found.shape, order="F")


def _part(data: bytes, at: int, order: str, entries: int, where: str) -> tuple[Array, int]:
    try:
        kind, begin, count, after = _element(data, at, order)
        stored = np.dtype(order + STORED[kind])
    except (struct.error, KeyError) as error:
        raise DataError(f"{where} does not hold what it declares; the file is damaged.") from error
    if count != entries * stored.itemsize or begin + count > len(data):
        raise DataError(f"{where} does not hold what it declares; the file is damaged.")
    return np.frombuffer(data, stored, entries, begin), after


def advice(begin: bytes) -> str:
    """What else a file with the suffix of MATLAB may be, and the line that cures it."""
    if begin.startswith(b"# Create"):
        return "it is a text file of Octave. In Octave, 'save -v7 FILE.mat A y' writes one that can be read."
    return "it is older than MATLAB 5, or damaged. In MATLAB, save('FILE.mat', 'A', 'y', '-v7') writes one that can be read."
