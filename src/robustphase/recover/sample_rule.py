"""What a fit knows that belongs to no single sample: enough to judge samples that it has never seen.

A fit ends with a signal, a law of the noise, a density of bad responses and a screen of the rows. Together they weigh any sample
of the same design. So a fit to some of the samples can be carried to all of them, wherever those are: the rule is small, and
what it says of a sample depends on that sample alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.consistency import in_ranges, relative_energies
from robustphase.descend.likelihood_fit import LikelihoodFit
from robustphase.descend.objective import State
from robustphase.likelihood import NoiseModel, e_step
from robustphase.likelihood.bad_responses import (
    DENSITY,
    DensityCurves,
    density_curves,
    doubted_density,
    mixed_density,
)
from robustphase.problem import Problem, Screen
from robustphase.rows.products import project_block
from robustphase.rows.source import Array


class Suspects(NamedTuple):
    """Ranges of predictions that contradict the others (:mod:`robustphase.descend.consistency`), and whose predictions."""

    signals: Array
    ranges: Array


class Weighed(NamedTuple):
    """What is said of samples, each of shape (b, 1) and without the weights of the covariates."""

    #: Probabilities to be clean: as bad samples are counted, and as the last step of the fit has them.
    counted: Array
    clean: Array
    squares: Array  # Weights of the last least-squares problem


class Densities(NamedTuple):
    """Densities of bad responses, shape (b, 1): as they are fitted against, and as bad samples are counted."""

    bad: Array
    counting: Array


class SampleRule(NamedTuple):
    """How to weigh a sample behind standard rows; for one signal."""

    state: State  # Signal, background and noise law, for responses over their unit
    unit: float  # Unit of the responses
    levels: Array  # (1,): ε as assumed
    screen: Screen  # Which rows are possible
    suspects: Suspects  # Which predictions to give up
    curves: DensityCurves  # Densities of all responses, and of those that contradict the signal
    #: How much of the former bad responses that contradict nothing may have: less of it, the more samples there are.
    hiding: float
    counted: NoiseModel  # The law with which they are counted
    #: See :class:`~robustphase.problem.Problem`.
    paired: bool
    normal: bool
    kurtosis: float

    def row_weights(self, block: Array) -> Array:
        """Weights of some rows, whatever their responses, shape (b, 1)."""
        squares = np.vecdot(block, block).real
        possible = (squares > self.screen.shortest) & (squares < self.screen.longest)
        weights = possible.astype(np.float64)
        for down in self.screen.directions:
            projections = project_block(block, down.vector)
            weights *= down.factors_of(projections.imag if down.imaginary else projections.real)
        if self.suspects.ranges.any():
            energies = relative_energies(project_block(block, self.suspects.signals), self.suspects.signals)
            weights *= ~in_ranges(energies, self.suspects.ranges)[:, 0]
        columns: Array = weights[:, np.newaxis]
        return columns

    def for_more(self, copies: float) -> SampleRule:
        """The rule for this many times as many samples."""
        return self._replace(hiding=self.hiding / copies)

    def densities(self, responses: Array) -> Densities:
        """Densities at responses over their unit."""
        everything, doubted = self.curves.at(responses)
        bad = mixed_density(everything, doubted, self.hiding)
        return Densities(np.maximum(bad, DENSITY.floor), np.maximum(everything, DENSITY.low_floor))

    def weigh(self, state: State, responses: Array, projections: Array, weights: Array) -> Weighed:
        """What is said of samples (b, 1) at a state, given their projections and the weights of their covariates."""
        residuals, spreads = state.residuals_and_spreads(responses, projections)
        densities = self.densities(responses)
        seen = e_step(residuals, spreads, densities.bad, weights, state.noise)
        return Weighed(self.clean_as_counted(densities, residuals, spreads, weights), seen.clean, seen.weights)

    def clean_as_counted(self, densities: Densities, residuals: Array, spreads: Array, weights: Array) -> Array:
        """Probabilities of samples (b, 1) to be clean by which the bad ones are counted."""
        clean: Array = e_step(residuals, spreads, densities.counting, weights, self.counted).clean
        return clean


def sample_rule(
    problem: Problem, fitted: Problem, fit: LikelihoodFit, counted: NoiseModel, suspects: Suspects
) -> SampleRule:
    """The rule of a fit to one signal.

    ``fitted`` are the samples with the weights and levels of the fit, ``counted`` is the law with which its bad samples were
    counted, and ``suspects`` are ranges of predictions that were given up.
    """
    responses = problem.responses[:, 0]
    doubted, hiding = doubted_density(problem.responses, (1 - fit.clean) * fitted.weights)
    return SampleRule(
        fit.state,
        float(problem.units[0]),
        fitted.levels,
        fitted.screen,
        suspects,
        density_curves(responses, problem.density[:, 0], doubted[:, 0]),
        float(hiding[0]),
        counted,
        fitted.paired,
        fitted.normal,
        fitted.kurtosis,
    )
