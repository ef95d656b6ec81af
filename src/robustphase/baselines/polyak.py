"""Polyak's subgradient method on the l1 loss.

Davis, Drusvyatskiy, MacPhee and Paquette, "Subgradient methods for sharp weakly convex functions", Journal of
Optimization Theory and Applications 2018; Davis, Drusvyatskiy and Paquette, "The nonsmooth landscape of phase
retrieval", IMA Journal of Numerical Analysis 2020.

The step ``(f(x) − f*)/‖g‖²`` needs the optimal value f*. It is zero for noiseless clean data, and there the method
converges linearly without any constant. Otherwise f* is unknown; told zero, it keeps jumping over the minimum.

How this differs from the paper: where the steps do not settle, the returned signal is the one with the smallest loss
seen, since the loss does not decrease monotonically.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.absolute_loss import absolute_loss
from robustphase.baselines.descent import descend
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import least_correlation_start
from robustphase.rows.source import Array


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
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the start of Duchi and Ruan.
    max_iter : int, default=500
        Most steps.
    tol : float, default=1e-8
        Stop when a step moves the signal by less than this fraction of its norm.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    optimal_loss : float, default=0.0
        f*, the smallest value of the loss, if known.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
    if isinstance(optimal_loss, bool) or not np.isreal(optimal_loss) or not 0 <= optimal_loss < np.inf:
        raise ValueError(f"optimal_loss must be a number that is zero or positive, got {optimal_loss!r}.")
    problem = pose(
        A,
        y,
        start=start,
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
        nonfinite=nonfinite,
        field=field,
    )
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
