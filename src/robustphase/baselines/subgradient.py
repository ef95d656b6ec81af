"""Subgradient methods on the absolute loss ``f(x) = 1/m Σ | |aᴴx|² − y |``.

With clean Gaussian covariates f is sharp around the signal and weakly convex, even when a share of the responses is
arbitrary (Duchi and Ruan, 2019). A sample pulls with strength ``2|aᴴx|``, so leveraged rows are its weakness. Where a loss is
sharp, subgradient steps converge linearly if their lengths are right (Davis, Drusvyatskiy, MacPhee and Paquette, "Subgradient
methods for sharp weakly convex functions", Journal of Optimization Theory and Applications 2018), in one of two ways:

* Polyak's step ``(f(x) − f*)/‖g‖²`` (also Davis, Drusvyatskiy and Paquette, "The nonsmooth landscape of phase retrieval", IMA
  Journal of Numerical Analysis 2020) needs the optimal value f*. It is zero for noiseless clean data, and there no constant is
  needed. Otherwise f* is unknown; told zero, the method keeps jumping over the minimum. How this differs from the paper: where
  the steps do not settle, the returned signal is the one with the smallest loss seen, since the loss does not decrease
  monotonically.
* Steps of length ``λ qᵗ`` along normalised subgradients need not know the optimal value, so they tolerate outliers in the
  responses; the price is two constants. Those of the theory are far smaller than anybody would use, and the paper tunes them by
  experiment; the values here are one choice for all data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, length, weighted_sum
from robustphase.baselines.problem import BaselineResult, Options, Problem, build_problem
from robustphase.baselines.starts import least_correlation_start
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


def absolute_loss(problem: Problem, signal: Array) -> tuple[float, Array]:
    """The loss at ``signal``, and the subgradient ``2/m Σ sign(|s|² − y) s a``."""
    s = project(problem.source, signal)
    residuals = abs2(s) - problem.responses
    return float(np.abs(residuals).mean()), weighted_sum(problem.source, 2 * np.sign(residuals) * s)


def polyak_subgradient(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-8,
    random_state: Any = None,
    optimal_loss: float = 0.0,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Minimise ``1/m Σ | |aᴴx|² − y |`` by subgradient steps of Polyak's length.

    Parameters
    ----------
    A, y, tol, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    start : ndarray of shape (n,), optional
        Starting point. Default: the start of Duchi and Ruan.
    max_iter : int, default=500
        Most steps.
    optimal_loss : float, default=0.0
        f*, the smallest value of the loss, if known.

    Returns
    -------
    BaselineResult
    """
    if isinstance(optimal_loss, bool) or not np.isreal(optimal_loss) or not 0 <= optimal_loss < np.inf:
        raise ValueError(f"optimal_loss must be a number that is zero or positive, got {optimal_loss!r}.")
    problem = build_problem(A, y, Options(start, max_iter, tol, random_state, nonfinite, field))
    first = least_correlation_start(problem) if problem.start is None else problem.start
    goal, best_loss, best = optimal_loss / problem.unit, np.inf, first

    def propose(x: Array, t: int) -> Array:
        nonlocal best_loss, best
        loss, subgradient = absolute_loss(problem, x)
        if loss < best_loss:
            best_loss, best = loss, x
        square = float(np.vdot(subgradient, subgradient).real)
        # At or below the goal there is nothing left to gain; nor where all residuals are exactly zero.
        return max(loss - goal, 0.0) / (square or 1.0) * subgradient

    found = descend(problem, first, propose, max_iter=max_iter, tol=tol)
    if found.converged:
        return found
    return problem.result(best, first, found.n_iter, False)


#: First step λ as a fraction of the norm of the start, and decay q.
FIRST_STEP, DECAY = 0.3, 0.983


def geometric_subgradient(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 1000,
    tol: float = 1e-7,
    random_state: Any = None,
    first_step: float = FIRST_STEP,
    decay: float = DECAY,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Minimise ``1/m Σ | |aᴴx|² − y |`` by subgradient steps of geometrically decaying length.

    Parameters
    ----------
    A, y, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    start : ndarray of shape (n,), optional
        Starting point. Default: the start of Duchi and Ruan.
    max_iter : int, default=1000
        Most steps.
    tol : float, default=1e-7
        Stop when a step moves the signal by less than this fraction of its norm. The lengths are fixed in advance, so this
        says when to stop and not whether the loss has settled.
    first_step : float, default=0.3
        Length of the first step relative to the norm of the start.
    decay : float, default=0.983
        Ratio of the lengths of two steps, between 0 and 1.

    Returns
    -------
    BaselineResult
    """
    if not 0 < first_step < np.inf:
        raise ValueError(f"first_step must be a positive number, got {first_step!r}.")
    if not 0 < decay < 1:
        raise ValueError(f"decay must lie strictly between 0 and 1, got {decay!r}.")
    problem = build_problem(A, y, Options(start, max_iter, tol, random_state, nonfinite, field))
    first = least_correlation_start(problem) if problem.start is None else problem.start
    longest = first_step * length(first)

    def propose(x: Array, t: int) -> Array:
        subgradient = absolute_loss(problem, x)[1]
        # A subgradient of exactly zero means that every residual is.
        return longest * decay**t * (subgradient / (length(subgradient) or 1.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
