"""Robust M-estimation with SciPy: nonlinear least squares under the Cauchy loss, from a median-truncated start.

What a careful user writes in five lines with ``scipy.optimize.least_squares(loss="cauchy")``, and a strong rival: the
Cauchy loss redescends, so samples far from the fit lose all influence, leveraged or not. It gives in where bad samples
agree with each other within the scale of the noise, and everything depends on that scale; here it is estimated in turns
with the signal, as :mod:`robustphase.baselines.scale` explains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import least_squares

from robustphase.baselines.problem import Problem, pose, refuse_complex
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.scale import Fit, take_turns
from robustphase.baselines.starts import median_truncated_start
from robustphase.rows import Parts, project
from robustphase.rows.source import Array


def cauchy_least_squares(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 200,
    tol: float = 1e-8,
    random_state: Any = None,
    f_scale: float | None = None,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Minimise ``Σ log(1 + (r/c)²)`` of the residuals ``(aᵀx)² − y`` by SciPy's trust-region method.

    Real data only. A dense copy of ``A`` and a Jacobian of its size are made.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates, real.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the median-truncated spectral start.
    max_iter : int, default=200
        Most evaluations of the residuals, over all scales.
    tol : float, default=1e-8
        SciPy's ``ftol``, ``xtol`` and ``gtol``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    f_scale : float, optional
        c, in the units of y. Default: the scale of the residuals, estimated in turns with the signal.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
    if f_scale is not None and not 0 < f_scale < np.inf:
        raise ValueError(f"f_scale must be a positive number or None, got {f_scale!r}.")
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
    refuse_complex(problem, "cauchy_least_squares")
    first = median_truncated_start(problem) if problem.start is None else problem.start
    if not np.any(first) or max_iter == 0:
        return problem.result(first, first, 0, False)
    rows = problem.source.reduce(lambda block: Parts(rows=(block,))).rows[0].astype(np.float64, copy=False)

    def fit(signal: Array, scale: float, most: int) -> Fit:
        return cauchy_fit(problem, rows, signal, scale, most, tol)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if f_scale is None:
            residuals = project(problem.source, first) ** 2 - problem.responses
            found = take_turns(fit, Fit(first, residuals, 0, False), max_iter)
        else:
            found = fit(first, f_scale / problem.unit, max_iter)
    return problem.result(found.signal, first, found.n_iter, found.converged)


def cauchy_fit(problem: Problem, rows: Array, start: Array, scale: float, max_iter: int, tol: float) -> Fit:
    """One call of SciPy's solver; the start, not converged, where its linear algebra gives up on absurd numbers."""
    limited = max(tol, float(np.finfo(np.float64).eps))

    def residuals(x: Array) -> Array:
        left: Array = (rows @ x) ** 2 - problem.responses
        return left

    def jacobian(x: Array) -> Array:
        slopes: Array = 2 * (rows @ x)[:, np.newaxis] * rows
        return slopes

    try:
        done = least_squares(
            residuals,
            start,
            jac=jacobian,
            loss="cauchy",
            f_scale=scale,
            ftol=limited,
            xtol=limited,
            gtol=limited,
            max_nfev=max_iter,
        )
    except (ValueError, np.linalg.LinAlgError):
        return Fit(start, residuals(start), 1, False)
    if not np.isfinite(done.x).all():
        return Fit(start, residuals(start), int(done.nfev), False)
    return Fit(done.x, done.fun, int(done.nfev), bool(done.success))
