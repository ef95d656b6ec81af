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

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, derived, numeric
from robustphase.descend.candidate_steps import distinct_signals
from robustphase.descend.law_fit import Effort, Law, LawFit, fit_law
from robustphase.descend.newton import relative_lengths
from robustphase.initialise.law_start import law_start, shared_law_start
from robustphase.likelihood.bad_classes import BadClasses, bad_classes
from robustphase.likelihood.bad_responses import DENSITY, censored_law, marginal_law
from robustphase.likelihood.laws import CurvedNoise, Readings
from robustphase.likelihood.noise_model import NOISE, NoiseModel
from robustphase.likelihood.poisson_law import PoissonLaw
from robustphase.likelihood.variance_law import VarianceLaw
from robustphase.problem import Problem, kept, put_columns, real_unknowns, response_unit
from robustphase.recover.doubted_grips import GRIPS, doubted_grips, worth_learning
from robustphase.recover.doubtful_direction import (
    DIRECTION,
    doubtful_direction,
    more_likely,
    moved_beyond_chance,
    without_the_largest,
)
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

NOISES = ("auto", "additive", "poisson")
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LawEngineOptions:
    """Constants of the choice and of the fit."""

    deviations: float = derived(4.5, "standard deviations of chance that are no evidence: exceeded in one fit of 10⁵")
    median_error: float = derived(
        2.33, "standard deviation of the log ratio of two medians of half of m normal sizes, times sqrt(m)"
    )
    dispersion: float = derived(
        0.1,
        "relative deviation of the dispersion from one that bad counts which are not noticed may cause, at a tenth of them",
    )
    unnoticed: float = derived(0.1, "bad samples that may look like noise, of those that were stated")
    whole: float = derived(0.5, "share of the readings that must be counts for the law of counts to be asked for")
    halving: tuple[tuple[int, int, int], ...] = budget(
        ((3, 4, 6), (6, 6, 3)),
        "steps, conjugate gradients in each, and candidates left of each round of successive halving",
    )
    rounding: float = numeric(
        1e-15, "relative difference from a whole number that is rounding: a few units in the last place"
    )
    numbers: int = budget(1 << 23, "numbers in an array of samples times signals: more signals are fitted in groups")
    rounds: int = budget(12, "rounds in which signals, and shares and laws of bad counts, are fitted in turn")
    steady: float = numeric(1e-3, "relative change of a signal between two of them at which they are over")
    close: float = numeric(1e-5, "relative step at which a signal is close enough for the next of these rounds")
    apart: float = derived(0.1, "relative distance below which two candidates are the same")
    broad_columns: int = budget(8, "most signals that all get candidates of their own")


LAW_ENGINE = LawEngineOptions()


class Detector(NamedTuple):
    """What is known of how the responses were read.

    Attributes
    ----------
    noise : {"auto", "additive", "poisson"}
        The law.
    censored : ndarray of bool, shape (m, p), optional
        Responses that say "at least that".
    offsets : ndarray of shape (m, 1), optional
        Known background, which was taken away from the responses.
    drifting : bool, default=False
        Whether gain and background may drift over the rows.
    """

    noise: str = "additive"
    censored: Array | None = None
    offsets: Array | None = None
    drifting: bool = False

    def only(self, columns: Array) -> Detector:
        """What is known of some of the signals."""
        censored = self.censored
        return self if censored is None else self._replace(censored=censored[:, columns])


class Lawful(NamedTuple):
    """Answers under a law, one column for each signal.

    Attributes
    ----------
    signals : ndarray of shape (n, p)
        The answers.
    backgrounds : ndarray of shape (p,)
        Constant parts of the means.
    noise : CurvedNoise
        The fitted laws.
    clean : ndarray of shape (m, p)
        Probabilities to be clean, times the weights of the covariates.
    weights, scores, slopes : ndarray of shape (m, p)
        Weights of the last least-squares problem, and score and minus its derivative by the mean.
    predictions : ndarray of shape (m, p)
        ``|A x|²``.
    converged : ndarray of bool, shape (p,)
        Whether the fit settled.
    """

    signals: Array
    backgrounds: Array
    noise: CurvedNoise
    clean: Array
    weights: Array
    scores: Array
    slopes: Array
    predictions: Array
    converged: Array

    def times(self, units: Array) -> Lawful:
        """The same where the responses were divided by these units."""
        noise = self.noise
        return self._replace(
            signals=self.signals * np.sqrt(units),
            backgrounds=self.backgrounds * units,
            noise=noise._replace(scales=noise.scales * units, read=noise.read * units**2, shot=noise.shot * units),
            weights=self.weights / units**2,
            scores=self.scores / units,
            slopes=self.slopes / units**2,
            predictions=self.predictions * units,
        )


class Answer(NamedTuple):
    """The additive answer: signals (n, p), backgrounds (p,), noise, weights of the samples and ``|A x|²`` (m, p)."""

    signals: Array
    backgrounds: Array
    noise: NoiseModel
    weights: Array
    predictions: Array

    def only(self, columns: Array) -> Answer:
        """Some of the answers."""
        return Answer(
            self.signals[:, columns],
            self.backgrounds[columns],
            self.noise.only(columns),
            self.weights[:, columns],
            self.predictions[:, columns],
        )

    def over(self, units: Array) -> Answer:
        """The same in other units of the responses."""
        return Answer(
            self.signals / np.sqrt(units),
            self.backgrounds / units,
            self.noise._replace(scales=self.noise.scales / units),
            self.weights,
            self.predictions / units,
        )


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
    if p == 1 and _constant(problem):
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
    return found[0] if len(found) == 1 else _joined(found)


def _answer_of(
    problem: Problem, answer: Answer, detector: Detector, which: str | None, seed: int
) -> tuple[str | None, Lawful | None]:
    """The law of these columns, if it is not known yet, and their answers."""
    if which is None and detector.noise == "additive" and detector.censored is None:
        return None, None
    asked = detector.noise == "poisson" or which == "poisson"
    if which != "curve" and (asked or (detector.noise == "auto" and _all_counts(as_read(problem, detector)))):
        counted = as_read(problem, detector)
        readings = _readings(counted, detector, _offsets(counted, detector), counts=True)
        fit, readings = _fit_counts(counted, readings, answer, seed)
        if asked or _dispersed_as_counts(counted, readings, fit):
            return "poisson", _lawful(readings, fit)
    if which == "curve" or detector.censored is not None or _uneven(problem, answer):
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
            fit, readings = _fit_counts_from(some, readings, law, start.signals, start.backgrounds, seed)
            found.append(_lawful(readings, fit))
        else:
            found.append(_under_curve(some, start, read))
    return found[0] if len(found) == 1 else _joined(found)


def _under_curve(problem: Problem, answer: Answer, detector: Detector) -> Lawful:
    """The answer with a variance curve, from another one."""
    offsets = _offsets(problem, detector) / problem.units
    shifted = problem._replace(responses=problem.responses + offsets)
    readings = _readings(shifted, detector, offsets, counts=False)
    fit = _fit_curve(shifted, readings, answer.over(problem.units), curved=detector.noise != "additive")
    return _lawful(readings, fit).times(problem.units)


def _joined(parts: list[Lawful]) -> Lawful:
    noise = CurvedNoise(*(np.concatenate(fields) for fields in zip(*(part.noise for part in parts), strict=True)))
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-1)
        for name in Lawful._fields
        if name != "noise"
    }
    return Lawful(noise=noise, **joined)


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


def _all_counts(problem: Problem) -> bool:
    """Whether all readings that can be used are whole numbers, and next to none below zero."""
    y = problem.responses[np.broadcast_to(problem.weights > 0, problem.responses.shape)]
    return bool(y.size and np.mean((y == np.rint(y)) & (y >= 0)) >= 1 - float(problem.levels.max()))


def _constant(problem: Problem) -> bool:
    """Whether the readings hold one value only, as those of a dead pixel: no law has anything to explain there."""
    y = problem.responses[np.broadcast_to(problem.weights > 0, problem.responses.shape)]
    return bool(y.size == 0 or np.ptp(y) == 0)


def _fit_counts(problem: Problem, readings: Readings, answer: Answer, seed: int) -> tuple[LawFit, Readings]:
    """The most likely candidate of each column, fitted to the end in turn with shares and laws of bad counts."""
    p = problem.responses.shape[1]
    mixing = np.broadcast_to(problem.levels / 2, (p,))
    if p > LAW_ENGINE.broad_columns:
        signals, backgrounds = _better_start(problem, readings, answer, seed)
    else:
        found = [_raced(problem, readings, answer, column, seed) for column in range(p)]
        signals, backgrounds = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    return _fit_counts_from(problem, readings, PoissonLaw(mixing), signals, backgrounds, seed)


def _fit_counts_from(
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
    steps, inner, _ = LAW_ENGINE.halving[-1]
    effort = Effort(steps, inner, LAW_ENGINE.close)
    classes = BadClasses(np.broadcast_to(readings.bad, fit.means.shape), np.ones_like(fit.means))
    going = np.arange(fit.backgrounds.size)
    for _ in range(LAW_ENGINE.rounds):
        last, read = fit.only(going), readings.only(going)
        order = abs2(last.projections) if orders is None else orders
        found = _classified(read, last, order)
        read = read._replace(bad=found.law, prone=found.prone)
        some = fit_law(problem.only(going), read, last.law, last.signals, last.backgrounds, effort)
        fit, classes = fit.put(some, going), put_columns(classes, found, going)
        going = going[relative_lengths(some.signals - last.signals, some.signals) >= LAW_ENGINE.steady]
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
    steps, inner, _ = LAW_ENGINE.halving[-1]
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
    for steps, inner, left in LAW_ENGINE.halving:
        law = PoissonLaw(np.broadcast_to(mixing, backgrounds.shape))
        fit = fit_law(one, read, law, signals, backgrounds, Effort(steps, inner))
        best = distinct_signals(fit.signals, fit.merits[-1], left, LAW_ENGINE.apart)
        signals, backgrounds = fit.signals[:, best], fit.backgrounds[best]
    law = PoissonLaw(np.broadcast_to(mixing, backgrounds.shape))
    fit = fit_law(one, read, law, signals, backgrounds)
    winner = [int(np.argmax(fit.merits[-1]))]
    return fit.signals[:, winner], fit.backgrounds[winner]


def _dispersed_as_counts(problem: Problem, readings: Readings, fit: LawFit) -> bool:
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
        allowed = LAW_ENGINE.dispersion * unnoticed * problem.levels / 0.1 + LAW_ENGINE.deviations * error
        alike &= np.abs(dispersion - 1) <= allowed
    return bool(np.mean(alike) > 0.5)


def _uneven(problem: Problem, answer: Answer) -> bool:
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
        bad = max(found, min(float(levels[column]), LAW_ENGINE.unnoticed))
        half = mu > np.median(mu)
        if not half.any():
            # All rows predict the same: nothing can be uneven along that.
            votes.append(False)
            continue
        low, high = np.median(sizes[~half]), np.median(sizes[half])
        votes.append(bool(low > 0 and high > low * np.exp(_most_uneven(sizes, bad, m))))
    return bool(np.mean(votes) > 0.5)


def _most_uneven(sizes: Array, bad: float, m: int) -> float:
    """Largest log ratio of the medians of two halves that even noise with this share of bad samples explains."""
    share = min(2 * bad, 0.49)
    middle = np.median(sizes)
    raised, lowered = np.quantile(sizes, (0.5 / (1 - share), (0.5 - share) / (1 - share)))
    ratio = max(raised / max(middle, _TINY), middle / max(lowered, _TINY))
    return float(np.log(ratio)) + LAW_ENGINE.deviations * LAW_ENGINE.median_error / float(np.sqrt(m))


def _fit_curve(problem: Problem, readings: Readings, answer: Answer, *, curved: bool) -> LawFit:
    """Signal and variance curve together, from the additive answer."""
    p = problem.responses.shape[1]
    noise = answer.noise._replace(
        scales=np.ones(p),
        tails=np.full(p, NOISE.lightest),
        log_skews=np.zeros(p),
        mixing=np.clip(answer.noise.mixing, NOISE.least_share, np.maximum(problem.levels, NOISE.least_share)),
    )
    power = np.maximum(abs2(answer.signals).sum(axis=0), _TINY)
    squared = np.maximum(answer.noise.scales, _TINY) ** 2
    # Each part as large as the others where readings are typical; a part that begins with zero stays there.
    curve = (
        np.stack((squared, squared / power, squared / power**2)) / 3
        if curved
        else np.stack((squared, 0 * squared, 0 * squared))
    )
    law: Law = VarianceLaw(noise, curve, answer.predictions)
    # The ceiling is no typical distance of readings, however many are there.
    told = (readings.weights > 0) & ~_censored(readings) & np.ones_like(problem.responses, bool)
    floor = DENSITY.floor / np.array([response_unit(y[at]) for y, at in zip(problem.responses.T, told.T, strict=True)])
    readings = readings._replace(bad=np.where(_censored(readings), readings.bad, np.maximum(readings.bad, floor)))
    return fit_law(problem, readings, law, answer.signals, answer.backgrounds)


def _censored(readings: Readings) -> Array:
    return np.zeros((1, 1), bool) if readings.censored is None else readings.censored


def _lawful(readings: Readings, fit: LawFit) -> Lawful:
    judged = fit.judged
    return Lawful(
        fit.signals,
        fit.backgrounds,
        fit.law.as_model(abs2(fit.projections), fit.backgrounds, readings),
        judged.clean * readings.weights,
        judged.weights,
        judged.weights * judged.residuals,
        fit.law.slopes(judged, readings, fit.means),
        abs2(fit.projections),
        fit.converged,
    )
