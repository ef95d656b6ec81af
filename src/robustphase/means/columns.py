"""Coordinates, a few at a time: how order statistics are taken of points that are never made.

A median needs all values of a coordinate at once. A thirtieth of the coordinates at a time costs thirty partial
readings of the data and a thirtieth of its size in memory, whatever the data and wherever it lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from robustphase.means.result import MeanResult
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array

#: Coordinates are read in this many groups.
GROUPS = 32

#: ``statistic(values) -> (location, kept)``: values (K, w) real; location (w,); kept (K,), the average over the columns
#: of the weight each point had, or None where weights have no meaning.
Statistic = Callable[[Array], tuple[Array, Array | None]]


class Coordinatewise(NamedTuple):
    """Locations of all coordinates, and the average weight of each point over them."""

    location: Array
    weights: Array


def column_groups(count: int) -> Iterator[slice]:
    """Slices that cover ``count`` columns in at most :data:`GROUPS` groups."""
    width = max(1, -(-count // GROUPS))
    for start in range(0, count, width):
        yield slice(start, min(start + width, count))


def coordinatewise(view: ScaledRows, keep: Array, statistic: Statistic) -> Coordinatewise:
    """Apply a statistic to every coordinate of the kept points; to real and imaginary parts if they are complex."""
    count, dimension = view.shape
    location = np.empty(dimension, np.result_type(view.dtype, np.float64))
    total, parts = np.zeros(int(keep.sum())), 0
    for chosen in column_groups(dimension):
        values = view.columns(chosen)[keep]
        if values.dtype.kind == "c":
            real, real_kept = statistic(np.ascontiguousarray(values.real))
            imaginary, imaginary_kept = statistic(np.ascontiguousarray(values.imag))
            location[chosen] = real + 1j * imaginary
            both = (real_kept, imaginary_kept)
        else:
            location[chosen], kept = statistic(values)
            both = (kept, kept)
        share = (chosen.stop - chosen.start) / 2
        for kept in both:
            total += share * (1.0 if kept is None else kept)
        parts += 2 * share
    weights = np.zeros(count)
    weights[keep] = np.clip(total / parts, 0.0, 1.0)
    return Coordinatewise(location, weights)


def usable_points(view: ScaledRows, dropped: Array | None) -> Array:
    """Which points may be looked at."""
    return np.ones(view.shape[0], bool) if dropped is None else ~dropped


def plain_result(
    location: Array, weights: Array, contamination: float, message: str, *, n_iter: int = 1, converged: bool = True
) -> MeanResult:
    """Result of an estimator without a certificate: its ``top_variance`` is NaN."""
    return MeanResult(
        location=location,
        weights=weights,
        top_variance=float("nan"),
        removed=1.0 - float(weights.mean()),
        contamination=contamination,
        n_iter=n_iter,
        converged=converged,
        message=message,
    )
