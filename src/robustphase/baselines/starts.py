"""Spectral starts of the literature: an extreme eigenvector of ``Σ w_j a_j a_jᴴ``, times an estimate of the norm.

They differ in the weights w, which is all a start can do about bad samples:

================================  ==========================================================  ===================
start                             weights                                                     norm
================================  ==========================================================  ===================
plain                             y                                                           root of the mean
truncated                         y where it is below 9 times the mean                        root of the mean
median-truncated                  y where it is below 9 times the scaled median               root of that median
maximal correlation               1/‖a‖² for the sixth of samples with the largest ψ/‖a‖      root of the mean
weighted maximal correlation      √ψ for the 3/13 of samples with the largest ψ               root of the mean
least correlation                 1 for responses below the median, smallest eigenvector      least absolute fit
================================  ==========================================================  ===================

with ψ = √y. None of them defends against bad covariates. Eigenvectors are found by Lanczos iterations, one pass each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.baselines.problem import Problem
from robustphase.rows import RowSource, ScaledRows, project, sweep
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

#: Most Lanczos iterations, and the relative residual at which they end: starts are rough anyway.
LANCZOS_STEPS, LANCZOS_TOL = 150, 1e-4
#: Responses beyond 3² times their level are truncated (α_y of Chen and Candès; of Zhang, Chi and Liang).
RESPONSE_TRUNCATION = 3.0
#: Medians of a squared standard normal variable, and of a squared complex one: 0.455 and log 2.
REAL_MEDIAN, COMPLEX_MEDIAN = 0.4549364231195728, 0.6931471805599453
#: Shares of the samples that the two maximal-correlation starts use.
CORRELATED_SHARE, WEIGHTED_SHARE = 1 / 6, 3 / 13
#: Exponent of ψ in the weights of the latter.
AMPLITUDE_POWER = 0.5

#: Least squared length of the imaginary part over that of the real one in a start behind real rows: a flow does not leave zero.
LEAST_PART = 0.05
#: Below this, a norm counts as zero: its inverse square must still be a number.
_TINY = 1e-100


class Eigenpair(NamedTuple):
    """A unit vector and its eigenvalue."""

    vector: Array
    value: float


def extreme_eigenpair(
    source: RowSource, weights: Array, *, seed: int, smallest: bool = False, orthogonal: Array | None = None
) -> Eigenpair:
    """Largest (or smallest) eigenvalue of ``Σ w_j a_j a_jᴴ / m`` by Lanczos iterations with full orthogonalisation.

    The weights are of either sign. Vectors may be asked to be ``orthogonal`` to a unit vector (n,).
    """
    n = source.shape[1]
    rng = np.random.default_rng(seed)
    first = rng.standard_normal(n) + (1j * rng.standard_normal(n) if source.dtype.kind == "c" else 0.0)
    around = np.zeros((n, 0)) if orthogonal is None or n == 1 else orthogonal[:, np.newaxis]
    first = first - around @ (around.conj().T @ first)
    basis: list[Array] = [first / np.linalg.norm(first)]
    diagonal: list[float] = []
    beside: list[float] = []
    while True:
        image = sweep(source, basis[-1], lambda s, w: w * s, (weights / source.shape[0],)).total
        diagonal.append(float(np.vdot(basis[-1], image).real))
        spanned = np.stack(basis, axis=1)
        # Twice: the first projection leaves roundings that the next vector would amplify.
        taken = np.hstack((around, spanned))
        for _ in range(2):
            image = image - taken @ (taken.conj().T @ image)
        small = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        values, rotations = np.linalg.eigh(small)
        end = 0 if smallest else -1
        left = float(np.linalg.norm(image))
        scale = float(np.abs(values).max())
        settled = left * abs(rotations[-1, end]) <= LANCZOS_TOL * scale
        if settled or len(basis) == min(n - around.shape[1], LANCZOS_STEPS) or left <= np.finfo(np.float64).eps * scale:
            vector = spanned @ rotations[:, end]
            return Eigenpair(vector / np.linalg.norm(vector), float(values[end]))
        beside.append(left)
        basis.append(image / left)


def leading_direction(problem: Problem, weights: Array, *, smallest: bool = False) -> Array:
    """The unit vector that a spectral start takes from ``Σ w_j a_j a_jᴴ``.

    A complex signal behind real rows shows in two directions, its real and its imaginary part, by eigenvalues that stand out from
    the mean weight as the squared lengths of the parts do.
    """
    first = extreme_eigenpair(problem.source, weights, seed=problem.seed, smallest=smallest)
    if not problem.paired:
        return first.vector
    second = extreme_eigenpair(problem.source, weights, seed=problem.seed, smallest=smallest, orthogonal=first.vector)
    level = float(weights.mean())
    share = abs(second.value - level) / max(abs(first.value - level), _TINY)
    pair: Array = first.vector + 1j * np.sqrt(np.clip(share, LEAST_PART, 1.0)) * second.vector
    pair /= np.linalg.norm(pair)
    return pair


def plain_start(problem: Problem) -> Array:
    """Spectral start of Wirtinger flow (Candès, Li and Soltanolkotabi, 2015, Algorithm 1)."""
    return _mean_norm(problem) * leading_direction(problem, problem.responses)


def truncated_start(problem: Problem) -> Array:
    """Truncated spectral start (Chen and Candès, 2017, Algorithm 1, step 1): no response beyond 9 times their mean."""
    y = problem.responses
    kept = np.abs(y) <= RESPONSE_TRUNCATION**2 * max(float(y.mean()), 0.0)
    direction = leading_direction(problem, np.where(kept, y, 0.0))
    mean_square = float(np.mean(row_norms(problem.source) ** 2))
    correction = np.sqrt(problem.source.shape[1] / mean_square) if mean_square > _TINY else 0.0
    start: Array = correction * _mean_norm(problem) * direction
    return start


def median_truncated_start(problem: Problem) -> Array:
    """Median-truncated spectral start (Zhang, Chi and Liang, 2018, Algorithm 1, step 1)."""
    y = problem.responses
    square = max(float(np.median(y)), 0.0) / (COMPLEX_MEDIAN if problem.is_complex else REAL_MEDIAN)
    kept = np.abs(y) <= RESPONSE_TRUNCATION**2 * square
    start: Array = np.sqrt(square) * leading_direction(problem, np.where(kept, y, 0.0))
    return start


def maximal_correlation_start(problem: Problem) -> Array:
    """Orthogonality-promoting start (Wang, Giannakis and Eldar, 2018, Algorithm 1, step 2).

    The vector most orthogonal to the covariates with small ``ψ/‖a‖`` is, for isotropic ones, the most correlated with
    all others, which is how the paper computes it.
    """
    norms = row_norms(problem.source)
    usable = norms > _TINY
    safe = np.where(usable, norms, 1.0)
    chosen = largest(np.where(usable, problem.amplitudes / safe, -1.0), CORRELATED_SHARE)
    weights = np.where(chosen & usable, 1.0 / (safe * safe), 0.0)
    return _mean_norm(problem) * leading_direction(problem, weights)


def weighted_maximal_correlation_start(problem: Problem) -> Array:
    """Weighted maximal correlation start (Wang, Giannakis, Saad and Chen, 2018, Algorithm 1, step 2)."""
    weights = np.where(largest(problem.amplitudes, WEIGHTED_SHARE), problem.amplitudes**AMPLITUDE_POWER, 0.0)
    return _mean_norm(problem) * leading_direction(problem, weights)


def least_correlation_start(problem: Problem) -> Array:
    """Start of Duchi and Ruan (2019, section 3) for data with outliers.

    The direction least correlated with the half of the covariates that have small responses; the norm minimises
    ``Σ |y − r² (aᴴd)²|``, a weighted median.
    """
    y = problem.responses
    low = (y <= np.median(y)).astype(np.float64)
    direction = leading_direction(problem, low, smallest=True)
    energies = abs2(project(problem.source, direction))
    start: Array = np.sqrt(max(least_absolute_slope(energies, y), 0.0)) * direction
    return start


def least_absolute_slope(regressors: Array, responses: Array) -> float:
    """``q`` that minimises ``Σ |y − q t|`` for t >= 0: the median of y/t with weights t."""
    used = regressors > max(np.finfo(np.float64).eps * float(regressors.max()), _TINY)
    if not used.any():
        return 0.0
    ratios, weights = responses[used] / regressors[used], regressors[used]
    order = np.argsort(ratios, kind="stable")
    cumulated = np.cumsum(weights[order])
    return float(ratios[order][np.searchsorted(cumulated, 0.5 * cumulated[-1])])


def largest(values: Array, share: float) -> Array:
    """Which entries are among the largest ``share`` of all (boolean): exactly ⌈share · m⌉, first come at ties."""
    chosen = np.zeros(values.size, bool)
    chosen[np.argsort(-values, kind="stable")[: int(np.ceil(share * values.size))]] = True
    return chosen


def row_norms(source: RowSource) -> Array:
    """``‖a_j‖`` for every row: one pass."""
    norms: Array = np.sqrt(ScaledRows(source).squared_distances().astype(np.float64))
    return norms


def _mean_norm(problem: Problem) -> float:
    """``sqrt(mean y)``, the norm of the signal if the rows are standard normal; zero if the mean is negative."""
    return float(np.sqrt(max(float(problem.responses.mean()), 0.0)))
