"""M-estimates: losses that grow slowly beyond the scale of the residuals, which is found together with the signal.

The residuals of a rough start say more about the start than about the noise, so estimate and scale take turns: fit with the
scale of the last residuals, measure it again, until it stops falling. Without noise it falls towards zero and outliers lose
all influence; with noise it ends at the noise's own scale.

* Smoothed l1 (Zheng and Xue, "Smoothed robust phase retrieval", 2024, with the kernel that gives the pseudo-Huber loss
  ``Σ sqrt(1 + (r/δ)²) − 1``): a benign landscape, and smooth, so that a quasi-Newton method (L-BFGS) applies. A fixed δ leaves a
  bias of order δ under outliers; how this differs from the paper: δ is that scale. As every l1-like loss it gives in to
  leveraged rows.
* The Cauchy loss: what a careful user writes in five lines with ``scipy.optimize.least_squares(loss="cauchy")``, and a strong
  rival. It redescends, so samples far from the fit lose all influence, leveraged or not. It gives in where bad samples agree
  with each other within the scale of the noise, and everything depends on that scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np
from scipy.optimize import least_squares, minimize

from robustphase.baselines.problem import (
    BaselineOptions,
    BaselineResult,
    Problem,
    build_problem,
    refuse_complex,
    weighted_sum,
)
from robustphase.baselines.starts import least_correlation_start, median_truncated_start
from robustphase.rows import Parts, project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

#: Ratio of the standard deviation of a normal variable to the median of its absolute value.
NORMAL_RATIO = 1.482602218505602
#: Most turns; the scale has settled when a turn changes it by less than this fraction.
TURNS, SETTLED = 20, 0.05
#: The scale is never taken below this fraction of the largest response: the loss would be made of roundings.
SMALLEST = 1e-13


class Fit(NamedTuple):
    """One fit: the signal, its residuals, iterations made, and whether the solver says that it converged."""

    signal: Array
    residuals: Array
    n_iter: int
    converged: bool


def robust_scale(residuals: Array) -> float:
    """Median absolute residual, scaled to the standard deviation of a normal law."""
    return max(NORMAL_RATIO * float(np.median(np.abs(residuals))), SMALLEST)


def take_turns(fit: Callable[[Array, float, int], Fit], first: Fit, max_iter: int) -> Fit:
    """Fit, by ``fit(start, scale, max_iter)``, and measure the scale in turns; ``max_iter`` are for all fits together."""
    found, scale = first, np.inf
    for _ in range(TURNS):
        new_scale = robust_scale(found.residuals)
        if new_scale == SMALLEST:
            # Most residuals are roundings, in which no solver could find a descent.
            return found._replace(converged=True)
        if found.n_iter and new_scale > (1 - SETTLED) * scale:
            return found
        scale, spent = new_scale, found.n_iter
        if spent >= max_iter:
            break
        latest = fit(found.signal, scale, max_iter - spent)
        found = latest._replace(n_iter=spent + latest.n_iter)
    return found._replace(converged=False)


def smoothed_l1(
    A: Any,
    y: Any,
    *,
    max_iter: int = 500,
    tol: float = 1e-6,
    delta: float | None = None,
    **options: Unpack[BaselineOptions],
) -> BaselineResult:
    """Minimise the pseudo-Huber loss of the residuals ``|aᴴx|² − y`` by L-BFGS.

    Parameters
    ----------
    A, y, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    start : ndarray of shape (n,), optional
        Starting point. Default: the start of Duchi and Ruan.
    max_iter : int, default=500
        Most L-BFGS iterations, over all values of δ.
    tol : float, default=1e-6
        Largest entry of the gradient, relative to the loss at the start, at which a fit has converged.
    delta : float, optional
        Where the loss turns from a square into an absolute value, in the units of y. Default: the scale of the residuals,
        estimated in turns with the signal.

    Returns
    -------
    BaselineResult
    """
    if delta is not None and not 0 < delta < np.inf:
        raise ValueError(f"delta must be a positive number or None, got {delta!r}.")
    problem = build_problem(smoothed_l1, A, y, max_iter=max_iter, tol=tol, **options)
    first = least_correlation_start(problem) if problem.start is None else problem.start
    if not np.any(first) or max_iter == 0:
        return problem.result(first, first, 0, False)

    def fit(signal: Array, scale: float, most: int) -> Fit:
        return pseudo_huber_fit(problem, signal, scale, most, tol)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if delta is None:
            residuals = abs2(project(problem.source, first)) - problem.responses
            found = take_turns(fit, Fit(first, residuals, 0, False), max_iter)
        else:
            found = fit(first, delta / problem.unit, max_iter)
    return problem.result(found.signal, first, found.n_iter, found.converged)


def pseudo_huber_fit(problem: Problem, start: Array, delta: float, max_iter: int, tol: float) -> Fit:
    """Minimise ``1/m Σ sqrt(1 + (r/δ)²) − 1`` from ``start``; the best point seen, should the solver lose its way."""
    best: list[Any] = [np.inf, start]
    as_complex, unit = problem.is_complex, 1.0

    def loss(flat: Array) -> tuple[float, Array]:
        x = flat.view(np.complex128) if as_complex else flat
        s = project(problem.source, x)
        relative = (abs2(s) - problem.responses) / delta
        roots = np.hypot(1.0, relative)
        # r²/(1 + sqrt(1 + r²)) equals sqrt(1 + r²) − 1 without its cancellation.
        value = float(np.mean(relative * (relative / (1.0 + roots)))) / unit
        gradient = weighted_sum(problem.source, (2 / delta / unit) * (relative / roots) * s)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.finfo(np.float64).max, np.zeros_like(flat)
        if value < best[0]:
            best[:] = value, x.copy()
        return value, gradient.view(np.float64) if as_complex else gradient

    flat = np.ascontiguousarray(start).view(np.float64) if as_complex else start
    # In units of its first value the loss has gradients of the order of one, whatever δ is.
    unit = loss(flat)[0] or 1.0
    best[0] = np.inf
    done = minimize(
        loss, flat, jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "gtol": tol, "ftol": 1e-15, "maxls": 40}
    )
    residuals = abs2(project(problem.source, best[1])) - problem.responses
    return Fit(best[1], residuals, int(done.nit), bool(done.success))


def cauchy_least_squares(
    A: Any,
    y: Any,
    *,
    max_iter: int = 200,
    tol: float = 1e-8,
    f_scale: float | None = None,
    **options: Unpack[BaselineOptions],
) -> BaselineResult:
    """Minimise ``Σ log(1 + (r/c)²)`` of the residuals ``(aᵀx)² − y`` by SciPy's trust-region method.

    Real data only. A dense copy of ``A`` and a Jacobian of its size are made.

    Parameters
    ----------
    y, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    A : array-like of shape (m, n) or RowSource
        Covariates, real.
    start : ndarray of shape (n,), optional
        Starting point. Default: the median-truncated spectral start.
    max_iter : int, default=200
        Most evaluations of the residuals, over all scales.
    tol : float, default=1e-8
        SciPy's ``ftol``, ``xtol`` and ``gtol``.
    f_scale : float, optional
        c, in the units of y. Default: the scale of the residuals, estimated in turns with the signal.

    Returns
    -------
    BaselineResult
    """
    if f_scale is not None and not 0 < f_scale < np.inf:
        raise ValueError(f"f_scale must be a positive number or None, got {f_scale!r}.")
    problem = build_problem(cauchy_least_squares, A, y, max_iter=max_iter, tol=tol, **options)
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
