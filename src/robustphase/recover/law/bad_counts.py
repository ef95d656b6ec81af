"""Signals fitted to counts in turn with shares and laws of bad ones: alike for all samples, or class by class.

Bad counts that know nothing of the covariates have one share and one law. An adversary's do not: classes of samples by their
energies, or by their grips on directions that the doubts show, then tell them from the others
(:mod:`robustphase.likelihood.bad_responses`). Classes that nothing asks for blur both, which costs accuracy. So classes are kept
where the counts become more likely by twice as much as classes by chance make them: what is gained by chance is lost again on
samples that have not been seen (Akaike).

A law that is free takes some clean counts with it, and at a few counts each its share grows far beyond the bad ones. So the one
share is that of the shortest description: its m-step counts the doubts less half of the numbers which the law has learned from
them (Figueiredo and Jain 2002).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.descend.law_fit import Effort, LawFit, fit_law
from robustphase.descend.newton import relative_lengths
from robustphase.likelihood.bad_responses import DENSITY, BadClasses, bad_classes
from robustphase.likelihood.dependent_noise import PoissonLaw
from robustphase.likelihood.laws import Judged, Readings, share_within
from robustphase.problem import Problem, put_columns, real_unknowns
from robustphase.recover.law.grips import (
    DIRECTION,
    GRIPS,
    doubted_grips,
    doubtful_direction,
    more_likely,
    moved_beyond_chance,
    without_the_largest,
    worth_learning,
)
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

#: What the samples of a fit are put in order by, (m, k).
Ordering = Callable[[LawFit], Array]


@dataclass(frozen=True)
class BadCountsOptions:
    """Constants of the fit in turn."""

    rounds: int = budget(12, "rounds in which signals, and shares and laws of bad counts, are fitted in turn")
    steps: int = budget(6, "steps of each, and conjugate gradients in each step")
    steady: float = numeric(1e-3, "relative change of a signal between two of them at which they are over")
    close: float = numeric(1e-5, "relative step at which a signal is close enough for the next of these rounds")
    optimism: float = derived(
        2.0, "times what classes gain by chance that they must gain: as much is lost on samples that have not been seen"
    )
    draws: int = budget(4, "orders by chance whose gain is averaged: it is then known to a sixth of itself")
    held: int = budget(4, "rounds of each, in which signals are held: more of them gain little")
    settling: int = budget(20, "rounds in which one share and one law settle while signals are held")
    numbers: float = derived(
        1 / (2 * DENSITY.neighbours), "most numbers that a law has: neighbourhoods that it is smoothed over"
    )


BAD_COUNTS = BadCountsOptions()


class Known(NamedTuple):
    """A fit, the readings with what it knows of bad ones, and on how many directions that rests."""

    fit: LawFit
    readings: Readings
    directions: int = 0

    @property
    def gained_by_directions(self) -> float:
        """Log-likelihood that the unknowns of the directions gain by chance."""
        return DIRECTION.gain * real_unknowns(self.fit.signals) * self.directions

    @property
    def worth(self) -> float:
        """Log-likelihood of a single column, less what the directions gain by chance."""
        return float(self.fit.judged.log_likelihood[0]) - self.gained_by_directions

    def put(self, other: Known, columns: Array) -> Known:
        """With some columns (a mask) of another one."""
        here, there = self.readings, other.readings
        assert here.prone is not None
        assert there.prone is not None
        bad: Array = np.where(columns, there.bad, here.bad)
        prone: Array = np.where(columns, there.prone, here.prone)
        directions = other.directions if columns.all() else self.directions
        fit = self.fit.put(other.fit.only(columns), columns)
        return Known(fit, here._replace(bad=bad, prone=prone), directions)


def fit_counts_from(
    problem: Problem, readings: Readings, law: PoissonLaw, signals: Array, backgrounds: Array, seed: int
) -> tuple[LawFit, Readings]:
    """Counts fitted to the end from good starts, and the readings with what is known of bad ones."""
    first = fit_law(problem, readings, law, signals, backgrounds)
    alike = _in_turn(problem, readings, first, None)
    classed = [_in_turn(problem, readings, first, lambda fit: abs2(fit.projections))]
    if backgrounds.size == 1:
        looked = _looked_along(problem, readings, classed[0], seed)
        classed.append(_sharpened(problem, readings, _told_by_doubts(problem, readings, looked, seed), seed))
    chance = gained_by_chance(problem, readings, alike.fit, seed)
    kept = alike
    for known in classed:
        gained = known.fit.judged.log_likelihood - alike.fit.judged.log_likelihood
        kept = kept.put(known, gained > BAD_COUNTS.optimism * (chance + known.gained_by_directions))
    return kept.fit, kept.readings


def gained_by_chance(problem: Problem, readings: Readings, fit: LawFit, seed: int) -> Array:
    """Log-likelihood (k,) that classes by an order which has nothing to do with the samples gain: signals are held.

    The fit has one share and one law of bad counts, the readings have the marginal law.
    """
    rng, unknowns = np.random.default_rng(seed), float(real_unknowns(fit.signals))
    gains = np.zeros(fit.backgrounds.size)
    for _ in range(BAD_COUNTS.draws):
        orders, judged, law = rng.random(fit.means.shape), fit.judged, fit.law
        for _ in range(BAD_COUNTS.held):
            found = _classified(readings, judged, orders)
            read = readings._replace(bad=found.law, prone=found.prone)
            judged = law.judge(read, fit.means)
            law = law.renewed(judged, read, fit.means, problem.levels, unknowns)
        gains += judged.log_likelihood - fit.judged.log_likelihood
    mean: Array = np.maximum(gains / BAD_COUNTS.draws, 0.0)
    return mean


def _in_turn(
    problem: Problem, readings: Readings, fit: LawFit, ordering: Ordering | None, directions: int = 0
) -> Known:
    """The fit with bad counts whose share and law depend on some order of the samples, or on none, both found in turn.

    A column is over when it is steady, whatever the others do.
    """
    effort = Effort(BAD_COUNTS.steps, BAD_COUNTS.steps, BAD_COUNTS.close)
    learned = _Learned(
        BadClasses(np.broadcast_to(readings.bad, fit.means.shape), np.ones_like(fit.means)),
        fit.law.mixing,
        np.broadcast_to(problem.levels, fit.law.mixing.shape),
    )
    going = np.arange(fit.backgrounds.size)
    for _ in range(BAD_COUNTS.rounds):
        last, read, some = fit.only(going), readings.only(going), problem.only(going)
        found = _alike(some, read, last) if ordering is None else _by_classes(some, read, last, ordering)
        after = fit_law(*found.applied_to(some, read), last.signals, last.backgrounds, effort)
        fit, learned = fit.put(after, going), put_columns(learned, found, going)
        going = going[relative_lengths(after.signals - last.signals, after.signals) >= BAD_COUNTS.steady]
        if not going.size:
            break
    learned = learned._replace(mixing=fit.law.mixing)
    problem, known, law = learned.applied_to(problem, readings)
    return Known(fit_law(problem, known, law, fit.signals, fit.backgrounds), known, directions)


class _Learned(NamedTuple):
    """What is known of bad counts: laws and shares of classes, the share of all (k,), and its upper bound (k,)."""

    classes: BadClasses
    mixing: Array
    most: Array

    def applied_to(self, problem: Problem, readings: Readings) -> tuple[Problem, Readings, PoissonLaw]:
        """Problem, readings and law that know it."""
        read = readings._replace(bad=self.classes.law, prone=self.classes.prone)
        return problem._replace(levels=self.most), read, PoissonLaw(self.mixing)


def _by_classes(problem: Problem, readings: Readings, fit: LawFit, ordering: Ordering) -> _Learned:
    """What a fit says of bad counts in classes of samples that are alike in some order."""
    found = _classified(readings, fit.judged, ordering(fit))
    return _Learned(found, fit.law.mixing, np.broadcast_to(problem.levels, fit.law.mixing.shape))


def _alike(problem: Problem, readings: Readings, fit: LawFit) -> _Learned:
    """One law of all bad counts and its share, settled while signals are held."""
    judged, law = fit.judged, fit.law
    for _ in range(BAD_COUNTS.settling):
        found = _classified(readings, judged, None)
        law = PoissonLaw(described_share(judged, readings, found.law, problem.levels))
        judged = law.judge(readings._replace(bad=found.law), fit.means)
    return _Learned(found, law.mixing, law.mixing)


def described_share(judged: Judged, readings: Readings, law: Array, most: Array) -> Array:
    """Share (k,) of bad counts with the shortest description: doubts, less half of the numbers that their law has.

    ``law`` (m, k) is that of bad counts at every reading, ``most`` (k,) the largest share.
    """
    doubts = (1 - judged.clean) * readings.weights
    total = np.maximum(doubts.sum(axis=0), TINY)
    # As many numbers as there would be counts if all were equally likely, with the same entropy.
    entropies = -(doubts * np.log(np.maximum(law, TINY))).sum(axis=0) / total
    numbers = np.minimum(np.exp(entropies), BAD_COUNTS.numbers)
    mass = np.maximum(np.broadcast_to(readings.weights, doubts.shape).sum(axis=0), TINY)
    return share_within((total - numbers / 2) / mass, most)


def _classified(readings: Readings, judged: Judged, orders: Array | None) -> BadClasses:
    """What is known of bad readings in each class of samples that are alike in some order."""
    marginal = readings.bad
    found = bad_classes(readings.responses, marginal, 1 - judged.clean, readings.weights, orders)
    if readings.censored is not None:
        found = found._replace(law=np.where(readings.censored, marginal, found.law))
    return found


def _looked_along(problem: Problem, readings: Readings, known: Known, seed: int) -> Known:
    """The fit, or one with bad counts that know their grip on a doubtful direction, where that explains the counts better."""
    fit = known.fit
    grip = doubtful_direction(problem, fit, 0, seed=seed)
    fewer = without_the_largest(known.readings, grip.grips, float(problem.levels[0]))
    # The share of bad ones is the largest: a smaller one would take those that are to be left out for good ones.
    first = fit_law(problem, fewer, PoissonLaw(problem.levels), fit.signals, fit.backgrounds)
    if not moved_beyond_chance(grip, fit, first):
        return known
    other = _in_turn(problem, readings, first, lambda _: np.abs(grip.grips)[:, np.newaxis], 1)
    return other if more_likely(fit, other.fit, readings) else known


def _told_by_doubts(problem: Problem, readings: Readings, known: Known, seed: int) -> Known:
    """The fit, or one with bad counts that know their grip on the directions which the doubts show, where that is better."""
    for _ in range(GRIPS.rounds):
        if not worth_learning(known.fit, readings):
            break
        best = known
        for count in GRIPS.directions:
            best = max(best, _by_grips(problem, readings, known, count, seed), key=lambda one: one.worth)
        if best is known:
            break
        known = best
    return known


def _sharpened(problem: Problem, readings: Readings, known: Known, seed: int) -> Known:
    """The fit with as many directions that explain the readings themselves, where they do so better.

    Doubts know of the present classes, and lead to a sharp choice of bad samples slowly. The readings lead there at once, but
    would also show choices that there are not: so they are asked only where the doubts have shown one.
    """
    for _ in range(GRIPS.rounds if known.directions else 0):
        other = _by_grips(problem, readings, known, known.directions, seed, sharp=True)
        if other.worth <= known.worth:
            break
        known = other
    return known


def _by_grips(
    problem: Problem, readings: Readings, known: Known, count: int, seed: int, *, sharp: bool = False
) -> Known:
    """A fit with classes by grips on directions that are learned from another one."""
    orders = doubted_grips(problem, known.fit, known.readings, count, seed=seed, sharp=sharp)
    return _in_turn(problem, readings, known.fit, lambda _: orders, count)
