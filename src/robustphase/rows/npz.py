"""Arrays inside ``.npz`` archives.

Members that are stored plainly are read in place, like an ``.npy`` file; compressed ones must be unpacked into memory. Before
that, the size that the array declares is compared with the size that the archive declares, with what the packed bytes could
unpack to, and with the memory that is left. Both kinds are checked against the archive's checksum.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from robustphase.rows.disk import FileRows, check_matrix, working_dtype
from robustphase.rows.errors import DataError, reason
from robustphase.rows.limits import check_room, in_bytes
from robustphase.rows.memory import MemoryRows
from robustphase.rows.npy import NpyHeader, read_npy_header
from robustphase.rows.source import Array, RowSource

#: Deflate cannot pack tighter than this.
HIGHEST_RATIO = 1032
#: Bytes of a local file header before the name.
LOCAL_HEADER = struct.Struct("<4s22xHH")
CHUNK = 1 << 20


def npz_names(path: str | os.PathLike[str]) -> list[str]:
    """Names of the arrays in an archive."""
    with _opened(path) as archive:
        return sorted(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))


def read_npz_header(path: str | os.PathLike[str], name: str) -> NpyHeader:
    """What one array of an archive declares, checked against the size of the member."""
    with _opened(path) as archive:
        return _header(archive, _member(archive, path, name), _where(path, name))


def read_npz_array(path: str | os.PathLike[str], name: str) -> Array:
    """One array of an archive, in memory."""
    where = _where(path, name)
    with _opened(path) as archive:
        member = _member(archive, path, name)
        header = _header(archive, member, where)
        check_room(header.data_bytes, where)
        array = np.empty(header.shape, header.dtype, order="F" if header.column_major else "C")
        with archive.open(member) as stream:
            _skip(stream, header.offset)
            view = array.reshape(-1, order="A").view(np.uint8).data if array.size else memoryview(b"")
            while len(view):
                got = stream.readinto(view[:CHUNK])  # type: ignore[attr-defined]
                if not got:
                    raise DataError(f"{where} ends early: {in_bytes(len(view))} are missing.")
                view = view[got:]
            # The checksum is compared when the end is reached.
            stream.read(1)
    return array


def open_npz(
    path: str | os.PathLike[str], name: str, *, block_rows: int | None = None, threads: int | None = None
) -> RowSource:
    """The rows of one array of an archive: in place if stored plainly, otherwise unpacked into memory."""
    where = _where(path, name)
    with _opened(path) as archive:
        member = _member(archive, path, name)
        header = _header(archive, member, where)
        check_matrix(header.shape, where)
        working_dtype(header.dtype, where)
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            return MemoryRows(read_npz_array(path, name), block_rows=block_rows, threads=threads)
        offset = _data_offset(path, member, where)
        with archive.open(member) as stream:
            _skip(stream, member.file_size)
            stream.read(1)
    return FileRows(
        path,
        header.shape,
        header.dtype,
        offset=offset + header.offset,
        column_major=header.column_major,
        where=where,
        block_rows=block_rows,
        threads=threads,
    )


def _where(path: str | os.PathLike[str], name: str) -> str:
    return f"'{os.fspath(path)}' (array {name})"


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (DataError, OSError, MemoryError):
        raise
    except Exception as error:  # Damaged archives raise errors of a dozen kinds.
        raise DataError(f"'{os.fspath(path)}' is a damaged .npz archive: {reason(error)}.") from error


def _member(archive: zipfile.ZipFile, path: str | os.PathLike[str], name: str) -> zipfile.ZipInfo:
    for candidate in (f"{name}.npy", name):
        if candidate in archive.namelist():
            return archive.getinfo(candidate)
    present = ", ".join(sorted(entry.removesuffix(".npy") for entry in archive.namelist())[:20]) or "nothing"
    raise DataError(f"'{os.fspath(path)}' has no array named {name}; it holds {present}.")


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> NpyHeader:
    if member.compress_type == zipfile.ZIP_DEFLATED and member.file_size > HIGHEST_RATIO * (member.compress_size + 1):
        raise DataError(
            f"{where} claims to unpack from {in_bytes(member.compress_size)} to {in_bytes(member.file_size)}, which is "
            "more than its compression can do; the archive is damaged or made to harm."
        )
    with archive.open(member) as stream:
        return read_npy_header(stream, member.file_size, where)  # type: ignore[arg-type]


def _data_offset(path: str | os.PathLike[str], member: zipfile.ZipInfo, where: str) -> int:
    """Where the bytes of a stored member begin; its own header may be longer than the directory says."""
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        raw = file.read(LOCAL_HEADER.size)
    if len(raw) != LOCAL_HEADER.size or not raw.startswith(b"PK\x03\x04"):
        raise DataError(f"{where} is not where the directory of the archive says; the archive is damaged.")
    _, name_length, extra_length = LOCAL_HEADER.unpack(raw)
    return member.header_offset + LOCAL_HEADER.size + int(name_length) + int(extra_length)


def _skip(stream: Any | BinaryIO, count: int) -> None:
    while count > 0:
        got = len(stream.read(min(count, CHUNK)))
        if got == 0:
            raise DataError("an array of the archive ends early; it was cut off.")
        count -= got
