"""Numbers that the workers hold beside their rows, one for every row: they never come here."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np

from robustphase.rows.io.limits import require


class Beside:
    """A Dask array with one number for every row of another one; a pass takes it among its per-sample arrays.

    Parameters
    ----------
    values : dask.array.Array of shape (m,)
        The numbers.
    rows : dask.array.Array of shape (m, n)
        The rows, whose chunks the numbers follow.

    Attributes
    ----------
    array : dask.array.Array of shape (m, 1)
        The numbers, in double precision.
    shape : tuple of int
        ``(m,)``.
    name : str
        Under which workers find them.
    """

    def __init__(self, values: Any, rows: Any) -> None:
        dask_array = require("dask.array", extra="dask", purpose="fitting a Dask array")
        if not isinstance(values, dask_array.Array):
            raise TypeError(f"the numbers beside the rows must be a dask.array.Array, got {type(values).__name__}.")
        if values.shape != rows.shape[:1]:
            raise ValueError(f"A has {rows.shape[0]} rows but y has shape {values.shape}; each row needs exactly one.")
        self.array = values.rechunk((rows.chunks[0],)).astype(np.float64)[:, np.newaxis]
        self.shape: tuple[int, ...] = values.shape
        self.name = uuid.uuid4().hex
