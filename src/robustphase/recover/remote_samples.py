"""Samples that others hold, weighed where they are, block by block: what is said of single samples is kept nowhere here.

The likelihood of all samples is climbed with sums alone (:mod:`robustphase.recover.pilot`). Where the rows are held by others,
so are the responses, and :class:`WeighedRows` makes weights and densities of both, by the rule of a pilot, while a block is at
hand. The rule (:mod:`robustphase.recover.sample_rule`) is about standard rows; :class:`RuleAsGiven` makes a block of rows as
they were given standard, says what the rule says of it, and forgets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from robustphase.descend.objective import State
from robustphase.initialise.standardise import Change, changed_rows
from robustphase.problem import Problem
from robustphase.recover.pilot import problem_by
from robustphase.recover.sample_rule import SampleRule
from robustphase.rows import RescaledRows, RowSource
from robustphase.rows.passes import project_block
from robustphase.rows.source import Array, Kernel, Parts

#: What is said of every sample, in the order of the columns of :meth:`RuleAsGiven.weigh`.
PER_SAMPLE = ("weights_", "residual_weights_", "covariate_weights_", "_probabilities")


class RuleAsGiven(NamedTuple):
    """How rows as they were given become standard ones, and the rule that weighs samples behind those.

    Attributes
    ----------
    size : float
        Unit of the rows.
    changes : tuple of Change
        What made them standard then, in their order.
    rule : SampleRule
        The rule.
    state : State
        Signal, background and noise law that samples are weighed by.
    """

    size: float
    changes: tuple[Change, ...]
    rule: SampleRule
    state: State

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
    """Another source, with its responses beside it and a rule for both.

    Values of single samples that a kernel returns stay where they are: a pass returns sums only.

    Parameters
    ----------
    source : RowSource
        Standard rows.
    responses : Beside or ndarray of shape (m,)
        What stands beside them.
    rule : SampleRule
        The rule.
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
