r"""The direction in which samples of large and of small grip disagree most.

The grip of a sample on a direction u is ``g = 2 Re(s̄ aᴴu)/√μ``, by how much its mean moves, in standard deviations, where the
signal moves along u. A fit balances ``Σ w z g`` to zero for every u, z the standardised residuals. An adversary that has
rewritten the samples of largest grip along one direction holds that balance at a wrong signal: there samples of large grip pull
one way and all others the other way. So the cubic form ``Σ w z g³``, whose expectation is zero for clean samples at the truth, is
large for that direction, and its power iteration finds it. Grips are clipped, or the direction would be that of a single row.

Without the samples of largest grip the fit then moves along the direction by more than chance, and with bad readings whose share
and law know their grip all samples together are more likely, by more than the n unknowns of a direction explain. Both are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, derived
from robustphase.descend.law_fit import LawFit
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem, real_unknowns
from robustphase.rows import adjoint, project
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


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
    """Where the samples of one column disagree most: two passes over the rows a step.

    Parameters
    ----------
    problem : Problem
        The covariates.
    fit : LawFit
        The fit under a law of counts.
    column : int
        Which of its signals.
    seed : int, default=0
        For the random directions.
    """
    signal, means = fit.signals[:, column], fit.means[:, column]
    turned = 2 * fit.projections[:, column] / np.sqrt(means)
    # w r √μ are the residuals over their deviations, weighed.
    pulls = fit.judged.weights[:, column] * fit.judged.residuals[:, column] * np.sqrt(means)
    rng = np.random.default_rng(seed)
    guesses = rng.standard_normal((signal.size, DIRECTION.starts))
    vectors = _unit(np.column_stack((signal, guesses)).astype(signal.dtype))
    for _ in range(DIRECTION.steps):
        grips = _clipped(_grips(problem, turned, vectors))
        vectors = _unit(adjoint(problem.source, (pulls * turned)[:, np.newaxis] * grips**2))
    grips = _grips(problem, turned, vectors)
    cubes = _clipped(grips) ** 3
    used = np.maximum(fit.judged.weights[:, [column]] * means[:, np.newaxis], 0.0)
    strengths = pulls @ cubes / np.sqrt(np.maximum((used * cubes**2).sum(axis=0), _TINY))
    best = int(np.argmax(strengths))
    return Grip(vectors[:, best], grips[:, best])


def without_the_largest(readings: Readings, grips: Array, level: float) -> Readings:
    """Readings of one column, where those of largest grip are prone to be bad and the others are not."""
    usable = readings.weights[:, 0] > 0
    left_out = min(DIRECTION.share * level, 0.5)
    size = np.abs(grips)
    largest = size >= np.quantile(size[usable], 1 - left_out)
    surely = 1 / max(level, _TINY)
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
    return max(float((fit.judged.weights[:, 0] * fit.means[:, 0]) @ grip.grips**2), _TINY)


def _grips(problem: Problem, turned: Array, vectors: Array) -> Array:
    grips: Array = (turned.conj()[:, np.newaxis] * project(problem.source, vectors)).real
    return grips


def _clipped(grips: Array) -> Array:
    most = DIRECTION.clip * np.sqrt(np.mean(grips**2, axis=0))
    clipped: Array = np.clip(grips, -most, most)
    return clipped


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=0), _TINY)
    return unit
