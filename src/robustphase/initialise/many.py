"""Directions of many signals behind one design, in common passes.

For each signal the ranks of its responses, clipped and centred, weigh the second moment of the covariates; its leading
eigenvector points along the signal (see :mod:`robustphase.initialise.directions`, of which this is the monotone weighting
alone). The power iterations of all signals are products of the same rows with one matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows import RowSource
from robustphase.rows.passes import adjoint_block, in_single_precision, in_slices
from robustphase.rows.source import Array, Parts

#: Ranks below and above count as these.
LOWEST, HIGHEST = 0.25, 0.95
#: Most iterations, and the change of a direction at which it is good enough for a race.
MOST_ITERATIONS, SETTLED = 20, 0.1
_TINY = float(np.finfo(np.float32).tiny)


class Directions(NamedTuple):
    """Unit vectors (n, p), the mean weighted energy along each (p,), and what chance alone would give (p,)."""

    vectors: Array
    strengths: Array
    chance: Array


def rank_weightings(values: Array, weights: Array) -> Array:
    """Clipped ranks of the values of each column, centred and weighted, shape (m, p), in single precision.

    Parameters
    ----------
    values : ndarray of shape (m, p)
        Responses or residuals.
    weights : ndarray of shape (m, 1) or (m, p)
        Weights of the covariates.
    """
    m, p = values.shape
    weightings = np.empty((m, p), np.float32)
    positions = (np.arange(m) + 0.5) / m
    for column in range(p):
        w = weights[:, column if weights.shape[1] > 1 else 0]
        ranks = np.empty(m)
        ranks[np.argsort(values[:, column])] = positions
        ranks = np.clip(ranks, LOWEST, HIGHEST)
        weightings[:, column] = w * (ranks - (w @ ranks) / max(float(w.sum()), _TINY))
    return weightings


def leading_directions(
    source: RowSource, weightings: Array, *, most: int = MOST_ITERATIONS, seed: int = 0
) -> Directions:
    """Leading eigenvectors of ``Σ t_j a_j a_jᴴ / m`` for every column t of the weightings, by common power iterations."""
    m, n = source.shape
    p = weightings.shape[1]
    single = np.dtype(np.complex64 if source.dtype.kind == "c" else np.float32)
    vectors = np.random.default_rng(seed).standard_normal((n, p)).astype(single)
    vectors /= np.linalg.norm(vectors, axis=0)
    for _ in range(most):
        products = _products(source, vectors, weightings) / m
        strengths = np.linalg.norm(products, axis=0)
        new = products / np.maximum(strengths, _TINY)
        change = 1 - np.abs(np.vecdot(vectors.T, new.T))
        vectors = new.astype(single)
        if (change < SETTLED**2 / 2).all():
            break
    squares = np.linalg.norm(weightings, axis=0).astype(np.float64)
    chance = 2 * np.sqrt(n) * squares / m + n * np.abs(weightings).max(axis=0) / m
    return Directions(vectors.astype(np.result_type(single, np.float64)), strengths, chance)


def _products(source: RowSource, vectors: Array, weightings: Array) -> Array:
    def kernel(block: Array, t: Array) -> Parts:
        rows = in_single_precision(block)
        projections = np.dot(rows, vectors)
        # Rows without weight may be too long for single precision.
        projections[(t == 0).all(axis=1)] = 0
        projections *= t
        return Parts(sums=(adjoint_block(rows, projections),))

    return source.reduce(in_slices(kernel, vectors.shape[1]), (weightings,)).sums[0]
