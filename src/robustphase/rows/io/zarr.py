"""Rows of a zarr array.

A chunk that is missing from a zarr store reads as its fill value, as if somebody had measured zeros. So an array of which
chunks are missing is refused (``zarr_chunks`` looks for them), and so are codecs that would unpickle what they find.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from robustphase.rows.io.limits import (
    DataError,
    MissingNameError,
    check_chunks,
    check_matrix,
    check_room,
    reason,
    require,
    shortened,
    working_dtype,
)
from robustphase.rows.io.prefetch import ReadAheadRows
from robustphase.rows.io.zarr_chunks import StoredChunks, check_regular
from robustphase.rows.source import Array

#: Files that make a folder a zarr store: version 3, then version 2.
MARKS = ("zarr.json", ".zgroup", ".zarray")


def is_zarr(folder: Path) -> bool:
    """Whether a folder is a zarr store."""
    return any(os.path.lexists(folder / mark) for mark in MARKS)


def open_zarr(path: str | os.PathLike[str]) -> Any:
    """A zarr store in a folder, open for reading: a group or an array."""
    zarr = require("zarr", extra="io", purpose="reading zarr stores")
    if not is_zarr(Path(path)):
        raise DataError(f"the folder '{os.fspath(path)}' is not a zarr store: it holds none of {', '.join(MARKS)}.")
    with _explained(os.fspath(path)):
        check_regular(Path(path))
        return zarr.open(path, mode="r")


def find_array(store: Any, name: str, path: str | os.PathLike[str]) -> Any:
    """An array of a group by name, or an error that lists those present."""
    with _explained(os.fspath(path)):
        if not hasattr(store, "array_keys"):
            raise DataError(
                f"'{os.fspath(path)}' is a single zarr array, not a group with an array named {name}; pass the group."
            )
        item = store.get(name)
        if item is not None and hasattr(item, "chunks"):
            return item
        present = sorted(store.array_keys())
    raise MissingNameError(f"'{os.fspath(path)}' has no array named {name}", "the arrays in it:", present, "none")


def read_zarr_array(array: Any) -> Array:
    """A small array, such as the responses, in memory."""
    where = name_of(array)
    with _explained(where):
        dtype = np.dtype(array.dtype)
        if dtype.hasobject or dtype.kind not in "fciub":
            raise DataError(f"{where} holds entries of type {shortened(dtype)}; numbers are needed.")
        _check_codec_names(array.metadata.to_dict(), where)
        check_room(2 * math.prod(array.shape) * dtype.itemsize, where)
        check_room(2 * math.prod(array.chunks) * dtype.itemsize, f"one chunk of {where}")
        chunks = StoredChunks(array, where)
        chunks.check_complete()
        chunks.check_rows(0, array.shape[0] if array.shape else 0)
        return np.asarray(array[...])


def name_of(array: Any) -> str:
    """What to call an array in errors."""
    root = getattr(array.store, "root", None)
    return f"'{root}' (array {array.path})" if root is not None and array.path else f"'{root or array.store}'"


def _check_codec_names(part: Any, where: str) -> None:
    """Refuse codecs that unpickle, wherever in the metadata they are named."""
    if isinstance(part, dict):
        for key in ("id", "name"):
            if "pickle" in str(part.get(key, "")).lower():
                raise DataError(f"{where} uses the codec {part[key]}, which is never loaded because it can run code.")
        for value in part.values():
            _check_codec_names(value, where)
    elif isinstance(part, list):
        for value in part:
            _check_codec_names(value, where)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except (DataError, PermissionError, ImportError):
        raise
    except Exception as error:  # Damaged metadata fails wherever it is first used.
        raise DataError(f"{path!r} cannot be read as zarr: {reason(error)}.") from error


class ZarrRows(ReadAheadRows):
    """The rows of a zarr array.

    Parameters
    ----------
    array : zarr.Array of shape (m, n)
        The rows.
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`.
    """

    def __init__(self, array: Any, *, block_rows: int | None = None, threads: int | None = None) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        self.where = name_of(array)
        with _explained(self.where):
            stored = np.dtype(array.dtype)
            self.shape = check_matrix(array.shape, self.where)
            self.dtype = working_dtype(stored, self.where)
            _check_codec_names(array.metadata.to_dict(), self.where)
            # Shards are files, chunks what is decoded at once: reading follows the chunks.
            self.chunk_rows = check_chunks(self.shape, stored.itemsize, array.chunks, self.where)
            self._chunks = StoredChunks(array, self.where)
            self._chunks.check_complete()
        self._array = array

    def _fetch(self, start: int, stop: int, out: Array) -> None:
        self._chunks.check_rows(start, stop)
        np.copyto(out, self._array[start:stop], casting="unsafe")
