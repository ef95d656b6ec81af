"""Very many samples: a signal is found behind some of them, drawn at random, and then fitted to all.

Finding a signal takes a number of samples proportional to its unknowns, and most of the work; more of them make it no safer.
Fitting it takes all of them, for the error falls with their number, but little work: what the fit to the *pilot* samples knows
(:mod:`robustphase.recover.sample_rule`) weighs the others, and the likelihood of all is climbed from there. So nothing but that
last climb grows with the number of samples, and all it takes from them are sums.

The adversary must not know which samples are drawn. Where the pilot's answer is in any doubt it is not used, and all samples are
searched.

Where the rows are held by others, so are the responses, and :class:`WeighedRows` makes weights and densities of both, by the rule
of the pilot, while a block is at hand: what is said of single samples is kept nowhere here. The rule is about standard rows;
:class:`RuleAsGiven` makes a block of rows as they were given standard, says what the rule says of it, and forgets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import budget, numeric
from robustphase.descend.climb import TO_THE_END, Free
from robustphase.descend.likelihood_fit import fit_likelihood
from robustphase.descend.objective import State
from robustphase.initialise.standardise import Change, changed_rows
from robustphase.problem import Problem
from robustphase.recover.recovery import Recovery, Run, said_by
from robustphase.recover.sample_rule import SampleRule
from robustphase.rows import MemoryRows, OperatorRows, RescaledRows, RowSource
from robustphase.rows.products import project_block
from robustphase.rows.source import Array, Kernel, Parts
from robustphase.rows.spilled import spilled
from robustphase.rows.watching import tell_found
from robustphase.validation import Samples


@dataclass(frozen=True)
class PilotOptions:
    """Constants of the pilot."""

    per_unknown: int = budget(64, "pilot samples for each unknown: what a search takes under attack, and a fifth more")
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


#: What is said of every sample, in the order of the columns of :meth:`RuleAsGiven.weigh`.
PER_SAMPLE = ("weights_", "residual_weights_", "covariate_weights_", "_probabilities")


class RuleAsGiven(NamedTuple):
    """How rows as they were given become standard ones, and the rule that weighs samples behind those."""

    size: float  # Unit of the rows
    changes: tuple[Change, ...]  # What made them standard then, in their order
    rule: SampleRule
    state: State  # Signal, background and noise law that samples are weighed by

    def standard(self, source: RowSource) -> RowSource:
        """The standard rows."""
        source = RescaledRows(source, self.size) if self.size != 1 else source
        for change in self.changes:
            source = change.rows(source)
        return source

    def weigh(self, rows: Array, responses: Array) -> Array:
        """What is said of some samples, shape (b, 4): see :data:`PER_SAMPLE`."""
        block = changed_rows(rows / self.size, self.changes)
        scaled = responses.reshape(-1, 1) / self.rule.unit
        weights = self.rule.row_weights(block)
        weighed = self.rule.weigh(self.state, scaled, project_block(block, self.state.signals), weights)
        return np.hstack(
            (np.clip(weighed.counted * weights, 0.0, 1.0), weighed.squares * weights, weights, weighed.clean * weights)
        )


class Column(Enum):
    """What is known of every sample: its response over the unit, the weight of its covariates, the density of bad ones there."""

    RESPONSES = 0
    WEIGHTS = 1
    DENSITY = 2


class OnDemand:
    """A per-sample array of shape (m, 1) that exists only while a block is at hand.

    Attributes
    ----------
    which : Column
        What it holds.
    shape : tuple of int
        ``(m, 1)``.
    total : ndarray of shape (1,)
        Its sum, where somebody has summed it.
    """

    def __init__(self, which: Column, m: int, total: Array | None = None) -> None:
        self.which, self.shape, self.total = which, (m, 1), total

    def sum(self, axis: int) -> Array:
        """The sum over the samples."""
        assert axis == 0
        assert self.total is not None
        return self.total

    def astype(self, dtype: Any, *, copy: bool = True) -> OnDemand:
        """Itself: it is made in double precision."""
        return self


class WeighedRows(RowSource):
    """Another source of standard rows, with its responses (m,) beside it and a rule for both.

    Values of single samples that a kernel returns stay where they are: a pass returns sums only.
    """

    def __init__(self, source: RowSource, responses: Any, rule: SampleRule) -> None:
        self.source, self.responses, self.rule = source, responses, rule
        self.shape, self.dtype = source.shape, source.dtype

    def column(self, which: Column, total: Array | None = None) -> Any:
        """A per-sample array for passes over these rows, and its sum if it is known."""
        return OnDemand(which, self.shape[0], total)

    def problem(self) -> Problem:
        """All samples, as a problem that is solved with sums alone: one pass."""
        weights = self.column(Column.WEIGHTS)
        total = self.reduce(lambda block, w: Parts(sums=(w.sum(axis=0),)), (weights,)).sums[0]
        known = (self.column(Column.RESPONSES), self.column(Column.WEIGHTS, total), self.column(Column.DENSITY))
        return problem_by(self.rule, self, *known)

    def _reduce(self, kernel: Kernel, per_row: Sequence[Any], pairing: int) -> Parts:
        wanted = [values.which.value if isinstance(values, OnDemand) else -1 for values in per_row]
        given = [values for values in per_row if not isinstance(values, OnDemand)]
        rule = self.rule

        def on_weighed(block: Array, y: Array, *others: Array) -> Parts:
            responses = y.reshape(-1, 1) / rule.unit
            made = (responses, rule.row_weights(block), rule.densities(responses).bad)
            rest = iter(others)
            parts = kernel(block, *(made[which] if which >= 0 else next(rest) for which in wanted))
            return Parts(sums=parts.sums)

        sums = self.source.reduce(on_weighed, (self.responses, *given), pairing=pairing).sums
        return Parts(sums, rows=(np.empty((0, 1)),))
