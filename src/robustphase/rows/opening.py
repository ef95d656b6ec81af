"""From what the user has to a row source."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.sparse import issparse

from robustphase.rows.dask_arrays import DaskRows
from robustphase.rows.disk import MappedRows
from robustphase.rows.errors import reason
from robustphase.rows.formats import open_rows_at
from robustphase.rows.hdf5 import Hdf5Rows
from robustphase.rows.memory import MemoryRows
from robustphase.rows.operators import OperatorRows, is_operator
from robustphase.rows.source import Array, RowSource
from robustphase.rows.zarr_arrays import ZarrRows


def as_source(rows: Any, *, name: str = "A") -> RowSource:
    """Make a row source of whatever holds rows; a source is returned as it is.

    Parameters
    ----------
    rows : RowSource, array-like of shape (m, n), or path
        The rows. Arrays are not copied. Memory maps, h5py datasets, zarr arrays, and files given by a path (see
        :func:`robustphase.rows.open_rows_at`) are read block by block and never loaded whole. Dask arrays stay on the
        workers of the current client (see :class:`robustphase.rows.DaskRows`). Linear operators are never made into rows (see
        :class:`robustphase.rows.OperatorRows`).
    name : str
        What to call the argument in error messages.

    Returns
    -------
    RowSource
    """
    if isinstance(rows, RowSource):
        return rows
    if isinstance(rows, (str, os.PathLike)):
        return open_rows_at(rows)
    if _comes_from(rows, "h5py", "Dataset"):
        return Hdf5Rows(rows)
    if _comes_from(rows, "zarr", "Array"):
        return ZarrRows(rows)
    if _comes_from(rows, "dask", "Array"):
        return DaskRows(rows)
    if is_operator(rows):
        return OperatorRows(rows)
    array = rows if isinstance(rows, np.memmap) else as_array(rows, name=name)
    if array.dtype.kind not in "fciub":
        msg = f"{name} must hold numbers, got dtype {array.dtype}. Convert it, for example {name}.astype(float)."
        raise TypeError(msg)
    if array.ndim != 2:
        hint = f" Use {name}.reshape(-1, 1) for a single column." if array.ndim == 1 else ""
        raise ValueError(f"{name} must be two-dimensional (samples x features), got shape {array.shape}.{hint}")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty: shape {array.shape}. At least one row and one column are needed.")
    return MappedRows(array) if isinstance(array, np.memmap) else MemoryRows(array)


def as_array(values: Any, *, name: str) -> Array:
    """A NumPy array of values that are dense and of one length, whatever they hold."""
    if issparse(values):
        raise TypeError(f"{name} is a sparse matrix, but dense data is required. Pass {name}.toarray().")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} cannot be made into an array: {reason(error)}. Check that all of its rows have the same length."
        ) from error


def _comes_from(rows: Any, package: str, kind: str) -> bool:
    """Whether an object is an instance of a class of a package, without importing the package."""
    return any(base.__module__.split(".")[0] == package and base.__name__ == kind for base in type(rows).__mro__)
