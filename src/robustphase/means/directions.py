"""Directions to look along: where outliers could hide, by block Lanczos on passes, and ordinary ones to compare with.

A few passes with a few vectors each give the directions in which the weighted points vary most, the variances along
them, and the projections of all points on them: the projections of the basis come with the passes, so turning them into
those of the Ritz vectors costs no further look at the data.

First guesses and ordinary directions are sums of the points with coefficients made from their distances to a centre: no
random numbers, so they rotate with the points and do not depend on their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.means.geometric_median import ROUGH, typical_distance
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


@dataclass(frozen=True)
class DirectionOptions:
    """How directions are guessed, and when vectors count as dependent."""

    powers: tuple[int, ...] = (0, 1, 2, 4)  # empirical: powers of the distance whose tilts guess the worst directions
    # empirical: frequencies of the ordinary directions; primes, so that none is a multiple of another
    frequencies: tuple[int, ...] = (17, 23, 29, 37, 43, 53, 61, 71)
    nowhere: float = 1e-20  # numeric: points nearer to the centre, over the largest distance, are at it
    smallest_unit: float = 1e-60  # numeric: over the largest distance, whose fourth power can still be summed
    dependent: float = 1e-10  # numeric: relative length below which what is left of a vector is rounding


OPTIONS = DirectionOptions()


class Directions(NamedTuple):
    """Leading Ritz pairs of a covariance."""

    variances: Array  # (k,): variances along the directions, largest first
    vectors: Array  # (n, k): orthonormal directions
    projections: Array  # (N, k): centred inner products ``(p_j − μ)ᴴ v`` of all points, also of those with weight zero


class RitzPairs(NamedTuple):
    """Leading variances, their directions, and the coordinates of the directions in the blocks of the basis."""

    variances: Array
    vectors: Array
    rotations: list[Array]


class KrylovSpace:
    """The space that block Lanczos grows: one orthonormal block, and its product with the covariance, at a time.

    ``block`` (n, b) is what the covariance is to be applied to next; it has no columns when the space is invariant. With good
    guesses in the first block the Ritz pairs converge sooner.
    """

    def __init__(self, start: Array) -> None:
        self.block = orthonormal(start)
        self._basis: list[Array] = []
        self._products: list[Array] = []

    @property
    def closed(self) -> bool:
        """Whether there is nothing left to add."""
        return not self.block.size

    def grow(self, product: Array) -> None:
        """Add the block, given its product with the covariance."""
        self._basis.append(self.block)
        self._products.append(product)
        self.block = next_block(product, np.hstack(self._basis))

    def ritz(self) -> RitzPairs:
        """Leading Ritz pairs, as many as the first block had columns."""
        wanted = self._basis[0].shape[1]
        span = np.hstack(self._basis)
        small = span.conj().T @ np.hstack(self._products)
        variances, rotation = np.linalg.eigh((small + small.conj().T) / 2)
        rotation = rotation[:, ::-1][:, :wanted]
        ends = np.cumsum([block.shape[1] for block in self._basis])[:-1]
        # Roundings can make a variance of zero negative.
        return RitzPairs(np.maximum(variances[::-1][:wanted], 0.0), span @ rotation, np.split(rotation, ends))


def worst_directions(view: ScaledRows, weights: Array, mean: Array, start: Array, depth: int) -> Directions:
    """Top eigenpairs of ``Σ w (p − μ)(p − μ)ᴴ``, as many as ``start`` (n, k) has columns: so many passes as ``depth``.

    That is also the number of blocks in the Krylov basis. Good guesses in the first one make it converge sooner.
    """
    space, projections = KrylovSpace(start), []
    for _ in range(depth):
        product, projected = view.covariance_times(weights, mean, space.block)
        projections.append(projected)
        space.grow(product)
        if space.closed:
            break
    variances, vectors, rotations = space.ritz()
    # Block by block: side by side they would be held twice.
    along = np.zeros((view.shape[0], vectors.shape[1]), np.result_type(vectors, projections[0]))
    for part, turn in zip(projections, rotations, strict=True):
        along += part @ turn
    return Directions(variances, vectors, along)


def ritz_directions(view: ScaledRows, weights: Array, mean: Array, start: Array, depth: int) -> Directions:
    """What :func:`worst_directions` finds, in less memory: one more pass, and no projections of the basis are kept."""
    space = KrylovSpace(start)
    for _ in range(depth):
        space.grow(view.covariance_times(weights, mean, space.block)[0])
        if space.closed:
            break
    variances, vectors, _ = space.ritz()
    return Directions(variances, vectors, view.inner(vectors) - mean.conj() @ vectors)


def orthonormal(vectors: Array) -> Array:
    """Orthonormal basis of the span of the columns, in their order; columns that add nothing are left out."""
    scale = np.linalg.norm(vectors, axis=0)
    unit = vectors[:, scale > 0] / scale[scale > 0]
    q, r = np.linalg.qr(unit)
    return q[:, np.abs(np.diag(r)) > OPTIONS.dependent]


def next_block(product: Array, basis: Array) -> Array:
    """Part of ``product`` outside the basis, made orthonormal; empty when the basis is invariant."""
    scale = np.linalg.norm(product, axis=0)
    outside = product - basis @ (basis.conj().T @ product)
    # Once more: the first projection leaves roundings that the next block would amplify.
    outside -= basis @ (basis.conj().T @ outside)
    room = basis.shape[0] - basis.shape[1]
    new = np.linalg.norm(outside, axis=0) > OPTIONS.dependent * scale
    return orthonormal(outside[:, new])[:, :room]


def real_columns(projections: Array) -> Array:
    """Projections as real numbers; a complex direction is two real ones."""
    if projections.dtype.kind == "c":
        return np.hstack((projections.real, projections.imag))
    return projections


def moment_directions(view: ScaledRows, keep: Array, centre: Array, distances: Array) -> Array:
    """First guesses of the worst directions: how weighting by powers of the distance moves the mean.

    A cluster of outliers turns at least one of them towards itself; on clean data they are as good as random.
    """
    return never_empty(view.total(moment_coefficients(keep, distances)) - centre[:, np.newaxis])


def moment_coefficients(keep: Array, distances: Array) -> Array:
    """Shares of the kept points that grow like powers of their distance, one column for each power."""
    kept = distances[keep]
    # Where most points coincide their typical distance is zero, and powers of the others would overflow.
    unit = max(typical_distance(kept), OPTIONS.smallest_unit * float(kept.max()))
    relative = np.where(keep, distances, 0.0) / unit
    tilted = keep[:, np.newaxis] * np.stack([relative**power for power in OPTIONS.powers], axis=1)
    shares: Array = tilted / np.maximum(tilted.sum(axis=0), TINY)
    return shares


def ordinary_directions(view: ScaledRows, keep: Array, distances: Array) -> Array:
    """Directions like any other: sums of all kept points with signs that swing with the rank of their distance."""
    return never_empty(view.total(ordinary_coefficients(keep, distances)))


def ordinary_coefficients(keep: Array, distances: Array) -> Array:
    """The coefficients of :func:`ordinary_directions`, one column for each direction."""
    return wave_coefficients(keep, distances, np.array(OPTIONS.frequencies))


def wave_coefficients(keep: Array, distances: Array, frequencies: Array, phases: Array | float = 0.0) -> Array:
    """Coefficients of the kept points that are waves in the rank of their distance, one column for each frequency.

    Ranks are shares of the data, so doubling every point changes nothing.
    """
    kept = np.flatnonzero(keep)
    angle = 2 * np.pi * rank_shares(distances[kept])[:, np.newaxis]
    signs = np.zeros((keep.size, frequencies.size))
    # A point at the centre has no direction to add, and the inverse of its distance is too large for single precision.
    away = distances[kept] > max(OPTIONS.nowhere * float(distances[kept].max(initial=0.0)), ROUGH.smallest)
    inverse = np.where(away, 1.0 / np.where(away, distances[kept], 1.0), 0.0)
    signs[kept] = np.cos(angle * frequencies + phases) * inverse[:, np.newaxis]
    # Centred, so that the mean of the points plays no part.
    signs[kept] -= signs[kept].mean(axis=0)
    return signs


def rank_shares(values: Array) -> Array:
    """Share of the data below each value; of those equal to it, itself included, half are counted."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] > ordered[:-1])))
    ends = np.append(starts[1:], values.size)
    shares = np.empty(values.size)
    shares[order] = np.repeat(0.5 * (starts + ends) / values.size, ends - starts)
    return shares


def never_empty(vectors: Array) -> Array:
    """The vectors, or coordinate axes where the data is so symmetric that all of them vanish."""
    size = np.linalg.norm(vectors, axis=0)
    if (size > 0).all():
        return vectors
    axes = np.eye(*vectors.shape, dtype=vectors.dtype)
    axes[0, axes.sum(axis=0) == 0] = 1
    filled: Array = np.where(size > 0, vectors, axes)
    return filled
