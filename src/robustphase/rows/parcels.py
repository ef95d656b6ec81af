"""Kernels packed for a journey: what a pass needs in another process, and nothing that belongs to this one.

A kernel is a closure over vectors and functions. Two kinds of things that it may have caught by accident must stay at home:
sources, of which it can only have wanted the shape, and the scratch memory of threads, which arrives empty.
"""

from __future__ import annotations

import io
import pickle
from functools import cache
from threading import local
from typing import Any

import numpy as np

from robustphase.rows.io.limits import require
from robustphase.rows.source import Kernel, RowSource


class RowsElsewhere:
    """What is left of a source in a kernel that has travelled: its shape and type.

    Parameters
    ----------
    shape : tuple of int
        ``(m, n)``.
    dtype : numpy.dtype
        Type of the blocks.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype


@cache
def _packer() -> Any:
    cloudpickle = require("cloudpickle", extra="dask", purpose="sending a pass to other processes")

    class Packer(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
        def reducer_override(self, item: Any) -> Any:
            if isinstance(item, RowSource):
                return RowsElsewhere, (item.shape, item.dtype)
            if isinstance(item, local):
                return type(item), ()
            return super().reducer_override(item)

    return Packer


def pack(kernel: Kernel) -> bytes:
    """A kernel as bytes, to be unpacked by a process of our own that runs the same version of this library."""
    with io.BytesIO() as file:
        _packer()(file, protocol=pickle.HIGHEST_PROTOCOL).dump(kernel)
        return file.getvalue()


def unpack(packed: bytes) -> Kernel:
    """The kernel in a parcel. Only for parcels that :func:`pack` made: Dask has brought code from the same client before."""
    kernel: Kernel = pickle.loads(packed)
    return kernel
