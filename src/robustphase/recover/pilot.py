"""Very many samples: a signal is found behind some of them, drawn at random, and then fitted to all.

Finding a signal takes a number of samples proportional to its unknowns, and most of the work; more of them make it no safer.
Fitting it takes all of them, for the error falls with their number, but little work: what the fit to the *pilot* samples knows
(:mod:`robustphase.recover.sample_rule`) weighs the others, and the likelihood of all is climbed from there. So nothing but that
last climb grows with the number of samples, and all it takes from them are sums.

The adversary must not know which samples are drawn. Where the pilot's answer is in any doubt it is not used, and all samples
are searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np

from robustphase.constants import budget, empirical, numeric
from robustphase.descend.climb import TO_THE_END, Free
from robustphase.descend.likelihood_fit import fit_likelihood
from robustphase.problem import Problem
from robustphase.recover.recovery import Recovery, Run, said_by
from robustphase.recover.sample_rule import SampleRule
from robustphase.rows import MemoryRows, OperatorRows
from robustphase.rows.source import Array, Parts, RowSource
from robustphase.rows.spilled import spilled
from robustphase.rows.watching import tell_found
from robustphase.validation import Samples


@dataclass(frozen=True)
class PilotOptions:
    """Constants of the pilot."""

    per_unknown: int = empirical(
        64, "pilot samples for each unknown: what a search takes under attack, and a fifth more"
    )
    fewest: int = budget(1 << 15, "and at least: fewer would save nothing")
    resolution: float = numeric(
        0.002, "the climb ends when its steps are shorter than this fraction of the standard error of the signal"
    )
    most_bytes: int = budget(
        1 << 28,
        "bytes of a copy of the pilot's rows, a quarter of a gibibyte; larger ones of rows on disk are made there, of others not",
    )
    worth: float = budget(2.0, "samples over pilot samples from which on a pilot is worth its while")


PILOT = PilotOptions()
#: When the climb to the likelihood of all samples ends.
ALL_SAMPLES = TO_THE_END._replace(unseen=PILOT.resolution)


def pilot_rows(m: int, n: int, seed: int) -> Array | None:
    """Which of m rows to look at first, in their order; None where all are looked at."""
    size = max(PILOT.per_unknown * n, PILOT.fewest)
    if m <= PILOT.worth * size:
        return None
    # Whoever knows the seed and m could spoil these very rows, so the seed should be the user's own.
    return np.sort(np.random.default_rng((seed, m)).choice(m, size, replace=False))


def fits_in_memory(chosen: Array, source: RowSource) -> bool:
    """Whether the chosen rows may be copied."""
    return chosen.size * source.shape[1] * source.dtype.itemsize <= PILOT.most_bytes


@contextmanager
def pilot_samples(samples: Samples, seed: int) -> Iterator[Samples | None]:
    """Some of the samples, in memory, or in a file where theirs is one and memory has no room; None where no pilot serves."""
    chosen = None
    if not isinstance(samples.source, OperatorRows) and samples.responses.ndim == 1:
        chosen = pilot_rows(*samples.source.shape, seed)
    if chosen is None:
        yield None
        return
    with _copied_rows(samples.source, chosen) as rows:
        if rows is None:
            yield None
            return
        yield samples._replace(
            source=rows, responses=samples.responses[chosen], dropped=samples.dropped[chosen], looked_at=None
        )


def _copied_rows(source: RowSource, chosen: Array) -> AbstractContextManager[RowSource | None]:
    if fits_in_memory(chosen, source):
        return nullcontext(MemoryRows(source.take(chosen)))
    return spilled(source, chosen) if source.on_disk else nullcontext()


def recover_all(samples: Samples, pilot: Recovery, run: Run) -> Recovery:
    """The answer of a pilot, fitted to all samples."""
    assert pilot.rule is not None
    rule = pilot.rule.for_more(samples.responses.size / len(pilot.weights))
    weights = np.where(samples.dropped[:, np.newaxis], 0.0, _row_weights(samples.source, rule))
    responses = samples.responses[:, np.newaxis] / rule.unit
    densities = rule.densities(responses)
    problem = problem_by(rule, samples.source, responses, weights, densities.bad)
    fit = fit_likelihood(problem, rule.state, ALL_SAMPLES, Free.SHAPE)
    unit = rule.unit
    run.history.note("all samples", 1, moved=fit.moves[-1], scale=float(fit.state.noise.scales[0] * unit))
    tell_found(np.sqrt(unit) * fit.state.signals / run.size)
    counted = rule.clean_as_counted(densities, fit.residuals, fit.spreads, problem.weights)
    said = said_by(fit, problem, problem.weights, np.clip(counted * problem.weights, 0.0, 1.0))
    return replace(pilot, **said, rule=rule._replace(state=fit.state))


def problem_by(rule: SampleRule, source: RowSource, responses: Array, weights: Array, density: Array) -> Problem:
    """All samples as the pilot's fit weighs them, with responses over the rule's unit."""
    return Problem(
        source,
        responses,
        weights,
        density,
        rule.levels,
        np.array([rule.unit]),
        unknown_mean=True,
        paired=rule.paired,
        normal=rule.normal,
        kurtosis=rule.kurtosis,
        screen=rule.screen,
    )


def _row_weights(source: RowSource, rule: SampleRule) -> Array:
    return source.reduce(lambda block: Parts(rows=(rule.row_weights(block),))).rows[0]
