"""The means of n clouds that share ``A``, at once: the mean configuration of Procedures 1 and 3.

Column i of ``E[y a aᴴ]`` is the mean of the points ``p_ij = (y_j A_ji) a_j``: n clouds, each a row-scaled view of the same
``A``. Filtering them one after the other would sweep ``A`` n times as often as needed; here every pass serves all clouds
of a chunk, as two matrix products over each block, and the clouds that are done leave the chunk. What happens along one
direction of one cloud is the business of :mod:`robustphase.means.excess`, so the answers are those of the filter (of its
strict form: these clouds are skewed and heavy-tailed even where they are clean, and a large excess is no proof).

For Procedure 3 the clouds are ``p_ij = (υ_j c_j·e_i) b_j`` with ``b, c = (a ± a')/√2`` and ``υ = (y − y')/2``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from robustphase.means.directions import (
    KrylovSpace,
    RitzPairs,
    moment_coefficients,
    never_empty,
    ordinary_coefficients,
)
from robustphase.means.estimate import confident_level
from robustphase.means.excess import Limits, away_from, limits_for, shape_ratio, take_excess
from robustphase.means.filter import OPTIONS as FILTER
from robustphase.means.geometric_median import ROUGH, near, weiszfeld_weights
from robustphase.rows import Parts, RowSource
from robustphase.rows.products import abs2, adjoint_block, project_block
from robustphase.rows.source import Array
from robustphase.rows.threads import allowed_threads, run_in_threads

Result = TypeVar("Result")


@dataclass(frozen=True)
class ChunkOptions:
    """How many clouds are treated at a time."""

    size: int = 64 << 20  # budget: bytes of per-sample numbers that a chunk of clouds may hold
    numbers: int = 12  # derived: per sample and cloud its weight, its distance, and projections on some ten directions


OPTIONS = ChunkOptions()


@dataclass(frozen=True)
class ColumnMeans:
    """Robust means of the clouds of all columns."""

    matrix: Array  # (n, n): column i is the robust mean of cloud i
    weights: Array  # (count,): share of the clouds in which a sample (or a pair of samples) was kept
    removed: Array  # (n,): share of its points that each cloud lost
    top_variance: Array  # (n,): certificate of each mean: the variance along the worst direction found
    n_iter: int  # Most rounds that a cloud took
    converged: bool  # Whether every cloud ended without unexplained spread
    passes: int  # Sweeps over ``A``, for all clouds


class ColumnClouds:
    """Clouds ``p_ij = f_ij g_j`` for some columns i, where ``f`` comes from column i of the rows and g from the rows.

    That is ``f_ij = y_j A_ji`` and ``g_j = a_j``; or, if ``paired``, ``f_ij = υ_j (c_j·e_i)`` and ``g_j = b_j`` for the pairs
    ``(j, j + m // 2)``. Each cloud has ``count`` points.
    """

    def __init__(self, source: RowSource, responses: Array, columns: Array, *, paired: bool) -> None:
        self.source, self.responses, self.columns, self.paired = source, responses, columns, paired
        self.count = source.shape[0] // (2 if paired else 1)
        first, second = responses[: self.count], responses[self.count : 2 * self.count]
        self._scale = (first - second) / 2 if paired else responses

    def only(self, chosen: Array) -> ColumnClouds:
        """The clouds at some positions."""
        return ColumnClouds(self.source, self.responses, self.columns[chosen], paired=self.paired)

    def _reduce(self, kernel: Callable[..., Parts], per_point: tuple[Array, ...] = ()) -> Parts:
        """One pass in which the kernel sees the factors ``f`` (b, k), the rows ``gᴴ`` (b, n), and per-point slices."""

        def on_rows(rows: Array, scale: Array, *rest: Array) -> Parts:
            return kernel(rows[:, self.columns] * scale[:, np.newaxis], rows, *rest)

        def on_pairs(top: Array, bottom: Array, scale: Array, *rest: Array) -> Parts:
            half = scale[:, np.newaxis] / np.sqrt(2)
            differences = (top[:, self.columns] - bottom[:, self.columns]) * half
            sums = top + bottom
            sums *= 1 / np.sqrt(2)
            return kernel(differences, sums, *rest)

        pairing = 2 if self.paired else 1
        return self.source.reduce(on_pairs if self.paired else on_rows, (self._scale, *per_point), pairing=pairing)

    def mean(self, weights: Array) -> Array:
        """Weighted mean of every cloud: weights (count, k), result (n, k)."""
        return self.total(weights / weights.sum(axis=0), np.arange(self.columns.size))

    def total(self, coefficients: Array, owner: Array) -> Array:
        """Sums ``Σ_j p_ij C_jl`` with ``i = owner[l]``: coefficients (count, c), result (n, c)."""

        def kernel(factors: Array, rows: Array, c: Array) -> Parts:
            return Parts(sums=(adjoint_block(rows, factors[:, owner] * c),))

        return self._reduce(kernel, (coefficients,)).sums[0]

    def inner(self, vectors: Array, owner: Array) -> Array:
        """Inner products ``p_ijᴴ v_l`` with ``i = owner[l]``: vectors (n, c), result (count, c)."""

        def kernel(factors: Array, rows: Array) -> Parts:
            return Parts(rows=(factors[:, owner].conj() * project_block(rows, vectors),))

        return self._reduce(kernel).rows[0]

    def covariance_times(self, weights: Array, means: Array, vectors: Array, owner: Array) -> Array:
        """Weighted covariance of cloud ``owner[l]`` times ``v_l``: vectors (n, c), result (n, c)."""
        shares = weights / weights.sum(axis=0)
        centres = np.einsum("nl,nl->l", means[:, owner].conj(), vectors)

        def kernel(factors: Array, rows: Array, share: Array) -> Parts:
            mine = factors[:, owner]
            weighted = mine.conj() * project_block(rows, vectors)
            weighted -= centres
            weighted *= share[:, owner]
            return Parts(sums=(adjoint_block(rows, mine * weighted), weighted.sum(axis=0)))

        product, drift = self._reduce(kernel, (shares,)).sums
        result: Array = product - means[:, owner] * drift
        return result

    def squared_distances(self, centres: Array) -> Array:
        """Squared distance of every point to the centre of its cloud: centres (n, k), result (count, k)."""
        sizes = abs2(centres).sum(axis=0)

        def kernel(factors: Array, rows: Array) -> Parts:
            squares = abs2(factors) * np.vecdot(rows, rows).real[:, np.newaxis]
            squares -= 2.0 * (factors.conj() * project_block(rows, centres)).real
            squares += sizes
            return Parts(rows=(np.maximum(squares, 0.0, out=squares),))

        return self._reduce(kernel).rows[0]


def column_means(
    source: RowSource,
    responses: Array,
    contamination: float | str,
    *,
    paired: bool = False,
    delta: float | None = None,
    dropped: Array | None = None,
) -> ColumnMeans:
    """Robust means of the clouds of all columns, filtered simultaneously.

    Parameters
    ----------
    source : RowSource
        The rows of ``A``; they hold no numbers that overflow.
    responses : ndarray of shape (m,)
        ``y``.
    contamination : float or "auto"
        Share of the points of each cloud that may be bad. With ``paired`` these are pairs, of which twice as many may
        be bad as of the samples.
    paired : bool, default=False
        The clouds of Procedure 3, of pairs ``(j, j + m // 2)``, instead of those of Procedure 1.
    delta : float, optional
        Confidence parameter: the level used becomes ``contamination + log(1/δ) / count``.
    dropped : ndarray of bool, shape (m,), optional
        Samples known to be unusable.

    Returns
    -------
    ColumnMeans
    """
    n = source.shape[1]
    before = source.passes
    clouds = ColumnClouds(source, responses, np.arange(n), paired=paired)
    usable = _usable(source.shape[0], dropped, paired)
    level = confident_level(contamination, delta, clouds.count)
    kind = np.result_type(source.dtype, np.float64)
    matrix, top_variance, removed = np.empty((n, n), kind), np.empty(n), np.empty(n)
    weights, rounds, converged = np.zeros(clouds.count), 0, True
    for chunk in _chunks(n, clouds.count, kind.itemsize):
        here = clouds.only(chunk)
        done = filter_clouds(here, usable, level)
        matrix[:, chunk] = here.mean(done.keep.astype(np.float64))
        top_variance[chunk], removed[chunk] = done.top_variance, 1.0 - done.keep.mean(axis=0)
        weights += done.keep.sum(axis=1) / n
        rounds, converged = max(rounds, done.rounds), converged and done.converged
    return ColumnMeans(matrix, weights, removed, top_variance, rounds, converged, source.passes - before)


@dataclass(frozen=True)
class FilteredClouds:
    """Points that are left in each cloud of a chunk: ``keep`` (count, k), certificates (k,), and how it went."""

    keep: Array
    top_variance: Array
    rounds: int
    converged: bool


def filter_clouds(clouds: ColumnClouds, usable: Array, contamination: float | str) -> FilteredClouds:
    """The loop of :func:`robustphase.means.filter.filter_points` for several clouds, each pass serving all of them."""
    k = clouds.columns.size
    # Columns are what the one-dimensional steps work on, so each lies in one piece.
    keep = np.asfortranarray(np.repeat(usable[:, np.newaxis], k, axis=1))
    if contamination == 0:
        return FilteredClouds(keep, np.full(k, np.nan), 0, converged=True)
    centres, distances = geometric_medians(clouds, usable)
    for i in range(k):
        keep[:, i] &= near(distances[:, i], keep[:, i], contamination, strict=True)
    guesses = _combined(clouds, keep, distances, moment_coefficients, centres)
    ordinary = _combined(clouds, keep, distances, ordinary_coefficients, np.zeros_like(centres))
    limits = [limits_for(distances[keep[:, i], i], contamination, strict=True) for i in range(k)]

    top_variance, converged = np.empty(k), np.zeros(k, bool)
    active, rounds = np.arange(k), 0
    while active.size and rounds < FILTER.max_rounds:
        rounds += 1
        here = clouds.only(active)
        weights = keep[:, active].astype(np.float64)
        means = here.mean(weights)
        depth = FILTER.cold_depth if rounds == 1 else FILTER.warm_depth
        worst = worst_directions_of_clouds(here, weights, means, [guesses[i] for i in active], depth)
        vectors = [pairs.vectors for pairs in worst]
        usual = _usual_ratios(here, weights, [ordinary[i] for i in active], vectors)
        projections = _by_cloud(here, vectors, means)
        outcomes = _take_from(active, projections, keep, distances, usual, limits)
        for i, (taken, explained), pairs in zip(active.tolist(), outcomes, worst, strict=True):
            top_variance[i], guesses[i] = pairs.variances[0], pairs.vectors
            converged[i] = taken == 0 and explained
        active = active[[taken > 0 for taken, _ in outcomes]]
    return FilteredClouds(keep, top_variance, rounds, bool(converged.all()))


def _take_from(
    active: Array, projections: list[Array], keep: Array, distances: Array, usual: list[float], limits: list[Limits]
) -> list[tuple[int, bool]]:
    """Take from each active cloud the points that cause an excess; see :func:`robustphase.means.excess.take_excess`."""

    def treat(position: int) -> tuple[int, bool]:
        i = active[position]
        return take_excess(projections[position], keep[:, i], distances[:, i], usual[position], limits[i])

    return each(treat, active.size)


def geometric_medians(clouds: ColumnClouds, usable: Array) -> tuple[Array, Array]:
    """Geometric medians of all clouds, (n, k), and the distances to them, (count, k): Weiszfeld's iteration in step."""
    k = clouds.columns.size
    base = usable.astype(np.float64)[:, np.newaxis]
    centres = clouds.mean(np.repeat(base, k, axis=1))
    distances = np.asfortranarray(np.sqrt(clouds.squared_distances(centres)))
    active, iteration = np.arange(k), 0
    while active.size and iteration < ROUGH.max_iter:
        iteration += 1
        here = clouds.only(active)
        typical = np.median(distances[np.ix_(usable, active)], axis=0)
        new = here.mean(weiszfeld_weights(base, distances[:, active], typical, ROUGH))
        moving = np.linalg.norm(new - centres[:, active], axis=0) > ROUGH.tol * typical
        centres[:, active] = new
        distances[:, active] = np.sqrt(here.squared_distances(new))
        active = active[moving]
    return centres, distances


def worst_directions_of_clouds(
    clouds: ColumnClouds, weights: Array, means: Array, starts: list[Array], depth: int
) -> list[RitzPairs]:
    """Leading Ritz pairs of every cloud, as many as each start has columns: block Lanczos in step."""
    spaces = [KrylovSpace(start) for start in starts]
    for _ in range(depth):
        stacked, owner = _stack([space.block for space in spaces])
        if owner.size == 0:
            break
        product = clouds.covariance_times(weights, means, stacked, owner)
        for i, space in enumerate(spaces):
            if not space.closed:
                space.grow(product[:, owner == i])
    return [space.ritz() for space in spaces]


def each(work: Callable[[int], Result], count: int) -> list[Result]:
    """``[work(i) for i in range(count)]``, on all threads: NumPy sorts without holding the interpreter lock."""
    shares = np.array_split(np.arange(count), max(1, min(allowed_threads(), count)))
    return list(chain.from_iterable(run_in_threads(lambda share: [work(int(i)) for i in share], shares)))


def _by_cloud(clouds: ColumnClouds, vectors: list[Array], means: Array | None = None) -> list[Array]:
    """Inner products of each cloud's points with its own vectors, centred if means are given."""
    stacked, owner = _stack(vectors)
    inner = clouds.inner(stacked, owner)
    if means is not None:
        inner -= np.einsum("nl,nl->l", means[:, owner].conj(), stacked)
    return [np.asfortranarray(inner[:, owner == i]) for i in range(len(vectors))]


def _usual_ratios(clouds: ColumnClouds, weights: Array, ordinary: list[Array], worst: list[Array]) -> list[float]:
    """The shape of the clean points of each cloud; see :func:`robustphase.means.excess.ordinary_ratio`."""
    if worst[0].shape[0] < 2:
        return [1.0] * len(worst)
    elsewhere = [away_from(bad, usual) for bad, usual in zip(worst, ordinary, strict=True)]
    inner = _by_cloud(clouds, elsewhere)
    return each(lambda i: shape_ratio(inner[i][weights[:, i] > 0]), len(inner))


def _combined(
    clouds: ColumnClouds, keep: Array, distances: Array, rule: Callable[[Array, Array], Array], centres: Array
) -> list[Array]:
    """Sums of the points of each cloud with coefficients made from its distances, less the centre: k arrays (n, c)."""
    coefficients = each(lambda i: rule(keep[:, i], distances[:, i]), keep.shape[1])
    stacked, owner = _stack(coefficients)
    sums = clouds.total(stacked, owner)
    return [never_empty(sums[:, owner == i] - centres[:, [i]]) for i in range(keep.shape[1])]


def _stack(groups: list[Array]) -> tuple[Array, Array]:
    """Columns of several arrays side by side, and which array each of them is from."""
    return np.hstack(groups), np.repeat(np.arange(len(groups)), [group.shape[1] for group in groups])


def _usable(m: int, dropped: Array | None, paired: bool) -> Array:
    """Which points can be used; a pair needs both of its samples."""
    good = np.ones(m, bool) if dropped is None else ~dropped
    return good[: m // 2] & good[m // 2 : 2 * (m // 2)] if paired else good


def _chunks(n: int, count: int, itemsize: int) -> Iterator[Array]:
    """Clouds to be treated at a time, few enough to keep their numbers in bounded memory."""
    size = max(1, OPTIONS.size // (count * itemsize * OPTIONS.numbers))
    for start in range(0, n, size):
        yield np.arange(start, min(start + size, n))
