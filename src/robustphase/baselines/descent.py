"""The loop that all first-order methods share, and arithmetic that bad data cannot overflow.

Each method is a rule that proposes a move. The loop makes it, and stops when a move is small, when there is none, or
when the iterates run away. Divergence is an outcome of a baseline and not an error: it ends the loop with
``converged=False`` and the last finite signal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robustphase.baselines.problem import BaselineResult, Problem
from robustphase.rows import RowSource, adjoint
from robustphase.rows.source import Array

#: Iterates this much longer than the start (or than the root of the largest response) will not come back.
RUNAWAY = 1e6

#: ``propose(x, t)``: what to subtract from x in iteration t = 0, 1, ..., or None where the method has no move.
Proposal = Callable[[Array, int], Array | None]


def descend(problem: Problem, start: Array, propose: Proposal, *, max_iter: int, tol: float) -> BaselineResult:
    """Follow the proposals from ``start``.

    Parameters
    ----------
    problem : Problem
        The data, for its units.
    start : ndarray of shape (n,)
        Where to begin, in the units of the problem. Zero has no direction to go: it is returned, not converged.
    propose : callable
        The method.
    max_iter : int
        Most moves.
    tol : float
        Stop when a move is shorter than this fraction of the signal.
    """
    x, iteration, converged = start, 0, False
    limit = RUNAWAY * max(length(start), 1.0)
    # Overflow on the way to divergence is looked for in the numbers; a warning would tell the user nothing more.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        while np.any(x) and iteration < max_iter and not converged:
            move = propose(x, iteration)
            if move is None or not np.isfinite(move).all() or length(x - move) > limit:
                break
            x, iteration = x - move, iteration + 1
            converged = length(move) <= tol * length(x)
    return problem.result(x, start, iteration, converged)


def weighted_sum(source: RowSource, coefficients: Array) -> Array:
    """``Σ c_j a_j / m``, computed with coefficients of at most one so that single precision does not overflow."""
    peak = float(np.abs(coefficients).max())
    if not 0 < peak < np.inf:
        return np.full(source.shape[1], peak, np.result_type(source.dtype, coefficients.dtype, np.float64))
    return adjoint(source, coefficients / peak) * (peak / source.shape[0])


def phases(projections: Array) -> Array:
    """``s / |s|``, the sign of real projections; zero where s is zero."""
    if projections.dtype.kind != "c":
        return np.sign(projections)
    sizes = np.abs(projections)
    return projections / np.where(sizes > 0, sizes, 1.0)


def length(vector: Array) -> float:
    """Euclidean norm that does not overflow before its result does."""
    peak = float(np.abs(vector).max())
    if not 0 < peak < np.inf:
        return peak
    return peak * float(np.linalg.norm(vector / peak))
