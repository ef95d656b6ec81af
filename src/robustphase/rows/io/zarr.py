"""Rows of a zarr array.

A chunk that is missing from a zarr store reads as its fill value, as if somebody had measured zeros. So is an empty chunk file,
and inside a shard a chunk that its index does not point to. All of them are looked for when an array is opened, and an array of
which chunks are missing is refused, and so are codecs that would unpickle what they find. What a packed chunk unpacks to is found
when it is first read (see ``unpacking``), in arrays that lie in a folder; other stores were opened by whoever passes them here.
"""

from __future__ import annotations

import itertools
import math
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robustphase.rows.io.limits import (
    DataError,
    MissingNameError,
    check_chunks,
    check_matrix,
    check_room,
    listed,
    reason,
    require,
    shortened,
    working_dtype,
)
from robustphase.rows.io.prefetch import ReadAheadRows
from robustphase.rows.io.unpacking import SIZES, check_unpacks, encoded_limit
from robustphase.rows.source import Array

#: Longest description of an array or group that is read.
MOST_METADATA = 16 << 20
#: Codecs that add a checksum of four bytes, and others after which a chunk has the size that it had before or less.
CHECKSUMS = frozenset(("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3"))
SAME_SIZE = CHECKSUMS | {"bytes", "transpose", "shuffle", "delta", "bitround", "quantize", "fixedscaleoffset", "astype"}
#: Offset and length of a chunk that a shard does not hold.
ABSENT = np.uint64(2**64 - 1)


class Packing(NamedTuple):
    """How the chunks of an array are stored."""

    codec: str | None  # What packs them, in ``unpacking.SIZES``; None if nothing does
    checksum: int  # Bytes of checksums behind the packed chunk
    shard: dict[str, Any] | None  # The configuration of the sharding codec


def check_regular(folder: Path) -> None:
    """Refuse a store that holds a pipe, a device, a link that leads out of it, or a description of impossible length."""
    home, waiting = Path(os.path.realpath(folder)), [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if entry.is_symlink():
                    target = Path(os.path.realpath(entry.path))
                    if not target.is_relative_to(home):
                        raise DataError(
                            f"'{entry.path}' is a symbolic link that leads out of its zarr store and is not followed; copy what "
                            "it points to into the store."
                        )
                    if not target.exists():
                        raise DataError(f"'{entry.path}' is a symbolic link that leads nowhere; copy the store again.")
                    status = os.stat(target)
                elif stat.S_ISDIR(status.st_mode):
                    waiting.append(Path(entry.path))
                if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                    raise DataError(
                        f"'{entry.path}' is a pipe, device or socket, and no part of a zarr store; remove it."
                    )
                if entry.name.startswith((".z", "zarr.json")) and status.st_size > MOST_METADATA:
                    raise DataError(
                        f"'{entry.path}' is too long for the description of an array; the store is damaged."
                    )


def packing_of(array: Any, where: str) -> Packing:
    """How the chunks of an array are stored, or an error if that is not known here."""
    described = array.metadata.to_dict()
    if "codecs" not in described:
        parts = [*(described.get("filters") or ()), described.get("compressor")]
        return Packing(*_packer([part for part in parts if part], where), None)
    codecs = list(described["codecs"])
    shard = next((codec["configuration"] for codec in codecs if _name(codec) == "sharding_indexed"), None)
    if shard is None:
        return Packing(*_packer(codecs, where), None)
    inner = list(shard["codecs"])
    index = [_name(codec) for codec in shard["index_codecs"]]
    if len(codecs) > 1 or "sharding_indexed" in map(_name, inner) or index not in (["bytes"], ["bytes", "crc32c"]):
        raise DataError(
            f"{where} keeps its shards in an unusual way (codecs around them, shards in shards, or a packed index), in which "
            "missing chunks cannot be told; write it again with zarr's own settings."
        )
    return Packing(*_packer(inner, where), shard)


def _name(codec: dict[str, Any]) -> str:
    return str(codec.get("name", codec.get("id", "?"))).removeprefix("numcodecs.")


def _packer(codecs: Sequence[dict[str, Any]], where: str) -> tuple[str | None, int]:
    """The one codec that packs, and the bytes of checksums."""
    names = [_name(codec) for codec in codecs]
    packing = [name for name in names if name not in SAME_SIZE]
    unknown = [name for name in packing if name not in SIZES]
    if unknown or len(packing) > 1:
        told = f"the codec {shortened(unknown[0])}" if unknown else f"several codecs that pack ({listed(packing)})"
        raise DataError(
            f"{where} uses {told}, and how much its chunks unpack to cannot be known beforehand; write it again with one of "
            "zstd, blosc or gzip, or none."
        )
    if not packing:
        return None, 0
    return packing[0], sum(4 for name in names[names.index(packing[0]) :] if name in CHECKSUMS)


class StoredChunks:
    """The chunks of an array, wherever it is stored."""

    def __init__(self, array: Any, where: str) -> None:
        self.array, self.where = array, where
        self.packing = packing_of(array, where)
        root = getattr(array.store, "root", None)
        self.folder = root / array.path if isinstance(root, Path) else None
        self.chunk_bytes = math.prod(array.chunks) * np.dtype(array.dtype).itemsize
        self.grid = tuple(array.shards or array.chunks)
        self.counts = tuple(-(-size // part) for size, part in zip(array.shape, self.grid, strict=True))
        #: Chunks of a file, along every axis.
        self.inside = tuple(part // chunk for part, chunk in zip(self.grid, array.chunks, strict=True))
        self._seen: set[tuple[int, ...]] = set()

    def check_complete(self) -> None:
        """Refuse an array of which chunks are missing."""
        wanted = math.prod(self.counts)
        # Looking at every chunk takes time; a damaged shape may declare more of them than anybody can count.
        present = self._files()
        missing = wanted - present if present is not None and present < wanted else 0
        if not missing:
            missing = wanted - sum(self._file_is_whole(cell) for cell in np.ndindex(*self.counts))
        if missing:
            raise DataError(
                f"{missing} of the {wanted} chunks of {self.where} are missing or not whole and would be read as "
                f"{self.array.fill_value}; copy the store again, or if the numbers are really all alike write it with "
                "write_empty_chunks=True."
            )

    def check_rows(self, start: int, stop: int) -> None:
        """Refuse chunks with rows ``start`` to ``stop`` that unpack to more than the array declares; each is looked at once."""
        if self.folder is None or self.packing.codec is None:
            return
        first, last = start // self.grid[0], -(-stop // self.grid[0])
        others = (range(count) for count in self.counts[1:])
        for cell in itertools.product(range(first, last), *others):
            if cell not in self._seen:
                for data in self._packed(cell):
                    check_unpacks(self.packing.codec, data, self.chunk_bytes, f"a chunk of {self.where}")
                self._seen.add(cell)

    def _packed(self, cell: tuple[int, ...]) -> Iterator[bytes]:
        """The packed chunks of one file."""
        key = self._key(cell)
        size, sums = self._size(key), self.packing.checksum
        if self.packing.shard is None:
            yield self._read(key, 0, size)[: size - sums]
            return
        index = self._index(key, size)
        for offset, length in [] if index is None else index.reshape(-1, 2).tolist():
            if offset != int(ABSENT):
                yield self._read(key, offset, length)[: length - sums]

    def _file_is_whole(self, cell: tuple[int, ...]) -> bool:
        key = self._key(cell)
        size = self._size(key)
        if size == 0:
            return False
        most = encoded_limit(self.chunk_bytes)
        if self.packing.shard is None:
            if size > most:
                raise DataError(f"a chunk of {self.where} is longer than the array allows; the store is damaged.")
            return True
        index = self._index(key, size)
        if index is None:
            return False
        held = (index[..., 0] != ABSENT) & (index[..., 1] != ABSENT)
        # A shard at the edge need not hold what lies beyond the array.
        edges = zip(self.array.shape, self.grid, cell, self.array.chunks, strict=True)
        needed = tuple(slice(-(-min(part, size_ - part * at) // chunk)) for size_, part, at, chunk in edges)
        inside = index[held]
        ends = inside.astype(object).sum(axis=1)
        return bool(held[needed].all() and all(end <= size for end in ends) and (inside[:, 1] <= most).all())

    def _index(self, key: str, size: int) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
        """Offsets and lengths of the chunks of a shard; None if it is too short to hold them."""
        shard = self.packing.shard
        assert shard is not None
        length = 16 * math.prod(self.inside)
        sums = 4 * (len(shard["index_codecs"]) - 1)
        if size < length + sums:
            return None
        endian = (shard["index_codecs"][0].get("configuration") or {}).get("endian", "little")
        at = 0 if _location(shard) == "start" else size - length - sums
        found = np.frombuffer(self._read(key, at, length), ">u8" if endian == "big" else "<u8")
        return found.astype(np.uint64).reshape(*self.inside, 2)

    def _key(self, cell: tuple[int, ...]) -> str:
        return str(self.array.metadata.encode_chunk_key(cell))

    def _files(self) -> int | None:
        if self.folder is None:
            return None
        return sum(len(names) for _, _, names in os.walk(self.folder))

    def _size(self, key: str) -> int:
        if self.folder is not None:
            try:
                status = os.stat(self.folder / key)
            except OSError:
                return 0
            return status.st_size if stat.S_ISREG(status.st_mode) else 0
        try:
            return int(_now(self.array.store.getsize(self._path(key))))
        except FileNotFoundError:
            return 0

    def _read(self, key: str, offset: int, length: int) -> bytes:
        if self.folder is not None:
            with open(self.folder / key, "rb") as file:
                file.seek(offset)
                data = file.read(length)
        else:
            stores = require("zarr.abc.store", extra="io", purpose="reading zarr stores")
            buffers = require("zarr.core.buffer", extra="io", purpose="reading zarr stores")
            wanted = stores.RangeByteRequest(offset, offset + length)
            found = _now(self.array.store.get(self._path(key), buffers.default_buffer_prototype(), wanted))
            data = b"" if found is None else found.to_bytes()
        if len(data) != length:
            raise DataError(f"a chunk of {self.where} ends early; copy the store again.")
        return data

    def _path(self, key: str) -> str:
        return f"{self.array.path}/{key}" if self.array.path else key


def _location(shard: dict[str, Any]) -> str:
    place = shard.get("index_location", "end")
    return str(getattr(place, "value", place))


def _now(coroutine: Any) -> Any:
    """Run what a store does in its own time, and wait."""
    return require("zarr.core.sync", extra="io", purpose="reading zarr stores").sync(coroutine)


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
    """The rows of a zarr array."""

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
