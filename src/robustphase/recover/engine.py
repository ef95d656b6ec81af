"""Run the stages for one signal or many, and keep the evidence.

Bad covariates are bad for all signals, so rows are screened once; everything else is each signal's own, and every pass serves
all of them. A few signals get the broad start, with up to 16 candidates each to choose from. Many signals get one start each
from common passes, which is less; so what is left of their responses is looked at again, and where some direction still
explains much of the residuals, or more samples look bad than was said, that signal gets the broad start after all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import budget, derived, empirical
from robustphase.descend.amplitude_flow import AMPLITUDE, amplitude_flow, is_uneven, unseen_columns
from robustphase.descend.candidate_steps import advance, at_rest, placed
from robustphase.descend.consistency import consistent_samples
from robustphase.descend.likelihood_fit import LikelihoodFit, fit_signals, refit
from robustphase.descend.newton import relative_lengths
from robustphase.initialise.screening import plausible_rows
from robustphase.initialise.start import (
    broad_start,
    normalised,
    operator_start,
    screened_problem,
    shared_start,
    unusual_directions,
)
from robustphase.likelihood import GroupEvidence, NoiseModel, classify, compare, initial_model
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.likelihood.comparison import comparison_floor
from robustphase.likelihood.curved_noise import CurvedNoise
from robustphase.problem import KEPT, PROBLEM, Candidates, Grouping, Problem, kept, put_columns
from robustphase.recover.contradiction import contradictions
from robustphase.recover.law_engine import Answer, Detector, lawful_answer
from robustphase.recover.law_groups import groups_under_law
from robustphase.recover.second_opinion import second_opinions
from robustphase.recover.selection import Selected, finalists, select
from robustphase.rows import OperatorRows, project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.rows.threads import allowed_threads, run_in_threads, single_threaded_blas
from robustphase.rows.watching import tell_finished, tell_found
from robustphase.validation import Samples

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class EngineOptions:
    """Constants of the engine."""

    broad_columns: int = budget(8, "most signals that all get the broad start")
    shared_steps: int = budget(8, "steps of the candidates of many signals")
    check_steps: int = budget(8, "steps that look for what is left in their residuals: strong directions show soon")
    left_over: float = empirical(
        0.5, "a direction in the residuals is suspicious if it is this strong beside that in the responses"
    )
    above_chance: float = empirical(1.5, "and this many times what chance allows")
    auto_margin: float = empirical(
        0.03, 'with "auto", a level found above the assumed one is assumed in a second run, and this'
    )
    auto_most: float = empirical(0.35, "up to this level")
    numbers: int = budget(1 << 23, "numbers in an array of samples times signals: more signals are recovered in groups")
    fewest_left: float = derived(
        4.0,
        "samples per unknown without which censored ones are not left out of the start: real signals need two, and noise twice",
    )
    together: int = budget(16, "signals whose bad samples are counted together")


ENGINE = EngineOptions()


class Stage(NamedTuple):
    """One line of the history.

    Attributes
    ----------
    stage : str
        What was done.
    candidates : int
        How many candidates or signals took part.
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
    """The answers and their evidence, one column for each signal.

    Attributes
    ----------
    signals, initial_signals : ndarray of shape (n, p)
        The estimates, and the starts they came from.
    backgrounds : ndarray of shape (p,)
        Location of the residuals; fitted also where the noise mean is known to be zero.
    weights : ndarray of shape (m, p)
        Probability of each sample to be clean, times the weight of its covariates.
    contaminations : ndarray of shape (p,)
        Share of the samples that are not kept.
    noise : NoiseModel
        The fitted noise models, in the units of the responses.
    converged : ndarray of bool, shape (p,)
        Whether the last stage settled.
    broad : ndarray of bool, shape (p,)
        Which signals had the broad start.
    covariate_weights : ndarray of shape (m, p)
        Weights of the covariates alone.
    residual_weights, probabilities : ndarray of shape (m, p)
        Weights of the last least-squares problem, and the probabilities to be clean that they came from.
    predictions : ndarray of shape (m, p), or (0, p)
        ``|A x|²`` at the answers of a likelihood fit.
    history : tuple of Stage
        What was done.
    scores, slopes : ndarray of shape (m, p), optional
        Score of each sample and minus its derivative by the mean, where the noise depends on the signal (``noise`` is then
        a :class:`~robustphase.likelihood.curved_noise.CurvedNoise`).
    shared : tuple of GroupEvidence or None
        What was found of the groups of each grouping; None where they share nothing.
    unseen : ndarray of bool, shape (n,), optional
        Unknowns behind a linear operator that get so little energy that they stay near where they started.
    """

    signals: Array
    initial_signals: Array
    backgrounds: Array
    weights: Array = field(repr=False)
    contaminations: Array
    noise: NoiseModel | CurvedNoise
    converged: Array
    broad: Array
    covariate_weights: Array = field(repr=False)
    residual_weights: Array = field(repr=False)
    probabilities: Array = field(repr=False)
    predictions: Array = field(repr=False)
    history: tuple[Stage, ...] = ()
    scores: Array | None = field(default=None, repr=False)
    slopes: Array | None = field(default=None, repr=False)
    shared: tuple[GroupEvidence | None, ...] = ()
    unseen: Array | None = field(default=None, repr=False)

    @property
    def signal(self) -> Array:
        """The first estimate, shape (n,): that of a single signal."""
        signal: Array = self.signals[:, 0]
        return signal

    def put(self, columns: Array, other: Recovery) -> Recovery:
        """These answers, with those of some columns replaced."""
        changed: dict[str, Any] = {
            name: put_columns(getattr(self, name), getattr(other, name), columns) for name in _PER_SIGNAL
        }
        # Groups are what the majority of the signals say they are.
        return replace(self, shared=other.shared if _most(columns) else self.shared, **changed)

    def joined(self, other: Recovery) -> Recovery:
        """These answers, then the others."""
        noise = type(self.noise)(*(np.concatenate(pair) for pair in zip(self.noise, other.noise, strict=True)))
        joined: dict[str, Any] = {
            name: np.concatenate((getattr(self, name), getattr(other, name)), axis=-1)
            for name in _PER_SIGNAL
            if name != "noise"
        }
        shared = tuple(_joined_evidence(*pair) for pair in zip(self.shared, other.shared, strict=True))
        return replace(self, noise=noise, shared=shared, **joined)


_PER_SIGNAL = tuple(
    name for name in Recovery.__dataclass_fields__ if name not in ("history", "scores", "slopes", "shared", "unseen")
)


class _History:
    """Collects the stages."""

    def __init__(self, samples: Samples) -> None:
        self._source, self._since = samples.source, perf_counter()
        self.stages: list[Stage] = []

    def note(
        self, stage: str, candidates: int, score: float = np.nan, moved: float = np.nan, scale: float = np.nan
    ) -> None:
        seconds = perf_counter() - self._since
        self.stages.append(Stage(stage, candidates, score, moved, scale, self._source.passes, seconds))
        tell_finished(stage)


class _Run(NamedTuple):
    """What all stages of one call know."""

    history: _History
    likelihood_fit: bool
    seed: int
    #: What the rows were divided by.
    size: float = 1.0


class Known(NamedTuple):
    """What is known of samples beside their numbers.

    Attributes
    ----------
    detector : Detector, optional
        How the responses were read; without one the noise is additive.
    groupings : tuple of Grouping
        Rows that are good or bad together. With p > 1 signals the p responses of a row are a group besides, the last grouping.
    """

    detector: Detector | None = None
    groupings: tuple[Grouping, ...] = ()


def recover(
    samples: Samples,
    contamination: float | str,
    *,
    unknown_mean: bool,
    start: Array | None = None,
    with_polish: bool = True,
    known: Known | None = None,
    seed: int = 0,
) -> Recovery:
    """Recover the signals behind checked samples.

    Parameters
    ----------
    samples : Samples
        Covariates, and responses of shape (m,) or (m, p).
    contamination : float or "auto"
        ε, the same for all signals. ``"auto"``: assume a fifth, and report what was found; a second run where more was found.
    unknown_mean : bool
        Fit backgrounds.
    start : ndarray of shape (n,), optional
        Start from here instead of looking for candidates.
    with_polish : bool, default=True
        Do the last, efficient step.
    known : Known, optional
        How the responses were read, and which rows belong together.
    seed : int, default=0
        For first guesses and subsamples.
    """
    size, energies = 1.0, np.ones(1)
    if isinstance(samples.source, OperatorRows):
        # Rows of an operator have any size; those of a design are standard normal, and every stage counts on that.
        samples, size, energies = normalised(samples)
        start = start if start is None else size * start
    p = 1 if samples.responses.ndim == 1 else samples.responses.shape[1]
    detector, groupings = Known() if known is None else known
    run = _Run(_History(samples), with_polish, seed, size)
    # Between the passes there are only small matrices, on which several threads would wait for each other.
    with single_threaded_blas():
        lazy = p == 1 and start is None
        used = _uncensored(samples, detector)
        problem, screen = screened_problem(used, contamination, unknown_mean=unknown_mean, thorough=not lazy, seed=seed)
        problem = problem._replace(groupings=(*groupings, *_rows_as_groups(problem)))
        starts = None if start is None else start[:, np.newaxis]
        if is_uneven(energies) and with_polish and not unknown_mean:
            found = _recover_uneven(problem, starts, energies, run)
        else:
            found = _in_groups(problem, starts, screen, run)
        more = found.contaminations > PROBLEM.auto_level
        if isinstance(contamination, str) and more.any() and not is_uneven(energies):
            levels = np.minimum(found.contaminations[more] + ENGINE.auto_margin, ENGINE.auto_most)
            weights = problem._replace(weights=found.covariate_weights)
            again = weights.only(more)._replace(levels=levels)
            told = again if _most(more) else _told(again, found.shared)
            found = found.put(more, _untold(again, _in_groups(told, starts, False, run)))
        if with_polish and detector is not None and not is_uneven(energies):
            if used is not samples:
                problem = _with_censored(problem, samples, detector)
            found = _under_law(problem, found, detector, run)
    return replace(
        found,
        signals=found.signals / size,
        initial_signals=found.initial_signals / size,
        history=tuple(run.history.stages),
    )


def _uncensored(samples: Samples, detector: Detector | None) -> Samples:
    """The samples without censored ones, whose responses are wrong as they stand, as long as enough are left."""
    if detector is None or detector.censored is None:
        return samples
    dropped = samples.dropped | detector.censored.reshape(samples.dropped.shape)
    m, n = samples.source.shape
    left = (m - dropped.reshape(m, -1).sum(axis=0)).min()
    return samples._replace(dropped=dropped) if left >= ENGINE.fewest_left * n else samples


def _with_censored(problem: Problem, samples: Samples, detector: Detector) -> Problem:
    """The problem with the weights that the rows of censored samples have."""
    dropped, m = samples.dropped, samples.source.shape[0]
    usable: Array = ~np.asarray(dropped.reshape(m, -1).all(axis=1))
    if isinstance(samples.source, OperatorRows):
        weights = usable.astype(np.float64)
    else:
        weights, _ = plausible_rows(samples.source, usable)
    assert detector.censored is not None
    return problem._replace(weights=np.where(detector.censored, weights[:, np.newaxis], 0.0))


def _under_law(problem: Problem, found: Recovery, detector: Detector, run: _Run) -> Recovery:
    """The answers under the law of the readings, where that is not additive noise."""
    noise = found.noise
    assert isinstance(noise, NoiseModel)
    # Censored rows had no part in the additive answer, and have weights of their own.
    weights = np.where(
        found.covariate_weights > 0, found.covariate_weights, problem.weights if detector.censored is not None else 0.0
    )
    weighted = problem._replace(weights=weights)
    answer = Answer(found.signals, found.backgrounds, noise, found.weights, found.predictions)
    lawful = lawful_answer(weighted, answer, detector, seed=run.seed)
    if lawful is None:
        return found
    # What additive noise says of groups does not hold under another law.
    shared = groups_under_law(weighted, lawful, detector)
    if shared.bad:
        lawful = lawful_answer(shared.applied_to(weighted), answer, detector, seed=run.seed) or lawful
    clean = np.clip(lawful.clean, 0.0, 1.0)
    run.history.note(lawful.noise.kind, found.converged.size, scale=float(lawful.noise.scales[0]))
    return replace(
        found,
        signals=lawful.signals,
        backgrounds=lawful.backgrounds,
        weights=clean,
        contaminations=1 - kept(clean).mean(axis=0),
        noise=lawful.noise,
        covariate_weights=weights,
        converged=lawful.converged,
        residual_weights=lawful.weights,
        probabilities=clean,
        predictions=lawful.predictions,
        scores=lawful.scores,
        slopes=lawful.slopes,
        shared=shared.evidence,
    )


def _rows_as_groups(problem: Problem) -> tuple[Grouping, ...]:
    """Behind several signals each row is a group of its responses."""
    m, p = problem.responses.shape
    return (Grouping(np.arange(m), m),) if p > 1 else ()


def _most(columns: Array) -> bool:
    return bool(2 * columns.sum() > columns.size)


def _told(problem: Problem, evidence: tuple[GroupEvidence | None, ...]) -> Problem:
    """The problem of some of the signals, with what all of them say of the groups."""
    weights = problem.weights
    for (codes, _), one in zip(problem.groupings, evidence, strict=True):
        weights = weights if one is None or not one.found else weights * one.used[codes, np.newaxis]
    return problem._replace(weights=weights)


def _untold(problem: Problem, found: Recovery) -> Recovery:
    """The answers, with weights of the covariates that know nothing of groups."""
    return replace(found, covariate_weights=np.broadcast_to(problem.weights, found.weights.shape))


def _joined_evidence(one: GroupEvidence | None, other: GroupEvidence | None) -> GroupEvidence | None:
    """What two sets of signals say of the same groups: independent evidence."""
    if one is None or other is None:
        return one if other is None else other
    if one.found != other.found:
        return one if one.found else other
    # Odds of being bad multiply, and the share of bad groups that is in both of them counts once.
    logits = [np.log(np.maximum(1 - w, _TINY)) - np.log(np.maximum(w, _TINY)) for w in (one.weights, other.weights)]
    prior = float(np.median(logits[0] - one.log_odds))
    weights = 1 / (1 + np.exp(np.clip(logits[0] + logits[1] - prior, -700, 700)))
    sizes = one.sizes + other.sizes
    shares = one.sizes / np.maximum(sizes, 1)
    return GroupEvidence(
        # Groups that were not found to be bad are not flagged.
        weights if one.found else np.maximum(weights, KEPT),
        one.log_odds + other.log_odds,
        np.exp(shares * np.log(one.widths) + (1 - shares) * np.log(other.widths)),
        shares * one.bad_shares + (1 - shares) * other.bad_shares,
        sizes,
        one.found,
    )


def _in_groups(problem: Problem, starts: Array | None, screen: bool, run: _Run) -> Recovery:
    """All columns, as many at a time as memory allows."""
    m, p = problem.responses.shape
    size = max(1, ENGINE.numbers // m)
    found: Recovery | None = None
    for low in range(0, p, size):
        group = problem.only(np.arange(low, min(low + size, p)))
        if group.responses.shape[1] > ENGINE.broad_columns:
            part = _recover_shared(group, run)
        else:
            part = _recover_broad(group, starts, screen, run)
        found = part if found is None else found.joined(part)
    assert found is not None
    return found


def _recover_broad(problem: Problem, starts: Array | None, screen: bool, run: _Run) -> Recovery:
    """Each signal chosen from candidates of its own, all of them fitted together."""
    winners, initial = [], []
    for k in range(problem.responses.shape[1]):
        one = problem.only(np.array([k]))
        if starts is not None:
            unit = float(one.units[0])
            candidates = placed(one.floored(comparison_floor(one.levels)), starts / np.sqrt(unit), np.zeros(1))
        elif isinstance(problem.source, OperatorRows):
            candidates = operator_start(one, seed=run.seed)
        else:
            one, candidates = broad_start(one, screen=screen, seed=run.seed)
            # Rows are weighed down lazily only where there is one signal.
            problem = one if screen else problem
        winner = _select(one, candidates, run)
        winners.append(winner)
        initial.append(candidates.signals[:, [winner.origin]])
    together = _together([winner.winner for winner in winners])
    found = (
        _fit_with_evidence(problem, together, np.hstack(initial), run)[0]
        if run.likelihood_fit
        else _as_selected(problem, winners, initial)
    )
    return replace(found, broad=np.ones(len(winners), bool))


def _recover_uneven(problem: Problem, starts: Array | None, energies: Array, run: _Run) -> Recovery:
    """One signal behind an operator whose columns have very different energies: descent on amplitudes."""
    units, weights = problem.units, problem.weights[:, 0]
    if starts is None:
        start = _even_start(problem, energies)
        run.history.note("start", 1)
    else:
        start = starts[:, 0] / np.sqrt(units[0])
    fit = amplitude_flow(problem, start, energies)
    residuals = problem.responses[:, 0] - abs2(project(problem.source, fit.signal))
    clean = np.clip(weights * fit.clean * fit.shared.weights, 0.0, 1.0)[:, np.newaxis]
    scale = float(np.median(np.abs(residuals[kept(clean[:, 0])]))) if kept(clean).any() else 0.0
    noise = fit.noise._replace(scales=units * scale)
    run.history.note("amplitudes", 1, moved=fit.moved, scale=float(noise.scales[0]))
    return Recovery(
        signals=np.sqrt(units) * fit.signal[:, np.newaxis],
        initial_signals=np.sqrt(units) * start[:, np.newaxis],
        backgrounds=np.zeros(1),
        weights=clean,
        contaminations=1 - kept(clean).mean(axis=0),
        noise=noise,
        converged=np.array([fit.moved < AMPLITUDE.settled]),
        broad=np.ones(1, bool),
        covariate_weights=problem.weights,
        residual_weights=clean,
        probabilities=clean,
        predictions=units * abs2(project(problem.source, fit.signal[:, np.newaxis])),
        shared=fit.shared.evidence,
        unseen=unseen_columns(energies),
    )


def _even_start(problem: Problem, energies: Array) -> Array:
    """The same number everywhere, as large as the responses ask: transparent objects are close to it.

    Spectral starts know nothing here: rows that share most of their energy make all responses alike.
    """
    weights = problem.weights[:, 0]
    flat = np.ones(energies.size, np.result_type(problem.source.dtype, np.float64))
    predicted = abs2(project(problem.source, flat))
    sizes = np.sqrt(np.maximum(problem.responses[:, 0], 0.0) * predicted)
    start: Array = flat * float(weights @ sizes) / max(float(weights @ predicted), _TINY)
    return start


def _select(problem: Problem, candidates: Candidates, run: _Run) -> Selected:
    history, unit = run.history, float(problem.units[0])
    history.note("start", candidates.scores.size, float(candidates.scores.max()))

    def note(before: Candidates, after: Candidates) -> None:
        best = int(np.argmax(after.scores))
        signal, last = after.signals[:, [best]], before.signals[:, [best]]
        moved = float(relative_lengths(signal - last, signal)[0])
        scale = float(after.scales[best]) * unit
        history.note("race", after.scores.size, float(after.scores[best]), moved, scale)
        tell_found(np.sqrt(unit) * signal / run.size)

    selected = select(problem, candidates, note, refine_alone=not run.likelihood_fit)
    score, scale = float(selected.winner.scores[0]), float(selected.winner.scales[0]) * unit
    history.note("finalists", selected.finalists, score, scale=scale)
    return selected


def _recover_shared(problem: Problem, run: _Run) -> Recovery:
    """One candidate for each signal from common passes; those that look suspicious in the end get the broad start."""
    p = problem.responses.shape[1]
    candidates, first = shared_start(problem, seed=run.seed)
    run.history.note("start", p)
    floored = problem.floored(comparison_floor(problem.levels))
    moved = advance(floored, at_rest(floored, candidates), ENGINE.shared_steps).candidates
    run.history.note("race", p)
    found, fit = _fit_with_evidence(problem, moved, candidates.signals, run)
    left = unusual_directions(problem, fit.residuals, most=ENGINE.check_steps, seed=run.seed)
    run.history.note("check", p)
    suspicious = ~found.converged | (found.contaminations > problem.levels)
    suspicious |= first.strengths < ENGINE.above_chance * first.chance
    suspicious |= left.strengths > np.maximum(ENGINE.left_over * first.strengths, ENGINE.above_chance * left.chance)
    if suspicious.any():
        again = problem.only(suspicious)
        told = again if _most(suspicious) else _told(again, found.shared)
        found = found.put(suspicious, _untold(again, _recover_broad(told, None, False, run)))
    return found


def _fit_with_evidence(
    problem: Problem, candidates: Candidates, initial: Array, run: _Run
) -> tuple[Recovery, LikelihoodFit]:
    """Maximum likelihood; again without samples that contradict the others about the norm, where there are any."""
    tell_found(np.sqrt(problem.units) * candidates.signals / run.size)
    fit, fitted = fit_signals(problem, candidates.signals, candidates.backgrounds, candidates.scales)
    consistent = consistent_samples(fitted, fit)
    again: Array = ~np.asarray(consistent.all(axis=0))
    if again.any():
        fitted = fitted._replace(weights=fitted.weights * np.where(again, consistent, True))
        fit = fit.put(again, refit(fitted.only(again), fit.state.only(again)))
    scale = float(fit.state.noise.scales[0] * problem.units[0])
    run.history.note("polish", again.size, moved=fit.moves[-1], scale=scale)
    tell_found(np.sqrt(problem.units) * fit.state.signals / run.size)
    weights = _classified(problem, fitted, fit)
    doubts = contradictions(fitted, fit, weights)
    if (doubts > 1).any():
        fit = _heard_twice(problem, fit, weights, doubts, run)
        weights = _classified(problem, fitted, fit)
    units = problem.units
    return Recovery(
        signals=np.sqrt(units) * fit.state.signals,
        initial_signals=np.sqrt(units) * initial,
        backgrounds=units * fit.state.backgrounds,
        weights=weights,
        contaminations=1 - kept(weights).mean(axis=0),
        noise=fit.state.noise._replace(scales=units * fit.state.noise.scales),
        converged=fit.converged,
        broad=np.zeros(units.size, bool),
        covariate_weights=np.broadcast_to(problem.weights, weights.shape),
        residual_weights=fit.weights * fitted.weights,
        probabilities=fit.clean * fitted.weights,
        predictions=units * abs2(fit.projections),
        shared=(None,) * len(problem.groupings) if fit.shared is None else fit.shared.evidence,
    ), fit


def _heard_twice(problem: Problem, fit: LikelihoodFit, weights: Array, doubts: Array, run: _Run) -> LikelihoodFit:
    """The fits, with other answers to those in doubt where the samples vote for them."""
    doubted = doubts > 1
    search = _broad_candidates if doubted.sum() <= ENGINE.broad_columns else _shared_candidates
    better, others = second_opinions(
        problem.only(doubted), fit.only(doubted), weights[:, doubted], doubts[doubted], lambda half: search(half, run)
    )
    run.history.note("second opinion", int(doubted.sum()), moved=others.moves[-1])
    if not better.any():
        return fit
    columns = doubted.copy()
    columns[doubted] = better
    return fit.put(columns, others)


def _broad_candidates(problem: Problem, run: _Run) -> list[Candidates]:
    """For every signal the finalists of those candidates that the broad start finds."""
    found = []
    for k in range(problem.responses.shape[1]):
        one = problem.only(np.array([k]))
        if isinstance(problem.source, OperatorRows):
            candidates = operator_start(one, seed=run.seed)
        else:
            one, candidates = broad_start(one, screen=False, seed=run.seed)
        found.append(finalists(one, candidates))
    return found


def _shared_candidates(problem: Problem, run: _Run) -> list[Candidates]:
    """One candidate for every signal, from common passes."""
    candidates, _ = shared_start(problem, seed=run.seed)
    floored = problem.floored(comparison_floor(problem.levels))
    moved = advance(floored, at_rest(floored, candidates), ENGINE.shared_steps).candidates
    return [moved.only(np.array([k])) for k in range(problem.responses.shape[1])]


def _together(winners: list[Candidates]) -> Candidates:
    return Candidates(*(np.concatenate(parts, axis=-1) for parts in zip(*winners, strict=True)))


def _classified(problem: Problem, fitted: Problem, fit: LikelihoodFit) -> Array:
    """Probabilities to be clean, with the bad samples of each signal counted, times the weights of the covariates."""
    p, clean = fit.converged.size, np.empty_like(fit.residuals)
    counting = problem.floored(DENSITY.low_floor)._replace(weights=fitted.weights, levels=fitted.levels)

    def count(lows: range) -> None:
        for low in lows:
            columns = np.arange(low, min(low + ENGINE.together, p))
            some = counting.only(columns)
            clean[:, columns] = classify(
                fit.residuals[:, columns],
                fit.spreads[:, columns],
                some.density,
                some.weights,
                fit.state.noise.only(columns),
                some.levels,
            )

    tasks = range(0, p, ENGINE.together)
    threads = max(1, min(allowed_threads(), len(tasks)))
    run_in_threads(count, [tasks[part::threads] for part in range(threads)])
    weights: Array = np.clip(clean * fitted.weights, 0.0, 1.0)
    return weights


def _as_selected(problem: Problem, winners: list[Selected], initial: list[Array]) -> Recovery:
    """The winners as they were selected, without a fitted noise model."""
    units, floored = problem.units, problem.floored(comparison_floor(problem.levels))
    signals = np.hstack([one.winner.signals for one in winners])
    backgrounds, scales = (np.concatenate([one.winner[part] for one in winners]) for part in (1, 2))
    residuals = np.hstack([one.residuals for one in winners])
    irls, ratio = compare(residuals, floored.density, scales, floored.levels)
    clean = 1 - floored.levels / ratio
    weights = np.clip(clean * problem.weights, 0.0, 1.0)
    return Recovery(
        signals=np.sqrt(units) * signals,
        initial_signals=np.sqrt(units) * np.hstack(initial),
        backgrounds=units * backgrounds,
        weights=weights,
        contaminations=1 - kept(weights).mean(axis=0),
        noise=initial_model(units * scales, problem.levels),
        converged=np.ones(units.size, bool),
        broad=np.ones(units.size, bool),
        covariate_weights=np.broadcast_to(problem.weights, weights.shape),
        residual_weights=irls * problem.weights,
        probabilities=weights,
        predictions=np.empty((0, units.size)),
        shared=(None,) * len(problem.groupings),
    )
