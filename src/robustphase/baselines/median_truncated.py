"""Median-truncated Wirtinger flow: truncation by medians, which outliers cannot move far.

Zhang, Chi and Liang, "Median-truncated nonconvex approach for phase retrieval with outliers", IEEE Transactions on
Information Theory 2018, Algorithm 1; first at ICML 2016.

Truncated Wirtinger flow with medians in place of means, in the start and in the truncation of residuals. Rows are not
normalised, as the paper is about clean Gaussian ones: a row of unusual length or direction with a modest residual keeps
its full pull.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, length
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import median_truncated_start
from robustphase.baselines.truncated_wirtinger import STEP, truncated_step
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: α_h: residuals beyond this many medians are truncated, in proportion to the prediction. α_l, α_u and μ are those of
#: truncated Wirtinger flow.
MOST_RESIDUAL = 12.0


def median_truncated_wirtinger_flow(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-8,
    random_state: Any = None,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Truncated gradient steps on the Poisson loss, with medians as the measure of residuals.

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
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
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

    def propose(x: Array, t: int) -> Array | None:
        s = project(problem.source, x)
        residuals = abs2(s) - problem.responses
        limit = MOST_RESIDUAL * float(np.median(np.abs(residuals)))
        return truncated_step(problem.source, s, residuals, np.abs(s) / length(x), limit, STEP)

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
