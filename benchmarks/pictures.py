"""Grey pictures as PNG files."""

from __future__ import annotations

import io

import matplotlib.image
import numpy as np


def grey_levels(picture: np.ndarray, low: float, high: float) -> np.ndarray:
    """Bytes 0 (black, ``low``) to 255 (white, ``high``); NaN is mid-grey."""
    width = high - low if high > low else 1.0
    share = np.clip((np.nan_to_num(picture, nan=low + 0.5 * width, posinf=high, neginf=low) - low) / width, 0.0, 1.0)
    return np.round(255 * share).astype(np.uint8)


def encode_png(grey: np.ndarray) -> bytes:
    """The file of a greyscale picture, shape (height, width)."""
    written = io.BytesIO()
    matplotlib.image.imsave(written, grey, format="png", cmap="gray", vmin=0, vmax=255)
    return written.getvalue()
