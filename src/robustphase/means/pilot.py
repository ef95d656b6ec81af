"""A first centre: the geometric median, by Weiszfeld's iteration, one pass each.

It breaks down only at half of the data, and moves with the points under shifts and rotations. It is wrong by up to
``sqrt(ε tr Σ)`` where the filter is wrong by ``sqrt(ε ‖Σ‖)``: good enough to tell which points are absurdly far.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from robustphase.rows.source import Array

#: Distances below this count as this: its inverse can still be summed over any number of points.
SMALLEST = 1e-150


class Cloud(Protocol):
    """What Weiszfeld's iteration needs to know of the points."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points and their dimension."""
        ...

    def mean(self, weights: Array) -> Array:
        """Weighted mean."""
        ...

    def squared_distances(self, centre: Array) -> Array:
        """Squared distance of every point to a centre."""
        ...


class Pilot(NamedTuple):
    """A centre, the distance of every point to it, the pulls that made it (relative to the largest), and iterations."""

    centre: Array
    distances: Array
    pulls: Array
    n_iter: int


def geometric_median(
    view: Cloud, *, start: Array | None = None, weights: Array | None = None, max_iter: int = 8, tol: float = 1e-2
) -> Pilot:
    """Geometric median of the points of a view, to a fraction ``tol`` of their typical distance.

    Parameters
    ----------
    view : ScaledRows or other cloud
        The points.
    start : ndarray of shape (n,), optional
        First guess. Default: the (weighted) mean.
    weights : ndarray of shape (N,), optional
        Non-negative weights of the points. Default: equal.
    max_iter : int, default=8
        Most iterations.
    tol : float, default=1e-2
        Stop when the centre moves by less than this fraction of the median distance.

    Returns
    -------
    Pilot
    """
    base = np.ones(view.shape[0]) if weights is None else weights
    centre = view.mean(base) if start is None else start
    distances = np.sqrt(view.squared_distances(centre))
    pull, iteration, moving = base, 0, True
    while moving and iteration < max_iter:
        iteration += 1
        typical = float(np.median(distances[base > 0]))
        # Points at the centre would get infinite weight; below a millionth of the typical distance they count as there.
        pull = base / np.maximum(distances, max(1e-6 * typical, SMALLEST))
        previous, centre = centre, view.mean(pull)
        distances = np.sqrt(view.squared_distances(centre))
        moving = bool(np.linalg.norm(centre - previous) > tol * typical)
    return Pilot(centre, distances, pull / pull.max(), iteration)
