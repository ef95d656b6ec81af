"""Signals behind Poisson counts: candidates raced, and the most likely fitted to the end.

Counts with many ties leave the additive engine without a start, so candidates are sought under the law itself.

Directions need ranks only, and ties (most counts may be zero) are cut by the order of the rows, which knows nothing of the
signal: bins of tied readings are then samples of one and the same law. Norm and background of every direction are those on a grid
that make the readings most likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget, derived
from robustphase.descend.candidate_steps import distinct_signals
from robustphase.descend.law_fit import Effort, LawFit, fit_law
from robustphase.initialise.block_davidson import candidate_directions
from robustphase.initialise.rank_spectra import operator_directions
from robustphase.initialise.start import unusual_directions
from robustphase.likelihood.dependent_noise import PoissonLaw
from robustphase.likelihood.laws import Readings, means_of
from robustphase.problem import Problem
from robustphase.recover.law.answers import Answer
from robustphase.recover.law.bad_counts import fit_counts_from
from robustphase.rows import OperatorRows
from robustphase.rows.passes import project_rows
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class LawStartOptions:
    """Constants of the starts."""

    norms: tuple[float, ...] = derived(
        (0.15, 0.3, 0.5, 0.75, 1.1, 1.7),
        "squared norms over the mean reading, which is that of signal and background; more, where large readings were cut off",
    )
    backgrounds: tuple[float, ...] = derived(
        (0.01, 0.1, 0.4), "backgrounds over the mean reading: next to nothing, a dark count, as much as the signal"
    )
    samples: int = budget(3000, "samples that are enough to compare norms")
    candidates: int = budget(16, "most candidates handed on")


LAW_START = LawStartOptions()


def law_start(problem: Problem, readings: Readings, law: PoissonLaw, *, seed: int = 0) -> tuple[Array, Array]:
    """Candidate signals (n, k) of one column of readings, and their backgrounds (k,), the most likely first."""
    y = readings.responses[:, 0]
    if isinstance(problem.source, OperatorRows):
        directions = operator_directions(problem, seed=seed)
    else:
        weights = readings.weights[:, 0]
        directions, _, _ = candidate_directions(
            problem.source, y, weights, screen=False, seed=seed, paired=problem.paired
        )
    signals, backgrounds, likelihoods = profile_law(problem, readings, law, directions, seed=seed)
    best = np.argsort(-likelihoods, kind="stable")[: LAW_START.candidates]
    return signals[:, best], backgrounds[best]


def shared_law_start(problem: Problem, readings: Readings, law: PoissonLaw, *, seed: int = 0) -> tuple[Array, Array]:
    """One candidate for every column of readings, all of them from common passes."""
    directions = unusual_directions(problem, readings.responses, seed=seed).vectors
    signals, backgrounds, _ = profile_law(problem, readings, law, directions, seed=seed)
    return signals, backgrounds


def profile_law(
    problem: Problem, readings: Readings, law: PoissonLaw, directions: Array, *, seed: int
) -> tuple[Array, Array, Array]:
    """The most likely norm and background of every direction, and the log-likelihood, judged on some samples: one pass."""
    usable = np.flatnonzero((readings.weights > 0).any(axis=1))
    if usable.size > LAW_START.samples:
        usable = np.sort(np.random.default_rng(seed).choice(usable, LAW_START.samples, replace=False))
    energies = abs2(project_rows(problem.source, directions, usable))
    some = readings.rows(usable)
    typical = np.array(
        [_typical_reading(y, float(level)) for y, level in zip(some.responses.T, problem.levels, strict=True)]
    )
    k, least = directions.shape[1], law.least(problem.source.shape[0])
    mixing = np.broadcast_to(law.mixing, (k,))
    best, norms, backgrounds = np.full(k, -np.inf), np.ones(k), np.zeros(k)
    for norm in LAW_START.norms:
        for background in LAW_START.backgrounds:
            tried = np.broadcast_to(np.maximum(background * typical, least), (k,))
            means = means_of(norm * typical * energies, tried, some, least)
            found = PoissonLaw(mixing).judge(some, means).log_likelihood
            better = found > best
            best, norms = np.where(better, found, best), np.where(better, norm * typical, norms)
            backgrounds = np.where(better, tried, backgrounds)
    return directions * np.sqrt(norms), backgrounds, best


def _typical_reading(responses: Array, level: float) -> float:
    """Mean reading of all but the largest, as many of which may be bad."""
    ordered = np.sort(responses)
    kept = ordered[: max(1, int(np.ceil((1 - level) * ordered.size)))]
    return max(float(np.maximum(kept, 0.0).mean()), 1.0 / ordered.size)


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
