"""Densities of scores: weights counted on a grid and smoothed by a normal kernel, and whether there is a second peak.

A group of points that are good but for their scale, such as readings in another unit, leaves the shape along every direction
nearly as it was, so no direction shows it. Whitened points of many dimensions nearly all have one length, and there a group of
another length is a second peak of the density. Heavy tails are not: the density falls all the way. Logarithms of lengths are
looked at, on which heavy tails have no far ends, and a peak counts if it rises above the valley before it by more than the noise
of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import derived, numeric
from robustphase.rows.source import Array


@dataclass(frozen=True)
class DensityOptions:
    """The kernel and the grid."""

    bandwidth: float = derived(1.06, "times N^(-1/5): the best kernel for a normal density (Silverman)")
    cells: int = numeric(4, "cells of the grid in a bandwidth")
    reach: int = numeric(4, "bandwidths at which the kernel ends")


OPTIONS = DensityOptions()


class Density(NamedTuple):
    """Places, how much there is at each per unit, and the bandwidth."""

    grid: Array
    values: Array
    width: float


def smoothed_counts(scores: Array, weights: Array, farthest: float) -> Density:
    """Density of weighted scores in [-farthest, farthest] that have deviation one.

    Parameters
    ----------
    scores, weights : ndarray of shape (N,)
        Where, and how much.
    farthest : float
        Half the length of the grid.
    """
    width = OPTIONS.bandwidth * float(weights.sum()) ** -0.2
    step = width / OPTIONS.cells
    grid = np.arange(-farthest, farthest + 2 * step, step)
    return Density(grid, _smooth(_counts(scores, weights, grid[0], step, grid.size), width, step), width)


def _counts(values: Array, weights: Array, first: float, step: float, size: int) -> Array:
    """Weights counted on a grid, each shared by the two neighbours of its value, so that roundings move nothing."""
    position = (values - first) / step
    cell = np.floor(position).astype(np.intp)
    part = position - cell
    counts = np.bincount(cell, weights * (1.0 - part), size) + np.bincount(cell + 1, weights * part, size)
    return np.asarray(counts[:size])


def _smooth(counts: Array, width: float, step: float) -> Array:
    """Counts smoothed by a normal kernel."""
    offsets = np.arange(-OPTIONS.reach * OPTIONS.cells, OPTIONS.reach * OPTIONS.cells + 1) * step
    kernel = np.exp(-(offsets**2) / (2 * width**2))
    return np.asarray(np.convolve(counts, kernel / (kernel.sum() * step), mode="same"))


@dataclass(frozen=True)
class PeakOptions:
    """When a peak is one."""

    noise: float = derived(4.0, "standard deviations of a rise; a peak is looked for at some hundred places")
    farthest: float = numeric(3.0, "larger logarithms of lengths over the usual one count as this")
    fewest: float = derived(0.01, "share of the points below which a group does no harm: it moves variances by less")


PEAKS = PeakOptions()


def some_stand_apart(roots: Array, centre: float, scale: float) -> bool:
    """Whether lengths have a second peak.

    Parameters
    ----------
    roots : ndarray of shape (N,)
        Cube roots of squared lengths, nearly normal for good points.
    centre, scale : float
        Their median and deviation.
    """
    relative = scale / centre if centre > 0 else np.inf
    if not np.isfinite(relative) or relative <= np.finfo(np.float64).eps:
        return False
    farthest = PEAKS.farthest / relative
    values = np.log(np.maximum(roots, np.exp(-PEAKS.farthest) * centre) / centre) / relative
    seen = smoothed_counts(np.clip(values, -farthest, farthest), np.ones(roots.size), farthest)
    outwards, inwards = seen.values[seen.grid >= 0], seen.values[seen.grid <= 0]
    cell = float(seen.grid[1] - seen.grid[0]) / roots.size
    return any(_beyond_valley(side, seen.width) * cell > PEAKS.fewest for side in (outwards, inwards[::-1]))


def _beyond_valley(density: Array, width: float) -> float:
    """How much lies beyond the valley before the first peak of a density that is followed outwards; zero without a peak."""
    valley = np.minimum.accumulate(density)
    # Variance of a count that a normal kernel has smoothed, of both.
    noise = np.sqrt((density + valley) / (2 * np.sqrt(np.pi) * width))
    peaks = density - valley > PEAKS.noise * noise
    if not peaks.any():
        return 0.0
    lowest = int(np.argmin(density[: int(np.argmax(peaks)) + 1]))
    return float(density[lowest:].sum())
