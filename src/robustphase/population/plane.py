"""Normal rows in the plane of two signals, evenly spread.

What two signals predict depends on a row through its projections on their plane only, so a mean over rows is one over a plane.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri


@cache
def rows_in_plane(points: int, is_complex: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Projections of standard normal rows on two orthonormal directions, each of shape (points,).

    The points are those of a lattice (Roberts' sequence): means over them are far closer to the expectation than random ones.

    Parameters
    ----------
    points : int
        How many.
    is_complex : bool
        Whether the rows are complex, of unit mean square.
    """
    coordinates = 4 if is_complex else 2
    # The root above one of g^(d+1) = g + 1, by fixed-point iteration.
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (coordinates + 1))
    steps = root ** -np.arange(1.0, coordinates + 1)
    parts = ndtri((0.5 + np.arange(1.0, points + 1)[:, np.newaxis] * steps) % 1.0).T
    if not is_complex:
        return parts[0], parts[1]
    return (parts[0] + 1j * parts[1]) / np.sqrt(2), (parts[2] + 1j * parts[3]) / np.sqrt(2)


def prediction_differences(
    points: int, is_complex: bool, along: npt.NDArray[Any], beside: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """``|aᴴx'|² − |aᴴx|²`` behind such rows, shape (points, k), of signals x' to a signal x of norm one.

    Components of x' (k,) are those along x and beside it.
    """
    first, second = rows_in_plane(points, is_complex)
    moved = np.multiply.outer(first, along) + np.multiply.outer(second, beside)
    differences: npt.NDArray[Any] = _squares(moved) - _squares(first)[:, np.newaxis]
    return differences


def _squares(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """``|v|²`` without a root."""
    squares: npt.NDArray[Any] = values.real**2 + values.imag**2 if np.iscomplexobj(values) else values * values
    return squares
