"""Kernels with many columns: a block is cut into slices whose numbers per row fit the cache."""

from __future__ import annotations

import numpy as np

from robustphase.rows.operators import OperatorBlock
from robustphase.rows.source import Array, Kernel, Parts

#: Numbers of one array of a slice: a handful of such arrays fit the cache of a core.
NUMBERS = 1 << 16
#: Fewer rows than this make thin, slow matrix products.
FEWEST_ROWS = 64


def in_slices(kernel: Kernel, columns: int) -> Kernel:
    """The same kernel, on slices of each block, for results with this many columns per row.

    What is done to every number of a large array is done at the speed of memory, and a kernel does a few dozen such things.
    """
    step = max(FEWEST_ROWS, NUMBERS // max(columns, 1))

    def sliced(*arrays: Array) -> Parts:
        count = arrays[0].shape[0]
        # A slice of an operator costs as much as the whole.
        if count <= step or isinstance(arrays[0], OperatorBlock):
            return kernel(*arrays)
        parts = [kernel(*(array[low : low + step] for array in arrays)) for low in range(0, count, step)]
        sums = tuple(np.sum(values, axis=0) for values in zip(*(part.sums for part in parts), strict=True))
        rows = tuple(np.concatenate(values) for values in zip(*(part.rows for part in parts), strict=True))
        return Parts(sums, rows)

    return sliced
