"""How far to move: the paper's constant steps, what they should be, the population-Newton step, and where they lead.

A constant step ``η`` contracts by ``max(|1 − ηα|, |1 − ηβ|)`` when all curvatures on the way lie in ``[α, β]``, so
``2/(α + β)`` is best for a given ball. The curvatures scale with the unknown ``‖x*‖²``; a start inside the ball of
relative radius ``R`` gives ``‖x₀‖ ≥ (1 − R)‖x*‖``, hence the steps ``2(1 − R)²/((α + β)‖x₀‖²)``. With the exact
curvatures these are ``1/(6‖x₀‖²)`` for ``R = 1/9`` and ``25/(136‖x₀‖²)`` for ``R = 1/6``.

The Newton step replaces the constant by the curvature at the solution, ``2‖x‖²I + 4xxᵀ`` (``2‖x‖²I + 2xxᵀ`` when the
background is fitted), evaluated at the current point. Its inverse is a multiple of the identity plus a rank-one
matrix, so it costs nothing.

``descent_path`` is what Algorithms 2 and 4 do with infinitely many clean samples. What goes wrong there goes wrong
everywhere: it is the proof by example that the published step of Algorithm 4 does not converge (docs/errata.md, entry A3).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from robustphase.constants import TINY
from robustphase.population._vectors import NoiseMean, check_noise_mean
from robustphase.population.curvature import CurvatureRange, curvature_range
from robustphase.population.model import gradient as risk_gradient
from robustphase.population.real_rows import PairedCurvature, normal_moments

STEPS_AS_PUBLISHED: Final[dict[str, Fraction]] = {"zero": Fraction(128, 981), "unknown": Fraction(1024, 1647)}
"""Steps of Algorithms 2 and 4 as published, times ``‖x₀‖²``. The second one is too large: docs/errata.md, entry A3."""

PAPER_STEPS: Final[dict[str, Fraction]] = {"zero": Fraction(128, 981), "unknown": Fraction(25, 136)}
"""Steps of Algorithms 2 and 4, times ``‖x₀‖²``, the second one corrected with the exact curvatures."""

# Curvature at the solution (across the signal, along the signal) over ‖x‖²; real, then complex (Wirtinger).
_SOLUTION_CURVATURE: Final[dict[tuple[bool, str], tuple[float, float]]] = {
    (False, "zero"): (2.0, 6.0),
    (False, "unknown"): (2.0, 4.0),
    (True, "zero"): (1.0, 4.0),
    (True, "unknown"): (1.0, 2.0),
}

LEAST_PAIRED: Final = 0.01
"""Least curvature over ‖x‖² that is divided by behind real rows: an imaginary part of a tenth of the signal has twice that."""


def step_as_published(start: npt.ArrayLike, *, noise_mean: NoiseMean = "zero") -> float:
    """Step exactly as published in Algorithm 2 (``noise_mean="zero"``) or Algorithm 4 (``"unknown"``).

    Kept to show what it does; for descending use ``paper_step``. The step of Algorithm 4 exceeds the stability limit
    ``1/(2‖x*‖²)`` unless ``‖x₀‖² > 2048/1647 ‖x*‖²``.

    Parameters
    ----------
    start : array_like of shape (n,)
        The initial point ``x₀``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    float
    """
    check_noise_mean(noise_mean)
    return float(STEPS_AS_PUBLISHED[noise_mean]) / _power(start)


def paper_step(start: npt.ArrayLike, *, noise_mean: NoiseMean = "zero") -> float:
    """Constant step of Algorithm 2, valid as published, or of Algorithm 4, corrected.

    Algorithm 2: ``128/(981‖x₀‖²)``. Algorithm 4: ``25/(136‖x₀‖²)``, which contracts the distance to the truth by 0.82
    or better in every step of the population descent from anywhere in the ball of radius ``‖x*‖/6``.

    Parameters
    ----------
    start : array_like of shape (n,)
        The initial point ``x₀``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    float
    """
    check_noise_mean(noise_mean)
    return float(PAPER_STEPS[noise_mean]) / _power(start)


def guaranteed_step(start: npt.ArrayLike, relative_radius: float, *, noise_mean: NoiseMean = "zero") -> float:
    """Largest step ``2/(α + β)`` that is safe for every truth within ``relative_radius · ‖x*‖`` of ``start``.

    The paper's recipe (proof of Theorem 3.3) with the exact ``α`` and ``β`` of the ball.

    Parameters
    ----------
    start : array_like of shape (n,)
        The initial point ``x₀``.
    relative_radius : float
        How far the start may be from the truth, over ``‖x*‖``; below ``convexity_radius(noise_mean)``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    float
    """
    alpha, beta = curvature_range(relative_radius, noise_mean=noise_mean)
    if alpha <= 0.0:
        raise ValueError(
            f"the risk is not convex in a ball of relative radius {relative_radius}, so no step is guaranteed; "
            f'stay below convexity_radius("{noise_mean}")'
        )
    return 2.0 / (alpha + beta) * (1.0 - relative_radius) ** 2 / _power(start)


def contraction(step: float, curvature: CurvatureRange) -> float:
    """Factor by which one gradient step shrinks the distance to the truth when all curvatures lie in the given range.

    ``x − x* − η∇r(x) = (I − ηM)(x − x*)`` with ``M`` the Hessian averaged over the segment from ``x*`` to ``x``, so
    the factor is ``max(|1 − ηα|, |1 − ηβ|)``. Only the segment has to lie in the region, which makes the bound local,
    as Lemma 2.2 needs it.

    Parameters
    ----------
    step : float
        The step ``η``.
    curvature : CurvatureRange
        ``α`` and ``β``, in the units of ``1/η``.

    Returns
    -------
    float
        Below 1 exactly if ``0 < η < 2/β`` and ``α > 0``.
    """
    alpha, beta = curvature
    return max(abs(1.0 - step * alpha), abs(1.0 - step * beta))


def paper_contraction(step: float, curvature: CurvatureRange) -> float:
    """Factor ``√(1 − 2ηαβ/(α + β))`` of Lemma 2.2, valid for ``η ≤ 2/(α + β)`` and never smaller than ``contraction``.

    Parameters
    ----------
    step : float
        The step ``η``.
    curvature : CurvatureRange
        ``α`` and ``β``, in the units of ``1/η``.

    Returns
    -------
    float
    """
    alpha, beta = curvature
    # At the largest admissible step and α = β the radicand is zero and rounding may push it below.
    if step * (alpha + beta) > 2.0 * (1.0 + 1e-12):
        raise ValueError(f"Lemma 2.2 needs step <= 2/(alpha + beta) = {2.0 / (alpha + beta)}, got {step}")
    return math.sqrt(max(0.0, 1.0 - 2.0 * step * alpha * beta / (alpha + beta)))


def solution_curvature(
    signal: npt.ArrayLike, *, noise_mean: NoiseMean = "zero", is_complex: bool | None = None
) -> CurvatureRange:
    """Smallest and largest curvature at the solution ``signal``: across it and along it.

    Real signals: 2 and 6 times ``‖x‖²``, or 2 and 4 with an unknown noise mean. Complex signals: 1 and 4, or 1 and 2
    (and 0 along ``ix``, the direction of the global phase, which is left out).

    Parameters
    ----------
    signal : array_like of shape (n,)
        The solution.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    is_complex : bool, optional
        Default: whether ``signal`` has a complex dtype.

    Returns
    -------
    CurvatureRange
    """
    check_noise_mean(noise_mean)
    if is_complex is None:
        is_complex = np.iscomplexobj(np.asarray(signal))
    power = _power(signal)
    across, along = _SOLUTION_CURVATURE[is_complex, noise_mean]
    return CurvatureRange(across * power, along * power)


def best_local_step(signal: npt.ArrayLike, *, noise_mean: NoiseMean = "zero") -> float:
    """Fastest constant step close to the solution, ``2/(smallest + largest curvature)``.

    ``1/(4‖x‖²)``, or ``1/(3‖x‖²)`` with an unknown noise mean; complex ``2/(5‖x‖²)`` and ``2/(3‖x‖²)``.

    Parameters
    ----------
    signal : array_like of shape (n,)
        The solution, or a point close to it.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    float
    """
    across, along = solution_curvature(signal, noise_mean=noise_mean)
    return 2.0 / (across + along)


def newton_step(
    signal: npt.NDArray[Any],
    gradient: npt.NDArray[Any],
    *,
    noise_mean: NoiseMean = "zero",
    damping: float = 1.0,
    max_relative_length: float | None = None,
    real_rows: bool = False,
) -> npt.NDArray[Any]:
    """Population-Newton displacement ``d = damping · H⁻¹ gradient``; the next iterate is ``signal − d``.

    ``H`` is the curvature the risk would have if ``signal`` were the solution: ``2‖x‖²I + 4xxᵀ``, or
    ``2‖x‖²I + 2xxᵀ`` with an unknown noise mean. For complex signals the component along ``ix`` is dropped: it only
    turns the global phase.

    Parameters
    ----------
    signal : ndarray of shape (n,)
        The current point, real or complex, not zero.
    gradient : ndarray of shape (n,)
        Population gradient there, or a robust estimate of it.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models produced the gradient.
    damping : float, default 1
        Factor on the step; below 1 when the sample curvature is far from the population one.
    max_relative_length : float, optional
        Shorten the step to this multiple of ``‖signal‖`` if it is longer.
    real_rows : bool, default False
        A complex signal stands behind real rows, whose curvature is that of ``population.real_rows``.

    Returns
    -------
    ndarray of shape (n,), in the dtype of the arguments
    """
    check_noise_mean(noise_mean)
    if signal.shape != gradient.shape:
        raise ValueError(f"signal and gradient must have the same shape, got {signal.shape} and {gradient.shape}")
    size = math.sqrt(_power(signal))
    solve = inverse_curvature(signal[:, np.newaxis], noise_mean=noise_mean, real_rows=real_rows)
    step: npt.NDArray[Any] = damping * solve(gradient[:, np.newaxis])[:, 0]
    step = step.astype(np.result_type(signal, gradient), copy=False)
    if max_relative_length is not None:
        length = float(np.linalg.norm(step))
        if length > max_relative_length * size:
            step = step * (max_relative_length * size / length)
    return step


def inverse_curvature(
    signals: npt.NDArray[Any], *, noise_mean: NoiseMean = "zero", real_rows: bool = False
) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """The inverses of the curvatures ``H`` of `newton_step` at k signals, as a function of k vectors.

    ``H`` is symmetric for the real inner product ``Re⟨u, v⟩``. A signal of zero has no curvature to divide by: its vectors
    become zero.

    Parameters
    ----------
    signals : ndarray of shape (n, k)
        The points, real or complex.
    noise_mean, real_rows
        As in `newton_step`. A nearly real signal behind real rows has curvatures that nothing should be divided by; they
        count as a hundredth of ‖x‖².

    Returns
    -------
    callable
        From an array of shape (n, k) to ``H⁻¹ v`` of every column, of the same shape.
    """
    squares = np.vecdot(signals.T, signals.T).real
    some = squares > 0
    units = signals / np.sqrt(np.where(some, squares, 1.0))
    powers = np.where(some, np.maximum(squares, TINY), np.inf)
    if np.iscomplexobj(signals) and real_rows:
        least = np.full(squares.size, LEAST_PAIRED)
        pairs = PairedCurvature(
            units, normal_moments(units), profiled=noise_mean == "unknown", least_across=least, least_along=least
        )
        return lambda vectors: pairs.solve(vectors) / powers

    def solve(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        is_complex = np.iscomplexobj(signals) or np.iscomplexobj(vectors)
        across, along = _SOLUTION_CURVATURE[is_complex, noise_mean]
        radial = np.vecdot(units.T, vectors.T)
        # Split off the component along the signal (and the phase), divide each part by its own curvature.
        solved: npt.NDArray[Any] = (vectors / across + (radial.real / along - radial / across) * units) / powers
        return solved

    return solve


def descent_path(
    start: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    step: float | None = None,
    n_steps: int = 50,
    noise_mean: NoiseMean = "zero",
    max_relative_length: float | None = 0.4,
) -> npt.NDArray[Any]:
    """Iterates ``x₀, …, x_T`` of gradient descent on the population risk.

    Parameters
    ----------
    start, truth : array_like of shape (n,)
        The initial point ``x₀`` and the true signal ``x*``, real or complex.
    step : float, optional
        Constant step ``η``. Default: population-Newton steps.
    n_steps : int, default 50
        Number of iterations ``T``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    max_relative_length : float, optional
        Limit on the length of a Newton step over ``‖x‖``; ignored with a constant step.

    Returns
    -------
    ndarray of shape (n_steps + 1, n)
    """
    first, target = np.asarray(start), np.asarray(truth)
    dtype = np.complex128 if np.iscomplexobj(first) or np.iscomplexobj(target) else np.float64
    path = np.empty((n_steps + 1, first.size), dtype=dtype)
    path[0] = first
    for t in range(n_steps):
        slope = risk_gradient(path[t], target, noise_mean=noise_mean)
        if step is None:
            path[t + 1] = path[t] - newton_step(
                path[t], slope, noise_mean=noise_mean, max_relative_length=max_relative_length
            )
        else:
            path[t + 1] = path[t] - step * slope
    return path


def _power(signal: npt.ArrayLike) -> float:
    """Squared norm; a zero signal has no scale to set a step by."""
    array = np.asarray(signal)
    power = float(np.vdot(array, array).real)
    if power == 0.0:
        raise ValueError("the signal is zero, and every step is scaled by its norm: start somewhere else")
    return power
