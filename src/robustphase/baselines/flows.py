"""Flows, on intensities and on amplitudes, from a spectral start.

On intensities: gradient descent on ``|aᴴx|²`` against ``y``, plain, for counts, and with samples left out.

* Wirtinger flow (Candès, Li and Soltanolkotabi, 2015): plain least squares from a spectral start. The reference point of every
  comparison: as accurate as it gets on clean data with Gaussian noise, and defenceless. How this differs from the paper: its
  step ``min(1 − exp(−t/330), 0.2)`` grows slowly in the first 70 iterations, which it notes to be a precaution; ours begins with
  0.2 (pass ``warm_up=330`` for the paper's), and no step is longer than half of the signal, as every careful user would see to.
* Poisson Wirtinger flow (Li, Lange and Fessler, "Poisson phase retrieval in very low-count regimes", IEEE Transactions on
  Computational Imaging 2022). The gradient is that of ``Σ |aᴴx|² + b − y log(|aᴴx|² + b)``; along it the loss is curved by
  ``Σ |aᴴg|² · 4|s|²/(|s|² + b)`` on average over the counts (half of it for complex rows, where the phase of aᴴg may be any), so
  the step needs no line search. The mean background b is known, as the paper assumes. Without one the gradient of a sample is
  ``y/s``: where a mean is below ``LEAST`` of the typical response, that is divided by instead.
* Truncated Wirtinger flow (Chen and Candès, "Solving random quadratic systems of equations is nearly as easy as solving linear
  systems", Communications on Pure and Applied Mathematics 2017, Algorithm 1; first at NIPS 2015): the Poisson likelihood without
  the samples that would dominate its gradient. Left out are samples whose prediction is unusually small or large, and those
  whose residual is far above the *mean* residual. The mean is what breaks it: a few large outliers raise it until nothing is
  truncated.
* Median-truncated Wirtinger flow (Zhang, Chi and Liang, "Median-truncated nonconvex approach for phase retrieval with outliers",
  IEEE Transactions on Information Theory 2018, Algorithm 1; first at ICML 2016): the same with medians, which outliers cannot
  move far, in the start and in the truncation of residuals. Rows are not normalised, as the paper is about clean Gaussian ones:
  a row of unusual length or direction with a modest residual keeps its full pull.

On amplitudes: least squares on ``|aᴴx| − √y``, with samples left out or weighed down.

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

There negative responses cannot be represented and count as zero, which costs accuracy under noise.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from robustphase.baselines.problem import (
    BaselineOptions,
    BaselineResult,
    build_problem,
    descend,
    length,
    phases,
    weighted_sum,
)
from robustphase.baselines.starts import (
    maximal_correlation_start,
    median_truncated_start,
    plain_start,
    row_norms,
    truncated_start,
    weighted_maximal_correlation_start,
)
from robustphase.rows import RowSource, project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

#: Gradient step in units of 1/‖x₀‖² (μ_max of the paper): close to the best for curvatures between 2 and 6.
STEP = 0.2
#: Longest step, as a fraction of the signal.
LONGEST = 0.5


def wirtinger_flow(
    A: Any, y: Any, *, max_iter: int = 500, tol: float = 1e-6, warm_up: float = 0.0, **options: Unpack[BaselineOptions]
) -> BaselineResult:
    """Least squares ``min Σ (|aᴴx|² − y)²`` by gradient descent.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    max_iter : int, default=500
        Most gradient steps.
    tol : float, default=1e-6
        Stop when a step moves the signal by less than this fraction of its norm.
    warm_up : float, default=0.0
        Time constant of the growing step, 330 in the paper; 0 for none.

    Other Parameters
    ----------------
    start : ndarray of shape (n,), optional
        Starting point. Default: the plain spectral start.
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
    if not 0 <= warm_up < np.inf:
        raise ValueError(f"warm_up must be a number that is zero or positive, got {warm_up!r}.")
    problem = build_problem(wirtinger_flow, A, y, max_iter=max_iter, tol=tol, **options)
    first = plain_start(problem) if problem.start is None else problem.start
    step = STEP / max(length(first) ** 2, np.finfo(np.float64).tiny)

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        grown = min(1.0, -np.expm1(-(t + 1) / warm_up) / STEP) if warm_up > 0 else 1.0
        move = grown * step * weighted_sum(problem.source, (abs2(s) - problem.responses) * s)
        # Bad data can make the flow diverge.
        return no_longer_than(LONGEST * length(x), move)

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


#: Least mean of a reading over the mean response.
LEAST = 1e-3


def poisson_wirtinger_flow(
    A: Any,
    y: Any,
    *,
    max_iter: int = 500,
    tol: float = 1e-6,
    background: float = 0.0,
    **options: Unpack[BaselineOptions],
) -> BaselineResult:
    """Gradient steps on the Poisson loss ``Σ |aᴴx|² + b − y log(|aᴴx|² + b)``, of the length that Fisher's information asks for.

    Parameters
    ----------
    A, start, max_iter, tol, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    y : array-like of shape (m,)
        Counts; negative ones count as zero.
    background : float, default=0.0
        Mean background b of every reading, known.

    Returns
    -------
    BaselineResult
    """
    if not 0 <= background < np.inf:
        raise ValueError(f"background must be a number that is zero or positive, got {background!r}.")
    problem = build_problem(poisson_wirtinger_flow, A, y, max_iter=max_iter, tol=tol, **options)
    first = plain_start(problem) if problem.start is None else problem.start
    counts = np.maximum(problem.responses, 0.0)
    b = background / problem.unit
    least = LEAST * float(counts.mean())

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        means = abs2(s) + b
        divisors = np.maximum(means, least)
        gradient = weighted_sum(problem.source, 2 * (means - counts) / divisors * s)
        information = (2.0 if problem.is_complex else 4.0) * abs2(s) / divisors
        curvature = float(np.mean(information * abs2(project(problem.source, gradient))))
        move = gradient * (length(gradient) ** 2 / max(curvature, np.finfo(np.float64).tiny))
        return no_longer_than(LONGEST * length(x), move)

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


#: Truncation of predictions (α_z^lb, α_z^ub) and residuals (α_h), and the step μ: the paper's recommended values.
LEAST_PREDICTION, MOST_PREDICTION, MOST_RESIDUAL = 0.3, 5.0, 5.0
TRUNCATED_STEP = 0.2


def truncated_wirtinger_flow(
    A: Any, y: Any, *, max_iter: int = 500, tol: float = 1e-8, **options: Unpack[BaselineOptions]
) -> BaselineResult:
    """Truncated gradient steps on the Poisson loss ``Σ |aᴴx|² − y log |aᴴx|²``.

    Parameters
    ----------
    A, y, max_iter, tol, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    start : ndarray of shape (n,), optional
        Starting point. Default: the truncated spectral start.

    Returns
    -------
    BaselineResult
    """
    problem = build_problem(truncated_wirtinger_flow, A, y, max_iter=max_iter, tol=tol, **options)
    first = truncated_start(problem) if problem.start is None else problem.start
    # √n/‖a‖ of the paper: predictions are judged as if all rows had the same norm.
    norms = row_norms(problem.source)
    relative = np.sqrt(problem.source.shape[1]) / np.where(norms > 0, norms, np.inf)

    def propose(x: Array, t: int) -> Array | None:
        s = project(problem.source, x)
        sizes = relative * np.abs(s) / length(x)
        residuals = abs2(s) - problem.responses
        return truncated_step(problem.source, s, residuals, sizes, MOST_RESIDUAL * float(np.abs(residuals).mean()))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


def truncated_step(
    source: RowSource, projections: Array, residuals: Array, sizes: Array, residual_limit: float
) -> Array | None:
    """One step ``2μ/m Σ (|s|² − y)/s̄ a`` over the samples in the two events of the paper; None if there are none.

    ``sizes`` are ``|s|/‖x‖``, in proportion to which the largest residual grows; it is ``residual_limit`` where they are one.
    """
    kept = (sizes >= LEAST_PREDICTION) & (sizes <= MOST_PREDICTION) & (np.abs(residuals) <= residual_limit * sizes)
    if not kept.any():
        return None
    over = np.where(kept, projections, 1.0).conj()
    return weighted_sum(source, np.where(kept, 2 * TRUNCATED_STEP * residuals / over, 0.0))


#: α_h of the medians: residuals beyond this many are truncated, in proportion to the prediction. α_l, α_u and μ are those of
#: truncated Wirtinger flow.
MOST_MEDIANS = 12.0


def median_truncated_wirtinger_flow(
    A: Any, y: Any, *, max_iter: int = 500, tol: float = 1e-8, **options: Unpack[BaselineOptions]
) -> BaselineResult:
    """Truncated gradient steps on the Poisson loss, with medians as the measure of residuals.

    Parameters
    ----------
    A, y, max_iter, tol, random_state, nonfinite, field
        As in :func:`~robustphase.baselines.wirtinger_flow`.
    start : ndarray of shape (n,), optional
        Starting point. Default: the median-truncated spectral start.

    Returns
    -------
    BaselineResult
    """
    problem = build_problem(median_truncated_wirtinger_flow, A, y, max_iter=max_iter, tol=tol, **options)
    first = median_truncated_start(problem) if problem.start is None else problem.start

    def propose(x: Array, t: int) -> Array | None:
        s = project(problem.source, x)
        residuals = abs2(s) - problem.responses
        limit = MOST_MEDIANS * float(np.median(np.abs(residuals)))
        return truncated_step(problem.source, s, residuals, np.abs(s) / length(x), limit)

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)


def no_longer_than(most: float, move: Array) -> Array:
    """The move, shortened to this length where it is longer."""
    return move * min(1.0, most / max(length(move), np.finfo(np.float64).tiny))


#: γ: samples with ``|aᴴx| < ψ/(1 + γ)`` are left out.
TRUNCATION = 0.7
#: Step μ for real and for complex data.
REAL_STEP, COMPLEX_STEP = 0.6, 1.0


def truncated_amplitude_flow(
    A: Any, y: Any, *, max_iter: int = 500, tol: float = 1e-8, **options: Unpack[BaselineOptions]
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
    problem = build_problem(truncated_amplitude_flow, A, y, max_iter=max_iter, tol=tol, **options)
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
    A: Any, y: Any, *, max_iter: int = 500, tol: float = 1e-8, **options: Unpack[BaselineOptions]
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
    problem = build_problem(reweighted_amplitude_flow, A, y, max_iter=max_iter, tol=tol, **options)
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
MOST_AMPLITUDE_RESIDUAL = 3.0
RESHAPED_STEP = 0.8


def median_reshaped_wirtinger_flow(
    A: Any,
    y: Any,
    *,
    max_iter: int = 500,
    tol: float = 1e-8,
    most_residual: float = MOST_AMPLITUDE_RESIDUAL,
    **options: Unpack[BaselineOptions],
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
    problem = build_problem(median_reshaped_wirtinger_flow, A, y, max_iter=max_iter, tol=tol, **options)
    first = median_truncated_start(problem) if problem.start is None else problem.start
    amplitudes = problem.amplitudes

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        residuals = np.abs(s) - amplitudes
        kept = np.abs(residuals) <= most_residual * np.median(np.abs(residuals))
        return weighted_sum(problem.source, np.where(kept, RESHAPED_STEP * residuals * phases(s), 0.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
