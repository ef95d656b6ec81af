"""The direction in which whitened points lean to one side most: where a one-sided group hides among good points.

A group shifted by a few deviations along one direction raises the variance there, and whitening takes that back: no spectrum
shows it, and none of its points is near its direction. What is left is skewness. Its third-moment tensor has n³ entries, but
one pass gives a first guess (the points weighted by their squared lengths), one more the matrix of third moments along the guess,
whose leading eigenvectors are far better, and power steps on the tensor from each do the rest, all without making it.

Among all directions normal points lean along some as well, by chance. The direction is reported only if the variance along it
exceeds what its quartiles explain by more than variances of normal points differ over all directions, ``2 √(n/N)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget, derived
from robustphase.means.excess import limits_for, shape_ratio
from robustphase.means.geometric_median import TINY
from robustphase.rows import RowSource, ScaledRows, sweep
from robustphase.rows.source import Array, Parts


@dataclass(frozen=True)
class LeanOptions:
    """How long the direction is searched for, and when chance explains it."""

    starts: int = budget(8, "eigenvectors of the third moments that are sharpened; the best one counts")
    steps: int = budget(8, "power steps; a clear lean settles in three")
    chance: float = derived(2.0, "times √(n/N): how far sample variances of normal points differ over all directions")


OPTIONS = LeanOptions()


def leaning_direction(
    source: RowSource,
    matrix: Array,
    keep: Array,
    lengths: Array,
    ratio: Callable[[Array], float] = shape_ratio,
) -> Array:
    """Direction of the whitened points along which the kept ones lean, shape (n, 1), or (n, 0) if chance explains it.

    Parameters
    ----------
    source : RowSource
        Rows amid zero.
    matrix : ndarray of shape (n, n)
        What whitens them, from the right; symmetric.
    keep : ndarray of bool, shape (N,)
        The points to look at.
    lengths : ndarray of shape (N,)
        Lengths of the whitened points.
    ratio : callable, default=shape_ratio
        Variance of projections over what good points explain.
    """
    n, count = source.shape[1], int(keep.sum())
    nothing = np.empty((n, 0), matrix.dtype)
    if source.dtype.kind == "c" or n < 2:
        return nothing
    share = keep / count
    squares = np.where(keep, lengths**2, 0.0)
    guess = _unit(matrix @ ScaledRows(source).total(share * (squares - squares @ share)))
    values, vectors = np.linalg.eigh(matrix @ _third_moments(source, matrix @ guess, share) @ matrix)
    directions = vectors[:, np.argsort(-np.abs(values))[: OPTIONS.starts]]
    for _ in range(OPTIONS.steps):
        moved = sweep(source, matrix @ directions, lambda along, part: part[:, np.newaxis] * (along**2 - 1.0), (share,))
        directions = _unit(matrix @ moved.total)
    along = ScaledRows(source).inner(matrix @ directions)[keep]
    best = [int(np.argmax(np.abs((along**3).mean(axis=0))))]
    slack = limits_for(lengths[keep], 0.0).slack + OPTIONS.chance * np.sqrt(n / count)
    return directions[:, best] if ratio(along[:, best]) > 1.0 + slack else nothing


def _third_moments(source: RowSource, vector: Array, share: Array) -> Array:
    """``Σ s_j (x_j·v) x_j x_jᵀ``, an n × n matrix: one pass."""

    def kernel(block: Array, part: Array) -> Parts:
        along = np.dot(block, vector.astype(block.dtype)) * part.astype(block.dtype)
        return Parts(sums=(np.dot((along[:, np.newaxis] * block).T, block),))

    return source.reduce(kernel, (share,)).sums[0]


def _unit(vectors: Array) -> Array:
    """A vector, or each column, at length one."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=0), TINY))
