"""Write samples to a file, block by block."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from robustphase.atomic import replacing
from robustphase.files.responses import TRUTH
from robustphase.rows import as_source
from robustphase.rows.blocked import BLOCK_BYTES, BlockedRows
from robustphase.rows.io.hdf5_probe import NOTES
from robustphase.rows.io.limits import DataError, require
from robustphase.rows.io.zarr import is_zarr
from robustphase.rows.opening import COVARIATES, RESPONSES
from robustphase.rows.source import Array


def save_samples(
    path: str | os.PathLike[str], covariates: Any, responses: Any, truth: Any = None, **metadata: Any
) -> None:
    """Write covariates and responses to one file, whole or not at all.

    The file is written under another name in the same folder and then moved, so an interruption leaves what was there before.
    Covariates are written block by block: a source larger than memory will do, such as the rows of another file.

    Parameters
    ----------
    path : path
        Where to. The suffix tells the kind: ``.npz``, ``.h5`` or ``.hdf5``, ``.zarr`` (a folder), ``.parquet``.
    covariates : RowSource or array-like of shape (m, n), or path
        ``A``.
    responses : array-like of shape (m,)
        ``y``.
    truth : array-like of shape (n,), optional
        The true signal, where it is known.
    **metadata
        Notes to keep with the samples: anything that JSON can hold, and NumPy's numbers and arrays of them.

    Notes
    -----
    Rows are stored plainly, since random numbers do not compress, and with checksums where the kind of file has them (``.npz``,
    zarr, parquet), so that damage is noticed when they are read.
    """
    target = Path(path)
    write = WRITERS.get(target.suffix.lower())
    if write is None:
        also = " (an .npy file holds one array only)" if target.suffix.lower() == ".npy" else ""
        raise DataError(f"'{target}' must end in {', '.join(WRITERS)}{also}; choose one of these names.")
    if target.is_dir() and not (target.suffix.lower() == ".zarr" and (is_zarr(target) or not any(target.iterdir()))):
        raise DataError(f"'{target}' is a folder that this would replace; choose another name.")
    source = as_source(covariates)
    if not isinstance(source, BlockedRows):
        raise TypeError(f"only rows that can be read in any order can be saved, got {type(source).__name__}.")
    m, n = source.shape
    y = np.asarray(responses)
    if y.dtype.kind not in "fiub" or y.shape != (m,):
        raise DataError(f"responses must be {m} real numbers, one per row, got shape {y.shape} and type {y.dtype}.")
    signal = None if truth is None else np.asarray(truth)
    if signal is not None and (signal.dtype.kind not in "fciub" or signal.shape != (n,)):
        raise DataError(f"truth must be {n} numbers, one per column, got shape {signal.shape} and type {signal.dtype}.")
    notes = json.dumps(metadata, default=_plain)
    with replacing(target, folder=target.suffix.lower() == ".zarr") as temporary:
        write(temporary, source, y.astype(np.float64), signal, notes)


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays in terms of JSON."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiubU":
        return value.tolist()
    raise TypeError(f"notes must be numbers, texts, lists or dictionaries of them, got {type(value).__name__}.")


def _blocks(source: BlockedRows, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, int, Array]]:
    """Ranges of rows of about the same size, with the rows."""
    m, n = source.shape
    step = _rows_in(block_bytes, n * source.dtype.itemsize)
    for start in range(0, m, step):
        stop = min(start + step, m)
        yield start, stop, np.ascontiguousarray(source.read(start, stop))


def _rows_in(count: int, row_bytes: int) -> int:
    return max(1, count // row_bytes)


def _write_npz(path: Path, source: BlockedRows, y: Array, truth: Array | None, notes: str) -> None:
    small = {RESPONSES: y, NOTES: np.array(notes)} | ({} if truth is None else {TRUTH: truth})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(f"{COVARIATES}.npy", "w", force_zip64=True) as member:
            _npy_header(member, source.shape, source.dtype)
            for _, _, rows in _blocks(source):
                member.write(rows.view(np.uint8).data)
        for name, array in small.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _npy_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _write_hdf5(path: Path, source: BlockedRows, y: Array, truth: Array | None, notes: str) -> None:
    h5py = require("h5py", extra="io", purpose="writing HDF5 files")
    # Files of this version carry checksums of their structure, and every library of the last ten years reads them.
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        rows_of = file.create_dataset(COVARIATES, source.shape, source.dtype)
        for start, stop, rows in _blocks(source):
            rows_of[start:stop] = rows
        file[RESPONSES] = y
        if truth is not None:
            file[TRUTH] = truth
        file.attrs[NOTES] = notes


def _write_zarr(path: Path, source: BlockedRows, y: Array, truth: Array | None, notes: str) -> None:
    zarr = require("zarr", extra="io", purpose="writing zarr stores")
    checksummed: Mapping[str, Any] = {
        "compressors": [zarr.codecs.Crc32cCodec()],
        # Chunks of zeros are written too: a chunk that is missing shall mean that it got lost.
        "config": {"write_empty_chunks": True},
    }
    group = zarr.create_group(path)
    m, n = source.shape
    step = min(m, _rows_in(BLOCK_BYTES, n * source.dtype.itemsize))
    rows_of = group.create_array(COVARIATES, shape=source.shape, dtype=source.dtype, chunks=(step, n), **checksummed)
    for start, stop, rows in _blocks(source):
        rows_of[start:stop] = rows
    for name, array in ((RESPONSES, y), (TRUTH, truth)):
        if array is not None:
            chunks = (min(array.size, _rows_in(BLOCK_BYTES, array.itemsize)),)
            group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks, **checksummed)[:] = array
    group.attrs[NOTES] = notes


def _write_parquet(path: Path, source: BlockedRows, y: Array, truth: Array | None, notes: str) -> None:
    pyarrow = require("pyarrow", extra="parquet", purpose="writing parquet files")
    parquet = require("pyarrow.parquet", extra="parquet", purpose="writing parquet files")
    n, complex_ = source.shape[1], source.dtype.kind == "c"
    names = [f"{COVARIATES}_real", f"{COVARIATES}_imag"] if complex_ else [COVARIATES]
    number = pyarrow.from_numpy_dtype(np.empty(0, source.dtype).real.dtype)
    fields = [pyarrow.field(name, pyarrow.list_(number, n)) for name in names]
    kept: dict[str, Any] = {NOTES: json.loads(notes)}
    if truth is not None:
        kept[TRUTH] = [truth.real.tolist(), truth.imag.tolist()] if truth.dtype.kind == "c" else [truth.tolist()]
    schema = pyarrow.schema(
        [*fields, pyarrow.field(RESPONSES, pyarrow.float64())], metadata={"robustphase": json.dumps(kept)}
    )
    with parquet.ParquetWriter(
        path, schema, compression="none", use_dictionary=False, write_page_checksum=True, write_statistics=False
    ) as writer:
        for start, stop, rows in _blocks(source, 4 * BLOCK_BYTES):
            parts = (rows.real, rows.imag) if complex_ else (rows,)
            lists = [pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(part.ravel()), n) for part in parts]
            writer.write_table(pyarrow.table([*lists, pyarrow.array(y[start:stop])], schema=schema))


WRITERS: dict[str, Callable[[Path, BlockedRows, Array, Array | None, str], None]] = {
    ".npz": _write_npz,
    ".h5": _write_hdf5,
    ".hdf5": _write_hdf5,
    ".zarr": _write_zarr,
    ".parquet": _write_parquet,
}
