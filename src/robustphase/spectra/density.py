"""Densities of scores: weights counted on a grid and smoothed by a normal kernel."""

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
