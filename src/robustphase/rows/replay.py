"""Rows whose passes are remembered, so that a run that was cut off can be repeated without making them again.

A fit is a deterministic function of what its passes over ``A`` return. Whoever keeps those results in a *replay log* keeps
the whole state of the fit: repeat it, answer the passes already made from the log, and it arrives where it was, in the
time that everything but the passes takes. No algorithm needs to know, and the answer is the same bit for bit.

What a pass computes is a function of the rows and of what its kernel carries along: per-sample arrays, and the vectors
that the kernel has closed over. A digest of the latter two and of the kernel's instructions, cheap beside the pass, shows
when a repeated run has left the path of the first one, be it by a rounding error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from threading import local
from types import CodeType, FunctionType, MethodType
from typing import Any, Protocol

import numpy as np

from robustphase.rows.source import Array, Kernel, Parts, RowSource
from robustphase.rows.wrapped import WrappedRows

#: Arrays up to this size enter the digest whole; of larger ones about this many evenly spaced rows.
WHOLE_BYTES, ROWS = 1 << 16, 1024
#: How deep to look into objects: kernels carry vectors, at most inside a view inside a wrapper.
DEPTH = 8
PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, slice, range)


class ReplayLog(Protocol):
    """Where results of passes are kept, by the number of the pass and a digest of what it asked for."""

    def recall(self, number: int, call: str) -> Parts | None:
        """The result of pass ``number`` (0, 1, ...), in arrays of the caller's own; None if it must be made."""

    def record(self, number: int, call: str, parts: Parts) -> None:
        """Keep the result of a pass; the caller may change the arrays afterwards."""


class ReplayedRows(RowSource):
    """Another source whose passes are looked up in a replay log first, and kept there when they had to be made.

    The passes must come in the same order in every run, so do not sweep such a source from several threads.

    Parameters
    ----------
    source : RowSource
        The rows.
    log : ReplayLog
        What has been made already.

    Attributes
    ----------
    recalled : int
        How many of the passes so far came from the log.
    """

    def __init__(self, source: RowSource, log: ReplayLog) -> None:
        self.source, self.log = source, log
        self.shape, self.dtype, self.on_disk = source.shape, source.dtype, source.on_disk
        self.recalled = 0
        self._next = 0

    def _take(self, indices: Array) -> Array:
        # Read anew: they would make a log much larger than sums do.
        return self.source._take(indices)

    def _count_take(self) -> None:
        super()._count_take()
        self.source._count_take()

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], pairing: int) -> Parts:
        number, call = self._next, pass_digest(kernel, per_row, pairing)
        parts = self.log.recall(number, call)
        if parts is not None:
            self.recalled += 1
        else:
            parts = self.source.reduce(kernel, per_row, pairing=pairing)
            self.log.record(number, call, parts)
        # Counted only now: a pass that fails, and is made again by the same process, keeps its number.
        self._next = number + 1
        return parts


def pass_digest(kernel: Kernel, per_row: Sequence[Array], pairing: int) -> str:
    """A digest of everything that a pass depends on, besides the rows: 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    _take(digest, (pairing, tuple(per_row), kernel), set(), DEPTH)
    return digest.hexdigest()


def _take(digest: Any, item: Any, open_: set[int], depth: int) -> None:
    if isinstance(item, np.ndarray):
        digest.update(f"array {item.dtype.str} {item.shape} {_layout(item)}\n".encode())
        _take_content(digest, item)
    elif isinstance(item, PLAIN):
        digest.update(f"{type(item).__name__} {item!r}\n".encode("utf-8", "backslashreplace"))
    elif depth == 0 or id(item) in open_:
        digest.update(b"...\n")
    else:
        digest.update(f"{type(item).__qualname__} {getattr(item, '__qualname__', '')}\n".encode())
        open_.add(id(item))
        for part in _parts(item):
            _take(digest, part, open_, depth - 1)
        open_.discard(id(item))


def _parts(item: Any) -> list[Any]:
    """What an object is made of, as far as a kernel could use it."""
    if isinstance(item, (tuple, list)):
        return [len(item), *item]
    if isinstance(item, dict):
        return [part for pair in item.items() for part in pair]
    if isinstance(item, FunctionType):
        return [item.__code__, item.__defaults__, item.__kwdefaults__, *_closed_over(item)]
    if isinstance(item, CodeType):
        return [item.co_code, item.co_consts, item.co_names]
    if isinstance(item, MethodType):
        return [item.__func__, item.__self__]
    if isinstance(item, partial):
        return [item.func, item.args, item.keywords]
    if isinstance(item, RowSource):
        # Rows are the problem's, not the call's: only what is done to them counts.
        kept = {name: value for name, value in vars(item).items() if isinstance(value, (np.ndarray, *PLAIN))}
        return [item.shape, kept if isinstance(item, WrappedRows) else {}]
    # Thread-local storage and locks hold nothing that a result depends on.
    if isinstance(item, local) or type(item).__module__ in ("_thread", "threading"):
        return []
    return [getattr(item, "__dict__", {})]


def _closed_over(function: FunctionType) -> list[Any]:
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # A name that is not bound yet.
            cells.append(None)
    return cells


def _take_content(digest: Any, array: Array) -> None:
    if array.nbytes > WHOLE_BYTES and array.ndim:
        array = array[:: max(1, array.shape[0] // ROWS)]
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _layout(array: Array) -> str:
    """Products round differently for rows and for columns in memory."""
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "-"
