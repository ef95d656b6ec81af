"""What a packed block unpacks to, found out without holding it.

A few kilobytes can unpack to gigabytes, and the libraries of the formats ask for no limit. How large a block may get follows
from the shape that its array declares; so before a library unpacks a block for the first time, its size is found here: read
from its head where the codec writes it there and holds to it (zstd, blosc, lz4), and otherwise by unpacking it piece by
piece, which stops at the first byte too many. Codecs that are not known here are refused.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any

from robustphase.formatting import in_bytes
from robustphase.rows.io.limits import DataError

#: Bytes unpacked at a time.
PIECE = 1 << 18
#: Beyond what an array declares: checksums, and the last block of a zstd stream, which counts in full.
SLACK = 1 << 18
#: Longest that a block of a zstd frame gets.
ZSTD_BLOCK = 1 << 17
ZSTD_FRAME, ZSTD_SKIPPABLE = 0xFD2FB528, 0x184D2A5
#: Memory that the dictionary of an lzma stream may take.
LZMA_MEMORY = 256 << 20


def check_unpacks(codec: str, data: bytes, declared: int, where: str) -> None:
    """Refuse a packed block that unpacks to more bytes than its array declares, or that cannot be unpacked."""
    most = declared + SLACK
    try:
        size = SIZES[codec](data, most)
    except (ValueError, EOFError, struct.error, zlib.error, OSError, lzma.LZMAError) as error:
        raise DataError(f"{where} cannot be unpacked ({codec}): it is damaged; copy the file again.") from error
    if size > most:
        raise DataError(
            f"{where} unpacks to more than the {in_bytes(declared)} that its array declares; it is damaged or made to harm."
        )


def encoded_limit(declared: int) -> int:
    """Most bytes that a block may take as stored: no codec makes noise much longer than it is."""
    return 2 * declared + SLACK


def _streamed(make: Callable[[], Any], *, several: bool = True) -> Callable[[bytes, int], int]:
    """The size by unpacking piece by piece; with ``several`` streams that follow each other count together."""

    def size(data: bytes, most: int) -> int:
        total = 0
        while data and total <= most:
            stream = make()
            while not stream.eof and total <= most:
                piece = stream.decompress(data, PIECE)
                total += len(piece)
                data = getattr(stream, "unconsumed_tail", b"")
                if not piece and not data and not stream.eof:
                    raise EOFError("the stream is cut off")
            data = stream.unused_data if several else b""
        return total

    return size


def _stated(layout: str, offset: int = 0) -> Callable[[bytes, int], int]:
    """The size as the head of the block states it."""

    def size(data: bytes, most: int) -> int:
        (found,) = struct.unpack_from(layout, data, offset)
        return int(found)

    return size


def _zstd(data: bytes, most: int) -> int:
    """The size of all frames: as stated, or where a frame does not state it what its blocks come to at most."""
    position, total = 0, 0
    while position < len(data) and total <= most:
        (magic,) = struct.unpack_from("<I", data, position)
        position += 4
        if magic >> 4 == ZSTD_SKIPPABLE:
            position += 4 + struct.unpack_from("<I", data, position)[0]
            continue
        if magic != ZSTD_FRAME:
            raise ValueError("no frame")
        described = data[position]
        single, checksum = bool(described & 32), bool(described & 4)
        position += 1 + (not single) + (0, 1, 2, 4)[described & 3]
        width = (1 if single else 0, 2, 4, 8)[described >> 6]
        stated = int.from_bytes(data[position : position + width], "little") + (256 if width == 2 else 0)
        position += width
        blocks, last = 0, False
        while not last and blocks <= most:
            header = int.from_bytes(data[position : position + 3], "little")
            if position + 3 > len(data):
                raise EOFError("the frame is cut off")
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == 1 else length)
            blocks += ZSTD_BLOCK if kind == 2 else length
        total += stated if width else blocks
        position += 4 * checksum
    return total


def _lzf(data: bytes, most: int) -> int:
    """The size of an LZF block: literal runs and copies, each with its length in front."""
    position, total, end = 0, 0, len(data)
    while position < end and total <= most:
        control = data[position]
        if control < 32:
            total += control + 1
            position += control + 2
        else:
            length = control >> 5
            if length == 7:
                length += data[position + 1] if position + 1 < end else 0
                position += 1
            total += length + 2
            position += 2
    return total


#: How to find the size of a block, for each codec: ``size(data, most)``, which may stop beyond ``most``.
SIZES: dict[str, Callable[[bytes, int], int]] = {
    "gzip": _streamed(lambda: zlib.decompressobj(31)),
    "zlib": _streamed(lambda: zlib.decompressobj(15), several=False),
    "bz2": _streamed(bz2.BZ2Decompressor),
    "lzma": _streamed(lambda: lzma.LZMADecompressor(memlimit=LZMA_MEMORY)),
    "zstd": _zstd,
    "blosc": _stated("<I", 4),
    "lz4": _stated("<I"),
    "lzf": _lzf,
    "lz4 in HDF5": _stated(">Q"),
    "szip": _stated("<I"),
}
