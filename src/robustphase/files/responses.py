"""The responses and the small things beside the samples: the truth, and notes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robustphase.rows.io.hdf5 import find_dataset, number_type, open_hdf5, read_hdf5_array, read_matlab_array
from robustphase.rows.io.hdf5 import name_of as dataset_name
from robustphase.rows.io.hdf5_probe import NOTES, notes_of
from robustphase.rows.io.limits import DataError, reason, shortened
from robustphase.rows.io.matlab import read_mat_array
from robustphase.rows.io.npy import npz_names, read_npy, read_npy_header, read_npz_array, read_npz_header
from robustphase.rows.io.parquet import open_parquet, read_parquet_column
from robustphase.rows.io.text import text_column
from robustphase.rows.io.tiff import read_tiff
from robustphase.rows.io.zarr import find_array, open_zarr, read_zarr_array
from robustphase.rows.io.zarr import name_of as array_name
from robustphase.rows.opening import RESPONSES, kind_of
from robustphase.rows.source import Array

#: Name of the truth in files that hold several arrays.
TRUTH = "truth"
#: Longest notes that are read.
MOST_NOTES = 1 << 20

Check = Callable[[tuple[int, ...], np.dtype[Any], str], None]


def read_values(path: str | os.PathLike[str], count: int, name: str | None = None) -> Array:
    """Numbers that belong to the samples, from a file of any kind: a dark frame, limits of the detector.

    Parameters
    ----------
    path : path
        The file; see :func:`~robustphase.files.open_samples`.
    count : int
        How many samples there are.
    name : str, optional
        Name of the array, in files that hold several. Default: "y".

    Returns
    -------
    ndarray of shape (count,) or (count, p)
    """
    values, _ = read_responses(path, name, Wanted(count), alone=True)
    return values


class Wanted(NamedTuple):
    """What responses must fit to."""

    rows: int  # Samples of the covariates
    transpose: bool = False  # Whether the samples are the last axis of the responses
    #: Length of the axis of the covariates at the other end, which would be the samples if it was taken the wrong way;
    #: 0 if unknown.
    other_end: int = 0
    turned: bool = False  # Whether the samples were taken from the last axis of the covariates


def read_responses(
    path: str | os.PathLike[str], name: str | None, wanted: Wanted, *, alone: bool
) -> tuple[Array, tuple[int, ...]]:
    """The responses in a file, as float64, shape (m,) or (m, p); and the shape of a frame of them, see :func:`frame_of`.

    ``alone``: the file is one of responses, so that a single array in it needs no name.
    """

    def check(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
        frame_of(shape, dtype, where, wanted)

    values = read_array(path, name or RESPONSES, check, alone=alone)
    return in_columns(values, f"'{os.fspath(path)}'", wanted)


def in_columns(values: Array, where: str, wanted: Wanted) -> tuple[Array, tuple[int, ...]]:
    """Responses of any layout, with one row for every sample; and the shape of a frame."""
    frame = frame_of(values.shape, values.dtype, where, wanted)
    first = np.moveaxis(values, -1, 0) if wanted.transpose and values.ndim > 1 else values
    # In double precision and in memory of their own, whatever they were a view of.
    columns = np.array(first.reshape(wanted.rows, -1), np.float64, order="C")
    return (columns if frame else columns[:, 0]), frame


def frame_of(shape: tuple[int, ...], dtype: np.dtype[Any], where: str, wanted: Wanted) -> tuple[int, ...]:
    """The shape of what is read of every sample: () for one number; what does not fit is refused with its cure."""
    if dtype.kind == "c":
        raise DataError(f"{where} holds complex numbers; responses are squared magnitudes and real: save np.abs(y)**2.")
    if dtype.kind not in "fiub":
        raise DataError(f"{where} holds entries of type {shortened(dtype)}; responses must be numbers.")
    m, last, other_end, turned = wanted
    if shape in ((m,), (m, 1), (1, m)):
        return ()
    here, there = (-1, 0) if last else (0, -1)
    if len(shape) in (2, 3) and shape[here] == m and 0 not in shape:
        frame = shape[:-1] if last else shape[1:]
        return () if math.prod(frame) == 1 else frame
    if len(shape) in (2, 3) and shape[there] == m:
        cure = "leave out transpose for them" if last else 'pass transpose="responses"'
        raise DataError(
            f"{where} has shape {shape}: its {'first' if last else 'last'} axis is that of the {m} samples; {cure}."
        )
    if len(shape) not in (1, 2, 3):
        raise DataError(
            f"{where} has shape {shape}; responses need one dimension, one number per row of A, or two (samples x signals), or "
            "three (samples x height x width)."
        )
    held = shape[here]
    cure = ""
    if other_end in (held, shape[there]) and m != other_end:
        turn = "leave out transpose for them" if turned else 'pass transpose="covariates"'
        cure = f" The covariates have {other_end} at their other end: if those are the samples, {turn}."
    raise DataError(
        f"{where} holds {held} responses for {m} rows of covariates; each row needs exactly one.{cure}"
        if len(shape) == 1
        else f"{where} has shape {shape}, and none of its ends fits the {m} rows of covariates; each row needs exactly one "
        f"number, or one frame.{cure}"
    )


def read_truth(path: str | os.PathLike[str], length: int) -> Array | None:
    """The true signal, if the file has one: ``length`` numbers called "truth"."""

    def check(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
        if math.prod(shape) != length or dtype.kind not in "fciub":
            raise DataError(f"{where} is not a signal of {length} numbers.")

    try:
        if kind_of(path) == "parquet":
            return _truth_in(read_notes(path, wrapped=True), length)
        truth = read_array(path, TRUTH, check)
    except DataError:  # The fit does not need it.
        return None
    return truth.reshape(-1).astype(np.result_type(truth.dtype, np.float64))


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

    ``check(shape, dtype, where)`` refuses what is not wanted, before anything of it is read. With ``alone`` a file that holds a
    single array without a name will do.
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
        if kind in ("hdf5", "matlab"):
            with open_hdf5(path, name) as opened:
                dataset = find_dataset(opened, name)
                shape = () if dataset.shape is None else dataset.shape
                if kind == "matlab":
                    check(shape[::-1], number_type(dataset.dtype), dataset_name(dataset))
                    return read_matlab_array(dataset)
                check(shape, dataset.dtype, dataset_name(dataset))
                return read_hdf5_array(dataset)
        if kind in ("mat", "text") or (kind == "tiff" and alone):
            if kind == "mat":
                values = read_mat_array(path, name)
            else:
                values = read_tiff(path) if kind == "tiff" else text_column(path, name, alone=alone)
            check(values.shape, values.dtype, f"'{os.fspath(path)}'" + ("" if kind == "tiff" else f" ({name})"))
            return values
    except OSError as error:
        raise DataError(f"'{os.fspath(path)}' cannot be read: {reason(error)}.") from error
    raise DataError(f"'{os.fspath(path)}' holds a single array; {name} must come from another file.")


def _read_npy(path: str | os.PathLike[str], check: Check) -> Array:
    where = f"'{os.fspath(path)}'"
    with open(path, "rb") as opened:
        header = read_npy_header(opened, os.fstat(opened.fileno()).st_size, where)
    check(header.shape, header.dtype, where)
    return read_npy(path)


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
