"""Truncated Wirtinger flow: the Poisson likelihood without the samples that would dominate its gradient.

Chen and Candès, "Solving random quadratic systems of equations is nearly as easy as solving linear systems",
Communications on Pure and Applied Mathematics 2017, Algorithm 1; first at NIPS 2015.

Left out are samples whose prediction is unusually small or large, and those whose residual is far above the *mean*
residual. The mean is what breaks it: a few large outliers raise it until nothing is truncated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, length, weighted_sum
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import row_norms, truncated_start
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Truncation of predictions (α_z^lb, α_z^ub) and residuals (α_h), and the step μ: the paper's recommended values.
LEAST_PREDICTION, MOST_PREDICTION, MOST_RESIDUAL = 0.3, 5.0, 5.0
STEP = 0.2


def truncated_wirtinger_flow(
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
    """Truncated gradient steps on the Poisson loss ``Σ |aᴴx|² − y log |aᴴx|²``.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the truncated spectral start.
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
    first = truncated_start(problem) if problem.start is None else problem.start
    # √n/‖a‖ of the paper: predictions are judged as if all rows had the same norm.
    norms = row_norms(problem.source)
    relative = np.sqrt(problem.source.shape[1]) / np.where(norms > 0, norms, np.inf)

    def propose(x: Array, t: int) -> Array | None:
        s = project(problem.source, x)
        sizes = relative * np.abs(s) / length(x)
        residuals = abs2(s) - problem.responses
        return truncated_step(
            problem.source, s, residuals, sizes, MOST_RESIDUAL * float(np.abs(residuals).mean()), STEP
        )

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


def truncated_step(
    source: Any, projections: Array, residuals: Array, sizes: Array, residual_limit: float, step: float
) -> Array | None:
    """One step ``2μ/m Σ (|s|² − y)/s̄ a`` over the samples in the two events of the paper; None if there are none.

    Parameters
    ----------
    source : RowSource
        The covariates.
    projections, residuals : ndarray of shape (m,)
        ``s`` and ``|s|² − y``.
    sizes : ndarray of shape (m,)
        ``|s|/‖x‖``.
    residual_limit : float
        Largest residual of a sample with ``sizes`` of one; it grows in proportion.
    step : float
        μ.
    """
    kept = (sizes >= LEAST_PREDICTION) & (sizes <= MOST_PREDICTION) & (np.abs(residuals) <= residual_limit * sizes)
    if not kept.any():
        return None
    over = np.where(kept, projections, 1.0).conj()
    return weighted_sum(source, np.where(kept, 2 * step * residuals / over, 0.0))
