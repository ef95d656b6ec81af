"""One finished pass in one file: a line that says what it is, the arrays as they lie in memory, and a checksum over both.

The line is JSON: number and digest of the pass, and for every array its type, its shape, and the order of its axes in memory,
which is kept because products round differently for rows and for columns. The checksum is keyed by what the pass belongs to.
A file that is cut off, damaged, about another pass or of another run is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from typing import IO, Any, NamedTuple

import numpy as np

from robustphase.atomic import open_regular, writing
from robustphase.rows.source import Array, Parts

#: Raised whenever the layout of such a file changes.
FORMAT = 2
#: Longest first line that is read, and bytes of the checksum at the end.
LONGEST_LINE, CHECKSUM = 1 << 16, 32
#: Types of arrays by their names: numbers only, and nothing that a damaged name could make NumPy do.
TYPES = {np.dtype(code).str: np.dtype(code) for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]}


class SealedPass(NamedTuple):
    """A pass as it will be written."""

    head: bytes  # The first line
    arrays: list[Array]  # Sums, then per-sample values
    orders: list[list[int]]  # The order of the axes of each in memory
    checksum: bytes  # Over all of it


def seal_pass(number: int, call: str, parts: Parts, link: bytes) -> SealedPass:
    """Make a file of a pass, in memory: its arrays must not change afterwards.

    ``call`` is the digest of what the pass asked for, ``link`` the key of the checksum: what ties the pass to its run and to
    the pass before it.
    """
    arrays = [*parts.sums, *parts.rows]
    orders = [_order(array) for array in arrays]
    described = {
        "format": FORMAT,
        "pass": number,
        "call": call,
        "sums": len(parts.sums),
        "arrays": [[a.dtype.str, list(a.shape), order] for a, order in zip(arrays, orders, strict=True)],
    }
    head = json.dumps(described).encode("ascii") + b"\n"
    digest = hashlib.blake2b(head, key=link, digest_size=CHECKSUM)
    for data in map(_bytes_of, arrays, orders):
        digest.update(data)
    return SealedPass(head, arrays, orders, digest.digest())


def write_pass(path: str | os.PathLike[str], sealed: SealedPass) -> None:
    """Keep the result of a pass, whole or not at all; a link, pipe or device at ``path`` is refused."""
    with writing(path, follow=False) as file:
        for data in (sealed.head, *map(_bytes_of, sealed.arrays, sealed.orders), sealed.checksum):
            file.write(data)


def read_pass(path: str | os.PathLike[str], number: int, link: bytes) -> tuple[str, Parts, bytes] | None:
    """Digest, result and checksum of a pass; None if no regular file holds them unharmed and sealed with ``link``."""
    try:
        with open_regular(path) as file:
            return _read(file, os.fstat(file.fileno()).st_size, number, link)
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _read(file: IO[bytes], size: int, number: int, link: bytes) -> tuple[str, Parts, bytes] | None:
    line = file.readline(LONGEST_LINE)
    head = json.loads(line)
    if head["format"] != FORMAT or head["pass"] != number:
        return None
    kinds = [(TYPES[dtype], [int(count) for count in shape], order) for dtype, shape, order in head["arrays"]]
    # The line is not proven yet: what it declares must be what is there before memory is taken for it.
    if any(min(shape, default=0) < 0 or sorted(order) != list(range(len(shape))) for _, shape, order in kinds):
        return None
    if len(line) + sum(dtype.itemsize * math.prod(shape) for dtype, shape, _ in kinds) + CHECKSUM != size:
        return None
    digest = hashlib.blake2b(line, key=link, digest_size=CHECKSUM)
    arrays = []
    for dtype, shape, order in kinds:
        stored = np.empty([shape[axis] for axis in order], dtype)
        content = stored.reshape(-1).view(np.uint8)
        if file.readinto(content.data) != content.size:  # type: ignore[attr-defined]
            return None
        digest.update(content.data)
        arrays.append(stored.transpose(np.argsort(order)))
    if file.read() != digest.digest():
        return None
    sums = int(head["sums"])
    return str(head["call"]), Parts(tuple(arrays[:sums]), tuple(arrays[sums:])), digest.digest()


def _order(array: Array) -> list[int]:
    """Axes from the one with the longest stride to the one with the shortest."""
    return [int(axis) for axis in np.argsort([-abs(stride) for stride in array.strides], kind="stable")]


def _bytes_of(array: Array, order: list[int]) -> Any:
    return np.ascontiguousarray(array.transpose(order)).reshape(-1).view(np.uint8).data
