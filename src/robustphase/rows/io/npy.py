"""Arrays in NumPy's own formats: ``.npy`` files, and ``.npz`` archives of them.

A plain file is read with positioned reads rather than through a map: a file that shrinks or a disk that fails is then an error
and not the end of the process, and address space is not needed for all of it. Headers are believed only as far as the bytes
that follow bear them out.

Members of an archive that are stored plainly are read in place, like an ``.npy`` file; compressed ones must be unpacked into
memory. Before that, the size that the array declares is compared with the size that the archive declares, with what the packed
bytes could unpack to, and with the memory that is left. Both kinds are checked against the archive's checksum.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, BinaryIO, NamedTuple
from weakref import finalize

import numpy as np

from robustphase.formatting import in_bytes
from robustphase.rows.blocked import MemoryRows
from robustphase.rows.io.limits import DataError, MissingNameError, check_room, reason, shortened, working_dtype
from robustphase.rows.io.prefetch import ReadAheadRows
from robustphase.rows.io.stacks import as_rows, layout_of
from robustphase.rows.source import Array, RowSource

MAGIC = b"\x93NUMPY"
#: Deflate cannot pack tighter than this.
HIGHEST_RATIO = 1032
#: Bytes of a local file header before the name.
LOCAL_HEADER = struct.Struct("<4s22xHH")
CHUNK = 1 << 20
#: Longest header of an array; NumPy writes a few hundred bytes.
LONGEST_HEADER = 1 << 16


class NpyHeader(NamedTuple):
    """What an ``.npy`` header declares."""

    shape: tuple[int, ...]  # Shape of the array
    dtype: np.dtype[Any]  # Type of its entries: numbers, or text
    column_major: bool  # Whether columns lie together instead of rows
    offset: int  # Where the entries begin, in bytes from the beginning of the header

    @property
    def data_bytes(self) -> int:
        """Bytes that the entries take."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(file: BinaryIO, size: int, where: str) -> NpyHeader:
    """Read and check a header, at which the file stands; afterwards it stands at the first entry.

    ``size`` are the bytes of header and entries together, as the file system or the archive tells it.
    """
    counted = _Counted(file)
    try:
        version = np.lib.format.read_magic(counted)  # type: ignore[arg-type]
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise DataError(f"{where} holds records of several fields; an array of plain numbers is needed.")
        with warnings.catch_warnings():
            # Headers written by Python 2 are read all the same.
            warnings.simplefilter("ignore")
            shape, column_major, dtype = readers[version](counted)  # type: ignore[arg-type]
    except DataError:
        raise
    except Exception as error:  # The header is evaluated as a literal: anything may be wrong with it.
        raise DataError(f"{where} has a damaged .npy header: {reason(error)}.") from error
    if dtype.hasobject:
        msg = f"{where} holds Python objects, which are never loaded because they can run code. Save plain numbers."
        raise DataError(msg)
    if any(isinstance(count, bool) or count < 0 for count in shape):
        raise DataError(f"{where} declares the impossible shape {shape}; its header is damaged.")
    header = NpyHeader(shape, dtype, bool(column_major), counted.position)
    present = size - header.offset
    if present != header.data_bytes:
        shapes = " x ".join(map(str, shape)) or "one"
        raise DataError(
            f"{where} declares {shapes} numbers of type {shortened(dtype)}, {in_bytes(header.data_bytes)}, but "
            f"{in_bytes(max(0, present))} follow: it was cut off, written over, or its header is wrong."
        )
    return header


class _Counted:
    """A file that knows how far it was read, also where ``tell`` does not work."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.position = file, 0

    def read(self, count: int) -> bytes:
        # NumPy would read a header of four gigabytes before it says that it is too long.
        if count > LONGEST_HEADER:
            raise ValueError(f"it declares a length of {in_bytes(count)}")
        data = self._file.read(count)
        self.position += len(data)
        return data


class PlainFile:
    """A file open for positioned reads, from any number of threads; closed by ``close``, or when forgotten."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = Lock()
        self.close = finalize(self, os.close, self._descriptor)

    def read_into(self, out: Array, position: int) -> None:
        """Fill a C-contiguous array with the bytes from ``position`` on."""
        view = memoryview(out.reshape(-1).view(np.uint8).data)
        while len(view):
            # A closed descriptor may already be another file's.
            if not self.close.alive:
                raise DataError(f"'{self.path}' has been closed; open it again to read its rows.")
            got = self._read_some(view, position)
            if got == 0:
                raise DataError(f"'{self.path}' ends early: {len(view)} bytes are missing at byte {position}.")
            view, position = view[got:], position + got

    def _read_some(self, view: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [view], position)
        with self._lock:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            data = os.read(self._descriptor, len(view))
            view[: len(data)] = data
            return len(data)


class FileRows(ReadAheadRows):
    """Rows that lie in a file as they would in memory: an ``.npy`` file, or an array stored plainly inside another file.

    Entries are of either byte order, and types that cannot be computed with are converted. Where columns lie together, reading
    rows takes one small read per column, which is slower. The header begins ``begin`` bytes into the file; with ``transpose``
    the samples are the last axis.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: NpyHeader,
        *,
        begin: int = 0,
        where: str | None = None,
        transpose: bool = False,
        block_rows: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        self.where = where or f"'{os.fspath(path)}'"
        layout = layout_of(header.shape, self.where, transpose=transpose)
        self.shape, self.pattern_shape = layout.rows, layout.pattern
        self.dtype = working_dtype(header.dtype, self.where)
        # A matrix with its samples last, row by row, is one with its samples first, column by column.
        self._stored, self._offset = header.dtype, begin + header.offset
        self._column_major = header.column_major != transpose
        self._file = PlainFile(path)
        if self._column_major:
            # One read per column and piece: long ones, so that there are few.
            self.chunk_rows = max(1, (32 << 20) // (self.shape[1] * self.dtype.itemsize))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fetch(self, start: int, stop: int, out: Array) -> None:
        direct = self._stored == self.dtype and not self._column_major
        if self._column_major:
            raw = self._columns(start, stop)
        else:
            raw = out if direct else np.empty(out.shape, self._stored)
            self._file.read_into(raw, self._offset + start * self.shape[1] * self._stored.itemsize)
        if not direct:
            np.copyto(out, raw, casting="unsafe")

    def _columns(self, start: int, stop: int) -> Array:
        m, n = self.shape
        columns = np.empty((n, stop - start), self._stored)
        for index, column in enumerate(columns):
            self._file.read_into(column, self._offset + (index * m + start) * self._stored.itemsize)
        return columns.T


def open_npy(
    path: str | os.PathLike[str],
    *,
    transpose: bool = False,
    block_rows: int | None = None,
    threads: int | None = None,
) -> RowSource:
    """The rows of an ``.npy`` file; with ``transpose`` the samples are the last axis."""
    where = f"'{os.fspath(path)}'"
    with open(path, "rb") as file:
        header = read_npy_header(file, os.fstat(file.fileno()).st_size, where)
    if _scattered(header):
        return rows_in_memory(read_npy(path), where, transpose=transpose, block_rows=block_rows, threads=threads)
    return FileRows(path, header, transpose=transpose, block_rows=block_rows, threads=threads)


def read_npy(path: str | os.PathLike[str]) -> Array:
    """The array of an ``.npy`` file, in memory."""
    where = f"'{os.fspath(path)}'"
    with open(path, "rb") as opened:
        header = read_npy_header(opened, os.fstat(opened.fileno()).st_size, where)
    check_room(header.data_bytes, where)
    values = np.empty(header.shape, header.dtype, order="F" if header.column_major else "C")
    file = PlainFile(path)
    try:
        file.read_into(values.reshape(-1, order="A"), header.offset)
    finally:
        file.close()
    return values


def rows_in_memory(
    array: Array, where: str, *, transpose: bool = False, block_rows: int | None = None, threads: int | None = None
) -> MemoryRows:
    """The samples of an array that has been read, as rows."""
    layout = layout_of(array.shape, where, transpose=transpose)
    working_dtype(array.dtype, where)
    rows = array if layout.plain else np.ascontiguousarray(as_rows(array, layout))
    source = MemoryRows(rows, block_rows=block_rows, threads=threads)
    source.pattern_shape = layout.pattern
    return source


def _scattered(header: NpyHeader) -> bool:
    """Whether the numbers of a pattern lie in another order than they are read: a stack column by column."""
    return header.column_major and len(header.shape) > 2


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
    path: str | os.PathLike[str],
    name: str,
    *,
    transpose: bool = False,
    block_rows: int | None = None,
    threads: int | None = None,
) -> RowSource:
    """The rows of one array of an archive: in place if stored plainly, otherwise unpacked into memory."""
    where = _where(path, name)
    with _opened(path) as archive:
        member = _member(archive, path, name)
        header = _header(archive, member, where)
        layout_of(header.shape, where, transpose=transpose)
        working_dtype(header.dtype, where)
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 or _scattered(header):
            array = read_npz_array(path, name)
            return rows_in_memory(array, where, transpose=transpose, block_rows=block_rows, threads=threads)
        begin = _data_offset(path, member, where)
        with archive.open(member) as stream:
            _skip(stream, member.file_size)
            stream.read(1)
    return FileRows(path, header, begin=begin, where=where, transpose=transpose, block_rows=block_rows, threads=threads)


def _where(path: str | os.PathLike[str], name: str) -> str:
    return f"'{os.fspath(path)}' (array {name})"


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (DataError, OSError):
        raise
    except MemoryError as error:
        raise DataError(f"'{os.fspath(path)}' needs more memory than there is.") from error
    except Exception as error:  # Damaged archives raise errors of a dozen kinds.
        raise DataError(f"'{os.fspath(path)}' is a damaged .npz archive: {reason(error)}.") from error


def _member(archive: zipfile.ZipFile, path: str | os.PathLike[str], name: str) -> zipfile.ZipInfo:
    for candidate in (f"{name}.npy", name):
        if candidate in archive.namelist():
            return archive.getinfo(candidate)
    present = sorted(entry.removesuffix(".npy") for entry in archive.namelist())
    raise MissingNameError(f"'{os.fspath(path)}' has no array named {name}", "it holds", present)


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
