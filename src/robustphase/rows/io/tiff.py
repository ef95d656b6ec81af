"""Frames in a TIFF file, as cameras and microscopes write them: a stack (frames x height x width), or a single frame.

Frames stored plainly or packed with deflate are read, into memory. What a file declares is compared with the bytes it has, and
what a packed strip unpacks to is found before it is unpacked.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from robustphase.rows.io.limits import DataError, check_room, explained, require
from robustphase.rows.io.unpacking import check_unpacks
from robustphase.rows.source import Array

#: How files begin, in either order of bytes, up to 4 GB and beyond.
MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
#: Compressions by number: none, and deflate in both its numbers.
PLAIN, DEFLATE = 1, (8, 32946)
#: Most frames that are read: each has an entry of its own to be parsed.
MOST_FRAMES = 1 << 20


def read_tiff(path: str | os.PathLike[str]) -> Array:
    """All frames of a file; shape (frames, height, width), or (height, width) for a single one."""
    tifffile = require("tifffile", extra="tiff", purpose="reading TIFF files")
    where = f"'{os.fspath(path)}'"
    with explained(path, "TIFF"), tifffile.TiffFile(path) as file:
        size = os.fstat(file.filehandle.fileno()).st_size
        if len(file.pages) > MOST_FRAMES:
            raise DataError(f"{where} has more than {MOST_FRAMES} frames; split it.")
        if len(file.series) != 1:
            raise DataError(
                f"{where} holds {len(file.series)} series of frames of different kinds; save the frames of one kind alone, for "
                "example with tifffile.imwrite('frames.tif', stack)."
            )
        series = file.series[0]
        dtype = np.dtype(series.dtype)
        if dtype.kind not in "fciub" or not 2 <= len(series.shape) <= 3:
            raise DataError(
                f"{where} holds frames of shape {tuple(series.shape)} and type {dtype}; a stack of grey frames "
                "(frames x height x width) is needed. Save it with tifffile.imwrite('frames.tif', stack)."
            )
        check_room(2 * math.prod(series.shape) * dtype.itemsize, where)
        for page in series.pages:
            _check_page(page, size, where)
        frames: Array = np.asarray(series.asarray(maxworkers=1))
    if not all(frames.shape):
        raise DataError(f"{where} holds no frames.")
    return frames


def _check_page(page: Any, size: int, where: str) -> None:
    """Refuse a frame whose bytes are not in the file, or unpack to more than a frame."""
    if page is None:
        raise DataError(f"{where} lacks a frame: it was cut off or is damaged.")
    offsets, counts = page.dataoffsets, page.databytecounts
    if any(offset < 0 or count < 0 or offset + count > size for offset, count in zip(offsets, counts, strict=True)):
        raise DataError(f"{where} declares frames that are longer than the file: it was cut off or is damaged.")
    page = page.keyframe
    if page.compression not in (PLAIN, *DEFLATE):
        raise DataError(
            f"{where} is packed with {getattr(page.compression, 'name', page.compression)}, which is not read. Save it plainly, "
            "for example with tifffile.imwrite('frames.tif', stack)."
        )
    if page.compression == PLAIN:
        return
    declared = math.prod(page.shape) * np.dtype(page.dtype).itemsize
    handle = page.parent.filehandle
    for offset, count in zip(offsets, counts, strict=True):
        handle.seek(offset)
        if count:
            check_unpacks("zlib", handle.read(count), declared, f"a strip of {where}")
