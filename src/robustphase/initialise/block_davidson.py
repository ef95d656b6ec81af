"""Directions along which covariates and responses depend on each other.

Only the ranks of the responses are used, so neither a background nor the law of the noise matters, and no response counts
more than any other. The samples are cut into ten bins by rank. Along the signal, samples with large responses have too much
energy and those with small responses too little; an adversary can spoil some bins but hardly all. So candidates are the
directions of most unusual energy in several groups of bins, of either sign, and in all samples together. Each then learns
its own weighting of the bins, the energy it sees in them, which sharpens the right ones.

All of them are sought together, in one space that grows from pass to pass (Davidson's method): a pass multiplies the newest
vectors with the second moments of all ten bins at the price of one, because every row belongs to one bin. Within the space
any weighting costs nothing, and what one group finds helps all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, empirical, numeric
from robustphase.initialise.screening import largest_energy, screen_directions
from robustphase.ordering import stable_order
from robustphase.problem import WeighedDown
from robustphase.rows import RowSource, ScaledRows
from robustphase.rows.products import in_single_precision, multiply_block
from robustphase.rows.source import Array, Parts
from robustphase.rows.threads import scratch


@dataclass(frozen=True)
class SearchOptions:
    """Constants of the search for directions."""

    bins: int = budget(10, "bins of the ranks: with a tenth of the samples few of them can be spoilt; more cost more")
    groups: tuple[tuple[int, int], ...] = empirical(
        ((0, 2), (1, 4), (3, 6), (5, 8), (7, 9), (8, 10), (9, 10), (6, 10)),
        "groups of bins, as ranges: low, middle and high responses, overlapping, so that each bin is in some and out of others",
    )
    per_group: int = budget(2, "directions kept for each group")
    first_vectors: int = budget(12, "vectors of the first pass")
    fewest_passes: int = budget(3, "passes that follow the groups at least")
    most_passes: int = budget(9, "and at most")
    settled: float = numeric(
        0.1, "half of the groups, and a learner, leave the space by less than this fraction when done"
    )
    learning_steps: int = budget(10, "steps within the space with learned weightings")
    learners: int = budget(10, "directions that learn a weighting of their own: the most unusual ones")
    same_before: float = numeric(0.9, "cosine above which two directions are the same before learning")
    same_after: float = numeric(0.95, "and after")
    of_pairs: int = budget(3, "eigenvectors of a weighting that are paired, for complex signals behind real rows")
    least_part: float = numeric(
        0.05, "least squared length of the second of a pair over the first: from zero a descent would not leave"
    )
    negligible: float = numeric(1e-8, "what is smaller, relative to the vectors it comes from, is rounding")


SEARCH = SearchOptions()


class RankBins(NamedTuple):
    """The bin of each sample, and the weight in each bin."""

    bins: Array
    mass: Array


def rank_bins(responses: Array, weights: Array) -> RankBins:
    """Cut the samples into bins of equal weight by the ranks of their responses."""
    order = stable_order(responses)
    cumulated = np.cumsum(weights[order])
    ranks = np.empty(responses.size)
    ranks[order] = cumulated / cumulated[-1]
    # As small integers they are sorted by counting, which every pass does block by block.
    bins = np.clip((ranks * SEARCH.bins - 1e-9).astype(int), 0, SEARCH.bins - 1).astype(np.uint8)
    return RankBins(bins, np.maximum(np.bincount(bins, weights, SEARCH.bins), TINY))


def candidate_directions(
    source: RowSource,
    responses: Array,
    weights: Array,
    *,
    screen: bool,
    paired: bool = False,
    normal: bool = True,
    seed: int = 0,
) -> tuple[Array, Array, tuple[WeighedDown, ...]]:
    """Unit vectors, one of which should point along the signal; the weights that were used; and what was weighed down.

    The directions (n, k) come the most promising first; they are complex if ``paired``, where a complex signal stands behind
    real rows. With ``screen`` rows may be weighed down. That is done only if some direction has more energy than chance allows,
    which shows here without a pass of its own; the search then begins anew. ``normal`` says whether the rows are standard
    normal.
    """
    space, weightings = grow_space(source, responses, weights, seed)
    squares = ScaledRows(source).squared_distances() if screen and not normal else None
    down: tuple[WeighedDown, ...] = ()
    if screen and space.strongest > largest_energy(source.shape[1], weights, squares):
        weights, down = screen_directions(source, weights, normal=normal, seed=seed)
        space, weightings = grow_space(source, responses, weights, seed)
    found = extreme_ritz_pairs(space, weightings, SEARCH.per_group)
    coordinates = found.coordinates[:, np.argsort(-found.strengths)]
    chosen = distinct_directions(coordinates, SEARCH.same_before)[: SEARCH.learners]
    learners = coordinates[:, chosen]
    learners, residuals = learn_weightings(space, learners)
    moving = np.linalg.norm(residuals, axis=0) > SEARCH.settled
    if moving.any():
        # One pass more for those that learn: further ones brought the best candidate no closer.
        space.grow(residuals[:, moving])
        learners, _ = learn_weightings(space, space.extended(learners))
        coordinates = space.extended(coordinates)
    learners = learners[:, distinct_directions(learners, SEARCH.same_after)]
    if paired:
        learned = _learned(space, learners, space.small @ learners).T
        pairs = paired_directions(space, np.vstack((learned, weightings[:-1])))
        return space.basis @ pairs[:, distinct_directions(pairs, SEARCH.same_after, paired=True)], weights, down
    everything = np.hstack((learners, coordinates))
    return space.basis @ everything[:, distinct_directions(everything, SEARCH.same_after)], weights, down


def grow_space(source: RowSource, responses: Array, weights: Array, seed: int) -> tuple[Space, Array]:
    """A space that has followed the groups until they settle, and the weightings of the groups."""
    binned = rank_bins(responses, weights)
    space, weightings = Space(source, binned, weights), group_weightings(binned)
    n = source.shape[1]
    space.grow(np.random.default_rng(seed).standard_normal((n, min(SEARCH.first_vectors, n))))
    for count in range(SEARCH.most_passes):
        found = extreme_ritz_pairs(space, weightings, 1)
        left = np.linalg.norm(found.residuals, axis=0) / np.maximum(found.strengths, TINY)
        if count >= SEARCH.fewest_passes and np.median(left) < SEARCH.settled:
            break
        space.grow(found.residuals)
    return space, weightings


class Space:
    """An orthonormal basis Q (n, p), and its products with the mean second moment of every bin.

    ``images`` (bins, n, p) are ``M_b Q``, with ``M_b`` the weighted mean of ``a aᴴ`` over the samples of bin b, and ``small``
    (bins, p, p) are ``Qᴴ M_b Q``.
    """

    def __init__(self, source: RowSource, binned: RankBins, weights: Array) -> None:
        self._source, self._binned, self._weights = source, binned, weights
        n, dtype = source.shape[1], np.result_type(source.dtype, np.float64)
        self.shares = binned.mass / binned.mass.sum()
        self.basis = np.empty((n, 0), dtype)
        self.images = np.empty((SEARCH.bins, n, 0), dtype)
        self.small = np.empty((SEARCH.bins, 0, 0), dtype)

    @property
    def strongest(self) -> float:
        """Largest mean energy along any direction of the space, in all samples together."""
        return float(np.linalg.eigvalsh(np.tensordot(self.shares, self.small, 1))[-1])

    @property
    def full(self) -> bool:
        """Whether every vector lies in the space."""
        return bool(self.basis.shape[1] == self.basis.shape[0])

    def grow(self, vectors: Array) -> None:
        """Add what is new in ``vectors``: one pass."""
        new = self._outside(vectors)
        if new.shape[1] == 0:
            return
        totals = bin_products(self._source, new, self._binned.bins, self._weights)
        images = totals / self._binned.mass[:, np.newaxis, np.newaxis]
        beside, corner = self.basis.conj().T @ images, new.conj().T @ images
        corner = (corner + _adjoints(corner)) / 2
        self.small = np.concatenate(
            (
                np.concatenate((self.small, beside), axis=2),
                np.concatenate((_adjoints(beside), corner), axis=2),
            ),
            axis=1,
        )
        self.basis = np.hstack((self.basis, new))
        self.images = np.concatenate((self.images, images), axis=2)

    def extended(self, coordinates: Array) -> Array:
        """Coordinates from before the space grew, in the space as it is."""
        missing = self.basis.shape[1] - coordinates.shape[0]
        return np.pad(coordinates, ((0, missing), (0, 0)))

    def _outside(self, vectors: Array) -> Array:
        """Orthonormal basis of what the vectors have outside the space."""
        sizes = np.linalg.norm(vectors, axis=0)
        vectors = vectors[:, sizes > 0] / sizes[sizes > 0]
        room = self.basis.shape[0] - self.basis.shape[1]
        # Twice: the first projection leaves roundings that the division by small norms would amplify.
        for _ in range(2):
            vectors = vectors - self.basis @ (self.basis.conj().T @ vectors)
        vectors = vectors[:, np.linalg.norm(vectors, axis=0) > SEARCH.negligible]
        left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
        return left[:, sizes > SEARCH.negligible][:, :room]


def bin_products(source: RowSource, vectors: Array, bins: Array, weights: Array) -> Array:
    """``Σ w_j a_j a_jᴴ V`` over the samples of each bin, shape (bins, n, k): one pass, its products in single precision.

    Directions need not be known better than to a thousandth, and single precision takes half the time.
    """
    rounded = vectors.astype(np.complex64 if np.iscomplexobj(vectors) else np.float32)

    def kernel(block: Array, members: Array, w: Array) -> Parts:
        # Few operations: threads wait for the interpreter between them.
        order = np.argsort(members, kind="stable")
        edges = np.cumsum(np.bincount(members, minlength=SEARCH.bins))
        single = in_single_precision(block)
        rows = scratch("rows in order", single.shape, single.dtype)
        np.take(single, order, axis=0, out=rows, mode="clip")
        w = w[order]
        coefficients = multiply_block(rows, rounded)
        # Rows without weight may be too long for single precision.
        coefficients[w == 0] = 0
        coefficients *= w[:, np.newaxis]
        across = coefficients.conj().T
        products = np.empty((SEARCH.bins, *across.shape[:1], block.shape[1]), across.dtype)
        for b, (low, high) in enumerate(pairwise((0, *edges))):
            np.dot(across[:, low:high], rows[low:high], out=products[b])
        return Parts(sums=(products,))

    return _adjoints(source.reduce(kernel, (bins, weights.astype(np.float32))).sums[0])


def group_weightings(binned: RankBins) -> Array:
    """One weighting of the bins per row: groups of bins, each against all samples; a contrast; then all."""
    shares = binned.mass / binned.mass.sum()

    def average(low: int, high: int) -> Array:
        inside = np.zeros(SEARCH.bins)
        inside[low:high] = shares[low:high]
        return inside / max(float(inside.sum()), TINY)

    rows = [average(low, high) - shares for low, high in SEARCH.groups]
    # The top two bins against each other: whoever hides the largest responses leaves the next ones behind.
    top = SEARCH.bins - 1
    rows.append(average(top - 1, top) - average(top, top + 1))
    return np.stack([*rows, shares])


class RitzPairs(NamedTuple):
    """Extreme Ritz pairs: coordinates (p, k), residuals (n, k) and |eigenvalues| (k,)."""

    coordinates: Array
    residuals: Array
    strengths: Array


def extreme_ritz_pairs(space: Space, weightings: Array, per_group: int) -> RitzPairs:
    """Leading Ritz pairs, of either sign, of ``Σ_b t_b M_b`` for every weighting t."""
    shifts = np.zeros(len(weightings))
    # The last weighting is of all samples: its second moment is compared with the identity.
    shifts[-1] = 1.0
    p = space.small.shape[1]
    small = np.tensordot(weightings, space.small, 1) - shifts[:, np.newaxis, np.newaxis] * np.eye(p)
    values, vectors = np.linalg.eigh(small)
    largest = np.argsort(-np.abs(values), axis=1)[:, :per_group]
    values = np.take_along_axis(values, largest, 1).ravel()
    vectors = np.take_along_axis(vectors, largest[:, np.newaxis], 2).transpose(1, 0, 2).reshape(p, -1)
    owners = np.repeat(np.arange(len(weightings)), largest.shape[1])
    images = np.einsum("bk,bnk->nk", weightings[owners].T, space.images @ vectors)
    residuals = images - space.basis @ (vectors * (values + shifts[owners]))
    return RitzPairs(vectors, residuals, np.abs(values))


def learn_weightings(space: Space, coordinates: Array) -> tuple[Array, Array]:
    """Power iteration in which each direction weighs the bins by the energy it sees in them, against its average.

    Returns the coordinates of the directions, and the part of the next iterates that lies outside the space, shape (n, k).
    """
    for _ in range(SEARCH.learning_steps):
        parts = space.small @ coordinates
        coordinates = np.einsum("bk,bpk->pk", _learned(space, coordinates, parts), parts)
        coordinates = coordinates / np.maximum(np.linalg.norm(coordinates, axis=0), TINY)
    learned = _learned(space, coordinates, space.small @ coordinates)
    images = np.einsum("bk,bnk->nk", learned, space.images @ coordinates)
    images /= np.maximum(np.linalg.norm(images, axis=0), TINY)
    return coordinates, images - space.basis @ (space.basis.conj().T @ images)


def paired_directions(space: Space, weightings: Array) -> Array:
    """Coordinates of complex unit vectors, shape (p, k), for signals behind real rows: those of every weighting side by side.

    Energy is unusual along the real and along the imaginary part of such a signal, and in the phase in which they are orthogonal
    both are eigenvectors, with eigenvalues that go with their squared lengths. So two eigenvectors make a candidate. An adversary
    may own one of the leading ones, hence all pairs of the leading three, and of the best of these first.
    """
    small = np.tensordot(weightings, space.small, 1)
    values, vectors = np.linalg.eigh(small)
    # Samples with small responses have too little energy along a signal, those with large ones too much.
    flipped = -values[:, 0] > values[:, -1]
    values = np.where(flipped[:, np.newaxis], -values, values[:, ::-1])[:, : SEARCH.of_pairs]
    vectors = np.where(flipped[:, np.newaxis, np.newaxis], vectors, vectors[:, :, ::-1])[:, :, : SEARCH.of_pairs]
    lengths = np.sqrt(np.maximum(values, SEARCH.least_part * np.maximum(values[:, :1], TINY)))
    scaled = vectors * lengths[:, np.newaxis, :]
    pairs = [scaled[:, :, i] + 1j * scaled[:, :, j] for i, j in combinations(range(scaled.shape[2]), 2)]
    if not pairs:
        return np.ones((small.shape[1], 1), np.complex128)
    found: Array = np.concatenate(pairs).T
    found /= np.maximum(np.linalg.norm(found, axis=0), TINY)
    return found


def _learned(space: Space, coordinates: Array, parts: Array) -> Array:
    """Share of each bin times its energy along each direction against the average energy, shape (bins, k)."""
    energies = np.einsum("pk,bpk->bk", coordinates.conj(), parts).real
    learned: Array = space.shares[:, np.newaxis] * (energies - space.shares @ energies)
    return learned


def distinct_directions(vectors: Array, same: float, *, paired: bool = False) -> list[int]:
    """Indices of directions that differ from all earlier ones: cosine below ``same``, with ``paired`` also of the conjugate."""
    cosines = np.abs(vectors.conj().T @ vectors)
    if paired:
        cosines = np.maximum(cosines, np.abs(vectors.T @ vectors))
    kept: list[int] = []
    for index in range(vectors.shape[1]):
        if not kept or cosines[index, kept].max() < same:
            kept.append(index)
    return kept


def _adjoints(stack: Array) -> Array:
    return stack.conj().transpose(0, 2, 1)
