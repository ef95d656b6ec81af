"""Methods on the absolute loss ``f(x) = 1/m Σ | |aᴴx|² − y |``: subgradients, and the prox-linear method.

With clean Gaussian covariates f is sharp around the signal and weakly convex, even when a share of the responses is arbitrary
(Duchi and Ruan, 2019). A sample pulls with strength ``2|aᴴx|``, so leveraged rows are its weakness. Where a loss is sharp,
subgradient steps converge linearly if their lengths are right (Davis, Drusvyatskiy, MacPhee and Paquette, "Subgradient methods
for sharp weakly convex functions", Journal of Optimization Theory and Applications 2018), in one of two ways:

* Polyak's step ``(f(x) − f*)/‖g‖²`` (also Davis, Drusvyatskiy and Paquette, "The nonsmooth landscape of phase retrieval", IMA
  Journal of Numerical Analysis 2020) needs the optimal value f*. It is zero for noiseless clean data, and there no constant is
  needed. Otherwise f* is unknown; told zero, the method keeps jumping over the minimum. How this differs from the paper: where
  the steps do not settle, the returned signal is the one with the smallest loss seen, since the loss does not decrease
  monotonically.
* Steps of length ``λ qᵗ`` along normalised subgradients need not know the optimal value, so they tolerate outliers in the
  responses; the price is two constants. Those of the theory are far smaller than anybody would use, and the paper tunes them by
  experiment; the values here are one choice for all data.

The prox-linear method: Duchi and Ruan, "Solving (most) of a set of quadratic equalities: composite optimization for robust phase
retrieval", Information and Inference 2019.

Linearise the predictions inside the absolute values, ``f_x(d) = 1/m Σ |s² − y + 2 s aᵀd|``, and minimise that plus ``L/2 ‖d‖²``.
The linearisation is off by at most ``‖A d‖²/m``, so with ``L = 2 ‖AᵀA/m‖`` the loss never rises, and where it is sharp the
convergence is quadratic.

How this differs from the paper: its L is the largest we use; a smaller one is tried first and raised until the loss at the new
point is below the model's, which is all the theory needs of L. A few leveraged rows make the paper's L so large that nothing
moves any more. The inner problem is solved by ADMM in graph form, as the paper's solver (POGS) does, until the duality gap is a
small fraction of the decrease that it promises.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from robustphase.baselines.problem import (
    RUNAWAY,
    BaselineOptions,
    BaselineResult,
    Problem,
    build_problem,
    descend,
    length,
    refuse_complex,
    weighted_sum,
)
from robustphase.baselines.starts import extreme_eigenpair, least_correlation_start, row_norms
from robustphase.rows import Parts, RowSource, project
from robustphase.rows.products import abs2
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
    max_iter: int = 500,
    tol: float = 1e-8,
    optimal_loss: float = 0.0,
    **options: Unpack[BaselineOptions],
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
    problem = build_problem(polyak_subgradient, A, y, max_iter=max_iter, tol=tol, **options)
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
    max_iter: int = 1000,
    tol: float = 1e-7,
    first_step: float = FIRST_STEP,
    decay: float = DECAY,
    **options: Unpack[BaselineOptions],
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
    problem = build_problem(geometric_subgradient, A, y, max_iter=max_iter, tol=tol, **options)
    first = least_correlation_start(problem) if problem.start is None else problem.start
    longest = first_step * length(first)

    def propose(x: Array, t: int) -> Array:
        subgradient = absolute_loss(problem, x)[1]
        # A subgradient of exactly zero means that every residual is.
        return longest * decay**t * (subgradient / (length(subgradient) or 1.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


#: The inner problem is solved when its duality gap is below this fraction of the promised decrease; checked so often.
GAP, CHECK_EVERY = 0.05, 5
#: Promised decreases this many times the tolerance count as small: the dual bound is tight only in the limit.
PROMISED = 10.0
#: Give up after this many steps that lowered the loss by less than the tolerance although more was promised.
PATIENCE = 5
#: Over-relaxation of ADMM.
RELAXATION = 1.7
#: Factor by which the penalty of ADMM changes when one of its two residuals is this many times the other.
PENALTY_FACTOR, UNBALANCED = 2.0, 5.0
#: Smallest L as a fraction of what clean rows need; the factors by which it falls after a step and rises after a rejected one.
FIRST_CURVATURE, EASED, RAISED = 0.1, 2.0, 4.0


def prox_linear(
    A: Any, y: Any, *, max_iter: int = 50, tol: float = 1e-7, max_inner: int = 200, **options: Unpack[BaselineOptions]
) -> BaselineResult:
    """Minimise ``1/m Σ | (aᵀx)² − y |`` by a sequence of convex models.

    Real data only. A matrix of n × n is factorised in each iteration.

    Parameters
    ----------
    y, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    A : array-like of shape (m, n) or RowSource
        Covariates, real.
    start : ndarray of shape (n,), optional
        Starting point. Default: the start of Duchi and Ruan.
    max_iter : int, default=50
        Most convex models.
    tol : float, default=1e-7
        Stop when a step lowers the loss by less than this fraction, and its model promised less than ten times that.
    max_inner : int, default=200
        Most ADMM iterations for each model.

    Returns
    -------
    BaselineResult
    """
    if isinstance(max_inner, bool) or not isinstance(max_inner, (int, np.integer)) or max_inner < 1:
        raise ValueError(f"max_inner must be a positive whole number, got {max_inner!r}.")
    problem = build_problem(prox_linear, A, y, max_iter=max_iter, tol=tol, **options)
    refuse_complex(problem, "prox_linear")
    first = least_correlation_start(problem) if problem.start is None else problem.start
    if not np.any(first):
        return problem.result(first, first, 0, False)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _run(problem, first, max_iter, tol, max_inner)


def _run(problem: Problem, first: Array, max_iter: int, tol: float, max_inner: int) -> BaselineResult:
    source, m = problem.source, problem.source.shape[0]
    safe = 2 * extreme_eigenpair(source, np.ones(m), seed=problem.seed).value * 1.01
    if not safe > np.finfo(source.dtype).tiny:
        return problem.result(first, first, 0, False)
    # For clean rows ‖AᵀA/m‖ is close to the typical ‖a‖²/n, which a few leveraged ones do not change.
    typical = 2 * float(np.median(row_norms(source))) ** 2 / source.shape[1]
    least = min(FIRST_CURVATURE * typical, safe) or safe
    limit = RUNAWAY * max(length(first), 1.0)
    # Below this the loss consists of roundings.
    exact = 10 * float(np.finfo(source.dtype).eps) * float(np.abs(problem.responses).mean())
    at, idle = Iterate(first, absolute_loss(problem, first)[0], least, np.zeros(m)), 0
    for iteration in range(1, max_iter + 1):
        try:
            inner, new_loss, curvature = _trusted_step(problem, at, safe, tol, max_inner)
        except np.linalg.LinAlgError:
            return problem.result(at.signal, first, iteration - 1, False)
        new = at.signal + inner.step
        if not np.isfinite(new).all() or length(new) > limit:
            return problem.result(at.signal, first, iteration - 1, False)
        # An inexact inner solution may go up by as much as its gap; then stay, the next one starts from a better dual.
        gained = max(at.loss - new_loss, 0.0)
        signal, loss = (new, new_loss) if gained > 0 else (at.signal, at.loss)
        at = Iterate(signal, loss, max(curvature / EASED, least), inner.dual)
        idle = 0 if gained > tol * loss else idle + 1
        if loss <= exact or (idle and loss - inner.bound <= PROMISED * tol * loss):
            return problem.result(signal, first, iteration, True)
        if idle == PATIENCE:
            return problem.result(signal, first, iteration, False)
    return problem.result(at.signal, first, max_iter, False)


class Iterate(NamedTuple):
    """Where the method is: the signal, its loss, the L to try first, and the dual point to start the next model from."""

    signal: Array
    loss: float
    curvature: float
    dual: Array


def _trusted_step(problem: Problem, at: Iterate, safe: float, tol: float, max_inner: int) -> tuple[Inner, float, float]:
    """Raise L until the model is not better than the loss it predicts; the step, the new loss, and that L."""
    model, factor = linearise(problem, at.signal), RAISED
    curvature, dual = at.curvature, at.dual
    while True:
        inner = solve_model(model, curvature, dual, at.loss, 0.1 * tol, max_inner)
        new_loss = absolute_loss(problem, at.signal + inner.step)[0]
        if new_loss <= inner.value or curvature >= safe:
            return inner, new_loss, curvature
        # Bad rows can make the safe value larger by any factor: approach it ever faster.
        dual, curvature, factor = inner.dual, min(factor * curvature, safe), factor**2


class Model(NamedTuple):
    """The linearised loss ``1/m ‖c + B d‖₁`` with ``B = 2 diag(s) A``, and the eigenvectors of ``BᵀB/m``."""

    source: RowSource
    projections: Array
    residuals: Array
    values: Array
    vectors: Array

    def predict(self, step: Array) -> Array:
        """``B d``."""
        image: Array = 2 * self.projections * project(self.source, step)
        return image

    def pull(self, coefficients: Array) -> Array:
        """``Bᵀ c / m``."""
        return weighted_sum(self.source, 2 * self.projections * coefficients)


class Inner(NamedTuple):
    """Solution of one model: the step, its value with the quadratic term, a lower bound of that, the dual point."""

    step: Array
    value: float
    bound: float
    dual: Array


def linearise(problem: Problem, signal: Array) -> Model:
    """The model at ``signal``; two passes."""
    s = project(problem.source, signal)
    peak = float(np.abs(s).max()) or 1.0
    shares = (2 * s / peak) ** 2 / s.size

    def kernel(block: Array, share: Array) -> Parts:
        wide = block.astype(np.float64, copy=False)
        return Parts(sums=(np.dot(wide.T, share[:, np.newaxis] * wide),))

    gram = problem.source.reduce(kernel, (shares,)).sums[0]
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    return Model(problem.source, s, s * s - problem.responses, np.maximum(values, 0.0) * peak**2, vectors)


def solve_model(model: Model, curvature: float, dual: Array, loss: float, tol: float, max_inner: int) -> Inner:
    """Minimise ``1/m ‖c + B d‖₁ + L/2 ‖d‖²`` over d by ADMM, with L the curvature and the value ``loss`` at d = 0.

    With ``z = c + B d`` and a dual point λ in [−1, 1]ᵐ, iterate: a ridge regression for d, soft thresholding for z, and the
    update of λ. Every λ gives the lower bound ``cᵀλ/m − ‖Bᵀλ/m‖²/(2L)``, so the gap is known; below the fraction ``tol`` of the
    loss it is small enough.
    """
    c = z = model.residuals
    penalty = 1.0 / max(float(np.abs(c).mean()), np.finfo(np.float64).tiny)
    best = Inner(np.zeros_like(model.values), loss, -np.inf, dual)
    for iteration in range(1, max_inner + 1):
        # Ridge regression (L I + ρ BᵀB/m) d = Bᵀ(ρ (z − c) − λ)/m in the eigenvectors of BᵀB.
        target = model.pull(penalty * (z - c) - dual)
        step = model.vectors @ ((model.vectors.T @ target) / (curvature + penalty * model.values))
        image = c + model.predict(step)
        before, raised = z, RELAXATION * image + (1 - RELAXATION) * z + dual / penalty
        z = np.sign(raised) * np.maximum(np.abs(raised) - 1.0 / penalty, 0.0)
        dual = np.clip(penalty * (raised - z), -1.0, 1.0)
        if iteration % CHECK_EVERY and iteration < max_inner:
            continue
        value = float(np.abs(image).mean()) + 0.5 * curvature * float(step @ step)
        pulled = model.pull(dual)
        bound = max(best.bound, float(np.mean(c * dual)) - float(pulled @ pulled) / (2 * curvature))
        step, value = (step, value) if value < best.value else (best.step, best.value)
        best = Inner(step, value, bound, dual)
        if not value - bound > max(GAP * (loss - value), tol * loss):
            break
        primal, dual_change = penalty * length(image - z), penalty * length(z - before)
        if primal > UNBALANCED * dual_change:
            penalty *= PENALTY_FACTOR
        elif dual_change > UNBALANCED * primal:
            penalty /= PENALTY_FACTOR
    return best
