"""Whether rows determine a signal: how many different things they tell, and how firmly they hold the answer.

Where the least curvature of the loss at the answer is nearly zero, other signals fit as well. For standard normal rows the least
eigenvalue of the mean of ``|a·x|² a aᵀ`` over k rows per unknown is ``(1 − k^{-1/2})³ ‖x‖²``, as simulations say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dsyevr, ssyevr

from robustphase.constants import budget, derived, empirical, numeric
from robustphase.population.real_rows import least_curvature as least_paired_curvature
from robustphase.problem import real_unknowns
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class DeterminacyOptions:
    """Constants of the figures."""

    compared: int = budget(96, "rows that are compared in pairs, to see how many different things they tell")
    fewest: int = derived(8, "fewest of them: means over pairs lose three degrees of freedom")
    curvature_exact: int = budget(64, "most real unknowns for which the matrix of the curvatures is made")
    curvature_rows: int = budget(
        12, "rows per real unknown for the least curvature: with 50 of them it then has a standard deviation of 0.08"
    )
    curvature_fewest: int = budget(500, "and fewest of them: of few unknowns it varies more")
    weaker: float = empirical(
        0.05, "curvature behind real rows, over that behind complex ones, below which a complex signal counts as real"
    )
    curvature_depth: float = budget(
        36.0,
        "steps of Lanczos' method for the least curvature of more unknowns, times the root of the rows per unknown",
    )
    cancelled: float = numeric(
        0.1, "part of a vector that is left across others, below which roundings are taken out too"
    )


DETERMINACY = DeterminacyOptions()


def variety(rows: Array, chosen: Array, rng: np.random.Generator) -> float:
    """How many different numbers responses to such rows as the chosen ones tell at least, however many there are.

    Responses are linear in the matrix ``x xᴴ``, and those to two rows have the inner product ``|⟨a, b⟩|²``. The participation
    ratio of the eigenvalues of this kernel, ``(Σλ)²/Σλ²``, is a lower bound of its rank; for ever more rows it tends to the
    squared mean of its diagonal over the mean square of the rest, and a few rows show both. Normal rows have n² (real ones n²/2),
    those of a Fourier transform less than 2n, whatever their number.
    """
    count = min(DETERMINACY.compared, len(chosen))
    if count < DETERMINACY.fewest:
        return np.inf
    some = np.take(rows, chosen[rng.choice(len(chosen), count, replace=False, shuffle=False)], axis=0)
    kernel = abs2(some @ (some.conj() if some.dtype.kind == "c" else some).T).astype(np.float64)
    flat = kernel.ravel()
    diagonal = flat[:: count + 1]
    own = float(diagonal.sum()) / count
    diagonal[:] = 0.0
    # The part that all responses have in common is one number. What is left without the means of rows and columns has a sum of
    # squares that their sums tell (Székely and Rizzo, 2014).
    sums = kernel.sum(axis=0)
    total = float(sums.sum())
    left = float(flat @ flat) - 2 * float(sums @ sums) / (count - 2) + total**2 / ((count - 1) * (count - 2))
    rest = left / (count * (count - 3))
    return own**2 / rest if 0 < rest < np.inf and np.isfinite(own) else np.inf


def least_curvature(rows: Array, projections: Array, signal: Array, rng: np.random.Generator) -> float:
    """Least eigenvalue of the mean of ``t tᵀ`` over what standard normal rows would give, with ``t = s a`` in the real unknowns.

    The phase of a complex signal is free and does not count. Behind real rows the imaginary part of a nearly real signal, in the
    phase that makes it least, is known badly whatever the rows are (:mod:`robustphase.population.real_rows`), and rows are held
    against standard normal ones there too. Of many unknowns it is the least Ritz value, which is larger, of a few steps of
    Lanczos' method; eigenvalues that stand alone, such as zero, show soon.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        The rows.
    projections : ndarray of shape (m,)
        ``a·x``; zero for rows that are not to be used.
    signal : ndarray of shape (n,)
        x, of unit length.
    rng : numpy.random.Generator
        For a first guess.
    """
    is_complex = np.iscomplexobj(signal)
    unknowns, count = real_unknowns(signal), int(np.count_nonzero(projections))
    # Behind real rows the risk has a curvature of its own along the weaker of two orthogonal parts of the signal.
    paired = is_complex and not np.iscomplexobj(rows)
    weaker = float(least_paired_curvature(signal[:, np.newaxis])[0]) if paired else 1.0
    if count <= unknowns or weaker < DETERMINACY.weaker:
        return np.nan
    wanted = max(DETERMINACY.curvature_rows * unknowns, DETERMINACY.curvature_fewest) * len(projections) // count
    if wanted < len(projections):
        # Spread over all of them, in whatever order they are.
        some = np.arange(wanted) * (len(projections) - 1) // (wanted - 1)
        rows, projections = np.take(rows, some, axis=0), projections[some]
        count = int(np.count_nonzero(projections))
    if unknowns <= DETERMINACY.curvature_exact:
        tangents = _tangents(rows, projections, is_complex)
        moment = tangents.T @ tangents / count
        if not np.isfinite(moment).all():
            return np.nan
        # Products of single precision tell no more than it holds.
        least = _least_eigenvalue(moment, 1 + min(int(is_complex), unknowns - 1))
    else:
        depth = int(np.ceil(DETERMINACY.curvature_depth * np.sqrt(unknowns / count)))
        free = np.conj(1j * signal).astype(np.complex128).view(np.float64) if is_complex else None
        times = _curvature_along(rows, projections, is_complex)
        least = _least_ritz_value(times, free, rng.standard_normal((unknowns,)), depth) / count
    normal = (0.5 * weaker if is_complex else 1.0) * (1 - (unknowns / count) ** 0.5) ** 3
    return float(max(least, 0.0) / normal)


def _tangents(rows: Array, projections: Array, is_complex: bool) -> Array:
    """Rows ``t`` in the real unknowns; complex ones have real and imaginary parts side by side, and meet conjugate directions."""
    factors = np.conj(projections).astype(np.result_type(rows, np.complex64) if is_complex else rows.dtype)
    tangents: Array = factors[:, np.newaxis] * rows
    return tangents.view(tangents.real.dtype) if is_complex else tangents


def _curvature_along(rows: Array, projections: Array, is_complex: bool) -> Callable[[Array], Array]:
    """The map ``v ↦ Σ (t·v) t``, whose products run in the precision of the rows."""
    if is_complex:
        tangents = _tangents(rows, projections, is_complex)
        return lambda vector: np.asarray(np.dot(np.dot(tangents, vector.astype(tangents.dtype)), tangents))
    # A few steps take less time than so many tangents.
    weights = abs2(projections).astype(rows.dtype)
    return lambda vector: np.asarray(np.dot(weights * np.dot(rows, vector.astype(rows.dtype)), rows))


def _least_ritz_value(times: Callable[[Array], Array], free: Array | None, vector: Array, depth: int) -> float:
    """The least Ritz value of a symmetric map after so many steps from a vector, across a unit vector that is free."""
    unknowns = vector.size
    given = 0 if free is None else 1
    basis, images = np.zeros((given + depth, unknowns)), np.zeros((depth, unknowns))
    if free is not None:
        basis[0] = free
    made = 0
    while made < depth:
        earlier = basis[: given + made]
        vector, length, taken = _across(vector, earlier)
        if not length > DETERMINACY.cancelled * math.hypot(length, taken):
            # Twice, since what is left is much shorter than what was taken away, and so not quite across it.
            vector, length, _ = _across(vector, earlier)
        if not length > 1e-9:
            break
        basis[given + made] = vector = vector / length
        images[made] = times(vector)
        vector = images[made]
        made += 1
    if not made or not np.isfinite(images[made - 1]).all():
        return np.nan
    small = basis[given : given + made] @ images[:made].T
    return _least_eigenvalue((small + small.T) / 2, 1)


def _across(vector: Array, units: Array) -> tuple[Array, float, float]:
    """What a vector has across orthogonal unit vectors, its length, and the length of what was taken away."""
    parts = np.dot(units, vector)
    left = vector - np.dot(parts, units)
    return left, math.sqrt(float(np.dot(left, left))), math.sqrt(float(np.dot(parts, parts)))


def _least_eigenvalue(matrix: Array, number: int) -> float:
    """The eigenvalue of this number, from one on, of a symmetric matrix.

    One eigenvalue, from LAPACK itself: what stands around it takes longer than it does.
    """
    solve = ssyevr if matrix.dtype == np.float32 else dsyevr
    return float(solve(matrix, compute_v=0, range="I", il=number, iu=number)[0][0])


def random_directions(n: int, count: int, dtype: Any, rng: np.random.Generator) -> Array:
    """Unit vectors of no particular direction, shape (n, count)."""
    values = rng.standard_normal((n, count)).astype(np.result_type(dtype, np.float64))
    if np.iscomplexobj(values):
        values = values + 1j * rng.standard_normal((n, count))
    directions: Array = values / np.sqrt(abs2(values).sum(axis=0))
    return directions
