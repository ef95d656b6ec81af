"""Directions along which covariates and responses depend on each other.

Only the ranks of the responses are used, so neither a background nor the law of the noise matters, and no response counts
more than any other. The samples are cut into ten bins by rank. Along the signal, samples with large responses have too much
energy and those with small responses too little; an adversary can spoil some bins but hardly all. So candidates are the
directions of most unusual energy in several groups of bins, of either sign, and in all samples together. Each then learns
its own weighting of the bins, the energy it sees in them, which sharpens the right ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows import RowSource, adjoint, project, sweep
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

BINS = 10
#: Groups of bins, as ranges: low, middle and high responses, overlapping.
GROUPS = ((0, 2), (1, 4), (3, 6), (5, 8), (7, 9), (8, 10), (9, 10), (6, 10))
#: Directions kept for each group, passes that look for them, and iterations with learned weightings.
PER_GROUP = 2
KRYLOV_DEPTH, LEARNED_ITERATIONS = 6, 10
#: Directions that learn a weighting of their own: the most unusual ones.
LEARNERS = 10
#: Directions whose cosine exceeds these are the same: before learning, and after.
SAME_BEFORE, SAME_AFTER = 0.9, 0.95
#: The pull towards the whole second moment is measured against slightly more than its expectation, the identity.
IDENTITY = 1.02


class RankBins(NamedTuple):
    """Weighted ranks of the responses in [0, 1], the bin of each, and the weight in each bin."""

    ranks: Array
    bins: Array
    mass: Array


def rank_bins(responses: Array, weights: Array) -> RankBins:
    """Cut the samples into bins of equal weight by the ranks of their responses."""
    order = np.argsort(responses, kind="stable")
    cumulated = np.cumsum(weights[order])
    ranks = np.empty(responses.size)
    ranks[order] = cumulated / cumulated[-1]
    bins = np.clip((ranks * BINS - 1e-9).astype(int), 0, BINS - 1)
    return RankBins(ranks, bins, np.maximum(np.bincount(bins, weights, BINS), np.finfo(np.float64).tiny))


def candidate_directions(source: RowSource, responses: Array, weights: Array, *, seed: int = 0) -> Array:
    """Unit vectors, one of which should point along the signal.

    Parameters
    ----------
    source : RowSource
        The covariates.
    responses : ndarray of shape (m,)
        ``y``.
    weights : ndarray of shape (m,)
        Weights of the covariates.
    seed : int, default=0
        For the first guesses.

    Returns
    -------
    ndarray of shape (n, k)
        The most promising first.
    """
    binned = rank_bins(responses, weights)
    found, strength = unusual_energy(source, bin_weightings(binned, weights), seed)
    found = found[:, np.argsort(-strength)]
    chosen = distinct_directions(found, SAME_BEFORE)[:LEARNERS]
    learned = learn_weightings(source, found[:, chosen], binned, weights)
    learned = learned[:, distinct_directions(learned, SAME_AFTER)]
    everything = np.hstack((learned, found))
    return everything[:, distinct_directions(everything, SAME_AFTER)]


def bin_weightings(binned: RankBins, weights: Array) -> Array:
    """One weighting of the samples per column: groups of bins and a clipped rank, each against all samples; then all."""
    total = weights / weights.sum()
    columns = []
    for low, high in GROUPS:
        inside = weights * ((binned.bins >= low) & (binned.bins < high))
        columns.append(inside / max(inside.sum(), np.finfo(np.float64).tiny) - total)
    monotone = weights * np.clip(binned.ranks, 0.25, 0.95)
    columns.append(monotone / monotone.sum() - total)
    return np.stack([*columns, total], axis=1)


def unusual_energy(source: RowSource, weightings: Array, seed: int) -> tuple[Array, Array]:
    """Leading eigenvectors, of either sign, of ``Σ t_j a_j a_jᴴ`` for every weighting t: directions and |eigenvalues|.

    Block Krylov spaces, one per weighting, grown together: each pass multiplies the newest block of all of them.
    """
    n, groups = source.shape[1], weightings.shape[1]
    width = min(PER_GROUP, n)
    spread = np.repeat(weightings, width, axis=1)
    # The last weighting is of all samples: its second moment is compared with the identity.
    shift = np.zeros((groups, 1, 1))
    shift[-1] = IDENTITY
    blocks = np.linalg.qr(np.random.default_rng(seed).standard_normal((groups, n, width)))[0]
    basis = blocks = blocks.astype(np.result_type(source.dtype, np.float64))
    images = np.empty((groups, n, 0), basis.dtype)
    while True:
        product = sweep(source, _side_by_side(blocks), lambda s, t: t * s, (spread,)).total
        images = np.concatenate((images, _stacked(product, groups) - shift * blocks), axis=2)
        if basis.shape[2] >= min(KRYLOV_DEPTH * width, n - width + 1):
            break
        newest = images[:, :, -width:]
        # Twice: the first projection leaves roundings that the next block would amplify.
        for _ in range(2):
            newest = newest - basis @ (_adjoints(basis) @ newest)
        blocks = np.linalg.qr(newest)[0]
        basis = np.concatenate((basis, blocks), axis=2)
    small = _adjoints(basis) @ images
    values, rotations = np.linalg.eigh((small + _adjoints(small)) / 2)
    largest = np.argsort(-np.abs(values), axis=1)[:, :width]
    top = np.take_along_axis(rotations, largest[:, np.newaxis, :], axis=2)
    return _side_by_side(basis @ top), np.abs(np.take_along_axis(values, largest, axis=1)).ravel()


def learn_weightings(source: RowSource, directions: Array, binned: RankBins, weights: Array) -> Array:
    """Power iteration in which each direction weighs the bins by the energy it sees in them, against its average."""
    bins, total = binned.bins, float(weights.sum())
    for _ in range(LEARNED_ITERATIONS):
        projections = project(source, directions)
        energy = abs2(projections) * weights[:, np.newaxis]
        mean_energy = np.stack([np.bincount(bins, column, BINS) for column in energy.T]) / binned.mass
        mean_energy -= (mean_energy @ binned.mass)[:, np.newaxis] / total
        learned = mean_energy[:, bins].T * weights[:, np.newaxis]
        product = adjoint(source, learned * projections)
        directions = product / np.maximum(np.linalg.norm(product, axis=0), np.finfo(np.float64).tiny)
    return directions


def distinct_directions(vectors: Array, same: float) -> list[int]:
    """Indices of directions that differ from all earlier ones: cosine below ``same``."""
    cosines = np.abs(vectors.conj().T @ vectors)
    kept: list[int] = []
    for index in range(vectors.shape[1]):
        if not kept or cosines[index, kept].max() < same:
            kept.append(index)
    return kept


def _adjoints(stack: Array) -> Array:
    return stack.conj().transpose(0, 2, 1)


def _side_by_side(blocks: Array) -> Array:
    """(groups, n, width) to (n, groups · width)."""
    groups, n, width = blocks.shape
    return blocks.transpose(1, 0, 2).reshape(n, groups * width)


def _stacked(vectors: Array, groups: int) -> Array:
    """Inverse of :func:`_side_by_side`."""
    n = vectors.shape[0]
    return vectors.reshape(n, groups, -1).transpose(1, 0, 2)
