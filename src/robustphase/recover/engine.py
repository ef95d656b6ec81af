"""Run the stages for one signal or many, and keep the evidence.

Bad covariates are bad for all signals, so rows are screened once; everything else is each signal's own, and every pass serves
all of them. A few signals get the broad start, with up to 16 candidates each to choose from. Many signals get one start each
from common passes, which is less; so what is left of their responses is looked at again, and where some direction still
explains much of the residuals, or more samples look bad than was said, that signal gets the broad start after all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, empirical
from robustphase.descend.amplitude_flow import is_uneven
from robustphase.descend.candidate_steps import advance, at_rest, placed
from robustphase.descend.climb import WITHIN_NOISE
from robustphase.descend.consistency import contradicting_ranges, in_ranges, relative_energies
from robustphase.descend.likelihood_fit import LikelihoodFit, fit_signals, judged, refit
from robustphase.descend.newton import relative_lengths
from robustphase.initialise.start import (
    broad_start,
    hidden_start,
    normalised,
    operator_start,
    screened_problem,
    shared_start,
    unusual_directions,
)
from robustphase.likelihood import NoiseModel, classify, compare, initial_model
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.likelihood.comparison import comparison_floor
from robustphase.problem import PROBLEM, Candidates, Grouping, Problem, kept, put_columns
from robustphase.recover.contradiction import contradictions
from robustphase.recover.held_noise import Fitted, fit_bounded
from robustphase.recover.law.answers import Detector
from robustphase.recover.law.under_law import under_law, with_censored, without_censored
from robustphase.recover.model.residuals import located
from robustphase.recover.pilot import pilot_samples, recover_all
from robustphase.recover.recovery import (
    History,
    Recovery,
    Run,
    is_majority,
    rows_as_groups,
    said_by,
    unasked,
    with_groups_known,
)
from robustphase.recover.sample_rule import Suspects, sample_rule
from robustphase.recover.search_copy import search_copy
from robustphase.recover.second_opinion import Opinions, faint, second_opinions
from robustphase.recover.selection import Selected, finalists, select
from robustphase.recover.uneven import recover_uneven
from robustphase.rows import OperatorRows, project
from robustphase.rows.source import Array
from robustphase.rows.threads import allowed_threads, run_in_threads, single_threaded_blas
from robustphase.rows.watching import tell_found
from robustphase.validation import Samples


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
    together: int = budget(16, "signals whose bad samples are counted together")


ENGINE = EngineOptions()


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

    @property
    def additive(self) -> bool:
        """Whether nothing is known, so that samples may be taken for alike."""
        detector = self.detector
        if self.groupings or detector is None:
            return not self.groupings
        return detector.noise != "poisson" and detector.censored is None and detector.offsets is None


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
    run = Run(History(samples), with_polish, seed, size)
    # Between the passes there are only small matrices, on which several threads would wait for each other.
    with single_threaded_blas():
        found = _from_pilot(samples, contamination, unknown_mean, known, run) if start is None else None
        if found is not None:
            return found
        lazy = p == 1 and start is None
        used = without_censored(samples, detector)
        problem, screen = screened_problem(used, contamination, unknown_mean=unknown_mean, thorough=not lazy, seed=seed)
        problem = problem._replace(groupings=(*groupings, *rows_as_groups(problem)))
        starts = None if start is None else start[:, np.newaxis]
        if is_uneven(energies) and with_polish and not unknown_mean:
            found = recover_uneven(problem, starts, energies, run)
        else:
            found = _in_groups(problem, starts, screen, run)
        more = found.contaminations > PROBLEM.auto_level
        if isinstance(contamination, str) and more.any() and not is_uneven(energies):
            levels = np.minimum(found.contaminations[more] + ENGINE.auto_margin, ENGINE.auto_most)
            weights = problem._replace(weights=found.covariate_weights)
            again = weights.only(more)._replace(levels=levels)
            told = again if is_majority(more) else with_groups_known(again, found.shared)
            found = found.put(more, _untold(again, _in_groups(told, starts, False, run)))
        if with_polish and detector is not None and not is_uneven(energies):
            if used is not samples:
                problem = with_censored(problem, samples, detector)
            found = under_law(problem, found, detector, run)
    return replace(
        found,
        signals=found.signals / size,
        initial_signals=found.initial_signals / size,
        history=tuple(run.history.stages),
    )


def _from_pilot(
    samples: Samples, contamination: float | str, unknown_mean: bool, known: Known | None, run: Run
) -> Recovery | None:
    """The answer of some of the samples, fitted to all; None where these are not many, or the answer is in doubt."""
    if not run.likelihood_fit or (known is not None and not known.additive):
        return None
    with pilot_samples(samples, run.seed) as pilot:
        if pilot is None:
            return None
        found = recover(pilot, contamination, unknown_mean=unknown_mean, known=known, seed=run.seed)
    run.history.take_over(found.history)
    if found.rule is None or not found.converged.all() or not isinstance(found.noise, NoiseModel):
        return None
    return replace(recover_all(samples, found, run), history=tuple(run.history.stages))


def _untold(problem: Problem, found: Recovery) -> Recovery:
    """The answers, with weights of the covariates that know nothing of groups."""
    return replace(found, covariate_weights=np.broadcast_to(problem.weights, found.weights.shape))


def _in_groups(problem: Problem, starts: Array | None, screen: bool, run: Run) -> Recovery:
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


def _recover_broad(problem: Problem, starts: Array | None, screen: bool, run: Run) -> Recovery:
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
    if run.likelihood_fit:
        return _fit_with_evidence(problem, together, np.hstack(initial), run)[0]
    return _as_selected(problem, winners, initial)


def _select(problem: Problem, candidates: Candidates, run: Run) -> Selected:
    history, unit = run.history, float(problem.units[0])
    history.note("start", candidates.scores.size, float(candidates.scores.max()))

    def note(before: Candidates, after: Candidates) -> None:
        best = int(np.argmax(after.scores))
        signal, last = after.signals[:, [best]], before.signals[:, [best]]
        moved = float(relative_lengths(signal - last, signal)[0])
        scale = float(after.scales[best]) * unit
        history.note("selection", after.scores.size, float(after.scores[best]), moved, scale)
        tell_found(np.sqrt(unit) * signal / run.size)

    selected = select(problem, candidates, note, refine_alone=not run.likelihood_fit)
    score, scale = float(selected.winner.scores[0]), float(selected.winner.scales[0]) * unit
    history.note("finalists", selected.finalists, score, scale=scale)
    return selected


def _recover_shared(problem: Problem, run: Run) -> Recovery:
    """One candidate for each signal from common passes; those that look suspicious in the end get the broad start."""
    p = problem.responses.shape[1]
    candidates, first = shared_start(problem, seed=run.seed)
    run.history.note("start", p)
    moved = _moved(problem, candidates)
    run.history.note("selection", p)
    found, fit = _fit_with_evidence(problem, moved, candidates.signals, run)
    left = unusual_directions(problem, fit.residuals, most=ENGINE.check_steps, seed=run.seed)
    run.history.note("check", p)
    suspicious = ~found.converged | (found.contaminations > problem.levels)
    suspicious |= first.strengths < ENGINE.above_chance * first.chance
    suspicious |= left.strengths > np.maximum(ENGINE.left_over * first.strengths, ENGINE.above_chance * left.chance)
    if suspicious.any():
        again = problem.only(suspicious)
        told = again if is_majority(suspicious) else with_groups_known(again, found.shared)
        found = found.put(suspicious, _untold(again, _recover_broad(told, None, False, run)))
    return found


def _fit_with_evidence(
    problem: Problem, candidates: Candidates, initial: Array, run: Run
) -> tuple[Recovery, LikelihoodFit]:
    """Maximum likelihood; again without samples that contradict the others about the norm, where there are any."""
    tell_found(np.sqrt(problem.units) * candidates.signals / run.size)
    fit, fitted = fit_signals(problem, candidates.signals, candidates.backgrounds, candidates.scales)
    suspects = Suspects(fit.state.signals, contradicting_ranges(fitted, fit))
    again = np.asarray(suspects.ranges.any(axis=0))
    if again.any():
        given_up = in_ranges(relative_energies(fit.projections, suspects.signals), suspects.ranges)
        fitted = fitted._replace(weights=fitted.weights * ~given_up)
        fit = fit.put(again, refit(fitted.only(again), fit.state.only(again), WITHIN_NOISE))
    scale = float(fit.state.noise.scales[0] * problem.units[0])
    run.history.note("likelihood", again.size, moved=fit.moves[-1], scale=scale)
    tell_found(np.sqrt(problem.units) * fit.state.signals / run.size)
    weights, counted = _classified(problem, fitted, fit)
    dim = faint(fitted, fit)
    against = contradictions(fitted, fit, weights, dim)
    doubts = _Doubts(against.strengths, (against.strengths > 1) | dim)
    first, votes = fit, unasked(again.size)
    replaced = np.zeros(again.size, bool)
    if doubts.heard.any():
        opinions = _heard_twice(problem, Fitted(fitted, fit), weights, doubts, run)
        votes = {name: put_columns(value, getattr(opinions, name), doubts.heard) for name, value in votes.items()}
        replaced[doubts.heard] = opinions.better
        fit = fit.put(replaced, opinions.fit) if replaced.any() else fit
    pulled = against.pulled.any(axis=0) & ~replaced
    if pulled.any():
        fit = fit.put(pulled, _turned(Fitted(fitted, fit).only(pulled), against.pulled[1, pulled], run))
    if fit is not first:
        weights, _ = _classified(problem, fitted, fit)
    units = problem.units
    # Under doubts that nothing better came of, the answer stands; another one is not what the densities were made for.
    sure = units.size == 1 and fit is first and not dim.any() and not problem.groupings
    return Recovery(
        **said_by(fit, problem, fitted.weights, weights),
        **votes,
        initial_signals=np.sqrt(units) * initial,
        shared=(None,) * len(problem.groupings) if fit.shared is None else fit.shared.evidence,
        rule=sample_rule(problem, fitted, fit, counted, suspects) if sure else None,
    ), fit


class _Doubts(NamedTuple):
    """How strongly the answers are contradicted, and which of them are heard again, shape (k,)."""

    strengths: Array
    heard: Array


def _heard_twice(problem: Problem, answers: Fitted, weights: Array, doubts: _Doubts, run: Run) -> Opinions:
    """What the samples say of the answers that are heard again."""
    strengths, heard = doubts
    search = _broad_candidates if heard.sum() <= ENGINE.broad_columns else _shared_candidates
    opinions = second_opinions(
        problem.only(heard),
        answers.only(heard),
        weights[:, heard],
        strengths[heard],
        lambda whole, half: search(whole, half, run),
    )
    run.history.note("second opinion", int(heard.sum()), moved=opinions.fit.moves[-1])
    run.history.overruled |= bool(opinions.better.any())
    return opinions


def _turned(answers: Fitted, held_back: Array, run: Run) -> LikelihoodFit:
    """The fits, turned to where they point if no sample pulls more than a typical one; their lengths and noises stay.

    And where some are told to, shape (k,), if strong samples are held back as well.
    """
    problem, fit = answers
    signals = fit.state.signals
    bounded = fit_bounded(problem, signals, fit.state.backgrounds, held_back).fit
    norms = np.linalg.norm(signals, axis=0), np.linalg.norm(bounded.state.signals, axis=0)
    turned = np.where(bounded.converged & (norms[1] > 0), bounded.state.signals * (norms[0] / norms[1]), signals)
    run.history.note("bounded pulls", norms[0].size, moved=bounded.moves[-1])
    seen = judged(problem, fit.state._replace(signals=turned), project(problem.source, turned))
    return seen._replace(converged=fit.converged, reasons=fit.reasons)


def _broad_candidates(problem: Problem, half: Problem, run: Run) -> list[Candidates]:
    """For every signal the finalists of those candidates that the broad start finds in a half, and of hidden ones in all."""
    found, m = [], problem.source.shape[0]
    for k in range(problem.responses.shape[1]):
        whole, part = (search_copy(samples.only(np.array([k]))) for samples in (problem, half))
        if isinstance(problem.source, OperatorRows):
            (searched,) = finalists(part, [operator_start(part, seed=run.seed)], m)
            found.append(searched)
            continue
        part, candidates = broad_start(part, screen=False, seed=run.seed)
        hidden = hidden_start(whole, seed=run.seed)
        # Each sought where it may be seen: bad samples outnumber the clean ones that differ, in one of the two.
        found.append(_together([*finalists(part, [candidates, hidden], m), *finalists(whole, [hidden], m)]))
    return found


def _shared_candidates(problem: Problem, half: Problem, run: Run) -> list[Candidates]:
    """One candidate for every signal, from common passes over the half."""
    candidates, _ = shared_start(half, seed=run.seed)
    moved = _moved(half, candidates)
    return [moved.only(np.array([k])) for k in range(half.responses.shape[1])]


def _moved(problem: Problem, candidates: Candidates) -> Candidates:
    """Candidates of many signals, one each, after a few steps."""
    floored = problem.floored(comparison_floor(problem.levels))
    return advance(floored, at_rest(floored, candidates), ENGINE.shared_steps).candidates


def _together(winners: list[Candidates]) -> Candidates:
    return Candidates(*(np.concatenate(parts, axis=-1) for parts in zip(*winners, strict=True)))


def _classified(problem: Problem, fitted: Problem, fit: LikelihoodFit) -> tuple[Array, NoiseModel]:
    """Probabilities to be clean, with the bad samples of each signal counted, times the weights of the covariates.

    And the noise models with which they were counted.
    """
    p, clean = fit.converged.size, np.empty_like(fit.residuals)
    models = NoiseModel(*(np.empty(p) for _ in NoiseModel._fields))
    counting = problem.floored(DENSITY.low_floor)._replace(weights=fitted.weights, levels=fitted.levels)

    def count(lows: range) -> None:
        for low in lows:
            columns = np.arange(low, min(low + ENGINE.together, p))
            some = counting.only(columns)
            clean[:, columns], counted = classify(
                fit.residuals[:, columns],
                fit.spreads[:, columns],
                some.density,
                some.weights,
                fit.state.noise.only(columns),
                some.levels,
            )
            for whole, part in zip(models, counted, strict=True):
                whole[columns] = part

    tasks = range(0, p, ENGINE.together)
    threads = max(1, min(allowed_threads(), len(tasks)))
    run_in_threads(count, [tasks[part::threads] for part in range(threads)])
    return np.clip(clean * fitted.weights, 0.0, 1.0), models


def _as_selected(problem: Problem, winners: list[Selected], initial: list[Array]) -> Recovery:
    """The winners as they were selected, without a fitted noise model."""
    units, floored = problem.units, problem.floored(comparison_floor(problem.levels))
    signals = np.hstack([one.winner.signals for one in winners])
    backgrounds, scales = (np.concatenate([one.winner[part] for one in winners]) for part in (1, 2))
    residuals = np.hstack([one.residuals for one in winners])
    irls, ratio = compare(residuals, floored.density, scales, floored.levels)
    clean = 1 - floored.levels / ratio
    weights = np.clip(clean * problem.weights, 0.0, 1.0)
    # Scales of the selection are those of the best residuals; no one has found that the others are not noise.
    used = np.broadcast_to(problem.weights > 0, residuals.shape)
    spreads = [located(column[seen]).scale for column, seen in zip(residuals.T, used.T, strict=True)]
    return Recovery(
        signals=np.sqrt(units) * signals,
        initial_signals=np.sqrt(units) * np.hstack(initial),
        backgrounds=units * backgrounds,
        weights=weights,
        contaminations=1 - kept(weights).mean(axis=0),
        noise=initial_model(units * np.maximum(scales, spreads), problem.levels),
        converged=np.ones(units.size, bool),
        covariate_weights=np.broadcast_to(problem.weights, weights.shape),
        residual_weights=irls * problem.weights,
        probabilities=weights,
        predictions=np.empty((0, units.size)),
        **unasked(units.size),
        shared=(None,) * len(problem.groupings),
    )
