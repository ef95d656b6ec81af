r"""Directions whose grips tell the doubted samples from the others.

Bad counts that were chosen by their grip on a few directions u are doubted one by one only a little, and together they show the
choice: among doubted samples grips ``g = Re(s* p)``, ``p = aᴴu``, are larger. So the directions are those of a logistic
regression of the doubts d on the grips,

.. math:: \operatorname{logit} d_j \approx \alpha + \beta \log\big(c + \textstyle\sum_i g_{ij}^2\big),

which also learns how sharp the choice was: second moments alone would not tell a threshold from a slope. The regression starts at
the directions in which the doubts beyond those of the energies vary most. Classes by these odds then replace those by energies
(:mod:`robustphase.likelihood.bad_classes`), where that makes the counts more likely than as many unknowns as the directions have
would by chance.

The doubts follow from the present classes, so that they come to a sharp choice in many rounds only. Once they have shown that
there is one, odds are fitted to the readings themselves, with the laws of good and bad ones held. Then also the distance is told
from which the samples were chosen: whoever chose them need not have looked at the signal itself, but at one to which it is to be
led, some way t along u, where grips are ``Re[(s + t p)* p]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from robustphase.constants import budget, derived, numeric
from robustphase.descend.law_fit import LawFit
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem, real_unknowns
from robustphase.rows import adjoint, project
from robustphase.rows.passes import abs2
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
    surest: float = numeric(1e-12, "least doubt, and least of what is left of one: its logarithm is a number")
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


def doubted_grips(
    problem: Problem, fit: LawFit, readings: Readings, count: int, *, seed: int = 0, sharp: bool = False
) -> Array:
    """How prone to be bad the grips of the samples of one signal make them, log odds of shape (m, 1).

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
    sharp : bool, default=False
        Explain the readings themselves in place of the doubts, which know of the present classes and do not go far from them.
    """
    count = min(count, real_unknowns(fit.signals))
    doubts, weights = 1 - fit.judged.clean[:, 0], readings.weights[:, 0]
    share = np.clip(float(weights @ doubts) / max(float(weights.sum()), _TINY), 1e-3, 0.5)
    if sharp:
        unprone = 1 - fit.law.judge(readings._replace(prone=None), fit.means).clean[:, 0]
        explained: _Doubts | _Readings = _Readings(_odds(unprone) - _odds(fit.law.mixing[0]))
        excess = unprone - share
    else:
        explained = _Doubts(doubts)
        expected = fit.law.mixing[0] * (1.0 if readings.prone is None else readings.prone[:, 0])
        excess = doubts - np.clip(expected, 0.0, 1.0)
    vectors = _first_directions(problem, fit, weights * excess, count, seed)
    odds = _regressed(problem, fit.projections[:, [0]], explained, weights, vectors, share)
    return odds[:, np.newaxis]


def _odds(shares: Array) -> Array:
    """Their logarithms."""
    odds: Array = logit(np.clip(shares, GRIPS.surest, 1 - GRIPS.surest))
    return odds


class _Doubts(NamedTuple):
    """Doubts (m,) that are to be explained, by grips at the signal itself."""

    doubts: Array
    distant: float = 0.0

    def losses(self, odds: Array) -> tuple[Array, Array]:
        """Losses of log odds, and the doubts that these would leave."""
        return np.logaddexp(0.0, odds) - self.doubts * odds, self.doubts


class _Readings(NamedTuple):
    """Readings that are to be explained: logarithms (m,) of how many times as likely they are as bad ones.

    What they say is sharp enough to tell the distance of the grips, too.
    """

    evidence: Array
    distant: float = 1.0

    def losses(self, odds: Array) -> tuple[Array, Array]:
        """Losses of log odds, and the doubts that these would leave."""
        there = odds + self.evidence
        return np.logaddexp(0.0, odds) - np.logaddexp(0.0, there), expit(there)


def _first_directions(problem: Problem, fit: LawFit, excess: Array, count: int, seed: int) -> Array:
    """Where doubts beyond the expected ones vary most with standardised grips: a subspace iteration."""
    signal = fit.signals[:, 0]
    turned = fit.projections[:, [0]] / np.sqrt(fit.means[:, [0]])
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((signal.size, count)).astype(signal.dtype)
    for _ in range(GRIPS.begin):
        vectors = _orthonormal(vectors)
        grips = _grips(turned, project(problem.source, vectors))
        vectors = adjoint(problem.source, turned * excess[:, np.newaxis] * grips)
    return _orthonormal(vectors)


def _regressed(
    problem: Problem,
    inner: Array,
    explained: _Doubts | _Readings,
    weights: Array,
    vectors: Array,
    share: float,
) -> Array:
    """Log odds (m,) of the logistic regression, by a quasi-Newton method."""
    unit = max(float(np.mean(_squares(_grips(inner, project(problem.source, vectors))))), _TINY)
    vectors = vectors / np.sqrt(unit)
    count = vectors.shape[1]

    def seen(point: Array) -> tuple[Array, Array, Array]:
        """Projections on the directions, those of the signals at a distance along each, and sizes of the grips there."""
        along = project(problem.source, _from_real(point[: -count - 2], vectors))
        there = inner + point[-count - 2 : -2] * along
        return along, there, GRIPS.floor + _squares(_grips(there, along))

    def loss(point: Array) -> tuple[float, Array]:
        along, there, sizes = seen(point)
        logs = np.log(sizes)
        odds = point[-2] + point[-1] * logs
        losses, doubts = explained.losses(odds)
        slopes = weights * (expit(odds) - doubts)
        pulls = (2 * point[-1] * slopes / sizes)[:, np.newaxis] * _grips(there, along)
        gradient = _as_real(adjoint(problem.source, pulls * (2 * there - inner)))
        distances = explained.distant * (pulls * abs2(along)).sum(axis=0)
        return float(weights @ losses), np.concatenate((gradient, distances, (slopes.sum(), slopes @ logs)))

    start = np.concatenate((_as_real(vectors), np.zeros(count), (np.log(share / (1 - share)), 0.5)))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": GRIPS.steps})
    odds: Array = found.x[-2] + found.x[-1] * np.log(seen(found.x)[2])
    return odds


def _grips(signals: Array, along: Array) -> Array:
    """``Re(s* p)`` of projections s of signals and p of directions, shape (m, count)."""
    grips: Array = (signals.conj() * along).real
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
