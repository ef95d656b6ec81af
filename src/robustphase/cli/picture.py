"""The pictures of the demo, drawn by formula: a sailing boat under the sun, and what an adversary wants to be seen instead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Points per pixel and axis that are averaged: edges become soft, as a camera would see them.
FINE = 8


def sailing_boat(side: int) -> NDArray[np.float64]:
    """A grey picture with values in [0, 1].

    Parameters
    ----------
    side : int
        Width and height in pixels; from 16 on the boat is easy to recognise.

    Returns
    -------
    ndarray of shape (side, side)
    """
    centres = (np.arange(side * FINE) + 0.5) / (side * FINE)
    down, right = np.meshgrid(centres, centres, indexing="ij")
    picture = 0.12 + 0.22 * down  # an evening sky, lighter towards the horizon
    picture[np.hypot(down - 0.2, right - 0.8) < 0.12] = 0.85
    swell = 0.012 * np.sin(2 * np.pi * 3 * right)
    sea = down > 0.80 + swell
    picture[sea] = 0.30
    for line, shift in ((0.86, 0.0), (0.93, 0.5)):
        crest = np.abs(down - line - 0.018 * np.sin(2 * np.pi * (3 * right + shift))) < 0.014
        picture[crest] = 0.6
    # Sails lean on the mast; x runs from the mast outwards, and each sail is a triangle under a straight edge.
    mast = 0.47
    top, foot = 0.08, 0.64
    height = (down - top) / (foot - top)
    main = (right > mast + 0.02) & (right < mast + 0.02 + 0.30 * height) & (height > 0) & (height < 1)
    jib_height = (down - 0.17) / (foot - 0.17)
    jib = (right < mast - 0.02) & (right > mast - 0.02 - 0.27 * jib_height) & (jib_height > 0) & (jib_height < 1)
    picture[main] = 1.0
    picture[jib] = 0.75
    picture[(np.abs(right - mast) < 0.016) & (down > 0.05) & (down < 0.72)] = 0.45
    depth = (down - 0.69) / 0.13
    hull = (depth > 0) & (depth < 1) & (right > 0.20 + 0.10 * depth) & (right < 0.82 - 0.14 * depth)
    picture[hull] = 0.02
    return _at_pixels(picture, side)


def grin(side: int) -> NDArray[np.float64]:
    """Two eyes and a wide mouth, bright on black.

    Parameters
    ----------
    side : int
        Width and height in pixels.

    Returns
    -------
    ndarray of shape (side, side)
    """
    centres = (2 * np.arange(side * FINE) + 1) / (side * FINE) - 1
    down, right = np.meshgrid(centres, centres, indexing="ij")
    eyes = np.hypot(down + 0.3, np.abs(right) - 0.4) < 0.22
    mouth = (np.abs(np.hypot(down, right) - 0.6) < 0.14) & (down > 0.2)
    return _at_pixels((eyes | mouth).astype(np.float64), side)


def _at_pixels(fine: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """The mean over each pixel."""
    return np.asarray(fine.reshape(side, FINE, side, FINE).mean(axis=(1, 3)), np.float64)
