"""Directions that an attacker has hidden from the usual weightings of the ranks.

All that second moments tell of a signal is the mean energy h(y) along it among samples of the response y. Without an attack h
grows with y. Whoever rewrites a fifth of the samples can bend it: the samples with the largest responses, rewritten with small
ones, leave h with either sign, or none, wherever he likes. But to make it vanish for *all* responses takes more than that, and a
direction shows in the weighting T(y) that goes with its h as soon as m E[h²] > n (Mondelli and Montanari, 2019), whatever its
shape.

So every smooth weighting is tried. Those that are a combination of the first four cosines of the ranks are a sphere in four
dimensions, and the 24 vertices of the 24-cell cover it evenly: every combination has a cosine of 0.7 or more with one of them.
The leading direction of each learns its own weighting, the best there is for the energy that it sees, h/(1 + h) (Luo, Alghamdi
and Lu, 2019), until it stays where it is.

Samples that were rewritten in the name of a second signal depend on both, and then the directions found mix the two. The signal
is in the plane of two of them: so the most unusual ones are taken out, the next ones are found beside them, and all that lies
between is a candidate too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import eigh

from robustphase.constants import budget, numeric
from robustphase.initialise.block_davidson import (
    SEARCH,
    RankBins,
    Space,
    distinct_directions,
    paired_directions,
    rank_bins,
)
from robustphase.rows import RowSource
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class HiddenOptions:
    """Constants of the search for hidden directions."""

    passes: int = budget(5, "passes that follow the smooth weightings")
    learning_passes: int = budget(2, "passes that follow the learned ones")
    rounds: int = budget(3, "rounds of learning before each pass, and after the last")
    same: float = numeric(0.9, "cosine above which two directions are the same")
    planes: int = budget(3, "most unusual directions, and as many beside each of them, that span planes")
    angles: int = budget(6, "directions in each plane")
    least: float = numeric(
        0.05, "energies over their mean below it count as that: the best weighting has a pole at none"
    )


HIDDEN = HiddenOptions()


def smooth_weightings(binned: RankBins) -> Array:
    """Weightings of the bins in all directions of the first four cosines of the ranks, shape (24, bins), times their shares."""
    shares = binned.mass / binned.mass.sum()
    middles = np.cumsum(shares) - shares / 2
    waves = np.cos(np.pi * middles * np.arange(1, 5)[:, np.newaxis])
    # Half of the vertices of the 24-cell; the others are opposite.
    vertices = np.vstack((2 * np.eye(4), [(1, *signs) for signs in product((1, -1), repeat=3)])) / 2
    weightings = vertices @ waves
    weightings = shares * (weightings - (weightings @ shares)[:, np.newaxis])
    return np.vstack((weightings, -weightings))


def hidden_directions(
    source: RowSource, responses: Array, weights: Array, *, paired: bool = False, seed: int = 0
) -> Array:
    """Unit vectors, shape (n, k), along which the energy depends on the responses in any way at all.

    Parameters
    ----------
    source, responses, weights, paired, seed
        As in :func:`~robustphase.initialise.block_davidson.candidate_directions`.
    """
    binned, n = rank_bins(responses, weights), source.shape[1]
    space, weightings = Space(source, binned, weights), smooth_weightings(binned)
    space.grow(np.random.default_rng(seed).standard_normal((n, min(SEARCH.first_vectors, n))))
    for _ in range(HIDDEN.passes):
        space.grow(_left_over(space, weightings, _leading(space.small, weightings)))
    for _ in range(HIDDEN.learning_passes):
        learned, leading = learn(space.small, space.shares, weightings)
        space.grow(_left_over(space, learned, leading))
    found, learned = _distinct(space.small, space.shares, weightings)
    if paired:
        pairs = paired_directions(space, learned)
        return space.basis @ pairs[:, distinct_directions(pairs, SEARCH.same_after, paired=True)]
    planes = [found, *(_planes(space, direction, weightings) for direction in found.T[: HIDDEN.planes])]
    return np.asarray(space.basis @ np.hstack(planes))


def learn(small: Array, shares: Array, weightings: Array) -> tuple[Array, Array]:
    """Weightings that follow from the energies along their own leading directions, shape (k, bins), and those, shape (p, k)."""
    leading = _leading(small, weightings)
    for _ in range(HIDDEN.rounds):
        weightings = best_weightings(energies(small, leading), shares)
        leading = _leading(small, weightings)
    return weightings, leading


def energies(small: Array, coordinates: Array) -> Array:
    """Mean energy of every bin along each direction, shape (k, bins)."""
    seen: Array = np.einsum("pk,bpk->kb", coordinates.conj(), small @ coordinates).real
    return seen


def best_weightings(seen: Array, shares: Array) -> Array:
    """h/(1 + h) for the energies 1 + h over their mean, times the shares of the bins, shape (k, bins)."""
    relative = seen / np.maximum(seen @ shares, _TINY)[:, np.newaxis]
    weightings: Array = shares * (1 - 1 / np.maximum(relative, HIDDEN.least))
    return weightings


def _distinct(small: Array, shares: Array, weightings: Array) -> tuple[Array, Array]:
    """Coordinates (p, k) of the directions where learning ends, the most unusual energies first, and their weightings."""
    learned, leading = learn(small, shares, weightings)
    seen = energies(small, leading)
    unusual = ((seen - (seen @ shares)[:, np.newaxis]) ** 2) @ shares
    order = np.argsort(-unusual, kind="stable")
    chosen = order[distinct_directions(leading[:, order], HIDDEN.same)]
    return leading[:, chosen], learned[chosen]


def _planes(space: Space, direction: Array, weightings: Array) -> Array:
    """Directions in the planes that one direction spans with those found beside it, shape (p, k), without itself."""
    if direction.size < 2:
        return np.empty((direction.size, 0))
    # The complement: all but the first column of an orthonormal basis that begins with the direction.
    beside = np.linalg.qr(np.column_stack((direction, np.eye(direction.size))))[0][:, 1:]
    small = beside.conj().T @ space.small @ beside
    others = beside @ _distinct(small, space.shares, weightings)[0][:, : HIDDEN.planes]
    angles = np.pi * np.arange(1, HIDDEN.angles) / HIDDEN.angles
    turned = direction[:, np.newaxis, np.newaxis] * np.cos(angles) + others[:, :, np.newaxis] * np.sin(angles)
    return np.asarray(turned.reshape(direction.size, -1))


def _leading(small: Array, weightings: Array) -> Array:
    """Leading eigenvector of ``Σ_b t_b M_b`` for every weighting t, shape (p, k)."""
    last = [small.shape[1] - 1] * 2
    # One at a time and the last vector alone: numpy would compute them all.
    found = [eigh(matrix, subset_by_index=last)[1] for matrix in np.tensordot(weightings, small, 1)]
    return np.hstack(found)


def _left_over(space: Space, weightings: Array, coordinates: Array) -> Array:
    """What the products of directions with their weighted second moments have outside the space, shape (n, k)."""
    images = np.einsum("kb,bnk->nk", weightings, space.images @ coordinates)
    return np.asarray(images - space.basis @ (space.basis.conj().T @ images))
