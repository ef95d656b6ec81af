"""Rows too large to square.

An entry of 1e150 squares to more than a double can hold, and one NaN spoils every sum it enters. The largest entry of a
row tells both without multiplying anything.
"""

from __future__ import annotations

import numpy as np

from robustphase.rows.source import Array, Parts, RowSource


def row_peaks(source: RowSource) -> Array:
    """Largest absolute entry of every row (for complex rows, of its real and imaginary parts): one pass.

    NaN where a row holds a NaN, infinite where it holds an infinity, and no warning for either.
    """

    def kernel(block: Array) -> Parts:
        real = np.ascontiguousarray(block).view(block.real.dtype) if np.iscomplexobj(block) else block
        return Parts(rows=(np.maximum(real.max(axis=1), -real.min(axis=1)).astype(np.float64),))

    return source.reduce(kernel).rows[0]


def extreme_rows(peaks: Array, *, limit: float) -> Array:
    """Which rows must not enter any product: NaN, infinite, or with an entry beyond ``limit`` (boolean, shape (m,))."""
    # Written so that NaN, which compares false with everything, counts as extreme.
    return ~(peaks <= limit)
