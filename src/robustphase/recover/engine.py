"""Run the stages and keep the evidence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from robustphase.descend.consistency import consistent_samples
from robustphase.descend.gauss_newton import gauss_newton_step
from robustphase.descend.objective import Fit, evaluate, weigh
from robustphase.descend.polish import Polished, polish
from robustphase.descend.race import Field, distinct_signals, line_up, race
from robustphase.descend.relaxation import Relaxation
from robustphase.initialise import Problem, pose, start_candidates
from robustphase.initialise.start import AUTO_CONTAMINATION
from robustphase.initialise.structured import normalised, pose_structured, structured_candidates
from robustphase.likelihood import cautious_law, count_bad, density_floor, response_density
from robustphase.rows import OperatorRows
from robustphase.rows.data import Data
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.rows.threads import single_threaded_blas
from robustphase.validation import Samples

#: Stretches of the race: steps until the next look at the field, most candidates that then stay in, and how close their
#: forecasts are to the best. The first look comes soon, and only drops what is hopeless.
STRETCHES = ((2, 16, 0.5), *((4, most, 0.25) for most in (16, 8, 6, 6, 5, 5, 4, 3)))
#: How far apart candidates are that stay in.
APART = 0.2
#: Candidates that get Gauss-Newton steps, how far apart they are, and fewest and most steps.
FINALISTS, APART_LAST, FEWEST_REFINEMENTS, MOST_REFINEMENTS = 3, 0.1, 2, 8
#: A race is over when no candidate moves by more than this fraction; so are the Gauss-Newton steps.
SETTLED = 0.02
#: Candidates take part in a vote if their mean log-likelihood is that close to the best, and their power at least this
#: fraction of the power of that one.
ABOUT_AS_GOOD, ORDINARY = 0.16, 0.3
#: Floor of the response density in the polish. A lower one makes bad samples so dear that a signal which explains them by wider
#: noise is the more likely one.
POLISH_FLOOR = 0.3
#: The same where bad samples are counted: what is dear is counted sparingly.
COUNT_FLOOR = 0.1
#: With "auto", a level found above the assumed one is assumed in a second run, with this margin, up to this level.
AUTO_MARGIN, AUTO_MOST = 0.03, 0.35


class Stage(NamedTuple):
    """One line of the history.

    Attributes
    ----------
    stage : str
        What was done.
    candidates : int
        How many candidates took part.
    score : float
        Best score, mean log-likelihood ratio against no signal.
    moved : float
        How far the best candidate moved, relative to its norm.
    scale : float
        Scale of its clean residuals, in units of the responses.
    passes : int
        Sweeps over the data so far.
    seconds : float
        Time so far.
    """

    stage: str
    candidates: int
    score: float
    moved: float
    scale: float
    passes: int
    seconds: float


@dataclass(frozen=True)
class Recovery:
    """The answer and its evidence.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        The estimate.
    initial_signal : ndarray of shape (n,)
        The start it came from.
    background : float
        Noise mean; as fitted by the polish also where it was known to be zero.
    weights : ndarray of shape (m,)
        Probability of each sample to be clean, times the weight of its covariates.
    contamination : float
        Share of the samples with weight below one half.
    scale : float
        Scale of the clean residuals.
    converged : bool
        Whether the last stage settled.
    history : tuple of Stage
        What was done.
    residual_weights : ndarray of shape (m,)
        Weights of the last least-squares problem.
    probabilities : ndarray of shape (m,), optional
        Probabilities to be clean that these weights came from, where a noise law was fitted.
    """

    signal: Array
    initial_signal: Array
    background: float
    weights: Array
    contamination: float
    scale: float
    converged: bool
    history: tuple[Stage, ...]
    residual_weights: Array = field(repr=False)
    probabilities: Array | None = field(default=None, repr=False)


class _Diary:
    """Collects the history."""

    def __init__(self, problem: Problem, since: float) -> None:
        self._problem, self._since = problem, since
        self.stages: list[Stage] = []

    def note(self, stage: str, candidates: int, score: float, moved: float, scale: float) -> None:
        self.stages.append(
            Stage(
                stage,
                candidates,
                score,
                moved,
                scale * self._problem.unit,
                self._problem.data.source.passes,
                perf_counter() - self._since,
            )
        )


def recover(
    samples: Samples,
    contamination: float | str,
    *,
    unknown_mean: bool,
    start: Array | None = None,
    with_polish: bool = True,
    seed: int = 0,
) -> Recovery:
    """Recover a signal from checked samples.

    Parameters
    ----------
    samples : Samples
        Covariates and responses.
    contamination : float or "auto"
        ε. ``"auto"``: assume a fifth, and report what was found; a second run where more was found.
    unknown_mean : bool
        Fit a background.
    start : ndarray of shape (n,), optional
        Start from here instead of looking for candidates.
    with_polish : bool, default=True
        Do the last, efficient step.
    seed : int, default=0
        For first guesses and subsamples.
    """
    size = 1.0
    if isinstance(samples.source, OperatorRows):
        # Rows of an operator have any size; those of a design are standard normal, and every stage counts on that.
        samples, size = normalised(samples)
        start = start if start is None else size * start
    # Between the passes there are only small matrices, on which several threads would wait for each other.
    with single_threaded_blas():
        result = _recover(samples, contamination, unknown_mean, start, with_polish, seed)
        if isinstance(contamination, str) and result.contamination > AUTO_CONTAMINATION:
            level = min(result.contamination + AUTO_MARGIN, AUTO_MOST)
            result = _recover(samples, level, unknown_mean, start, with_polish, seed)
    return replace(result, signal=result.signal / size, initial_signal=result.initial_signal / size)


def _recover(
    samples: Samples, contamination: float | str, unknown_mean: bool, start: Array | None, with_polish: bool, seed: int
) -> Recovery:
    began = perf_counter()
    structured = isinstance(samples.source, OperatorRows)
    if start is None:
        look_for = structured_candidates if structured else start_candidates
        problem, candidates = look_for(samples, contamination, unknown_mean=unknown_mean, seed=seed)
        field = line_up(problem.data, *candidates)
    else:
        if structured:
            problem = pose_structured(samples, contamination, unknown_mean=unknown_mean)
        else:
            problem = pose(samples, contamination, unknown_mean=unknown_mean, seed=seed)
        field = line_up(problem.data, (start / np.sqrt(problem.unit))[:, np.newaxis], np.zeros(1))
    data, diary = problem.data, _Diary(problem, began)
    starts, best = field.signals, float(field.scores.max())
    diary.note("start", field.scores.size, best, np.nan, np.nan)

    field, origins = _race_down(data, field, diary)
    signals, backgrounds, winner, scale = field.signals, field.backgrounds, 0, float(field.scales[0])
    if not with_polish or origins.size > 1:
        # A single finalist goes straight to the polish, which takes the same kind of steps.
        signals, backgrounds, fit = _refine(data, field)
        winner = choose(data, fit) if origins.size > 1 else 0
        scale = float(fit.scales[winner])
    diary.note("finalists", origins.size, float(field.scores[winner]), np.nan, scale)
    signal, background = signals[:, winner], float(backgrounds[winner])
    initial = starts[:, origins[winner]]
    if not with_polish:
        clean = fit.weights[:, winner] > 0.5 * fit.weights[:, winner].max()
        return _finish(
            problem,
            samples,
            signal,
            initial,
            background,
            clean * data.weights,
            fit.weights[:, winner],
            scale,
            True,
            diary,
        )

    polished, data = _polish_consistently(data, signal, background, scale)
    law = polished.law
    diary.note("polish", 1, np.nan, polished.moves[-1], float(law.scales[0]))
    clean = count_bad(
        polished.residuals,
        response_density(data.responses, COUNT_FLOOR)[:, np.newaxis],
        data.weights[:, np.newaxis],
        polished.rates * abs2(polished.projections),
        law,
        data.contamination,
    )
    found = _finish(
        problem,
        samples,
        polished.signals[:, 0],
        initial,
        float(polished.backgrounds[0]),
        clean[:, 0] * data.weights,
        polished.weights[:, 0] * data.weights,
        float(law.scales[0]),
        bool(polished.converged[0]),
        diary,
    )
    return replace(found, probabilities=polished.clean[:, 0] * data.weights)


def _race_down(data: Data, field: Field, diary: _Diary) -> tuple[Field, Array]:
    """Race the candidates, stretch by stretch, among those that are still different and promising.

    What promises is a forecast: the score after a stretch, and as much again as was gained in it. A right candidate that
    started far away is still behind when wrong ones have long settled, but it gains more.
    """
    origins, alone = np.arange(field.scores.size), field.scores.size == 1
    for steps, most, close in STRETCHES:
        before = field
        field, gains = race(data, before, steps)
        _note_race(diary, before, field)
        forecasts = field.scores + gains
        chosen = distinct_signals(field.signals, forecasts, most, APART)
        chosen = chosen[forecasts[chosen] > forecasts.max() - close]
        moved = np.linalg.norm(field.signals - before.signals, axis=0) / _lengths(field.signals)
        field, origins = field.only(chosen), origins[chosen]
        # Who has beaten others is near the signal; a start that was given may be far away.
        if (chosen.size == 1 and not alone) or (moved[chosen] < SETTLED).all():
            break
    chosen = distinct_signals(field.signals, field.scores, FINALISTS, APART_LAST)
    return field.only(chosen), origins[chosen]


def _lengths(signals: Array) -> Array:
    """Norms of the signals, never zero: where the data hold none, a candidate may vanish."""
    lengths: Array = np.maximum(np.linalg.norm(signals, axis=0), np.finfo(np.float64).tiny)
    return lengths


def _note_race(diary: _Diary, before: Field, after: Field) -> None:
    best = int(np.argmax(after.scores))
    signal, last = after.signals[:, best], before.signals[:, best]
    moved = float(np.linalg.norm(signal - last) / _lengths(signal))
    diary.note("race", after.scores.size, float(after.scores[best]), moved, float(after.scales[best]))


def _refine(data: Data, field: Field) -> tuple[Array, Array, Fit]:
    """A few Gauss-Newton steps on the same likelihood, more where a finalist is still on its way."""
    relaxation = Relaxation(1.0, least=1.0)
    signals, backgrounds = field.signals, field.backgrounds
    fit = evaluate(data, signals, backgrounds)
    for count in range(1, MOST_REFINEMENTS + 1):
        step = gauss_newton_step(
            data.source,
            signals,
            fit.projections,
            fit.residuals,
            fit.weights,
            fit_background=data.unknown_mean,
            max_inner=4,
            tol=0.1,
        )
        relaxation = relaxation.after(step.signals)
        factor = relaxation.factors(signals)
        signals, backgrounds = signals + factor * step.signals, backgrounds + factor * step.backgrounds
        fit = evaluate(data, signals, backgrounds)
        settled = np.linalg.norm(step.signals, axis=0) < SETTLED * np.linalg.norm(signals, axis=0)
        if count >= FEWEST_REFINEMENTS and settled.all():
            break
    return signals, backgrounds, fit


def choose(data: Data, fit: Fit) -> int:
    """Index of the winner: the best likelihood; among those about as good, the one that most samples vote for.

    A high floor of the response density caps what a single sample can count, so it asks for votes; a low one asks for
    explanations of what is surprising. A signal close to zero says nothing of any sample, so nobody votes against it: it
    takes no part in a vote on one of ordinary size.
    """
    explaining, voting = (
        weigh(data._replace(density=response_density(data.responses, floor)), fit.projections, fit.residuals).scores
        for floor in (min(0.1, density_floor(data.contamination)), 0.6)
    )
    power = abs2(fit.projections).mean(axis=0)
    eligible = (explaining >= explaining.max() - ABOUT_AS_GOOD) & (power >= ORDINARY * power[np.argmax(explaining)])
    return int(np.argmax(np.where(eligible, voting, -np.inf)))


def _polish_consistently(data: Data, signal: Array, background: float, scale: float) -> tuple[Polished, Data]:
    """Polish; give up samples that contradict the others about the norm; polish again if there were any."""
    data = data._replace(density=response_density(data.responses, POLISH_FLOOR))
    law = cautious_law(np.array([scale]), np.array([data.contamination]))
    first = polish(data, signal[:, np.newaxis], np.array([background]), law)
    power = float(np.linalg.norm(first.signals)) ** 2
    kept = consistent_samples(first.projections[:, 0], first.residuals[:, 0], first.weights[:, 0] * data.weights, power)
    if kept.all() or first.law.scales[0] <= 1e-9:
        return first, data
    data = data._replace(weights=data.weights * kept)
    return polish(data, first.signals, first.backgrounds, first.law), data


def _finish(
    problem: Problem,
    samples: Samples,
    signal: Array,
    initial: Array,
    background: float,
    weights: Array,
    residual_weights: Array,
    scale: float,
    converged: bool,
    diary: _Diary,
) -> Recovery:
    weights = np.where(samples.dropped, 0.0, np.clip(weights, 0.0, 1.0))
    return Recovery(
        signal=np.sqrt(problem.unit) * signal,
        initial_signal=np.sqrt(problem.unit) * initial,
        background=problem.unit * background,
        weights=weights,
        contamination=float(np.mean(weights < 0.5)),
        scale=problem.unit * scale,
        converged=converged,
        history=tuple(diary.stages),
        residual_weights=residual_weights,
    )
