"""The rule of a fit for samples as they were given, before their rows were made standard.

A rule (:mod:`robustphase.recover.sample_rule`) is about standard rows. Samples that nobody wants to copy, or that others hold,
are judged block by block: a block is made standard, and forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.objective import State
from robustphase.initialise.standardise import Change, changed_rows
from robustphase.recover.sample_rule import SampleRule
from robustphase.rows import RescaledRows, RowSource
from robustphase.rows.passes import project_block
from robustphase.rows.source import Array

#: What is said of every sample, in the order of the columns of a judgement.
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
        Signal, background and noise law that samples are judged by.
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

    def judgement(self, rows: Array, responses: Array) -> Array:
        """What is said of some samples, shape (b, 4): see :data:`PER_SAMPLE`."""
        block = changed_rows(rows / self.size, self.changes)
        scaled = responses.reshape(-1, 1) / self.rule.unit
        weights = self.rule.row_weights(block)
        judged = self.rule.judge(self.state, scaled, project_block(block, self.state.signals), weights)
        return np.hstack(
            (np.clip(judged.counted * weights, 0.0, 1.0), judged.squares * weights, weights, judged.clean * weights)
        )
