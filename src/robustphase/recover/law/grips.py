r"""Directions along which an adversary has chosen the samples: their grips tell them from the others.

Bad counts that were chosen by their grip on a few directions u are doubted one by one only a little, and together they show the
choice: among doubted samples grips ``g = Re(s* p)``, ``p = aᴴu``, are larger. So the directions are those of a logistic
regression of the doubts d on the grips,

.. math:: \operatorname{logit} d_j \approx \alpha + \beta \log\big(c + \textstyle\sum_i g_{ij}^2\big),

which also learns how sharp the choice was: second moments alone would not tell a threshold from a slope. The regression starts at
the directions in which the doubts beyond those of the energies vary most. Classes by these odds then replace those by energies
(:func:`~robustphase.likelihood.bad_responses.bad_classes`), where that makes the counts more likely than as many unknowns as the
directions have would by chance.

The doubts follow from the present classes, so that they come to a sharp choice in many rounds only. Once they have shown that
there is one, odds are fitted to the readings themselves, with the laws of good and bad ones held. Then also the distance is told
from which the samples were chosen: whoever chose them need not have looked at the signal itself, but at one to which it is to be
led, some way t along u, where grips are ``Re[(s + t p)* p]``.

Another trace of such a choice is a direction in which samples of large and of small grip disagree. The grip of a sample is ``g =
2 Re(s̄ aᴴu)/√μ``, by how much its mean moves, in standard deviations, where the signal moves along u. A fit balances ``Σ w z g``
to zero for every u, z the standardised residuals. An adversary that has rewritten the samples of largest grip along one direction
holds that balance at a wrong signal: there samples of large grip pull one way and all others the other way. So the cubic form ``Σ
w z g³``, whose expectation is zero for clean samples at the truth, is large for that direction, and its power iteration finds it.
Grips are clipped, or the direction would be that of a single row.

Without the samples of largest grip the fit then moves along the direction by more than chance, and with bad readings whose share
and law know their grip all samples together are more likely, by more than the n unknowns of a direction explain. Both are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.descend.law_fit import LawFit
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem, real_unknowns
from robustphase.rows import adjoint, project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


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

    The readings come with what the fit took for prone to be bad. No more directions are sought than there are real unknowns.
    ``sharp`` explains the readings themselves in place of the doubts, which know of the present classes and do not go far from
    them.
    """
    count = min(count, real_unknowns(fit.signals))
    doubts, weights = 1 - fit.judged.clean[:, 0], readings.weights[:, 0]
    share = np.clip(float(weights @ doubts) / max(float(weights.sum()), TINY), 1e-3, 0.5)
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
    unit = max(float(np.mean(_squares(_grips(inner, project(problem.source, vectors))))), TINY)
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


@dataclass(frozen=True)
class DirectionOptions:
    """Constants of the search."""

    clip: float = derived(
        2.0, "grips count up to this many of their root mean squares: a normal one is larger once in twenty"
    )
    starts: int = budget(8, "random directions beside that of the signal from which the iteration begins")
    steps: int = budget(8, "steps of the power iteration, a pass over the rows there and one back each")
    share: float = derived(
        2.0, "samples of largest grip that are left out at first, in shares of bad ones: their order is that of a guess"
    )
    deviations: float = derived(4.5, "standard deviations of chance that are no evidence: exceeded in one fit of 10⁵")
    gain: float = derived(
        0.5, "log-likelihood that each unknown of a direction gains by chance: half a squared normal one"
    )


DIRECTION = DirectionOptions()


class Grip(NamedTuple):
    """A direction (n,) of length one, and the grips (m,) of the samples on it."""

    direction: Array
    grips: Array


def doubtful_direction(problem: Problem, fit: LawFit, column: int, *, seed: int = 0) -> Grip:
    """Where the samples of one column disagree most under a law of counts: two passes over the rows a step."""
    signal, means = fit.signals[:, column], fit.means[:, column]
    turned = 2 * fit.projections[:, column] / np.sqrt(means)
    # w r √μ are the residuals over their deviations, weighed.
    pulls = fit.judged.weights[:, column] * fit.judged.residuals[:, column] * np.sqrt(means)
    rng = np.random.default_rng(seed)
    guesses = rng.standard_normal((signal.size, DIRECTION.starts))
    vectors = _unit(np.column_stack((signal, guesses)).astype(signal.dtype))
    for _ in range(DIRECTION.steps):
        grips = _clipped(_grips_on(problem, turned, vectors))
        vectors = _unit(adjoint(problem.source, (pulls * turned)[:, np.newaxis] * grips**2))
    grips = _grips_on(problem, turned, vectors)
    cubes = _clipped(grips) ** 3
    used = np.maximum(fit.judged.weights[:, [column]] * means[:, np.newaxis], 0.0)
    strengths = pulls @ cubes / np.sqrt(np.maximum((used * cubes**2).sum(axis=0), TINY))
    best = int(np.argmax(strengths))
    return Grip(vectors[:, best], grips[:, best])


def without_the_largest(readings: Readings, grips: Array, level: float) -> Readings:
    """Readings of one column, where those of largest grip are prone to be bad and the others are not."""
    usable = readings.weights[:, 0] > 0
    left_out = min(DIRECTION.share * level, 0.5)
    size = np.abs(grips)
    largest = size >= np.quantile(size[usable], 1 - left_out)
    surely = 1 / max(level, TINY)
    return readings._replace(prone=np.where(largest, surely, level)[:, np.newaxis])


def moved_beyond_chance(grip: Grip, before: LawFit, after: LawFit) -> bool:
    """Whether a fit to part of the samples lies further along the direction than chance explains.

    The difference of a fit to all samples and of one to some has the difference of their variances (Hausman).
    """
    some, every = (_information(grip, fit) for fit in (after, before))
    moved = float(np.vdot(grip.direction, after.signals[:, 0] - before.signals[:, 0]).real)
    return bool(moved**2 * some * every > DIRECTION.deviations**2 * max(every - some, 0.0))


def more_likely(before: LawFit, after: LawFit, readings: Readings) -> bool:
    """Whether another fit of one column explains the readings better than the unknowns of a direction do by chance."""
    unknowns = real_unknowns(before.signals)
    mass = float(readings.weights.sum())
    return bool(mass * (after.merits[-1, 0] - before.merits[-1, 0]) > DIRECTION.gain * unknowns)


def _information(grip: Grip, fit: LawFit) -> float:
    """What the samples know of the signal along the direction."""
    return max(float((fit.judged.weights[:, 0] * fit.means[:, 0]) @ grip.grips**2), TINY)


def _grips_on(problem: Problem, turned: Array, vectors: Array) -> Array:
    grips: Array = (turned.conj()[:, np.newaxis] * project(problem.source, vectors)).real
    return grips


def _clipped(grips: Array) -> Array:
    most = DIRECTION.clip * np.sqrt(np.mean(grips**2, axis=0))
    clipped: Array = np.clip(grips, -most, most)
    return clipped


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=0), TINY)
    return unit
