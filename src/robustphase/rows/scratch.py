"""Memory that each thread keeps for its blocks: asking the system anew costs more than what is done with it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from robustphase.rows.operators import OperatorBlock
from robustphase.rows.source import Array


class _Kept(threading.local):
    """Arrays of one thread, by what they are for."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}


_kept = _Kept()


def scratch(purpose: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of this thread that the next call for the same purpose overwrites; what is in it does not matter."""
    size = int(np.prod(shape))
    array = _kept.arrays.get(purpose)
    if array is None or array.dtype != dtype or array.size < size:
        array = _kept.arrays[purpose] = np.empty(size, dtype)
    return array[:size].reshape(shape)


def in_single_precision(block: Array) -> Array:
    """The block in single precision, in memory that the next block of this thread overwrites.

    Rows of an operator come as they are: their products follow the precision of the vectors, where the operator allows.
    """
    if isinstance(block, OperatorBlock):
        return block
    single = np.dtype(np.complex64 if block.dtype.kind == "c" else np.float32)
    if block.dtype == single:
        return block
    rounded = scratch("single", block.shape, single)
    rounded[...] = block
    return rounded
