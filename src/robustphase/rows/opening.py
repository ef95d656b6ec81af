"""From what the user has to a row source."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.rows.memory import MemoryRows
from robustphase.rows.source import RowSource


def as_source(rows: Any, *, name: str = "A") -> RowSource:
    """Make a row source of whatever holds rows; a source is returned as it is.

    Parameters
    ----------
    rows : RowSource or array-like of shape (m, n)
        The rows. Arrays are not copied.
    name : str
        What to call the argument in error messages.

    Returns
    -------
    RowSource
    """
    if isinstance(rows, RowSource):
        return rows
    array = np.asarray(rows)
    if array.dtype.kind not in "fciub":
        msg = f"{name} must hold numbers, got dtype {array.dtype}. Convert it, for example {name}.astype(float)."
        raise TypeError(msg)
    if array.ndim != 2:
        hint = f" Use {name}.reshape(-1, 1) for a single column." if array.ndim == 1 else ""
        raise ValueError(f"{name} must be two-dimensional (samples x features), got shape {array.shape}.{hint}")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: shape {array.shape}. At least one row and one column are needed.")
    return MemoryRows(array)
