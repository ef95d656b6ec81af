"""The geometric median, by Weiszfeld's iteration, one pass each: a first centre, and an estimator of its own.

It breaks down only at half of the data, and moves with the points under shifts and rotations. It is wrong by up to
``sqrt(ε tr Σ)`` where the filter is wrong by ``sqrt(ε ‖Σ‖)``: good enough to tell which points are absurdly far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from robustphase.constants import TINY
from robustphase.means.result import MeanResult, result_without_certificate, usable_points
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


@dataclass(frozen=True)
class WeiszfeldOptions:
    """When the iteration stops, and what counts as being at the centre."""

    max_iter: int = 8  # budget: a centre that only has to tell absurdly far points need not be exact
    tol: float = 1e-2  # budget: likewise; in units of the median distance
    nearest: float = 1e-6  # numeric: points nearer than this, in median distances, would get infinite weight
    smallest: float = 1e-150  # numeric: the inverse of a distance can still be summed over any number of points


@dataclass(frozen=True)
class PruningOptions:
    """Which points are too far from the centre to be looked at in detail."""

    reach: float = 3.0  # empirical: median distances over sqrt(ε); Chebyshev allows a share ε beyond sqrt(tr Σ / ε)
    lowest_level: float = 0.01  # empirical: lower levels are pruned like this one, and the rest is for the filter


ROUGH = WeiszfeldOptions()
PRECISE = WeiszfeldOptions(max_iter=100, tol=1e-6)
PRUNING = PruningOptions()


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


class GeometricMedian(NamedTuple):
    """A centre, the distance of every point to it, the weights that made it (the largest is 1), and iterations."""

    centre: Array
    distances: Array
    weights: Array
    n_iter: int


def geometric_median(
    view: Cloud, *, start: Array | None = None, weights: Array | None = None, options: WeiszfeldOptions = ROUGH
) -> GeometricMedian:
    """Geometric median of the points of a view, with equal weights unless they are given.

    The first guess is ``start`` (n,), by default the (weighted) mean. The options say after how many iterations it stops, or
    when the centre moves by less than which fraction of the median distance.
    """
    base = np.ones(view.shape[0]) if weights is None else weights
    centre = view.mean(base) if start is None else start
    distances = np.sqrt(view.squared_distances(centre))
    current, iteration, moving = base, 0, True
    while moving and iteration < options.max_iter:
        iteration += 1
        typical = float(np.median(distances[base > 0]))
        current = weiszfeld_weights(base, distances, typical, options)
        previous, centre = centre, view.mean(current)
        distances = np.sqrt(view.squared_distances(centre))
        moving = bool(np.linalg.norm(centre - previous) > options.tol * typical)
    return GeometricMedian(centre, distances, current / current.max(), iteration)


def weiszfeld_weights(base: Array, distances: Array, typical: Array | float, options: WeiszfeldOptions) -> Array:
    """Weights over distances; columns of clouds are treated alike, each with its own typical distance."""
    weights: Array = base / np.maximum(distances, np.maximum(options.nearest * typical, options.smallest))
    return weights


def geometric_median_mean(
    view: ScaledRows, contamination: float, *, dropped: Array | None = None, options: WeiszfeldOptions = PRECISE
) -> MeanResult:
    """Geometric median: the point with the smallest sum of distances.

    Breakdown: one half, with an error of order ``sqrt(ε tr Σ)`` where the filter has ``sqrt(ε ‖Σ‖)``. Cost: two passes
    for each of some ten Weiszfeld iterations. ``contamination`` is not used. A point's weight is that of the last
    iteration over the largest; there is no certificate.
    """
    keep = usable_points(view, dropped)
    found = geometric_median(view, weights=keep.astype(np.float64), options=options)
    return result_without_certificate(
        found.centre,
        found.weights,
        contamination,
        "the geometric median gives no certificate: its error grows with the dimension",
        n_iter=found.n_iter,
        converged=found.n_iter < options.max_iter,
    )


def near(distances: Array, keep: Array, contamination: float | str, *, strict: bool = False) -> Array:
    """Which points are close enough to the centre to be looked at in detail; ``strict`` drops no more than the budget."""
    lowest = PRUNING.lowest_level
    level = lowest if isinstance(contamination, str) else max(contamination, lowest)
    limit = PRUNING.reach * typical_distance(distances[keep]) / np.sqrt(level)
    if strict and not isinstance(contamination, str):
        # Clouds that are peaked at their centre have clean points at many median distances.
        spared = max(int(keep.sum() - np.ceil(contamination * keep.size)), 1) - 1
        limit = max(limit, float(np.partition(distances[keep], spared)[spared]))
    chosen: Array = distances <= limit
    return chosen


def typical_distance(distances: Array) -> float:
    """Median distance, never zero."""
    return max(float(np.median(distances)), TINY)
