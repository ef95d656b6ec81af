"""Subgradient method with geometrically decaying steps on the l1 loss.

Davis, Drusvyatskiy, MacPhee and Paquette, "Subgradient methods for sharp weakly convex functions", Journal of
Optimization Theory and Applications 2018.

Steps of length ``λ qᵗ`` along normalised subgradients. Where the loss is sharp this converges linearly without knowing
the optimal value, so it tolerates outliers in the responses; the price is two constants. Those of the theory are far
smaller than anybody would use, and the paper tunes them by experiment; the values here are one choice for all data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.absolute_loss import absolute_loss
from robustphase.baselines.descent import descend, length
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import least_correlation_start
from robustphase.rows.source import Array

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
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the start of Duchi and Ruan.
    max_iter : int, default=1000
        Most steps.
    tol : float, default=1e-7
        Stop when a step moves the signal by less than this fraction of its norm. The lengths are fixed in advance, so this
        says when to stop and not whether the loss has settled.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    first_step : float, default=0.3
        Length of the first step relative to the norm of the start.
    decay : float, default=0.983
        Ratio of the lengths of two steps, between 0 and 1.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
    if not 0 < first_step < np.inf:
        raise ValueError(f"first_step must be a positive number, got {first_step!r}.")
    if not 0 < decay < 1:
        raise ValueError(f"decay must lie strictly between 0 and 1, got {decay!r}.")
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
    longest = first_step * length(first)

    def propose(x: Array, t: int) -> Array:
        subgradient = absolute_loss(problem, x)[1]
        # A subgradient of exactly zero means that every residual is.
        return longest * decay**t * (subgradient / (length(subgradient) or 1.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
