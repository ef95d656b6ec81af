"""The order of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def stable_order(values: NDArray[Any]) -> NDArray[Any]:
    """The order of finite values (m,), and of ties among them as they come: that of NumPy's stable sort, in half the time."""
    return _with_places(values) if values.dtype == np.float32 else _by_digits(values)


def _with_places(values: NDArray[Any]) -> NDArray[Any]:
    """The same of single precision, which leaves room for the place of a value beside it in one number: a plain sort does.

    NumPy sorts such numbers with vector instructions, in half the time that it takes to order them.
    """
    keys = (_ordered_bits(values, np.float32).astype(np.int64) << 32) | np.arange(values.size)
    keys.sort()
    order: NDArray[Any] = keys & 0xFFFFFFFF
    return order


def _by_digits(values: NDArray[Any]) -> NDArray[Any]:
    """The same of double precision.

    NumPy orders numbers of sixteen bits by their digits, without comparing any; comparisons of values without a pattern spend
    most of their time where the outcome was guessed wrongly. So values are ordered by sixteen of their bits after the other.
    """
    bits = _ordered_bits(values, np.float64)
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    for shift in (16, 32):
        order = order[np.argsort((bits >> shift).astype(np.uint16)[order], kind="stable")]
    # The last digits have the sign.
    highest: NDArray[Any] = order[np.argsort((bits >> 48).astype(np.int16)[order], kind="stable")]
    return highest


def _ordered_bits(values: NDArray[Any], dtype: type[np.float32] | type[np.float64]) -> NDArray[Any]:
    """Integers in the order of the values in this type."""
    # Zero has two signs, which are one value.
    bits: NDArray[Any] = np.add(values, 0.0, dtype=dtype).view(np.int32 if dtype is np.float32 else np.int64)
    last = 8 * bits.itemsize - 1
    # Negative numbers have their bits in the other order.
    bits ^= (bits >> last) & ((1 << last) - 1)
    return bits
