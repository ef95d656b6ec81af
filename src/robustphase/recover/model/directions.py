"""Directions of the covariates on which the residuals still depend.

The direction v in which the residuals of one half of the rows depend most on ``|a·v|²``, found by Lanczos' method, is judged on
the other half, where chance gives a correlation of zero with a known spread. Residuals that are linear in the rows, and a signal
that changes along them, show in sums of rows that chance alone keeps from vanishing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dstev

from robustphase.constants import TINY
from robustphase.recover.model.design import First
from robustphase.recover.model.limits import FIGURES
from robustphase.recover.model.samples import Part, column_counts
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, adjoint_block, in_type_of, multiply_block, project_block
from robustphase.rows.source import Array, Parts


def strongest_directions(part: Part, clipped: Array, starts: Array, depth: int) -> Array:
    """Unit vectors v across the signals along which residuals of each half depend most on ``|a·v|²``, shape (n, 2p).

    They are Ritz vectors of ``Σ r a aᴴ`` with the largest absolute values, by Lanczos' method, one pass per step, from one random
    direction for either half. So few steps need no orthogonalisation but that to the last two vectors.
    """
    if not depth:
        return starts[:, :0]
    times, own = _residual_moments(part, clipped), _normalised(part.fit.signals)
    # What the initial signal has across the answer is where a second signal would show.
    likely = _normalised(_across_only(part.fit.initial_signals, own))
    units, guesses = np.concatenate((own, own), axis=1), np.concatenate((likely, likely), axis=1)
    guesses = guesses + np.repeat(starts, own.shape[1], axis=1)
    # Every vector in one piece of memory, as the products read them.
    vectors = np.asfortranarray(_normalised(_across_only(guesses, units)))
    basis, before = [], np.zeros_like(vectors)
    diagonal, beside = np.zeros((depth, guesses.shape[1])), np.zeros((depth, guesses.shape[1]))
    for step in range(depth):
        image = times(vectors)
        diagonal[step] = np.vecdot(vectors.T, image.T).real
        basis.append(vectors)
        if step + 1 == depth:
            break
        image = _across_only(image, units)
        left = image - vectors * diagonal[step] - before
        squares = _column_squares(left)
        goes_on = squares > 1e-18 * _column_squares(image)
        beside[step] = lengths = np.sqrt(squares * goes_on)
        before = vectors * lengths
        vectors = left * (goes_on / np.maximum(lengths, TINY))
    if not math.isfinite(float(diagonal.sum()) + float(beside.sum())):
        diagonal, beside = np.zeros_like(diagonal), np.zeros_like(beside)
    strongest = np.array([_strongest(own, next_to) for own, next_to in zip(diagonal.T, beside[:-1].T, strict=True)])
    # The basis is across the signals already.
    found: Array = basis[0] * strongest[:, 0]
    for vectors, factors in zip(basis[1:], strongest.T[1:], strict=True):
        found = found + vectors * factors
    return _normalised(found)


def _strongest(diagonal: Array, beside: Array) -> Array:
    """The eigenvector of the largest absolute eigenvalue of a tridiagonal matrix."""
    # From LAPACK itself: what stands around it takes longer than it does.
    values, vectors, _ = dstev(diagonal, beside) if diagonal.size > 1 else (diagonal, np.ones((1, 1)), 0)
    strongest: Array = np.asarray(vectors)[:, int(np.abs(values).argmax())]
    return strongest


def _residual_moments(part: Part, clipped: Array) -> Callable[[Array], Array]:
    """The map ``v ↦ Σ r a aᴴ v`` over the rows of either half, for columns (n, 2p): p for the first half, p for the second."""
    p = clipped.shape[1]
    if part.single is not None:
        single, factors = part.single, (clipped[:, 0] if p == 1 else clipped).astype(np.float32)
        columns: tuple[Any, Any] = (0, 1) if p == 1 else (slice(p), slice(p, None))
        halves = [(single[half], factors[half], own) for half, own in zip(part.halves(), columns, strict=True)]

        def in_memory(vectors: Array) -> Array:
            # The products run in single precision, so the residuals between them may as well.
            narrow, result = in_type_of(single, vectors), np.empty_like(vectors)
            for rows, r, own in halves:
                result[:, own] = _moment(rows, r, narrow[:, own])
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


def _moment(rows: Array, factors: Array, vectors: Array) -> Array:
    """``Σ r a aᴴ v``."""
    if rows.dtype == vectors.dtype == np.float32 and vectors.ndim == 1:
        # As below, which asks longer what to do than it takes.
        return np.asarray(np.dot(factors * np.dot(rows, vectors), rows))
    return adjoint_block(rows, factors * multiply_block(rows, vectors))


def dependence(part: Part, clipped: Array, squares: Array) -> Array:
    """Shares of the variance of the residuals that the strongest direction of the other half explains, and their evidence."""
    p = clipped.shape[1]
    result = np.zeros((2, p))
    for j in range(p):
        found, counts = [], []
        for half in part.halves():
            here = np.flatnonzero(part.keep[half, j])
            # Along the directions of the first half and of the second.
            along = np.take(squares[half, j::p].T, here, axis=1)
            found.append(_correlations(clipped[half, j][here], along))
            counts.append(here.size)
        # What the other half tells of a direction, with the sign that it has in its own.
        told = (np.sign(found[0][0]) * found[1][0], np.sign(found[1][1]) * found[0][1])
        first, second = (math.sqrt(count) for count in counts)
        result[0, j] = 0.5 * (max(told[0], 0.0) ** 2 + max(told[1], 0.0) ** 2)
        result[1, j] = (told[0] * second + told[1] * first) / math.sqrt(2)
    return result


def _correlations(values: Array, others: Array) -> list[float]:
    """Correlation with each row of others; zero for few values or constant ones."""
    count = values.size
    if count < FIGURES.fewest:
        return [0.0] * len(others)
    own, centred = values - values.sum() / count, others - others.sum(axis=1, keepdims=True) / count
    products, squares = (centred @ own).tolist(), (np.vecdot(centred, centred) * (own @ own)).tolist()
    return [
        product / math.sqrt(square) if 0 < square < np.inf else 0.0
        for product, square in zip(products, squares, strict=True)
    ]


def _normalised(vectors: Array) -> Array:
    normalised: Array = vectors / np.maximum(column_lengths(vectors), TINY)
    return normalised


def column_lengths(vectors: Array) -> Array:
    """Lengths of columns; NumPy's own norms take several times as long for short ones."""
    lengths: Array = np.sqrt(_column_squares(vectors))
    return lengths


def _column_squares(vectors: Array) -> Array:
    squares: Array = np.vecdot(vectors.T, vectors.T).real
    return squares


def _across_only(vectors: Array, units: Array) -> Array:
    """What vectors have across these directions."""
    left: Array = vectors - units * np.vecdot(units.T, vectors.T)
    return left


def changes(part: Part, residuals: Array, first: First, units: Array) -> tuple[Array, Array]:
    """Two sums of kept rows that chance alone keeps from vanishing; each a figure and the evidence for it, (2, p).

    How far the signal turns from the first half of the rows, in their order, to the last: the gradients with the sign of their
    half add up to a vector whose squared length is that of unrelated signs if the signal stays. And the share of the residuals
    that is linear in the rows: their sum with the residuals as factors. Residuals come over their scale, and ``units`` are what
    turns them into relative errors of the signal.
    """
    fit = part.fit
    p = residuals.shape[1]
    projections = first.projections
    if part.single is None or first.lengths is None:
        return np.zeros((2, p)), np.zeros((2, p))
    early = (part.positions < part.positions[part.along[len(residuals) // 2]])[:, np.newaxis]
    used, factors = part.keep, 1 / np.maximum(column_lengths(fit.signals), TINY)
    coefficients = np.where(used, residuals * np.where(early, factors, -factors) * projections, 0.0)
    # Rows that are not used may be too long for a number.
    lengths = np.where(used[:, 0] if p == 1 else used.any(axis=1), first.lengths, 0.0).astype(np.float64, copy=False)
    both = np.concatenate((coefficients.T, residuals.T)).T
    sums = adjoint_block(part.single, both)
    # Single precision does not hold the squares of all that it holds.
    energies = _column_squares(sums.astype(np.result_type(sums, np.float64), copy=False))
    chances = np.maximum(lengths @ abs2(both), TINY)
    complex_rows = np.iscomplexobj(part.single)
    unknowns = len(fit.signals) * (2 if complex_rows or np.iscomplexobj(fit.signals) else 1)
    # A signal that is complex behind real rows has gradients of either kind.
    freedom = np.array([unknowns] * p + [len(fit.signals) * (1 + complex_rows)] * p)
    evidence = _deviations(energies / chances, freedom)
    excess = np.sqrt(np.maximum(energies - chances, 0.0))
    # Either half is led astray by half of the difference, and the curvature of the loss is 2‖x‖² across the signal.
    count = column_counts(used)
    if fit.spreads is not None:
        strengths = np.where(used, abs2(projections), 0.0)
        weighed = (strengths / np.maximum(fit.spreads, TINY)).sum(axis=0)
        count = count * weighed / np.maximum(strengths.sum(axis=0), TINY)
    turn = units * excess[:p] / np.maximum(count, 1.0)
    # The variance of what is linear in rows whose entries have the mean square ℓ is ℓ times the squared length of its factor.
    total = _column_squares(residuals)
    average = lengths @ used / len(fit.signals)
    share = excess[p:] ** 2 / np.maximum(total * average, TINY)
    return np.array((turn, evidence[:p])), np.array((share, evidence[p:]))


def _deviations(ratios: Array, freedom: Array) -> Array:
    """Standard deviations of a normal variable as rare as these means of so many squared ones (Wilson and Hilferty, 1931)."""
    small = 2 / (9 * freedom)
    deviations: Array = (np.cbrt(ratios) - (1 - small)) / np.sqrt(small)
    return deviations
