"""Answers where the noise depends on the signal: which law holds, and signals that are fitted under it.

The additive engine runs first in any case: it screens the rows, and its answer is a candidate. ``noise="additive"`` ends there.
``"poisson"`` looks for candidates of its own, since counts with many ties leave the additive engine without a start, and the most
likely one is fitted. ``"auto"`` asks the data:

- readings that are whole numbers, none below zero, with the dispersion of Poisson counts, within chance, follow that law;
- other readings whose residuals are larger where predictions are larger, by more than chance and the bad samples could cause, get
  a variance curve, fitted along with the signal;
- else the additive answer stands, untouched.

Bad samples may sit where they make noise look uneven. The test compares the median size of the residuals of the two halves of the
predictions; bad samples can move a median only as far as the quantiles that their number allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.descend.law_fit import LawFit, fit_law
from robustphase.likelihood.bad_responses import DENSITY, censored_law, marginal_law
from robustphase.likelihood.dependent_noise import PoissonLaw, VarianceLaw
from robustphase.likelihood.laws import Readings
from robustphase.likelihood.noise_model import NOISE
from robustphase.problem import Problem, kept, real_unknowns, response_unit
from robustphase.recover.law.answers import Answer, Detector, Lawful, joined
from robustphase.recover.law.bad_counts import fit_counts_from
from robustphase.recover.law.counts import fit_counts
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class EvidenceOptions:
    """Constants of the evidence."""

    deviations: float = derived(4.5, "standard deviations of chance that are no evidence: exceeded in one fit of 10⁵")
    median_error: float = derived(
        2.33, "standard deviation of the log ratio of two medians of half of m normal sizes, times sqrt(m)"
    )
    dispersion: float = derived(
        0.1,
        "relative deviation of the dispersion from one that bad counts which are not noticed may cause, at a tenth of them",
    )
    unnoticed: float = derived(0.1, "bad samples that may look like noise, of those that were stated")


LAW_EVIDENCE = EvidenceOptions()


def all_counts(problem: Problem) -> bool:
    """Whether all readings that can be used are whole numbers, and next to none below zero."""
    y = problem.responses[np.broadcast_to(problem.weights > 0, problem.responses.shape)]
    return bool(y.size and np.mean((y == np.rint(y)) & (y >= 0)) >= 1 - float(problem.levels.max()))


def constant(problem: Problem) -> bool:
    """Whether the readings hold one value only, as those of a dead pixel: no law has anything to explain there."""
    y = problem.responses[np.broadcast_to(problem.weights > 0, problem.responses.shape)]
    return bool(y.size == 0 or np.ptp(y) == 0)


def dispersed_as_counts(problem: Problem, readings: Readings, fit: LawFit) -> bool:
    """Whether the squared residuals of counts are their means, for most of the columns.

    On average, and in either half of the means: a camera whose offset hides its gain is right on average alone. Bad counts that
    are not noticed may all sit in one half.
    """
    seen = fit.judged.clean * readings.weights
    if readings.censored is not None:
        seen = seen * ~readings.censored
    squares = (readings.responses - fit.means) ** 2 / fit.means
    free = np.maximum(1 - real_unknowns(fit.signals) / np.maximum(seen.sum(axis=0), 1.0), 0.5)
    larger = fit.means > np.median(fit.means, axis=0)
    alike = np.ones(free.size, bool)
    for part, unnoticed in ((seen, 1.0), (seen * larger, 2.0), (seen * ~larger, 2.0)):
        mass = np.maximum(part.sum(axis=0), 1.0)
        dispersion = (part * squares).sum(axis=0) / mass / free
        # (y − μ)²/μ has the variance 2 + 1/μ.
        error = np.sqrt((part * (2 + 1 / fit.means)).sum(axis=0) / mass / mass)
        allowed = LAW_EVIDENCE.dispersion * unnoticed * problem.levels / 0.1 + LAW_EVIDENCE.deviations * error
        alike &= np.abs(dispersion - 1) <= allowed
    return bool(np.mean(alike) > 0.5)


def uneven(problem: Problem, answer: Answer) -> bool:
    """Whether the noise of most columns depends on the prediction, beyond chance and what bad samples could do."""
    m = problem.source.shape[0]
    predictions = answer.predictions
    residuals = problem.responses * problem.units - predictions - answer.backgrounds
    levels = np.broadcast_to(problem.levels, predictions.shape[1:])
    votes: list[bool] = []
    for column in range(predictions.shape[1]):
        used = np.broadcast_to(problem.weights > 0, predictions.shape)[:, column]
        mu, sizes = predictions[used, column], np.abs(residuals[used, column])
        # Bad samples that were made to look like noise are not noticed: as many as were stated there may always be.
        found = 1.0 - float(kept(answer.weights[used, column]).mean())
        bad = max(found, min(float(levels[column]), LAW_EVIDENCE.unnoticed))
        half = mu > np.median(mu)
        if not half.any():
            # All rows predict the same: nothing can be uneven along that.
            votes.append(False)
            continue
        low, high = np.median(sizes[~half]), np.median(sizes[half])
        votes.append(bool(low > 0 and high > low * np.exp(most_uneven(sizes, bad, m))))
    return bool(np.mean(votes) > 0.5)


def most_uneven(sizes: Array, bad: float, m: int) -> float:
    """Largest log ratio of the medians of two halves that even noise with this share of bad samples explains."""
    share = min(2 * bad, 0.49)
    middle = np.median(sizes)
    raised, lowered = np.quantile(sizes, (0.5 / (1 - share), (0.5 - share) / (1 - share)))
    ratio = max(raised / max(middle, TINY), middle / max(lowered, TINY))
    return float(np.log(ratio)) + LAW_EVIDENCE.deviations * LAW_EVIDENCE.median_error / float(np.sqrt(m))


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

    All signals were read by one detector, so the law is that of most of them; where memory has room for some at a time, that of
    most of the first ones. The additive answer is in the units of the responses.
    """
    if problem.responses.shape[1] == 1 and constant(problem):
        return None
    found: list[Lawful] = []
    which: str | None = None
    for _, some, start, read in _together(problem, answer, detector):
        which, part = _answer_of(some, start, read, which, seed)
        if part is None:
            return None
        found.append(part)
    return joined(found)


def _together(
    problem: Problem, answer: Answer, detector: Detector
) -> Iterator[tuple[Array, Problem, Answer, Detector]]:
    """Columns that are fitted together, as many as memory has room for, and all that is known of them."""
    m, p = problem.responses.shape
    size = max(1, LAW_ENGINE.numbers // m)
    for low in range(0, p, size):
        columns = np.arange(low, min(low + size, p))
        yield columns, problem.only(columns), answer.only(columns), detector.only(columns)


def _answer_of(
    problem: Problem, answer: Answer, detector: Detector, which: str | None, seed: int
) -> tuple[str | None, Lawful | None]:
    """The law of these columns, if it is not known yet, and their answers."""
    if which is None and detector.noise == "additive" and detector.censored is None:
        return None, None
    asked = detector.noise == "poisson" or which == "poisson"
    if which != "curve" and (asked or (detector.noise == "auto" and all_counts(as_read(problem, detector)))):
        counted, readings = _counted(problem, detector)
        fit, readings = fit_counts(counted, readings, answer, seed)
        if asked or dispersed_as_counts(counted, readings, fit):
            return "poisson", Lawful.of(readings, fit)
    if which == "curve" or detector.censored is not None or uneven(problem, answer):
        return "curve", _under_curve(problem, answer, detector)
    return None, None


def lawful_again(problem: Problem, lawful: Lawful, answer: Answer, detector: Detector, *, seed: int = 0) -> Lawful:
    """An answer under a law fitted again from where it is, to a problem whose rows have other weights.

    The law is known by then, and so is the start: nothing is sought or raced.
    """
    counts = bool(np.all(lawful.noise.counts))
    answer = answer._replace(
        signals=lawful.signals, backgrounds=lawful.backgrounds, weights=lawful.clean, predictions=lawful.predictions
    )
    found: list[Lawful] = []
    for columns, some, start, read in _together(problem, answer, detector):
        if counts:
            law = PoissonLaw(lawful.noise.mixing[columns])
            fit, readings = fit_counts_from(*_counted(some, read), law, start.signals, start.backgrounds, seed)
            found.append(Lawful.of(readings, fit))
        else:
            found.append(_under_curve(some, start, read))
    return joined(found)


def _counted(problem: Problem, detector: Detector) -> tuple[Problem, Readings]:
    """The problem with its counts as they were read, and the readings with the marginal law of counts."""
    counted = as_read(problem, detector)
    return counted, _readings(counted, detector, _offsets(counted, detector), counts=True)


def _under_curve(problem: Problem, answer: Answer, detector: Detector) -> Lawful:
    """The answer with a variance curve, from another one."""
    offsets = _offsets(problem, detector) / problem.units
    shifted = problem._replace(responses=problem.responses + offsets)
    readings = _readings(shifted, detector, offsets, counts=False)
    fit = _fit_curve(shifted, readings, answer.over(problem.units), curved=detector.noise != "additive")
    return Lawful.of(readings, fit).times(problem.units)


def _fit_curve(problem: Problem, readings: Readings, answer: Answer, *, curved: bool) -> LawFit:
    """Signal and variance curve together, from the additive answer."""
    p = problem.responses.shape[1]
    noise = answer.noise._replace(
        scales=np.ones(p),
        tails=np.full(p, NOISE.lightest),
        log_skews=np.zeros(p),
        mixing=np.clip(answer.noise.mixing, NOISE.least_share, np.maximum(problem.levels, NOISE.least_share)),
    )
    power = np.maximum(abs2(answer.signals).sum(axis=0), TINY)
    squared = np.maximum(answer.noise.scales, TINY) ** 2
    # Each part as large as the others where readings are typical; a part that begins with zero stays there.
    curve = (
        np.stack((squared, squared / power, squared / power**2)) / 3
        if curved
        else np.stack((squared, 0 * squared, 0 * squared))
    )
    law = VarianceLaw(noise, curve, answer.predictions)
    # The ceiling is no typical distance of readings, however many are there.
    told = (readings.weights > 0) & ~_censored(readings) & np.ones_like(problem.responses, bool)
    floor = DENSITY.floor / np.array([response_unit(y[at]) for y, at in zip(problem.responses.T, told.T, strict=True)])
    readings = readings._replace(bad=np.where(_censored(readings), readings.bad, np.maximum(readings.bad, floor)))
    return fit_law(problem, readings, law, answer.signals, answer.backgrounds)


def _censored(readings: Readings) -> Array:
    return np.zeros((1, 1), bool) if readings.censored is None else readings.censored


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
