"""From what the user has to a row source: arrays and open data sets, and files, whose kind their first bytes tell."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from robustphase.rows.blocked import MappedRows, MemoryRows
from robustphase.rows.dask.source import DaskRows
from robustphase.rows.io import hdf5, matlab, npy, parquet, text, tiff
from robustphase.rows.io.hdf5 import Hdf5Rows, Hdf5Stack, find_dataset, open_hdf5
from robustphase.rows.io.limits import DataError, reason
from robustphase.rows.io.matlab import read_mat_array
from robustphase.rows.io.npy import open_npy, open_npz, rows_in_memory
from robustphase.rows.io.parquet import ParquetRows
from robustphase.rows.io.text import text_covariates
from robustphase.rows.io.tiff import read_tiff
from robustphase.rows.io.zarr import ZarrRows, find_array, open_zarr, read_zarr_array
from robustphase.rows.io.zarr import name_of as array_name
from robustphase.rows.operators import OperatorRows, is_operator
from robustphase.rows.source import Array, RowSource

#: Names of the covariates and of the responses in files that hold several arrays.
COVARIATES, RESPONSES = "A", "y"
#: First bytes of each kind of file. The second archive is one without members.
FIRST_BYTES = {
    npy.MAGIC: "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    hdf5.MAGIC: "hdf5",
    parquet.MAGIC: "parquet",
    matlab.MAGIC: "mat",
    **dict.fromkeys(tiff.MAGICS, "tiff"),
}
#: What a suffix promises, for the error when the first bytes tell otherwise.
SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".parquet": "parquet",
    ".mat": "mat",
    ".tif": "tiff",
    ".tiff": "tiff",
}


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
    """A NumPy array of values that are dense and of one length, whatever they hold; what a mask hides is NaN."""
    if issparse(values):
        raise TypeError(f"{name} is a sparse matrix, but dense data is required. Pass {name}.toarray().")
    if np.ma.is_masked(values):
        unmasked: Array = np.ma.filled(values.astype(np.result_type(values.dtype, np.float32)), np.nan)
        return unmasked
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} cannot be made into an array: {reason(error)}. Check that all of its rows have the same length."
        ) from error


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind of a file, by its first bytes: ``"npy"``, ``"npz"``, ``"hdf5"``, ``"parquet"``, ``"mat"`` (MATLAB until 7.2),
    ``"matlab"`` (from 7.3 on, HDF5), ``"tiff"``, or by its name ``"text"``; ``"zarr"`` is a folder.
    """  # noqa: D205
    place = Path(path)
    try:
        mode = place.stat().st_mode
        if stat.S_ISDIR(mode):
            return "zarr"
        if not stat.S_ISREG(mode):  # Opening a pipe would wait for somebody to write to it.
            raise DataError(f"'{place}' is neither a file nor a folder.")
        with open(place, "rb") as file:
            begin = file.read(8)
            for magic, kind in FIRST_BYTES.items():
                if begin.startswith(magic):
                    return kind
            # HDF5 files may begin with a block that belongs to their user.
            for offset in (512 << power for power in range(11)):
                file.seek(offset)
                if file.read(8) == hdf5.MAGIC:
                    return "matlab" if begin == matlab.MAGIC_73 else "hdf5"
    except FileNotFoundError as error:
        raise DataError(f"there is no file '{place}'.") from error
    except DataError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"'{place}' cannot be read: {reason(error)}.") from error
    if not begin:
        raise DataError(f"'{place}' is empty.")
    if place.suffix.lower() in text.SUFFIXES:
        return "text"
    promised = SUFFIXES.get(place.suffix.lower())
    if promised == "mat":
        raise DataError(f"'{place}' cannot be read as a MATLAB file: {matlab.advice(begin)}")
    if promised:
        raise DataError(
            f"'{place}' does not begin like a file of the kind {promised}; it is damaged or something else."
        )
    raise DataError(
        f"'{place}' is none of the kinds that can be read: .npy, .npz, .mat, .csv, .tif, HDF5, parquet, or a zarr folder."
    )


def open_rows_at(
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    transpose: bool = False,
    responses_name: str | None = None,
    block_rows: int | None = None,
    threads: int | None = None,
) -> RowSource:
    """The covariates in a file, as a source that is never loaded whole where its kind allows.

    Compressed ``.npz`` archives, MATLAB files before version 7.3, text, TIFF, zarr arrays that are stacks or transposed, and
    stacks in ``.npy`` and ``.npz`` files that are stored column by column are loaded.

    Parameters
    ----------
    path : path
        An ``.npy``, ``.npz``, HDF5, parquet, MATLAB, text (``.csv``) or TIFF file, or a zarr folder. The kind is told by its
        first bytes. The array is a matrix (samples x features) or a stack (samples x height x width), which is flattened:
        ``pattern_shape`` keeps the shape.
    name : str, optional
        Name of the array, dataset, variable or column. Default: "A"; ``.npy``, TIFF and text files without a line of names, and
        zarr arrays outside a group, have none.
    transpose : bool, default=False
        Whether the samples are the last axis and not the first.
    responses_name : str, optional
        In a text file, the column that is none of the covariates. Default: "y".
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.

    Returns
    -------
    RowSource
        Its ``close`` method closes the file; so does forgetting it.
    """
    kind, wanted, where = kind_of(path), name or COVARIATES, f"'{os.fspath(path)}'"
    blocks: dict[str, Any] = {"block_rows": block_rows, "threads": threads}
    try:
        if kind == "npy":
            return open_npy(path, transpose=transpose, **blocks)
        if kind == "npz":
            return open_npz(path, wanted, transpose=transpose, **blocks)
        if kind == "parquet":
            if transpose:
                raise DataError(f"{where} is a table, whose rows are the samples; transpose is for arrays.")
            return ParquetRows(path, wanted, **blocks)
        if kind == "zarr":
            return _open_zarr(path, name, transpose, blocks)
        if kind in ("hdf5", "matlab"):
            return _open_hdf5(path, wanted, transpose, kind == "matlab", blocks)
        if kind == "mat":
            array, where = read_mat_array(path, wanted), f"{where} (variable {wanted})"
        elif kind == "tiff":
            array = read_tiff(path)
        else:
            array = text_covariates(path, name, responses_name or RESPONSES)
        return rows_in_memory(array, where, transpose=transpose, **blocks)
    except OSError as error:
        raise DataError(f"'{os.fspath(path)}' cannot be read: {reason(error)}.") from error


def _open_zarr(path: str | os.PathLike[str], name: str | None, transpose: bool, blocks: dict[str, Any]) -> RowSource:
    store = open_zarr(path)
    single = name is None and not hasattr(store, "array_keys")
    array = store if single else find_array(store, name or COVARIATES, path)
    if not transpose and len(array.shape) != 3:
        return ZarrRows(array, **blocks)
    return rows_in_memory(read_zarr_array(array), array_name(array), transpose=transpose, **blocks)


def _open_hdf5(
    path: str | os.PathLike[str], name: str, transpose: bool, by_matlab: bool, blocks: dict[str, Any]
) -> RowSource:
    file = open_hdf5(path, name)
    try:
        dataset = find_dataset(file, name)
        if not (transpose or by_matlab) and len(dataset.shape or ()) != 3:
            return Hdf5Rows(dataset, owned=file, **blocks)
        return Hdf5Stack(dataset, transpose=transpose, matlab=by_matlab, owned=file, **blocks)
    except BaseException:  # Ctrl-C included: no rows own the file yet that would close it.
        file.close()
        raise


def _comes_from(rows: Any, package: str, kind: str) -> bool:
    """Whether an object is an instance of a class of a package, without importing the package."""
    return any(base.__module__.split(".")[0] == package and base.__name__ == kind for base in type(rows).__mro__)
