"""Greyscale PNG files (ISO/IEC 15948) from arrays, with nothing but zlib."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BIT, _GREY = 8, 0


def grey_levels(picture: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    """Bytes 0 (black, ``low``) to 255 (white, ``high``); NaN is mid-grey."""
    width = high - low if high > low else 1.0
    share = np.clip((np.nan_to_num(picture, nan=low + 0.5 * width, posinf=high, neginf=low) - low) / width, 0.0, 1.0)
    return np.round(255 * share).astype(np.uint8)


def encode_png(grey: NDArray[np.uint8]) -> bytes:
    """The file of a greyscale picture, shape (height, width)."""
    height, width = grey.shape
    # Every line is preceded by its filter type; 0 means none.
    lines = np.concatenate((np.zeros((height, 1), np.uint8), grey), axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, _EIGHT_BIT, _GREY, 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines, 9)) + _chunk(b"IEND", b"")


def data_uri(grey: NDArray[np.uint8]) -> str:
    """The picture as an address that needs no network."""
    return "data:image/png;base64," + base64.b64encode(encode_png(grey)).decode("ascii")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
