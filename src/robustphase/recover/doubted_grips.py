r"""Directions whose grips tell the doubted samples from the others.

Bad counts that were chosen by their grip on a few directions u are doubted one by one only a little, and together they show the
choice: among doubted samples grips ``g = Re(s̄ aᴴu)`` are larger. So the directions are those of a logistic regression of the
doubts d on the grips,

.. math:: \operatorname{logit} d_j \approx \alpha + \beta \log\big(c + \textstyle\sum_i g_{ij}^2\big),

which also learns how sharp the choice was: second moments alone would not tell a threshold from a slope. The regression starts at
the directions in which the doubts beyond those of the energies vary most. Classes by the sizes of these grips then replace those
by energies (:mod:`robustphase.likelihood.bad_classes`), where that makes the counts more likely than as many unknowns as the
directions have would by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from robustphase.constants import budget, derived, numeric
from robustphase.descend.law_fit import LawFit
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem, real_unknowns
from robustphase.rows import adjoint, project
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class GripOptions:
    """Constants of the regression."""

    directions: tuple[int, ...] = budget(
        (1, 4), "numbers of directions that are tried: an attack along one, and one along several"
    )
    rounds: int = budget(3, "times that directions are learned again from better doubts")
    begin: int = budget(8, "steps of the subspace iteration that the regression starts from")
    steps: int = budget(30, "steps of the regression, a pass over the rows there and one back each")
    floor: float = numeric(0.05, "c, over the mean of the squared grips: smaller ones are all alike")
    ambiguous: float = derived(
        0.5,
        "doubts that are neither sure nor none, Σ d (1 − d), for each unknown of a direction: each could gain about as much, "
        "and that much is gained by chance",
    )


GRIPS = GripOptions()


def worth_learning(fit: LawFit, readings: Readings) -> bool:
    """Whether so many samples are neither surely good nor surely bad that knowing which are prone to be bad could matter."""
    doubts = 1 - fit.judged.clean[:, 0]
    ambiguous = float((readings.weights[:, 0] * doubts) @ (1 - doubts))
    return ambiguous > GRIPS.ambiguous * real_unknowns(fit.signals)


def doubted_grips(problem: Problem, fit: LawFit, readings: Readings, count: int, *, seed: int = 0) -> Array:
    """Sizes of the grips on the directions that tell the doubted samples of one signal from the others, shape (m, 1).

    Parameters
    ----------
    problem : Problem
        The covariates.
    fit : LawFit
        The fit of one column under a law of counts.
    readings : Readings
        What was read, with what the fit took for prone to be bad.
    count : int
        Number of directions; no more than there are real unknowns are sought.
    seed : int, default=0
        For the first guess.
    """
    count = min(count, real_unknowns(fit.signals))
    doubts = 1 - fit.judged.clean[:, 0]
    weights = readings.weights[:, 0]
    expected = fit.law.mixing[0] * (1.0 if readings.prone is None else readings.prone[:, 0])
    vectors = _first_directions(problem, fit, weights * (doubts - np.clip(expected, 0.0, 1.0)), count, seed)
    vectors = _regressed(problem, fit.projections[:, 0], doubts, weights, vectors)
    sizes: Array = np.sqrt(_squares(_grips(problem, fit.projections[:, 0], vectors)))[:, np.newaxis]
    return sizes


def _first_directions(problem: Problem, fit: LawFit, excess: Array, count: int, seed: int) -> Array:
    """Where doubts beyond the expected ones vary most with standardised grips: a subspace iteration."""
    signal = fit.signals[:, 0]
    turned = fit.projections[:, 0] / np.sqrt(fit.means[:, 0])
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((signal.size, count)).astype(signal.dtype)
    for _ in range(GRIPS.begin):
        vectors = _orthonormal(vectors)
        grips = _grips(problem, turned, vectors)
        vectors = adjoint(problem.source, turned[:, np.newaxis] * excess[:, np.newaxis] * grips)
    return _orthonormal(vectors)


def _regressed(problem: Problem, inner: Array, doubts: Array, weights: Array, vectors: Array) -> Array:
    """The directions (n, count) of the logistic regression, by a quasi-Newton method."""
    unit = max(float(np.mean(_squares(_grips(problem, inner, vectors)))), _TINY)
    vectors = vectors / np.sqrt(unit)
    share = np.clip(float(weights @ doubts) / max(float(weights.sum()), _TINY), 1e-3, 0.5)

    def loss(point: Array) -> tuple[float, Array]:
        directions = _from_real(point[:-2], vectors)
        grips = _grips(problem, inner, directions)
        sizes = GRIPS.floor + _squares(grips)
        logs = np.log(sizes)
        odds = point[-2] + point[-1] * logs
        value = weights @ (np.logaddexp(0.0, odds) - doubts * odds)
        slopes = weights * (expit(odds) - doubts)
        pulls = (2 * point[-1] * slopes / sizes * inner)[:, np.newaxis] * grips
        gradient = _as_real(adjoint(problem.source, pulls))
        return float(value), np.concatenate((gradient, (slopes.sum(), slopes @ logs)))

    start = np.concatenate((_as_real(vectors), (np.log(share / (1 - share)), 0.5)))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": GRIPS.steps})
    return _from_real(found.x[:-2], vectors)


def _grips(problem: Problem, turned: Array, vectors: Array) -> Array:
    grips: Array = (turned.conj()[:, np.newaxis] * project(problem.source, vectors)).real
    return grips


def _squares(grips: Array) -> Array:
    squares: Array = np.einsum("ij,ij->i", grips, grips)
    return squares


def _as_real(vectors: Array) -> Array:
    """All numbers of the vectors in a row, real and imaginary parts one after the other."""
    flat: Array = np.ascontiguousarray(vectors).ravel()
    return flat.view(flat.real.dtype).astype(np.float64)


def _from_real(numbers: Array, like: Array) -> Array:
    vectors: Array = numbers.astype(like.real.dtype).view(like.dtype).reshape(like.shape)
    return vectors


def _orthonormal(vectors: Array) -> Array:
    """Orthogonal as vectors of real numbers: a direction and the same times i are two."""
    n, count = vectors.shape
    flat = vectors.T.copy().view(vectors.real.dtype).reshape(count, -1)
    basis = np.linalg.qr(flat.T)[0]
    return _from_real(np.ascontiguousarray(basis.T).ravel(), np.empty((count, n), vectors.dtype)).T.copy()
