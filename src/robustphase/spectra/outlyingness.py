"""How outlying a point is, in the light of the points that were taken for bad.

Two numbers per point, both about whitened points, for which every direction is alike:

* its *length*, which tells points that are far out in any direction, or a little too far in very many;
* its length within the *bad subspace*: the directions in which the bad points would add more than ``√(n/N)`` to the variance.
  Less than that does not show among the noise of the variances (Baik, Ben Arous and Péché 2005). Outliers that are no longer
  than good points show there, and only there.

Each is put on the scale of a standard normal variable (cube root of the square: Wilson and Hilferty), with the median and the
median deviation of the good points, so that points of another shape have their own scale. Good points have taken part in
the covariance that whitens them; what that takes from their lengths is given back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.rows import RowSource
from robustphase.rows.products import abs2, project_block
from robustphase.rows.source import Array, Parts


@dataclass(frozen=True)
class OutlyingnessOptions:
    """How large the bad subspace may be, and when points can be whitened."""

    most_directions: int = budget(16, "more directions are a matter of lengths")
    per_dimension: float = derived(
        2.0, "good points over dimensions; below it whitened good points all have one length"
    )
    deviation: float = derived(1.4826, "standard deviation over median absolute deviation, for normal variables")
    good: float = derived(0.5, "points with a larger weight are rather good than bad")
    shorter: float = derived(
        -3.0, "scores below it are hardly ever those of good points, nor of points that are far out"
    )
    share_shorter: float = derived(0.0013498980316300933, "probability of a standard normal variable below -3")
    noise: float = derived(3.0, "standard deviations of a count; chance exceeds them once in 700")
    same: float = numeric(1e-6, "lengths that differ by less of the largest are the same")
    flat: float = numeric(1e-12, "directions with less of the largest variance have none")
    leverage: float = numeric(0.999, "largest share of its own covariance that a point can have taken")


OPTIONS = OutlyingnessOptions()


class Moments(NamedTuple):
    """Weighted means of the rows and of their outer products."""

    first: Array
    second: Array

    def about(self, origin: Array) -> Array:
        """Second moment about a point."""
        cross = np.outer(self.first, origin.conj())
        return np.asarray(self.second - cross - cross.conj().T + np.outer(origin, origin.conj()))


class Yardstick(NamedTuple):
    """What outlyingness is measured with."""

    origin: Array  # (n,): centre of the good points
    whitener: Array  # (n, n): matrix that whitens rows, from the right
    subspace: Array  # (n, k): matrix from rows to their whitened coordinates in the bad subspace; k may be zero
    #: (1,) or (2,): median and deviation of the cube roots of the squared lengths of good points.
    centres: Array
    scales: Array
    short: bool  # Some points were found bad that are shorter than good ones, so shortness counts as well


def weighted_moments(source: RowSource, weights: Array) -> Moments:
    """First and second moments of rows with weights, in one pass."""

    def kernel(block: Array, weight: Array) -> Parts:
        # Most weights are zero where the bad points are asked about.
        rows, share = (block, weight) if weight.all() else (block[weight > 0], weight[weight > 0])
        weighted = share[:, np.newaxis] * rows
        return Parts(
            sums=(weighted.sum(axis=0, dtype=np.result_type(rows, np.float64)), np.dot(weighted.T, rows.conj()))
        )

    first, second = source.reduce(kernel, ((weights / weights.sum()).astype(source.dtype),)).sums
    return Moments(first, second)


def yardstick_of(source: RowSource, weights: Array, usable: Array, *, centred: bool) -> tuple[Yardstick, Array, Array]:
    """The yardstick that weights of good points make, the scores of all rows, and the covariance of the good points.

    The rows are amid zero, up to a mean that is small compared with their spread; ``centred`` if that is known to be zero.
    Weights are 1 for good points, 0 for bad ones, or between. Scores are of shape (N, 1) or (N, 2).
    """
    good = weighted_moments(source, weights)
    origin = np.zeros_like(good.first) if centred else good.first
    covariance, count = good.about(origin), float(weights.sum())
    whitener = whitening_matrix(covariance, count)
    subspace = _bad_subspace(source, np.where(usable, 1.0 - weights, 0.0), origin, whitener)
    squares = squared_lengths(source, origin, whitener, subspace)
    if not _too_few(count, source.shape[1]):
        squares[:, 0] /= 1.0 - np.minimum(weights * squares[:, 0] / count, OPTIONS.leverage)
    roots = np.cbrt(squares)
    known = roots[(weights > OPTIONS.good) & usable]
    centres = np.median(known, axis=0)
    spread = OPTIONS.deviation * np.median(np.abs(known - centres), axis=0)
    # Where most good points are one point, whatever differs is outlying, by a number that can be computed with.
    largest = np.where(known.max(axis=0) > 0, known.max(axis=0), roots.max(axis=0))
    scales = np.maximum(spread, np.maximum(OPTIONS.same * largest, TINY))
    scores = (roots - centres) / scales
    short = _often_short(scores[usable & (weights <= OPTIONS.good)].max(axis=1))
    return Yardstick(origin, whitener, subspace, centres, scales, short), scores, covariance


def _often_short(scores: Array) -> bool:
    """Whether more of the bad points are shorter than good ones than if bad points had the lengths of good ones."""
    expected = OPTIONS.share_shorter * scores.size
    noise = np.sqrt(expected * (1.0 - OPTIONS.share_shorter))
    return bool(np.count_nonzero(scores < OPTIONS.shorter) > expected + OPTIONS.noise * noise)


def scores_by(source: RowSource, yardstick: Yardstick) -> Array:
    """Scores of rows that took no part in making the yardstick, shape (N, 1) or (N, 2)."""
    squares = squared_lengths(source, yardstick.origin, yardstick.whitener, yardstick.subspace)
    scores = (np.cbrt(squares) - yardstick.centres) / yardstick.scales
    if yardstick.short:
        scores[:, 0] = np.abs(scores[:, 0])
    return np.asarray(scores)


def squared_lengths(source: RowSource, origin: Array, whitener: Array, subspace: Array) -> Array:
    """Squared lengths of the whitened rows, and of their parts in the bad subspace if there is one, in one pass."""
    matrix = np.hstack((whitener, subspace))
    split, shift = whitener.shape[1], origin @ matrix

    def kernel(block: Array) -> Parts:
        squares = abs2(project_block(block, matrix) - shift)
        parts = [squares[:, :split].sum(axis=1)]
        if subspace.shape[1]:
            parts.append(squares[:, split:].sum(axis=1))
        return Parts(rows=(np.stack(parts, axis=1),))

    return source.reduce(kernel).rows[0]


def whitening_matrix(covariance: Array, count: float) -> Array:
    """Inverse square root of a covariance of rows; where points are too few for that, a mere unit of length."""
    # Rows are multiplied from the right, so it is the conjugate of their covariance that has to be undone.
    values, vectors = np.linalg.eigh(covariance.conj())
    if _too_few(count, len(values)):
        return np.asarray(np.eye(len(values), dtype=vectors.dtype) / np.sqrt(max(float(values[-1]), TINY)))
    inverse = np.where(values > OPTIONS.flat * values[-1], 1.0 / np.sqrt(np.maximum(values, TINY)), 0.0)
    return np.asarray((vectors * inverse) @ vectors.conj().T)


def _too_few(count: float, dimension: int) -> bool:
    return count < OPTIONS.per_dimension * dimension


def _bad_subspace(source: RowSource, bad: Array, origin: Array, whitener: Array) -> Array:
    """Directions in which bad points would raise the variance visibly, as a map from rows to coordinates."""
    count, n = source.shape
    share = float(bad.sum()) / count
    if share * count < 1.0:
        return np.empty((n, 0), whitener.dtype)
    # About the centre of the good points: where the bad ones are is part of what is wrong with them.
    second = weighted_moments(source, bad).about(origin).conj()
    values, vectors = np.linalg.eigh(whitener.conj().T @ second @ whitener)
    found = int(np.count_nonzero(share * (values - 1.0) > np.sqrt(n / count)))
    return np.asarray(whitener @ vectors[:, ::-1][:, : min(found, OPTIONS.most_directions)])
