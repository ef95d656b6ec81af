"""Some rows of a source that has too many for memory, copied to a file of their own for as long as they are needed.

A pass over them then costs what they are worth, not what the whole costs. The file is written and read like any other, not
mapped: a disk that is full makes an error, not the end of the process. It loses its name as soon as it is open, where the system
lets it, so that nothing is left behind whatever happens.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from robustphase.rows.io.npy import FileRows, NpyHeader
from robustphase.rows.source import Array, RowSource

#: Bytes of rows that are in memory at a time while they are copied.
PIECE_BYTES = 64 << 20
#: Free bytes of the disk that a copy needs, over its own: the other half is left to others.
ROOM = 2.0


@contextmanager
def spilled(source: RowSource, indices: Array) -> Iterator[RowSource | None]:
    """Rows of increasing ``indices`` in a temporary file; None where the disk has no room for them."""
    if not _has_room(indices.size * source.shape[1] * source.dtype.itemsize):
        yield None
        return
    descriptor, path = tempfile.mkstemp(prefix="robustphase-", suffix=".rows")
    rows: FileRows | None = None
    try:
        if _written(source, indices, descriptor):
            header = NpyHeader((indices.size, source.shape[1]), source.dtype, column_major=False, offset=0)
            rows = FileRows(path, header, where="a temporary copy of rows")
            with suppress(OSError):
                os.unlink(path)
        yield rows
    finally:
        if rows is not None:
            rows.close()
        with suppress(OSError):
            os.unlink(path)


def _has_room(size: int) -> bool:
    try:
        return shutil.disk_usage(tempfile.gettempdir()).free > ROOM * size
    except OSError:
        return False


def _written(source: RowSource, indices: Array, descriptor: int) -> bool:
    """Whether the rows could be written; a file that cannot be read is an error of its own."""
    pieces = source.take_pieces(indices, max(1, PIECE_BYTES // (source.shape[1] * source.dtype.itemsize)))
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        for piece in pieces:
            view = memoryview(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
            try:
                while len(view):
                    view = view[file.write(view) :]
            except OSError:
                # Others have filled the disk meanwhile.
                return False
    return True
