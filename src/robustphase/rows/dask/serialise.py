"""Kernels as bytes: what a pass needs in another process, and nothing that belongs to this one.

A kernel is a closure over vectors and functions. Two kinds of things that it may have caught by accident are left out:
sources, of which it can only have wanted the shape, and the scratch memory of threads, which arrives empty.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import cache
from threading import local
from typing import Any

import numpy as np

from robustphase.rows.io.limits import require
from robustphase.rows.source import RowSource


class RowsElsewhere:
    """What is left of a source in a serialised kernel: its shape and type."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype


@cache
def _pickler() -> Any:
    cloudpickle = require("cloudpickle", extra="dask", purpose="sending a pass to other processes")

    class KernelPickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
        def reducer_override(self, item: Any) -> Any:
            if isinstance(item, RowSource):
                return RowsElsewhere, (item.shape, item.dtype)
            if isinstance(item, local):
                return type(item), ()
            return super().reducer_override(item)

    return KernelPickler


def serialise(function: Callable[..., Any]) -> bytes:
    """A kernel, or a recipe of rows, as bytes, for a process of our own that runs the same version of this library."""
    with io.BytesIO() as file:
        _pickler()(file, protocol=pickle.HIGHEST_PROTOCOL).dump(function)
        return file.getvalue()


def deserialise(data: bytes) -> Callable[..., Any]:
    """The function again. Only for bytes that :func:`serialise` made.

    They come from no file, of which nothing is ever unpickled, but with a task of the same client, whose code Dask has unpickled
    already: whoever could forge them could run anything here.
    """
    function: Callable[..., Any] = pickle.loads(data)
    return function
