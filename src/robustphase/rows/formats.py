"""Which kind of file a path leads to, by its first bytes, and the rows in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from robustphase.rows import hdf5, npy, parquet
from robustphase.rows.disk import open_npy
from robustphase.rows.errors import DataError, reason
from robustphase.rows.hdf5 import Hdf5Rows, find_dataset, open_hdf5
from robustphase.rows.npz import open_npz
from robustphase.rows.parquet import ParquetRows
from robustphase.rows.source import RowSource
from robustphase.rows.zarr_arrays import ZarrRows, find_array, open_zarr

#: Name of the covariates in files that hold several arrays.
COVARIATES = "A"
#: First bytes of each kind of file. The second archive is one without members.
FIRST_BYTES = {
    npy.MAGIC: "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    hdf5.MAGIC: "hdf5",
    parquet.MAGIC: "parquet",
}
#: What a suffix promises, for the error when the first bytes tell otherwise.
SUFFIXES = {".npy": "npy", ".npz": "npz", ".h5": "hdf5", ".hdf5": "hdf5", ".parquet": "parquet"}


def kind_of(path: str | os.PathLike[str]) -> str:
    """``"npy"``, ``"npz"``, ``"hdf5"``, ``"parquet"`` or ``"zarr"``."""
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
                    return "hdf5"
    except FileNotFoundError as error:
        raise DataError(f"there is no file '{place}'.") from error
    except DataError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"'{place}' cannot be read: {reason(error)}.") from error
    if not begin:
        raise DataError(f"'{place}' is empty.")
    promised = SUFFIXES.get(place.suffix.lower())
    if promised:
        raise DataError(
            f"'{place}' does not begin like a file of the kind {promised}; it is damaged or something else."
        )
    raise DataError(f"'{place}' is none of the kinds that can be read: .npy, .npz, HDF5, parquet, or a zarr folder.")


def open_rows_at(
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    block_rows: int | None = None,
    threads: int | None = None,
) -> RowSource:
    """The covariates in a file, as a source that is never loaded whole.

    Parameters
    ----------
    path : path
        An ``.npy``, ``.npz``, HDF5 or parquet file, or a zarr folder. The kind is told by its first bytes.
    name : str, optional
        Name of the array, dataset or column. Default: "A"; ``.npy`` files and zarr arrays outside a group have none.
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.

    Returns
    -------
    RowSource
        Its ``close`` method closes the file; so does forgetting it.
    """
    kind, wanted = kind_of(path), name or COVARIATES
    try:
        if kind == "npy":
            return open_npy(path, block_rows=block_rows, threads=threads)
        if kind == "npz":
            return open_npz(path, wanted, block_rows=block_rows, threads=threads)
        if kind == "parquet":
            return ParquetRows(path, wanted, block_rows=block_rows, threads=threads)
        if kind == "zarr":
            store = open_zarr(path)
            single = name is None and not hasattr(store, "array_keys")
            array = store if single else find_array(store, wanted, path)
            return ZarrRows(array, block_rows=block_rows, threads=threads)
        file = open_hdf5(path)
        try:
            return Hdf5Rows(find_dataset(file, wanted), owned=file, block_rows=block_rows, threads=threads)
        except BaseException:
            file.close()
            raise
    except OSError as error:
        raise DataError(f"'{os.fspath(path)}' cannot be read: {reason(error)}.") from error
