"""Directions of the covariates on which the residuals still depend.

The direction v in which the residuals of one half of the rows depend most on ``|a·v|²``, found by Lanczos' method, is judged on
the other half, where chance gives a correlation of zero with a known spread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robustphase.recover.model.residuals import correlation
from robustphase.recover.model.samples import Part
from robustphase.rows.passes import adjoint_block, in_slices, in_type_of, multiply_block, project_block
from robustphase.rows.source import Array, Parts

_TINY = float(np.finfo(np.float64).tiny)


def strongest_directions(part: Part, clipped: Array, guesses: Array, depth: int) -> Array:
    """Unit vectors v across the signals along which residuals of each half depend most on ``|a·v|²``, shape (n, 2p).

    They are Ritz vectors of ``Σ r a aᴴ`` with the largest absolute values, by Lanczos' method, one pass per step.
    """
    basis: list[Array] = []
    images: list[Array] = []
    vectors = guesses
    times, units = _residual_moments(part, clipped), _units(part.fit.signals, guesses.shape[1])
    for _ in range(depth):
        image = _across_only(times(vectors), units)
        basis.append(vectors)
        images.append(image)
        if len(basis) == depth:
            break
        left = image
        # Once is enough for a few steps: the products run in single precision, and this in double.
        for earlier in basis:
            left = left - earlier * np.vecdot(earlier.T, left.T)
        lengths = _lengths(left)
        new = lengths > 1e-9 * _lengths(image)
        vectors = np.where(new, left / np.maximum(lengths, _TINY), 0.0)
    if not basis:
        return guesses[:, :0]
    stacked = np.stack(basis)
    small = np.einsum("dnk,enk->kde", stacked.conj(), np.stack(images))
    small = np.where(np.isfinite(small), small, 0.0)
    values, inner = np.linalg.eigh((small + small.conj().transpose(0, 2, 1)) / 2)
    strongest = inner[np.arange(len(inner)), :, np.abs(values).argmax(axis=1)]
    # The basis is across the signals already.
    found = np.einsum("dnk,kd->nk", stacked, strongest)
    directions: Array = found / np.maximum(_lengths(found), _TINY)
    return directions


def _residual_moments(part: Part, clipped: Array) -> Callable[[Array], Array]:
    """The map ``v ↦ Σ r a aᴴ v`` over the rows of either half, for columns (n, 2p): p for the first half, p for the second."""
    p = clipped.shape[1]
    if part.single is not None:
        count = int(part.first_half.sum())
        # The products run in single precision, so the residuals between them may as well.
        factors = clipped[:, 0] if p == 1 else clipped
        factors = factors.astype(np.float32)
        halves = ((part.single[:count], factors[:count], 0), (part.single[count:], factors[count:], p))

        def in_memory(vectors: Array) -> Array:
            result = np.empty_like(vectors)
            for rows, r, low in halves:
                own = vectors[:, low] if p == 1 else vectors[:, low : low + p]
                image = adjoint_block(rows, r * multiply_block(rows, in_type_of(rows, own)))
                result[:, low : low + p] = image.reshape(-1, p)
            return result

        return in_memory

    split = np.where(np.repeat([True, False], p) == part.first_half[:, np.newaxis], np.tile(clipped, 2), 0.0)

    def swept(vectors: Array) -> Array:
        def kernel(block: Array, r: Array) -> Parts:
            with np.errstate(over="ignore", invalid="ignore"):
                weighted = np.where(r != 0, r * project_block(block, vectors), 0.0)
                return Parts(sums=(adjoint_block(block, weighted),))

        return part.fit.source.reduce(in_slices(kernel, 4 * p), (split,)).sums[0]

    return swept


def dependence(clipped: Array, keep: Array, first_half: Array, squares: Array) -> Array:
    """Shares of the variance of the residuals that the strongest direction of the other half explains, and their evidence."""
    p = clipped.shape[1]
    result = np.zeros((2, p))
    for j in range(p):
        found = np.zeros((2, 2))
        counts = np.zeros(2)
        for half, members in enumerate((first_half, ~first_half)):
            here = np.flatnonzero(keep[:, j] & members)
            left, counts[half] = clipped[here, j], here.size
            # Along the directions of the first half and of the second.
            found[half] = [correlation(left, squares[here, column]) for column in (j, p + j)]
        # What the other half tells of a direction, with the sign that it has in its own.
        told = np.array([np.sign(found[0, 0]) * found[1, 0], np.sign(found[1, 1]) * found[0, 1]])
        shares = np.maximum(told, 0.0) ** 2
        result[0, j] = 0.5 * (shares[0] + shares[1])
        result[1, j] = float(told @ np.sqrt(counts[::-1])) / np.sqrt(2)
    return result


def across(vectors: Array, signals: Array) -> Array:
    """Unit vectors across the signals, along which the residuals of a fit vanish on average anyway."""
    left = _across_only(vectors, _units(signals, vectors.shape[1]))
    across: Array = left / np.maximum(_lengths(left), _TINY)
    return across


def _lengths(vectors: Array) -> Array:
    """Lengths of columns; NumPy's own norms take several times as long for short ones."""
    lengths: Array = np.sqrt(np.vecdot(vectors.T, vectors.T).real)
    return lengths


def _units(signals: Array, count: int) -> Array:
    """The directions of the signals, repeated for so many vectors."""
    units = signals / np.maximum(_lengths(signals), _TINY)
    return np.tile(units, count // signals.shape[1])


def _across_only(vectors: Array, units: Array) -> Array:
    """What vectors have across these directions."""
    left: Array = vectors - units * np.vecdot(units.T, vectors.T)
    return left
