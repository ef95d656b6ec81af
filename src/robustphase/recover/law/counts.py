"""Signals behind Poisson counts: candidates raced, and the most likely fitted to the end.

Counts with many ties leave the additive engine without a start, so candidates are sought under the law itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget, derived
from robustphase.descend.candidate_steps import distinct_signals
from robustphase.descend.law_fit import Effort, LawFit, fit_law
from robustphase.initialise.law_start import law_start, shared_law_start
from robustphase.likelihood.laws import Readings
from robustphase.likelihood.poisson_law import PoissonLaw
from robustphase.problem import Problem
from robustphase.recover.law.answers import Answer
from robustphase.recover.law.bad_counts import fit_counts_from
from robustphase.rows.source import Array


@dataclass(frozen=True)
class CountsOptions:
    """Constants of the fit to counts."""

    halving: tuple[tuple[int, int, int], ...] = budget(
        ((3, 4, 6), (6, 6, 3)),
        "steps, conjugate gradients in each, and candidates left of each round of successive halving",
    )
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
