"""The responses and the small things beside the samples: the truth, and notes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from robustphase.rows.io.hdf5 import find_dataset, open_hdf5, read_hdf5_array
from robustphase.rows.io.hdf5 import name_of as dataset_name
from robustphase.rows.io.hdf5_probe import NOTES, notes_of
from robustphase.rows.io.limits import DataError, check_room, reason
from robustphase.rows.io.npy import PlainFile, npz_names, read_npy_header, read_npz_array, read_npz_header
from robustphase.rows.io.parquet import open_parquet, read_parquet_column
from robustphase.rows.io.zarr import find_array, open_zarr, read_zarr_array
from robustphase.rows.io.zarr import name_of as array_name
from robustphase.rows.opening import kind_of
from robustphase.rows.source import Array

#: Names of the responses and of the truth in files that hold several arrays.
RESPONSES, TRUTH = "y", "truth"
#: Longest notes that are read.
MOST_NOTES = 1 << 20

Check = Callable[[tuple[int, ...], np.dtype[Any], str], None]


def read_responses(path: str | os.PathLike[str], name: str | None, count: int) -> Array:
    """The ``count`` responses in a file, as float64."""

    def check(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
        if dtype.kind == "c":
            raise DataError(
                f"{where} holds complex numbers; responses are squared magnitudes and real: save np.abs(y)**2."
            )
        if dtype.kind not in "fiub":
            raise DataError(f"{where} holds entries of type {dtype}; responses must be numbers.")
        if len(shape) != 1 and shape[1:] != (1,):
            raise DataError(f"{where} has shape {shape}; responses need one dimension, one number per row of A.")
        if shape[0] != count:
            raise DataError(
                f"{where} holds {shape[0]} responses for {count} rows of covariates; each row needs exactly one."
            )

    values = read_array(path, name or RESPONSES, check, alone=True)
    return values.reshape(-1).astype(np.float64)


def read_truth(path: str | os.PathLike[str], length: int) -> Array | None:
    """The true signal, if the file has one: ``length`` numbers called "truth"."""

    def check(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
        if shape != (length,) or dtype.kind not in "fciub":
            raise DataError(f"{where} is not a signal of {length} numbers.")

    try:
        if kind_of(path) == "parquet":
            return _truth_in(read_notes(path, wrapped=True), length)
        truth = read_array(path, TRUTH, check)
    except DataError:  # The fit does not need it.
        return None
    return truth.astype(np.result_type(truth.dtype, np.float64))


def _truth_in(notes: dict[str, Any], length: int) -> Array | None:
    parts = notes.get(TRUTH)
    if not isinstance(parts, list) or len(parts) not in (1, 2):
        return None
    try:
        real, *imaginary = (np.array(part, np.float64) for part in parts)
    except (TypeError, ValueError):
        return None
    if any(part.shape != (length,) for part in (real, *imaginary)):
        return None
    return real + 1j * imaginary[0] if imaginary else real


def read_array(path: str | os.PathLike[str], name: str, check: Check, *, alone: bool = False) -> Array:
    """A small array of a file, in memory.

    Parameters
    ----------
    path : path
        The file.
    name : str
        Name of the array.
    check : callable
        ``check(shape, dtype, where)`` refuses what is not wanted, before anything of it is read.
    alone : bool, default=False
        Whether a file that holds a single array without a name will do.
    """
    kind = kind_of(path)
    try:
        if kind == "npy" and alone:
            return _read_npy(path, check)
        if kind == "npz":
            header = read_npz_header(path, name)
            check(header.shape, header.dtype, f"'{os.fspath(path)}' (array {name})")
            return read_npz_array(path, name)
        if kind == "parquet":
            file = open_parquet(path)
            try:
                values = read_parquet_column(file, name, path)
            finally:
                file.close(force=True)
            check(values.shape, values.dtype, f"'{os.fspath(path)}' (column {name})")
            return values
        if kind == "zarr":
            store = open_zarr(path)
            array = store if alone and not hasattr(store, "array_keys") else find_array(store, name, path)
            check(array.shape, np.dtype(array.dtype), array_name(array))
            return read_zarr_array(array)
        if kind == "hdf5":
            with open_hdf5(path, name) as opened:
                dataset = find_dataset(opened, name)
                check(() if dataset.shape is None else dataset.shape, dataset.dtype, dataset_name(dataset))
                return read_hdf5_array(dataset)
    except OSError as error:
        raise DataError(f"'{os.fspath(path)}' cannot be read: {reason(error)}.") from error
    raise DataError(f"'{os.fspath(path)}' holds a single array; {name} must come from another file.")


def _read_npy(path: str | os.PathLike[str], check: Check) -> Array:
    where = f"'{os.fspath(path)}'"
    with open(path, "rb") as opened:
        header = read_npy_header(opened, os.fstat(opened.fileno()).st_size, where)
    check(header.shape, header.dtype, where)
    check_room(header.data_bytes, where)
    values = np.empty(header.shape, header.dtype, order="F" if header.column_major else "C")
    file = PlainFile(path)
    try:
        file.read_into(values.reshape(-1, order="A"), header.offset)
    finally:
        file.close()
    return values


def read_notes(path: str | os.PathLike[str], *, wrapped: bool = False) -> dict[str, Any]:
    """The notes that :func:`~robustphase.files.save_samples` keeps beside the samples; empty where there are none.

    ``wrapped`` also gives what a parquet file keeps among its notes for want of another place, the truth.
    """
    kind = kind_of(path)
    try:
        if kind == "npz":
            text = _npz_text(path)
        elif kind == "hdf5":
            text = notes_of(path)
        elif kind == "zarr":
            text = open_zarr(path).attrs.get(NOTES, "")
        elif kind == "parquet":
            file = open_parquet(path)
            found = (file.schema_arrow.metadata or {}).get(b"robustphase", b"{}")
            file.close(force=True)
            everything = json.loads(found[:MOST_NOTES])
            return _dictionary(everything if wrapped else everything.get(NOTES, {}))
        else:
            return {}
        return _dictionary(json.loads(text) if text else {})
    except ImportError:
        raise
    except Exception:  # Notes of somebody else under the same name are no reason to refuse the samples.
        return {}


def _npz_text(path: str | os.PathLike[str]) -> str:
    if NOTES not in npz_names(path):
        return ""
    header = read_npz_header(path, NOTES)
    if header.dtype.kind != "U" or header.shape != () or header.data_bytes > 4 * MOST_NOTES:
        return ""
    return str(read_npz_array(path, NOTES).item())


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def stored_bytes(path: str | os.PathLike[str]) -> int:
    """Bytes on the disk, of a file or of all files in a folder."""
    place = Path(path)
    if place.is_dir():
        return sum(entry.stat().st_size for entry in place.rglob("*") if entry.is_file())
    return place.stat().st_size
