"""Weights that rows share, by the evidence of a fit: those of the groups they belong to.

The evidence of a group counts only responses that no other grouping gives up, so a frame is not bad because of its dead pixels.
Groupings are judged in turn until none of them changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, numeric
from robustphase.likelihood import GroupEvidence, NoiseModel, group_evidence, row_likelihoods
from robustphase.likelihood.shared_evidence import SHARED
from robustphase.problem import PROBLEM, Problem
from robustphase.rows.source import Array


@dataclass(frozen=True)
class SharedWeightOptions:
    """Constants of the shared weights."""

    turns: int = budget(10, "most turns of the groupings")
    change: float = numeric(0.01, "change of the weights that is none, over the number of rows without one")


SHARING = SharedWeightOptions()


class Shared(NamedTuple):
    """Shared weights of the rows (m,), and the evidence of every grouping; None for one whose groups share nothing."""

    weights: Array
    evidence: tuple[GroupEvidence | None, ...]

    @property
    def bad(self) -> bool:
        """Whether any grouping has bad groups."""
        return any(one is not None and one.found for one in self.evidence)

    def applied_to(self, problem: Problem) -> Problem:
        """The problem with weights of its rows that know of the groups, and what these leave of the contamination."""
        if not self.bad:
            return problem
        weights = problem.weights * self.weights[:, np.newaxis]
        share = 1 - weights.sum(axis=0) / np.maximum(problem.weights.sum(axis=0), TINY)
        # Bad groups and single bad samples together are the contamination that was stated.
        levels = np.maximum((problem.levels - share) / np.maximum(1 - share, TINY), PROBLEM.least_level)
        return problem._replace(weights=weights, levels=levels)

    def like(self, other: Shared) -> bool:
        """Whether the weights are those of the other, as far as it matters."""
        missing = max(float((1 - self.weights).sum()), float((1 - other.weights).sum()))
        return bool(np.abs(self.weights - other.weights).sum() <= SHARING.change * missing)


def nothing_shared(problem: Problem) -> Shared:
    """Every row counts."""
    return Shared(np.ones(problem.responses.shape[0]), (None,) * len(problem.groupings))


class SampleFit(NamedTuple):
    """What a fit says of its samples: residuals, variances of the predictions, probabilities to be clean (m, k); its noise."""

    residuals: Array
    spreads: Array
    clean: Array
    noise: NoiseModel


def shared_weights(problem: Problem, fit: SampleFit, last: Shared | None = None) -> Shared:
    """What residuals say of the groups, where the last fit made use of ``last``.

    The problem has the weights of the covariates alone.
    """
    shared = nothing_shared(problem)
    if not problem.groupings:
        return shared
    weights = problem.weights if last is None else problem.weights * last.weights[:, np.newaxis]
    # A fit bounds the share of single bad responses by the stated contamination; where there are more, they are no groups.
    doubts = (weights * (1 - fit.clean)).sum(axis=0) / np.maximum(weights.sum(axis=0), TINY)
    noise = fit.noise._replace(mixing=np.clip(doubts, fit.noise.mixing, 1 - SHARED.shares[0]))
    # Residuals of samples that the fit followed are shorter than the noise, those of the others longer, by the same variance.
    spreads = fit.spreads if last is None else fit.spreads * (2 * last.weights - 1)[:, np.newaxis]
    likelihoods = row_likelihoods(fit.residuals, spreads, problem.density, problem.weights, noise)
    sizes = np.broadcast_to(problem.weights, fit.residuals.shape).sum(axis=1)
    most = float(np.max(problem.levels))
    kept = [shared.weights] * len(problem.groupings)
    for _ in range(SHARING.turns if len(kept) > 1 else 1):
        evidence: list[GroupEvidence | None] = []
        for index, (codes, count) in enumerate(problem.groupings):
            others = np.ones(len(sizes))
            for other in kept[:index] + kept[index + 1 :]:
                others = others * other
            seen = group_evidence(likelihoods * others[:, np.newaxis], sizes * others, codes, count, most)
            evidence.append(seen)
            kept[index] = np.ones(len(sizes)) if seen is None else seen.used[codes]
        before, shared = shared, Shared(np.prod(kept, axis=0), tuple(evidence))
        if shared.like(before):
            break
    return shared
