"""Directions of the covariates on which the residuals still depend.

The direction v in which the residuals of one half of the rows depend most on ``|a·v|²``, found by Lanczos' method, is judged on
the other half, where chance gives a correlation of zero with a known spread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robustphase.recover.model.residuals import correlation
from robustphase.recover.model.samples import Part
from robustphase.rows.passes import adjoint_block, in_slices, project_block
from robustphase.rows.source import Array, Parts

_TINY = float(np.finfo(np.float64).tiny)


def strongest_directions(part: Part, clipped: Array, guesses: Array, depth: int) -> Array:
    """Unit vectors v across the signals along which residuals of each half depend most on ``|a·v|²``, shape (n, 2p).

    They are Ritz vectors of ``Σ r a aᴴ`` with the largest absolute values, by Lanczos' method, one pass per step.
    """
    fit = part.fit
    basis: list[Array] = []
    images: list[Array] = []
    vectors = guesses
    times = _residual_moments(part, clipped)
    for _ in range(depth):
        image = _across_only(times(vectors), fit.signals)
        basis.append(vectors)
        images.append(image)
        if len(basis) == depth:
            break
        left = image
        for earlier in basis * 2:
            left = left - earlier * np.vecdot(earlier.T, left.T)
        lengths = np.linalg.norm(left, axis=0)
        new = lengths > 1e-9 * np.linalg.norm(image, axis=0)
        vectors = np.where(new, left / np.maximum(lengths, _TINY), 0.0)
    if not basis:
        return guesses[:, :0]
    stacked = np.stack(basis)
    small = np.einsum("dnk,enk->kde", stacked.conj(), np.stack(images))
    small = np.where(np.isfinite(small), small, 0.0)
    values, inner = np.linalg.eigh((small + small.conj().transpose(0, 2, 1)) / 2)
    strongest = np.take_along_axis(inner, np.abs(values).argmax(axis=1)[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    return across(np.einsum("dnk,kd->nk", stacked, strongest), fit.signals)


def _residual_moments(part: Part, clipped: Array) -> Callable[[Array], Array]:
    """The map ``v ↦ Σ r a aᴴ v`` over the rows of either half, for columns (n, 2p): p for the first half, p for the second."""
    p = clipped.shape[1]
    if part.single is not None:
        count, ordered = int(part.first_half.sum()), clipped
        halves = ((part.single[:count], ordered[:count]), (part.single[count:], ordered[count:]))

        def in_memory(vectors: Array) -> Array:
            own = (vectors[:, :p], vectors[:, p:])
            return np.hstack(
                [
                    adjoint_block(rows, r * project_block(rows, v)).astype(vectors.dtype)
                    for (rows, r), v in zip(halves, own, strict=True)
                ]
            )

        return in_memory

    split = np.where(np.repeat([True, False], p) == part.first_half[:, np.newaxis], np.tile(clipped, 2), 0.0)

    def swept(vectors: Array) -> Array:
        def kernel(block: Array, r: Array) -> Parts:
            with np.errstate(over="ignore", invalid="ignore"):
                weighted = np.where(r != 0, r * project_block(block, vectors), 0.0)
                return Parts(sums=(adjoint_block(block, weighted),))

        return part.fit.source.reduce(in_slices(kernel, 4 * p), (split,)).sums[0]

    return swept


def dependence(clipped: Array, keep: Array, halves: Array, squares: Array) -> Array:
    """Shares of the variance of the residuals that the strongest direction of the other half explains, and their evidence."""
    p = clipped.shape[1]
    result = np.zeros((2, p))
    for j in range(p):
        found = []
        for own, column in ((halves[:, 0] > 0, j), (halves[:, 0] == 0, p + j)):
            mine, other = own & keep[:, j], ~own & keep[:, j]
            there = correlation(clipped[mine, j], squares[mine, column])
            here = correlation(clipped[other, j], squares[other, column])
            found.append((np.sign(there) * here, int(other.sum())))
        shares = [max(c, 0.0) ** 2 for c, _ in found]
        result[0, j] = float(np.mean(shares))
        result[1, j] = float(sum(c * np.sqrt(k) for c, k in found) / np.sqrt(2))
    return result


def across(vectors: Array, signals: Array) -> Array:
    """Unit vectors across the signals, along which the residuals of a fit vanish on average anyway."""
    left = _across_only(vectors, signals)
    across: Array = left / np.maximum(np.linalg.norm(left, axis=0), _TINY)
    return across


def _across_only(vectors: Array, signals: Array) -> Array:
    """What vectors have across the signals."""
    repeated = np.hstack([signals] * (vectors.shape[1] // signals.shape[1]))
    units = repeated / np.maximum(np.linalg.norm(repeated, axis=0), _TINY)
    left: Array = vectors - units * np.vecdot(units.T, vectors.T)
    return left
