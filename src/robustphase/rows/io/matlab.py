"""Arrays in files of MATLAB before its version 7.3 (``save -v6``, ``save -v7``), which SciPy reads and which hold up to 4 GB.

Such a file is a sequence of variables, each packed or not, with its size in front. Nothing of that is believed before it is
held against the file: a variable must lie within it, and one that is packed must not unpack to more than the memory that is left.
Only arrays of numbers are read; cells, structures, objects and sparse matrices are refused with the line of MATLAB that cures it.
Later files are HDF5 (see ``hdf5_stack``).
"""

from __future__ import annotations

import math
import os
import struct
import warnings
import zlib
from typing import Any, BinaryIO

import numpy as np

from robustphase.rows.io.limits import DataError, MissingNameError, check_room, explained
from robustphase.rows.io.npy import HIGHEST_RATIO
from robustphase.rows.source import Array

#: How the files begin; the second is HDF5 with a block of MATLAB's own in front.
MAGIC, MAGIC_73 = b"MATLAB 5", b"MATLAB 7"
#: Bytes of the head, and where it says in which order the bytes of numbers are.
HEAD, ORDER = 128, slice(126, 128)
#: Type number of a packed variable.
PACKED = 15
#: Kinds of arrays that hold numbers, with the most bytes that an entry takes.
NUMBERS = {
    "double": 8,
    "single": 4,
    "logical": 1,
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
#: Lines of MATLAB that make numbers of other kinds.
CURES = {"sparse": "{0} = full({0})", "cell": "{0} = cell2mat({0})", "char": "{0} = double({0})"}


def read_mat_array(path: str | os.PathLike[str], name: str) -> Array:
    """One array of a file, in memory, with the axes as MATLAB has them."""
    from scipy.io import loadmat  # Loading it takes a moment, and few fits need it.

    where = f"'{os.fspath(path)}' (variable {name})"
    with explained(path, "a MATLAB file"), open(path, "rb") as file:
        _check_sizes(file, os.fstat(file.fileno()).st_size, os.fspath(path))
        file.seek(0)
        shape, kind = _described(file, name, os.fspath(path))
        if kind not in NUMBERS:
            cure = CURES.get(kind, "save an array of numbers instead of {0}").format(name)
            raise DataError(f"{where} is of the class {kind}; an array of numbers is needed. In MATLAB: {cure}")
        # A real and an imaginary part, each as stored and as an array.
        check_room(4 * NUMBERS[kind] * math.prod(shape), where)
        file.seek(0)
        readable: Any = file  # The stubs know of paths only.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of variables that are not read.
            found = loadmat(readable, variable_names=[name], mat_dtype=False)[name]
    values: Array = np.asarray(found)
    if values.dtype.kind not in "fciub" or values.shape != tuple(shape):
        raise DataError(f"{where} does not hold what it declares; the file is damaged.")
    return values


def _listed(file: Any) -> list[tuple[str, tuple[int, ...], str]]:
    from scipy.io import whosmat

    return list(whosmat(file))


def _described(file: BinaryIO, name: str, path: str) -> tuple[tuple[int, ...], str]:
    listed = _listed(file)
    matching = [(shape, kind) for found, shape, kind in listed if found == name]
    if len(matching) > 1:
        raise DataError(f"'{path}' has several variables named {name}; the file is damaged. Save it again.")
    if not matching:
        numbers = [found for found, _, kind in listed if kind in NUMBERS]
        raise MissingNameError(f"'{path}' has no variable named {name}", "its arrays of numbers:", numbers, "none")
    return matching[0]


def _check_sizes(file: BinaryIO, size: int, path: str) -> None:
    """Refuse variables that are longer than the file, and packed ones that claim more than they can hold or memory has."""
    head = file.read(HEAD)
    order = {b"IM": "<", b"MI": ">"}.get(head[ORDER])
    if len(head) < HEAD or order is None:
        raise DataError(f"'{path}' has a damaged head and cannot be read as a MATLAB file.")
    position = HEAD
    while position < size:
        file.seek(position)
        tag = file.read(8)
        if len(tag) < 8:
            raise DataError(f"'{path}' was cut off.")
        kind, count = struct.unpack(f"{order}II", tag)
        if position + 8 + count > size:
            raise DataError(f"'{path}' declares a variable that is longer than the file: it was cut off or is damaged.")
        if kind == PACKED:
            _check_packed(file.read(min(count, 1 << 12)), count, order, path)
        elif count == 0:
            raise DataError(f"'{path}' holds a variable without content; the file is damaged.")
        position += 8 + count


def _check_packed(begin: bytes, count: int, order: str, path: str) -> None:
    try:
        tag = zlib.decompressobj().decompress(begin, 8)
        (unpacked,) = struct.unpack_from(f"{order}I", tag, 4)
    except (zlib.error, struct.error) as error:
        raise DataError(f"'{path}' holds a packed variable that cannot be unpacked; the file is damaged.") from error
    if unpacked > HIGHEST_RATIO * (count + 1):
        raise DataError(f"'{path}' holds a variable that claims to unpack to more than it can; the file is damaged.")
    check_room(unpacked, f"a variable of '{path}'")


def advice(begin: bytes) -> str:
    """What else a file with the suffix of MATLAB may be, and the line that cures it."""
    if begin.startswith(b"# Create"):
        return "it is a text file of Octave. In Octave: save -v7 FILE.mat A y"
    return "it is older than MATLAB 5, or damaged. In MATLAB: save('FILE.mat', 'A', 'y', '-v7')"
