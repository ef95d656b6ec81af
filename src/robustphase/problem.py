"""The standardised problem: screened samples in natural units, one column of responses for each signal.

Every stage from the start on works with it. Responses are divided by a robust unit, so that no constant depends on anybody's
units; the density of bad responses is that of all responses until a fit knows better. One signal is the case of one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import derived, empirical
from robustphase.likelihood import response_density
from robustphase.rows.source import Array, RowSource

#: A sample is kept when its weight is at least this, and treated as bad otherwise: it is then more likely clean than bad.
KEPT = 0.5


@dataclass(frozen=True)
class ProblemOptions:
    """Constants of the standardised problem."""

    least_level: float = empirical(
        0.02, "a smaller stated contamination is not believed: a mixture without bad samples trusts all"
    )
    auto_level: float = empirical(0.2, "contamination that is assumed while it is to be found out")
    shortest_halves: float = derived(
        3.0, "largest interquartile range in units of the shortest half; 2.7 for squared normal variables"
    )


PROBLEM = ProblemOptions()


class Grouping(NamedTuple):
    """Rows that are good or bad together."""

    codes: Array  # int (m,): group of every row, a number from 0 to ``size`` − 1
    size: int  # Number of groups


class WeighedDown(NamedTuple):
    """A direction along which bad rows had too much energy."""

    vector: Array  # (n,): the direction
    imaginary: bool  # Whether the imaginary parts of the projections were too large, instead of the real ones
    #: (r,): ranges of their sizes, each from its edge to the next, and what the weights of rows in them were multiplied
    #: with.
    edges: Array
    factors: Array

    def factors_of(self, parts: Array) -> Array:
        """The factors of rows whose projections have these parts."""
        ranges = np.searchsorted(self.edges, np.abs(parts), side="right") - 1
        found: Array = self.factors[np.clip(ranges, 0, self.factors.size - 1)]
        return found


class Screen(NamedTuple):
    """What the screening found out about rows, so that it can be asked about others of the same design."""

    #: Squared lengths that are possible lie between them.
    shortest: float = -np.inf
    longest: float = np.inf
    directions: tuple[WeighedDown, ...] = ()  # Directions along which rows were weighed down


class Problem(NamedTuple):
    """Screened samples."""

    source: RowSource  # The covariates
    responses: Array  # (m, k): responses over their unit
    weights: Array  # (m, 1) or (m, k): weights of the covariates; zero for samples that cannot be used
    density: Array  # (m, k): density of bad responses
    levels: Array  # (k,): ε as assumed
    units: Array  # (k,): units of the responses
    unknown_mean: bool  # Whether backgrounds are fitted
    #: Complex signals stand behind real rows: a signal is a pair of real ones, and its conjugate is the same signal.
    paired: bool = False
    normal: bool = True  # The rows are standard normal as far as anybody has looked
    #: Mean fourth power of the lengths of the rows over their squared mean square. Rows whose lengths vary bend the
    #: risk across a signal as many times as much as normal rows do, whose lengths count as all alike.
    kurtosis: float = 1.0
    groupings: tuple[Grouping, ...] = ()  # Which rows share evidence
    screen: Screen = Screen()  # Where the weights of the covariates come from

    def only(self, columns: Array) -> Problem:
        """The problem of some of the signals; all, where one column serves every candidate."""
        if self.responses.shape[1] == 1:
            return self
        weights = self.weights if self.weights.shape[1] == 1 else self.weights[:, columns]
        return self._replace(
            responses=self.responses[:, columns],
            weights=weights,
            density=self.density[:, columns],
            levels=self.levels[columns],
            units=self.units[columns],
        )

    def floored(self, floors: Array | float) -> Problem:
        """With a density of bad responses that is nowhere smaller.

        A response far out, where there are no others, would otherwise count as infinitely surprising, and explaining it would be
        worth more than explaining many ordinary ones.
        """
        return self._replace(density=np.maximum(self.density, floors))


class Candidates(NamedTuple):
    """Candidate signals."""

    signals: Array  # (n, k): one candidate per column
    backgrounds: Array  # (k,): noise means that go with them; zero where the mean is known to be zero
    #: (k,): scale of their clean residuals, and mean log-likelihood ratio against no signal: larger is better.
    scales: Array
    scores: Array

    def joined(self, other: Candidates) -> Candidates:
        """These candidates, then the others."""
        candidates: Candidates = join_columns(self, other)
        return candidates

    def only(self, columns: Array) -> Candidates:
        """Some of the candidates."""
        return Candidates(*(part[..., columns] for part in self))


def build_problem(
    source: RowSource, responses: Array, weights: Array, levels: Array, *, unknown_mean: bool, paired: bool = False
) -> Problem:
    """Put responses (m, k), as measured, into natural units.

    Weights of the covariates are (m, 1) or (m, k), levels (k,); ``paired`` if complex signals stand behind real rows.
    """
    usable = np.broadcast_to(weights > 0, responses.shape)
    units = np.array([response_unit(y[used]) for y, used in zip(responses.T, usable.T, strict=True)])
    scaled = responses / units
    return Problem(source, scaled, weights, response_density(scaled, usable), levels, units, unknown_mean, paired)


def assumed_level(contamination: float | str) -> float:
    """The contamination that a fit assumes when it is told this."""
    return PROBLEM.auto_level if isinstance(contamination, str) else max(contamination, PROBLEM.least_level)


def response_unit(responses: Array) -> float:
    """Interquartile range of the responses, as long as it can be trusted; their mean size where most of them coincide.

    More than a quarter of bad responses on one side carry a quartile away. The shortest range that holds half of the
    responses stays where the majority is. For squared normal variables without noise the interquartile range is 2.7 times as
    long, with noise or a background less; where it is longer still, it is not that of clean responses.
    """
    if responses.size == 0:
        return 1.0
    ordered = np.sort(responses)
    low, high = np.quantile(ordered, (0.25, 0.75))
    half = ordered.size // 2
    shortest = float((ordered[half:] - ordered[: ordered.size - half]).min()) if half else 0.0
    unit = min(float(high - low), PROBLEM.shortest_halves * shortest) if shortest > 0 else float(high - low)
    return unit or float(np.mean(np.abs(responses))) or 1.0


def kept(weights: Array) -> Array:
    """Which samples are kept: the others are treated as bad."""
    keeps: Array = weights >= KEPT
    return keeps


def real_unknowns(signals: Array) -> int:
    """How many real numbers a signal of these columns is."""
    return len(signals) * (2 if np.iscomplexobj(signals) else 1)


def select_columns(parts: Any, columns: Array) -> Any:
    """Nested tuples of arrays whose last axis runs over the signals, with some of the signals."""
    if not isinstance(parts, tuple):
        return parts[..., columns]
    return type(parts)(*(select_columns(part, columns) for part in parts))


def join_columns(parts: Any, others: Any) -> Any:
    """Nested tuples of arrays whose last axis runs over the signals: these signals, then those of the others."""
    if not isinstance(parts, tuple):
        return np.concatenate((parts, others), axis=-1)
    return type(parts)(*(join_columns(part, other) for part, other in zip(parts, others, strict=True)))


def put_columns(parts: Any, others: Any, columns: Array) -> Any:
    """Nested tuples of arrays whose last axis runs over the signals, with some of the signals replaced by those of the others."""
    if parts is None:
        return None
    if isinstance(parts, tuple):
        return type(parts)(*(put_columns(part, other, columns) for part, other in zip(parts, others, strict=True)))
    whole = np.array(parts)
    whole[..., columns] = others
    return whole
