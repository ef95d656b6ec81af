"""Small grey pictures on a terminal: two pixels to a character cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

#: Upper half of a cell: its colour is the upper pixel, the background the lower one.
HALF = "▀"
GAP = 3


def side_by_side(pictures: Mapping[str, NDArray[Any]], low: float, high: float) -> Text:
    """Pictures of one size with their titles above them.

    Parameters
    ----------
    pictures : mapping of str to ndarray of shape (height, width)
        What to show under which title.
    low, high : float
        Values that are black and white.

    Returns
    -------
    rich.text.Text
    """
    grey = [_bytes(picture, low, high) for picture in pictures.values()]
    width = grey[0].shape[1]
    text = Text((" " * GAP).join(title[:width].ljust(width) for title in pictures) + "\n")
    for row in range(0, grey[0].shape[0], 2):
        for position, picture in enumerate(grey):
            text.append(" " * (GAP if position else 0))
            for upper, lower in zip(picture[row], picture[row + 1], strict=True):
                text.append(HALF, f"rgb({upper},{upper},{upper}) on rgb({lower},{lower},{lower})")
        text.append("\n")
    return text


def _bytes(picture: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    grey = np.clip((picture - low) / (high - low), 0.0, 1.0) * 255
    if grey.shape[0] % 2:
        grey = np.vstack((grey, np.zeros((1, grey.shape[1]))))
    return grey.astype(np.uint8)
