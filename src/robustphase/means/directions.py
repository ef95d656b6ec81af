"""Worst directions: the top of the spectrum of a weighted covariance, by block Lanczos on passes.

A few passes with a few vectors each give the directions in which outliers could hide, the variances along them, and the
projections of all points on them: the projections of the basis come with the passes, so turning them into those of the
Ritz vectors costs no further look at the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


class Directions(NamedTuple):
    """Leading Ritz pairs of a covariance.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Variances along the directions, largest first.
    vectors : ndarray of shape (n, k)
        Orthonormal directions.
    projections : ndarray of shape (N, k)
        Centred inner products ``(p_j − μ)ᴴ v`` of all points, also of those with weight zero.
    """

    variances: Array
    vectors: Array
    projections: Array


def worst_directions(view: ScaledRows, weights: Array, mean: Array, start: Array, depth: int) -> Directions:
    """Top eigenpairs of ``Σ w (p − μ)(p − μ)ᴴ``, as many as ``start`` has columns.

    Parameters
    ----------
    view : ScaledRows
        The points.
    weights : ndarray of shape (N,)
        Their weights.
    mean : ndarray of shape (n,)
        Their weighted mean.
    start : ndarray of shape (n, k)
        First block; good guesses make it converge sooner.
    depth : int
        Number of passes, and of blocks in the Krylov basis.
    """
    block = orthonormal(start)
    wanted = block.shape[1]
    basis, products, projections = [], [], []
    for _ in range(depth):
        product, projected = view.covariance_times(weights, mean, block)
        basis.append(block)
        products.append(product)
        projections.append(projected)
        block = next_block(product, np.hstack(basis))
        if block.shape[1] == 0:
            break
    span = np.hstack(basis)
    variances, rotation = ritz(span, np.hstack(products), wanted)
    # Block by block: side by side they would be held twice.
    along = np.zeros((view.shape[0], rotation.shape[1]), np.result_type(rotation, projections[0]))
    for part, turn in zip(projections, np.split(rotation, np.cumsum([b.shape[1] for b in basis])[:-1]), strict=True):
        along += part @ turn
    return Directions(variances, span @ rotation, along)


def ritz_directions(view: ScaledRows, weights: Array, mean: Array, start: Array, depth: int) -> Directions:
    """What :func:`worst_directions` finds, in less memory: one more pass, and no projections of the basis are kept."""
    block = orthonormal(start)
    wanted = block.shape[1]
    basis, products = [], []
    for _ in range(depth):
        product, _ = view.covariance_times(weights, mean, block)
        basis.append(block)
        products.append(product)
        block = next_block(product, np.hstack(basis))
        if block.shape[1] == 0:
            break
    span = np.hstack(basis)
    variances, rotation = ritz(span, np.hstack(products), wanted)
    vectors = span @ rotation
    return Directions(variances, vectors, view.inner(vectors) - mean.conj() @ vectors)


def ritz(span: Array, products: Array, wanted: int) -> tuple[Array, Array]:
    """Leading variances, and the coordinates of their directions, in an orthonormal basis with known products."""
    small = span.conj().T @ products
    variances, rotation = np.linalg.eigh((small + small.conj().T) / 2)
    # Roundings can make a variance of zero negative.
    return np.maximum(variances[::-1][:wanted], 0.0), rotation[:, ::-1][:, :wanted]


def orthonormal(vectors: Array, rtol: float = 1e-10) -> Array:
    """Orthonormal basis of the span of the columns, in their order; columns that add nothing are left out."""
    scale = np.linalg.norm(vectors, axis=0)
    unit = vectors[:, scale > 0] / scale[scale > 0]
    q, r = np.linalg.qr(unit)
    return q[:, np.abs(np.diag(r)) > rtol]


def next_block(product: Array, basis: Array) -> Array:
    """Part of ``product`` outside the basis, made orthonormal; empty when the basis is invariant."""
    scale = np.linalg.norm(product, axis=0)
    outside = product - basis @ (basis.conj().T @ product)
    # Once more: the first projection leaves roundings that the next block would amplify.
    outside -= basis @ (basis.conj().T @ outside)
    room = basis.shape[0] - basis.shape[1]
    new = np.linalg.norm(outside, axis=0) > 1e-10 * scale
    return orthonormal(outside[:, new])[:, :room]
