"""Signals behind Poisson counts: candidates raced, the most likely fitted in turn with shares and laws of bad counts.

Counts with many ties leave the additive engine without a start, so candidates are sought under the law itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, derived, numeric
from robustphase.descend.candidate_steps import distinct_signals
from robustphase.descend.law_fit import Effort, LawFit, fit_law
from robustphase.descend.newton import relative_lengths
from robustphase.initialise.law_start import law_start, shared_law_start
from robustphase.likelihood.bad_classes import BadClasses, bad_classes
from robustphase.likelihood.laws import Readings
from robustphase.likelihood.poisson_law import PoissonLaw
from robustphase.problem import Problem, put_columns, real_unknowns
from robustphase.recover.law.answers import Answer
from robustphase.recover.law.doubted_grips import GRIPS, doubted_grips, worth_learning
from robustphase.recover.law.doubtful_direction import (
    DIRECTION,
    doubtful_direction,
    more_likely,
    moved_beyond_chance,
    without_the_largest,
)
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class CountsOptions:
    """Constants of the fit to counts."""

    halving: tuple[tuple[int, int, int], ...] = budget(
        ((3, 4, 6), (6, 6, 3)),
        "steps, conjugate gradients in each, and candidates left of each round of successive halving",
    )
    rounds: int = budget(12, "rounds in which signals, and shares and laws of bad counts, are fitted in turn")
    steady: float = numeric(1e-3, "relative change of a signal between two of them at which they are over")
    close: float = numeric(1e-5, "relative step at which a signal is close enough for the next of these rounds")
    apart: float = derived(0.1, "relative distance below which two candidates are the same")
    broad_columns: int = budget(8, "most signals that all get candidates of their own")


COUNTS = CountsOptions()


def fit_counts(problem: Problem, readings: Readings, answer: Answer, seed: int) -> tuple[LawFit, Readings]:
    """The most likely candidate of each column, fitted to the end in turn with shares and laws of bad counts."""
    p = problem.responses.shape[1]
    mixing = np.broadcast_to(problem.levels / 2, (p,))
    if p > COUNTS.broad_columns:
        signals, backgrounds = _better_start(problem, readings, answer, seed)
    else:
        found = [_raced(problem, readings, answer, column, seed) for column in range(p)]
        signals, backgrounds = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    return fit_counts_from(problem, readings, PoissonLaw(mixing), signals, backgrounds, seed)


def fit_counts_from(
    problem: Problem, readings: Readings, law: PoissonLaw, signals: Array, backgrounds: Array, seed: int
) -> tuple[LawFit, Readings]:
    """Counts fitted to the end from good starts."""
    fitted = _with_classes(problem, readings, fit_law(problem, readings, law, signals, backgrounds))
    if backgrounds.size > 1:
        return fitted
    looked = _looked_along(problem, readings, *fitted, seed)
    known = _Known(*looked, directions=int(looked[0] is not fitted[0]))
    known = _sharpened(problem, readings, _told_by_doubts(problem, readings, known, seed), seed)
    return known.fit, known.readings


class _Known(NamedTuple):
    """A fit of one column, the readings with what it knows of bad ones, and on how many directions that rests."""

    fit: LawFit
    readings: Readings
    directions: int

    @property
    def worth(self) -> float:
        """Log-likelihood, less what the unknowns of the directions gain by chance."""
        gained = DIRECTION.gain * real_unknowns(self.fit.signals) * self.directions
        return float(self.readings.weights.sum() * self.fit.merits[-1, 0]) - gained


def _told_by_doubts(problem: Problem, readings: Readings, known: _Known, seed: int) -> _Known:
    """The fit, or one with bad counts that know their grip on the directions which the doubts show, where that is better."""
    for _ in range(GRIPS.rounds):
        if not worth_learning(known.fit, readings):
            break
        best = known
        for count in GRIPS.directions:
            orders = doubted_grips(problem, known.fit, known.readings, count, seed=seed)
            other = _Known(*_with_classes(problem, readings, known.fit, orders), count)
            best = max(best, other, key=lambda one: one.worth)
        if best is known:
            break
        known = best
    return known


def _sharpened(problem: Problem, readings: Readings, known: _Known, seed: int) -> _Known:
    """The fit with as many directions that explain the readings themselves, where they do so better.

    Doubts know of the present classes, and lead to a sharp choice of bad samples slowly. The readings lead there at once, but
    would also show choices that there are not: so they are asked only where the doubts have shown one.
    """
    for _ in range(GRIPS.rounds if known.directions else 0):
        orders = doubted_grips(problem, known.fit, known.readings, known.directions, seed=seed, sharp=True)
        other = _Known(*_with_classes(problem, readings, known.fit, orders), known.directions)
        if other.worth <= known.worth:
            break
        known = other
    return known


def _looked_along(
    problem: Problem, readings: Readings, fit: LawFit, known: Readings, seed: int
) -> tuple[LawFit, Readings]:
    """The fit, or one with bad counts that know their grip on a doubtful direction, where that explains the counts better."""
    grip = doubtful_direction(problem, fit, 0, seed=seed)
    fewer = without_the_largest(known, grip.grips, float(problem.levels[0]))
    # The share of bad ones is the largest: a smaller one would take those that are to be left out for good ones.
    first = fit_law(problem, fewer, PoissonLaw(problem.levels), fit.signals, fit.backgrounds)
    if not moved_beyond_chance(grip, fit, first):
        return fit, known
    other, found = _with_classes(problem, readings, first, np.abs(grip.grips)[:, np.newaxis])
    return (other, found) if more_likely(fit, other, readings) else (fit, known)


def _with_classes(
    problem: Problem, readings: Readings, fit: LawFit, orders: Array | None = None
) -> tuple[LawFit, Readings]:
    """The fit with bad counts whose share and law depend on some order of the samples, both found in turn.

    Without an order it is that of the energies. A column is over when it is steady, whatever the others do.
    """
    steps, inner, _ = COUNTS.halving[-1]
    effort = Effort(steps, inner, COUNTS.close)
    classes = BadClasses(np.broadcast_to(readings.bad, fit.means.shape), np.ones_like(fit.means))
    going = np.arange(fit.backgrounds.size)
    for _ in range(COUNTS.rounds):
        last, read = fit.only(going), readings.only(going)
        order = abs2(last.projections) if orders is None else orders
        found = _classified(read, last, order)
        read = read._replace(bad=found.law, prone=found.prone)
        some = fit_law(problem.only(going), read, last.law, last.signals, last.backgrounds, effort)
        fit, classes = fit.put(some, going), put_columns(classes, found, going)
        going = going[relative_lengths(some.signals - last.signals, some.signals) >= COUNTS.steady]
        if not going.size:
            break
    known = readings._replace(bad=classes.law, prone=classes.prone)
    return fit_law(problem, known, fit.law, fit.signals, fit.backgrounds), known


def _classified(readings: Readings, fit: LawFit, orders: Array) -> BadClasses:
    """What a fit says of bad readings in each class of samples that are alike in some order."""
    marginal = readings.bad
    found = bad_classes(readings.responses, marginal, 1 - fit.judged.clean, readings.weights, orders)
    if readings.censored is not None:
        found = found._replace(law=np.where(readings.censored, marginal, found.law))
    return found


def _better_start(problem: Problem, readings: Readings, answer: Answer, seed: int) -> tuple[Array, Array]:
    """For every one of many columns the more likely of two candidates: one from common passes, and the additive answer."""
    law = PoissonLaw(problem.levels / 2)
    steps, inner, _ = COUNTS.halving[-1]
    if problem.paired and np.any(answer.signals, axis=0).all():
        # A start along one direction never leaves the real numbers, in which the signal is not.
        return answer.signals, np.maximum(answer.backgrounds, 0.0)
    shared = shared_law_start(problem, readings, law, seed=seed)
    first = fit_law(problem, readings, law, *shared, Effort(steps, inner))
    there = np.linalg.norm(answer.signals, axis=0) > 0
    signals = np.where(there, answer.signals, shared[0])
    backgrounds = np.where(there, np.maximum(answer.backgrounds, 0.0), shared[1])
    second = fit_law(problem, readings, law, signals, backgrounds, Effort(steps, inner))
    better = second.merits[-1] > first.merits[-1]
    return np.where(better, second.signals, first.signals), np.where(better, second.backgrounds, first.backgrounds)


def _raced(problem: Problem, readings: Readings, answer: Answer, column: int, seed: int) -> tuple[Array, Array]:
    """The most likely candidate of one column: (n, 1) and (1,)."""
    chosen = np.array([column])
    one, read = problem.only(chosen), readings.only(chosen)
    mixing = one.levels / 2
    signals, backgrounds = law_start(one, read, PoissonLaw(mixing), seed=seed)
    if np.any(answer.signals[:, column]):
        # Starts along one direction never leave the real numbers, in which a complex signal is not.
        others = 0 if problem.paired else backgrounds.size
        signals = np.hstack((answer.signals[:, chosen], signals[:, :others]))
        backgrounds = np.concatenate((np.maximum(answer.backgrounds[chosen], 0.0), backgrounds[:others]))
    for steps, inner, left in COUNTS.halving:
        law = PoissonLaw(np.broadcast_to(mixing, backgrounds.shape))
        fit = fit_law(one, read, law, signals, backgrounds, Effort(steps, inner))
        best = distinct_signals(fit.signals, fit.merits[-1], left, COUNTS.apart)
        signals, backgrounds = fit.signals[:, best], fit.backgrounds[best]
    law = PoissonLaw(np.broadcast_to(mixing, backgrounds.shape))
    fit = fit_law(one, read, law, signals, backgrounds)
    winner = [int(np.argmax(fit.merits[-1]))]
    return fit.signals[:, winner], fit.backgrounds[winner]
