"""Flows on amplitudes: least squares on ``|aᴴx| − √y``, with samples left out or weighed down.

* Truncated amplitude flow (Wang, Giannakis and Eldar, "Solving systems of random quadratic equations via truncated amplitude
  flow", IEEE Transactions on Information Theory 2018, Algorithm 1). Samples with a prediction far below ``ψ = √y``, whose sign is
  in doubt, are left out. That is a defence against wrong signs and not against outliers: a response that is too large is left
  out only as long as its prediction stays small. Made for few noiseless samples, about 3n.
* Reweighted amplitude flow (Wang, Giannakis, Saad and Chen, "Phase retrieval via reweighted amplitude flow", IEEE Transactions on
  Signal Processing 2018, Algorithm 1; "Solving most systems of random quadratic equations", NIPS 2017). A sample counts by how
  large its prediction is against its response. Made for few noiseless samples. The weights fall off so slowly that outliers keep
  most of their pull.
* Median-reshaped Wirtinger flow (Zhang, Chi and Liang, "Median-truncated nonconvex approach for phase retrieval with outliers",
  IEEE Transactions on Information Theory 2018, Algorithm 2) leaves out the samples whose residual exceeds a few medians. The
  strongest of the simple methods: it cuts off all large residuals, and not only those that are large for their prediction.

Negative responses cannot be represented and count as zero, which costs accuracy under noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, phases, weighted_sum
from robustphase.baselines.problem import BaselineResult, Options, build_problem
from robustphase.baselines.starts import (
    maximal_correlation_start,
    median_truncated_start,
    weighted_maximal_correlation_start,
)
from robustphase.rows import project
from robustphase.rows.source import Array

#: γ: samples with ``|aᴴx| < ψ/(1 + γ)`` are left out.
TRUNCATION = 0.7
#: Step μ for real and for complex data.
REAL_STEP, COMPLEX_STEP = 0.6, 1.0


def truncated_amplitude_flow(
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
    """Truncated generalised gradient steps on the amplitude loss ``Σ (|aᴴx| − √y)²``.

    Parameters
    ----------
    A, max_iter, tol, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    y : array-like of shape (m,)
        Responses; negative ones count as zero.
    start : ndarray of shape (n,), optional
        Starting point. Default: the orthogonality-promoting start.

    Returns
    -------
    BaselineResult
    """
    problem = build_problem(A, y, Options(start, max_iter, tol, random_state, nonfinite, field))
    first = maximal_correlation_start(problem) if problem.start is None else problem.start
    amplitudes, step = problem.amplitudes, COMPLEX_STEP if problem.is_complex else REAL_STEP

    def propose(x: Array, t: int) -> Array | None:
        s = project(problem.source, x)
        sizes = np.abs(s)
        kept = (1 + TRUNCATION) * sizes >= amplitudes
        if not kept.any():
            return None
        return weighted_sum(problem.source, np.where(kept, step * (sizes - amplitudes) * phases(s), 0.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


#: β: weights are ``|aᴴx| / (|aᴴx| + β ψ)``; and the step μ. Each for real and for complex data.
REAL_WEIGHTING, COMPLEX_WEIGHTING = 10.0, 5.0
REAL_WEIGHTED_STEP, COMPLEX_WEIGHTED_STEP = 2.0, 6.0


def reweighted_amplitude_flow(
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
    """Reweighted generalised gradient steps on the amplitude loss ``Σ (|aᴴx| − √y)²``.

    Parameters
    ----------
    A, max_iter, tol, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    y : array-like of shape (m,)
        Responses; negative ones count as zero.
    start : ndarray of shape (n,), optional
        Starting point. Default: the weighted maximal correlation start.

    Returns
    -------
    BaselineResult
    """
    problem = build_problem(A, y, Options(start, max_iter, tol, random_state, nonfinite, field))
    first = weighted_maximal_correlation_start(problem) if problem.start is None else problem.start
    amplitudes = problem.amplitudes
    weighting = COMPLEX_WEIGHTING if problem.is_complex else REAL_WEIGHTING
    step = COMPLEX_WEIGHTED_STEP if problem.is_complex else REAL_WEIGHTED_STEP

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        sizes = np.abs(s)
        # The paper's 1/(1 + β ψ/|s|), written so that neither ψ = 0 nor s = 0 divides by zero alone.
        below = sizes + weighting * amplitudes
        weights = sizes / np.where(below > 0, below, 1.0)
        return weighted_sum(problem.source, step * weights * (sizes - amplitudes) * phases(s))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


#: α_h': residuals beyond this many medians are cut off; and the step μ. Both as in the authors' program.
MOST_RESIDUAL = 3.0
RESHAPED_STEP = 0.8


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
    A, y, max_iter, tol, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    start : ndarray of shape (n,), optional
        Starting point. Default: the median-truncated spectral start.
    most_residual : float, default=3.0
        Residuals beyond this many medians are cut off.

    Returns
    -------
    BaselineResult
    """
    if not 1 <= most_residual < np.inf:
        raise ValueError(f"most_residual must be a number of at least 1, got {most_residual!r}.")
    problem = build_problem(A, y, Options(start, max_iter, tol, random_state, nonfinite, field))
    first = median_truncated_start(problem) if problem.start is None else problem.start
    amplitudes = problem.amplitudes

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        residuals = np.abs(s) - amplitudes
        kept = np.abs(residuals) <= most_residual * np.median(np.abs(residuals))
        return weighted_sum(problem.source, np.where(kept, RESHAPED_STEP * residuals * phases(s), 0.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
