"""Median-reshaped Wirtinger flow: amplitudes, and medians to cut off large residuals.

Zhang, Chi and Liang, "Median-truncated nonconvex approach for phase retrieval with outliers", IEEE Transactions on
Information Theory 2018, Algorithm 2.

Least squares on the amplitudes ``|aᴴx| − √y`` without the samples whose residual exceeds a few medians. The strongest of
the simple methods: it cuts off all large residuals, and not only those that are large for their prediction. Negative
responses cannot be represented and count as zero, which costs accuracy under noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, phases, weighted_sum
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import median_truncated_start
from robustphase.rows import project
from robustphase.rows.source import Array

#: α_h': residuals beyond this many medians are cut off; and the step μ. Both as in the authors' program.
MOST_RESIDUAL = 3.0
STEP = 0.8


def median_reshaped_wirtinger_flow(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-8,
    random_state: Any = None,
    most_residual: float = MOST_RESIDUAL,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Truncated gradient steps on the amplitude loss ``Σ (|aᴴx| − √y)²``.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the median-truncated spectral start.
    max_iter : int, default=500
        Most gradient steps.
    tol : float, default=1e-8
        Stop when a step moves the signal by less than this fraction of its norm.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    most_residual : float, default=3.0
        Residuals beyond this many medians are cut off.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
    if not 1 <= most_residual < np.inf:
        raise ValueError(f"most_residual must be a number of at least 1, got {most_residual!r}.")
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
    first = median_truncated_start(problem) if problem.start is None else problem.start
    amplitudes = problem.amplitudes

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        residuals = np.abs(s) - amplitudes
        kept = np.abs(residuals) <= most_residual * np.median(np.abs(residuals))
        return weighted_sum(problem.source, np.where(kept, STEP * residuals * phases(s), 0.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
