"""Many signals behind one design: every pass over the covariates serves all of them.

Rows of a transmission matrix are such signals: thousands of them, measured with the same patterns, each with its own dead
pixel, background and noise. Bad covariates are bad for all, so the rows are screened once. Each signal then gets one start, a
short race and the same polish as a single one, whose end does not depend on where it began.

One start is less than the sixteen that a single fit tries. So what is left of the responses is looked at again: if some
direction still explains much of the residuals, or nothing was found at all, that signal is recovered by itself, with all
the care of :func:`robustphase.recover.recover`.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from robustphase.descend.consistency import consistent_samples
from robustphase.descend.polish import Polished, polish
from robustphase.descend.race import Field, line_up, race
from robustphase.initialise.many import leading_directions, rank_weightings
from robustphase.initialise.norms import Candidates, profile_norms_of_many
from robustphase.initialise.screening import screen_covariates
from robustphase.initialise.start import assumed_level, response_unit
from robustphase.likelihood import cautious_law, count_bad, density_floor, response_density
from robustphase.recover.engine import COUNT_FLOOR, POLISH_FLOOR, Recovery, Stage, recover
from robustphase.rows.data import Data
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.rows.threads import allowed_threads, run_in_threads, single_threaded_blas
from robustphase.validation import Samples

#: Numbers in one array of samples times signals: more signals than that are recovered in several groups.
NUMBERS = 1 << 23
#: Steps of the race.
STEPS = 8
#: A direction in the residuals is suspicious if it is this strong, against that of the responses and against chance.
LEFT_OVER, ABOVE_CHANCE = 0.5, 1.5
#: Power iterations that look for it: strong ones show soon.
CHECKS = 8
#: Signals whose bad samples are counted together.
TOGETHER = 16


@dataclass(frozen=True)
class ManyRecovery:
    """The answers and their evidence; the last axis runs over the signals.

    Attributes
    ----------
    signals, initial_signals : ndarray of shape (n, p)
        The estimates, and the starts they came from.
    backgrounds, contaminations, scales : ndarray of shape (p,)
        As for a single signal.
    weights, residual_weights, probabilities : ndarray of shape (m, p)
        As for a single signal.
    converged : ndarray of bool, shape (p,)
        Whether each settled.
    alone : ndarray of bool, shape (p,)
        Which were recovered by themselves.
    history : tuple of Stage
        What was done for all.
    """

    signals: Array
    initial_signals: Array
    backgrounds: Array
    contaminations: Array
    scales: Array
    weights: Array
    residual_weights: Array
    probabilities: Array
    converged: Array
    alone: Array
    history: tuple[Stage, ...]


def recover_many(samples: Samples, contamination: float | str, *, unknown_mean: bool, seed: int = 0) -> ManyRecovery:
    """Recover the signals behind the columns of the responses.

    Parameters
    ----------
    samples : Samples
        Covariates, and responses of shape (m, p); ``dropped`` has the same shape.
    contamination : float or "auto"
        ε, the same for all signals.
    unknown_mean : bool
        Fit backgrounds.
    seed : int, default=0
        For first guesses and subsamples.
    """
    with single_threaded_blas():
        began = perf_counter()
        m, p = samples.responses.shape
        usable: Array = ~np.asarray(samples.dropped.all(axis=1))
        weights = screen_covariates(samples.source, usable, seed=seed)
        size = max(1, NUMBERS // m)
        groups = [
            _recover_group(
                samples._replace(
                    responses=samples.responses[:, low : low + size], dropped=samples.dropped[:, low : low + size]
                ),
                weights,
                contamination,
                unknown_mean,
                seed,
                began,
            )
            for low in range(0, p, size)
        ]
    return groups[0] if len(groups) == 1 else _joined(groups)


def _joined(groups: list[ManyRecovery]) -> ManyRecovery:
    names = [name for name in ManyRecovery.__dataclass_fields__ if name != "history"]
    parts = {name: np.concatenate([getattr(group, name) for group in groups], axis=-1) for name in names}
    return ManyRecovery(**parts, history=tuple(stage for group in groups for stage in group.history))


def _recover_group(
    samples: Samples,
    screened: Array,
    contamination: float | str,
    unknown_mean: bool,
    seed: int,
    began: float,
) -> ManyRecovery:
    level = assumed_level(contamination)
    source, p = samples.source, samples.responses.shape[1]
    stages: list[Stage] = []

    def note(stage: str, count: int, moved: float = np.nan) -> None:
        stages.append(Stage(stage, count, np.nan, moved, np.nan, source.passes, perf_counter() - began))

    units = np.array([response_unit(y[~bad]) for y, bad in zip(samples.responses.T, samples.dropped.T, strict=True)])
    responses = samples.responses / units
    density = np.stack([response_density(y, 0.0) for y in responses.T], axis=1)
    weights = screened[:, np.newaxis] * ~samples.dropped if samples.dropped.any() else screened[:, np.newaxis]
    data = Data(source, responses, weights, np.maximum(density, density_floor(level)), level, unknown_mean)

    first = leading_directions(source, rank_weightings(responses, weights), seed=seed)
    candidates = profile_norms_of_many(data, first.vectors, seed=seed)
    note("start", p)
    field, _ = race(data, line_up(data, *candidates), STEPS)
    note("race", p)

    polished, data = _polish(data._replace(density=np.maximum(density, POLISH_FLOOR)), field)
    note("polish", p, polished.moves[-1])
    left = leading_directions(source, rank_weightings(polished.residuals, weights), most=CHECKS, seed=seed)
    suspicious = ~polished.converged | (first.strengths < ABOVE_CHANCE * first.chance)
    suspicious |= left.strengths > np.maximum(LEFT_OVER * first.strengths, ABOVE_CHANCE * left.chance)
    note("check", p)
    return _with_care(
        _collect(
            samples,
            data._replace(density=np.maximum(density, COUNT_FLOOR)),
            units,
            candidates,
            polished,
            level,
            tuple(stages),
        ),
        samples,
        np.flatnonzero(suspicious),
        contamination,
        unknown_mean,
        seed,
    )


def _polish(data: Data, field: Field) -> tuple[Polished, Data]:
    """Polish all; again those that have samples which contradict the others about the norm, without these."""
    law = cautious_law(field.scales, np.full(field.scales.size, data.contamination))
    first = polish(data, field.signals, field.backgrounds, law)
    powers = np.linalg.norm(first.signals, axis=0) ** 2
    columns = range(field.scales.size)
    kept = np.stack(
        [
            consistent_samples(
                first.projections[:, k],
                first.residuals[:, k],
                first.weights[:, k] * data.weights[:, k if data.weights.shape[1] > 1 else 0],
                float(powers[k]),
            )
            for k in columns
        ],
        axis=1,
    )
    again = ~kept.all(axis=0) & (first.law.scales > 1e-9)
    if not again.any():
        return first, data
    data = data._replace(weights=data.weights * np.where(again, kept, True))
    second = polish(data.only(again), first.signals[:, again], first.backgrounds[again], first.law.only(again))
    for name in ("signals", "backgrounds", "projections", "residuals", "clean", "weights", "rates", "converged"):
        getattr(first, name)[..., again] = getattr(second, name)
    for whole, part in zip(first.law, second.law, strict=True):
        whole[again] = part
    return first, data


def _collect(
    samples: Samples,
    data: Data,
    units: Array,
    candidates: Candidates,
    polished: Polished,
    level: float,
    stages: tuple[Stage, ...],
) -> ManyRecovery:
    p = units.size
    clean = np.empty_like(polished.residuals)

    def count(lows: range) -> None:
        for low in lows:
            group = slice(low, low + TOGETHER)
            weights = data.weights[:, group] if data.weights.shape[1] > 1 else data.weights
            law = polished.law.only(np.arange(p)[group])
            leverages = polished.rates[group] * abs2(polished.projections[:, group])
            clean[:, group] = count_bad(
                polished.residuals[:, group], data.density[:, group], weights, leverages, law, level
            )

    run_in_threads(count, _shared_out(range(0, p, TOGETHER)))
    weights = np.where(samples.dropped, 0.0, np.clip(clean * data.weights, 0.0, 1.0))
    return ManyRecovery(
        signals=np.sqrt(units) * polished.signals,
        initial_signals=np.sqrt(units) * candidates.signals,
        backgrounds=units * polished.backgrounds,
        contaminations=np.mean(weights < 0.5, axis=0),
        scales=units * polished.law.scales,
        weights=weights,
        residual_weights=polished.weights * data.weights,
        probabilities=polished.clean * data.weights,
        converged=polished.converged,
        alone=np.zeros(p, bool),
        history=stages,
    )


def _shared_out(tasks: range) -> list[range]:
    """The tasks in as many parts as there are threads."""
    threads = max(1, min(allowed_threads(), len(tasks)))
    return [tasks[part::threads] for part in range(threads)]


def _with_care(
    found: ManyRecovery,
    samples: Samples,
    columns: Array,
    contamination: float | str,
    unknown_mean: bool,
    seed: int,
) -> ManyRecovery:
    """Recover the given columns by themselves."""
    for k in columns:
        single = samples._replace(responses=samples.responses[:, k], dropped=samples.dropped[:, k])
        _put(found, k, recover(single, contamination, unknown_mean=unknown_mean, seed=seed))
    return found


def _put(found: ManyRecovery, k: int, one: Recovery) -> None:
    found.signals[:, k], found.initial_signals[:, k] = one.signal, one.initial_signal
    found.backgrounds[k], found.contaminations[k], found.scales[k] = one.background, one.contamination, one.scale
    found.weights[:, k], found.residual_weights[:, k] = one.weights, one.residual_weights
    found.probabilities[:, k] = one.weights if one.probabilities is None else one.probabilities
    found.converged[k], found.alone[k] = one.converged, True
