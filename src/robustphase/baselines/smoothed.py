"""Smoothed l1 phase retrieval: the pseudo-Huber loss ``Σ sqrt(1 + (r/δ)²) − 1``, minimised by L-BFGS.

Zheng and Xue, "Smoothed robust phase retrieval", 2024, with the kernel that gives the pseudo-Huber loss: a benign
landscape, and smooth, so that a quasi-Newton method applies. A fixed δ leaves a bias of order δ under outliers.

How this differs from the paper: δ is the scale of the residuals, measured anew after each fit, so that it goes to zero by
itself where there is no noise. As every l1-like loss it gives in to leveraged rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from robustphase.baselines.descent import weighted_sum
from robustphase.baselines.problem import Problem, pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.scale import Fit, take_turns
from robustphase.baselines.starts import least_correlation_start
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


def smoothed_l1(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-6,
    random_state: Any = None,
    delta: float | None = None,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Minimise the pseudo-Huber loss of the residuals ``|aᴴx|² − y`` by L-BFGS.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the start of Duchi and Ruan.
    max_iter : int, default=500
        Most L-BFGS iterations, over all values of δ.
    tol : float, default=1e-6
        Largest entry of the gradient, relative to the loss at the start, at which a fit has converged.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    delta : float, optional
        Where the loss turns from a square into an absolute value, in the units of y. Default: the scale of the residuals,
        estimated in turns with the signal.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
    if delta is not None and not 0 < delta < np.inf:
        raise ValueError(f"delta must be a positive number or None, got {delta!r}.")
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
