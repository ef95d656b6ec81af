"""Signals x* to recover: a random direction, a sparse one, and a small grey picture that an eye can check."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.simulate.arguments import FIELDS, Seed, check_choice, check_number, check_seed, check_size
from robustphase.simulate.designs import gaussian_design


def random_signal(n: int, *, norm: float = 1.0, field: str = "real", seed: Seed = None) -> NDArray[Any]:
    """Draw a signal uniformly from the sphere of radius ``norm``.

    Parameters
    ----------
    n : int
        Dimension.
    norm : float
        Euclidean norm of the signal.
    field : {"real", "complex"}
        Where its entries live.
    seed : int, Generator or None
        Source of randomness.

    Returns
    -------
    ndarray of shape (n,)
    """
    return sparse_signal(n, n, norm=norm, field=field, seed=seed)


def sparse_signal(n: int, support: int, *, norm: float = 1.0, field: str = "real", seed: Seed = None) -> NDArray[Any]:
    """Draw a signal with ``support`` non-zero entries at random places, uniform on its sphere of radius ``norm``.

    Parameters
    ----------
    n : int
        Dimension.
    support : int
        Number of non-zero entries, between 1 and ``n``.
    norm, field, seed
        As in `random_signal`.

    Returns
    -------
    ndarray of shape (n,)
    """
    n, support = check_size("n", n), check_size("support", support)
    norm = check_number("norm", norm, above=0.0, strict=True)
    field = check_choice("field", field, FIELDS)
    if support > n:
        raise ValueError(f"support must be at most n={n}, got {support}. Pass support={n} for a dense signal.")
    rng = check_seed(seed)
    values = gaussian_design(1, support, field=field, seed=rng)[0]
    signal = np.zeros(n, values.dtype)
    signal[rng.choice(n, support, replace=False)] = norm * values / np.linalg.norm(values)
    return signal


def image_signal(side: int = 10, *, norm: float = 1.0) -> NDArray[np.float64]:
    """Return a small grey face, drawn by formula and flattened row by row.

    Parameters
    ----------
    side : int
        Width and height in pixels: the signal has ``side**2`` entries. From 8 pixels on the face is easy to recognise.
    norm : float
        Euclidean norm of the flattened picture.

    Returns
    -------
    ndarray of shape (side**2,), non-negative
    """
    side, norm = check_size("side", side), check_number("norm", norm, above=0.0, strict=True)
    centres = (2 * np.arange(side) + 1) / side - 1
    down, right = np.meshgrid(centres, centres, indexing="ij")
    radius = np.hypot(down, right)
    # Light falls from the upper left, so the picture has grey levels and no mirror symmetry.
    picture = np.where(radius <= 1.0, 0.8 - 0.15 * (down + right), 0.05)
    eyes = np.hypot(down + 0.3, np.abs(right) - 0.4) < 0.2
    mouth = (np.abs(radius - 0.6) < 0.12) & (down > 0.25)
    picture[eyes | mouth] = 0.0
    return np.asarray(norm * picture.ravel() / np.linalg.norm(picture), np.float64)
