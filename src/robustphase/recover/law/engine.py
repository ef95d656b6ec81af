"""Answers where the noise depends on the signal: which law holds, and signals that are fitted under it.

The additive engine runs first in any case: it screens the rows, and its answer is a candidate. ``noise="additive"`` ends there.
``"poisson"`` looks for candidates of its own, since counts with many ties leave the additive engine without a start, and the most
likely one is fitted. ``"auto"`` asks the data:

- readings that are whole numbers, none below zero, with the dispersion of Poisson counts, within chance, follow that law;
- other readings whose residuals are larger where predictions are larger, by more than chance and the bad samples could cause, get
  a variance curve, fitted along with the signal;
- else the additive answer stands, untouched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget, derived, numeric
from robustphase.likelihood.bad_responses import censored_law, marginal_law
from robustphase.likelihood.laws import Readings
from robustphase.likelihood.poisson_law import PoissonLaw
from robustphase.problem import Problem
from robustphase.recover.law.answers import Answer, Detector, Lawful, joined
from robustphase.recover.law.bad_counts import fit_counts_from
from robustphase.recover.law.counts import fit_counts
from robustphase.recover.law.curve import fit_curve
from robustphase.recover.law.evidence import all_counts, constant, dispersed_as_counts, uneven
from robustphase.rows.source import Array


@dataclass(frozen=True)
class LawEngineOptions:
    """Constants of the choice."""

    whole: float = derived(0.5, "share of the readings that must be counts for the law of counts to be asked for")
    rounding: float = numeric(
        1e-15, "relative difference from a whole number that is rounding: a few units in the last place"
    )
    numbers: int = budget(1 << 23, "numbers in an array of samples times signals: more signals are fitted in groups")


LAW_ENGINE = LawEngineOptions()


def lawful_answer(problem: Problem, answer: Answer, detector: Detector, *, seed: int = 0) -> Lawful | None:
    """The answer under the law that was asked for or that the data show; None where the additive answer stands.

    All signals were read by one detector, so the law is that of most of them; where memory has room for some at a time, that
    of most of the first ones.

    Parameters
    ----------
    problem : Problem
        The samples, with all columns.
    answer : Answer
        What the additive engine found, in the units of the responses.
    detector : Detector
        What is known of the readings.
    seed : int, default=0
        For first guesses and subsamples.
    """
    m, p = problem.responses.shape
    if p == 1 and constant(problem):
        return None
    size = max(1, LAW_ENGINE.numbers // m)
    found: list[Lawful] = []
    which: str | None = None
    for low in range(0, p, size):
        columns = np.arange(low, min(low + size, p))
        one = problem.only(columns), answer.only(columns), detector.only(columns)
        which, part = _answer_of(*one, which, seed)
        if part is None:
            return None
        found.append(part)
    return found[0] if len(found) == 1 else joined(found)


def _answer_of(
    problem: Problem, answer: Answer, detector: Detector, which: str | None, seed: int
) -> tuple[str | None, Lawful | None]:
    """The law of these columns, if it is not known yet, and their answers."""
    if which is None and detector.noise == "additive" and detector.censored is None:
        return None, None
    asked = detector.noise == "poisson" or which == "poisson"
    if which != "curve" and (asked or (detector.noise == "auto" and all_counts(as_read(problem, detector)))):
        counted = as_read(problem, detector)
        readings = _readings(counted, detector, _offsets(counted, detector), counts=True)
        fit, readings = fit_counts(counted, readings, answer, seed)
        if asked or dispersed_as_counts(counted, readings, fit):
            return "poisson", Lawful.of(readings, fit)
    if which == "curve" or detector.censored is not None or uneven(problem, answer):
        return "curve", _under_curve(problem, answer, detector)
    return None, None


def lawful_again(problem: Problem, lawful: Lawful, answer: Answer, detector: Detector, *, seed: int = 0) -> Lawful:
    """An answer under a law fitted again from where it is, to a problem whose rows have other weights.

    The law is known by then, and so is the start: nothing is sought or raced.

    Parameters
    ----------
    problem, answer, detector, seed
        As in :func:`lawful_answer`.
    lawful : Lawful
        What that found, for all columns.
    """
    m, p = problem.responses.shape
    size = max(1, LAW_ENGINE.numbers // m)
    counts = bool(np.all(lawful.noise.counts))
    answer = answer._replace(
        signals=lawful.signals, backgrounds=lawful.backgrounds, weights=lawful.clean, predictions=lawful.predictions
    )
    found: list[Lawful] = []
    for low in range(0, p, size):
        columns = np.arange(low, min(low + size, p))
        some, start, read = problem.only(columns), answer.only(columns), detector.only(columns)
        if counts:
            some = as_read(some, read)
            readings = _readings(some, read, _offsets(some, read), counts=True)
            law = PoissonLaw(lawful.noise.mixing[columns])
            fit, readings = fit_counts_from(some, readings, law, start.signals, start.backgrounds, seed)
            found.append(Lawful.of(readings, fit))
        else:
            found.append(_under_curve(some, start, read))
    return found[0] if len(found) == 1 else joined(found)


def _under_curve(problem: Problem, answer: Answer, detector: Detector) -> Lawful:
    """The answer with a variance curve, from another one."""
    offsets = _offsets(problem, detector) / problem.units
    shifted = problem._replace(responses=problem.responses + offsets)
    readings = _readings(shifted, detector, offsets, counts=False)
    fit = fit_curve(shifted, readings, answer.over(problem.units), curved=detector.noise != "additive")
    return Lawful.of(readings, fit).times(problem.units)


def as_read(problem: Problem, detector: Detector) -> Problem:
    """The problem with its responses as they were read, background and all."""
    raw = problem.responses * problem.units + _offsets(problem, detector)
    # Scaling and back leaves roundings, and a count is a whole number.
    near = np.rint(raw)
    raw = np.where(np.abs(raw - near) <= LAW_ENGINE.rounding * np.abs(near), near, raw)
    return problem._replace(responses=raw, units=np.ones(raw.shape[1]))


def _offsets(problem: Problem, detector: Detector) -> Array:
    return np.zeros((problem.source.shape[0], 1)) if detector.offsets is None else detector.offsets


def _readings(problem: Problem, detector: Detector, offsets: Array, *, counts: bool) -> Readings:
    used = np.broadcast_to(problem.weights > 0, problem.responses.shape)
    law = marginal_law(problem.responses, used, counts=counts)
    censored = detector.censored
    if censored is not None:
        law = censored_law(law, problem.responses, used, censored)
    return Readings(problem.responses, problem.weights, censored, offsets, law)
