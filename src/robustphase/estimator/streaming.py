"""One step on one batch of a stream.

With ``step="paper"`` a step is an iteration of Algorithm 2 (4). Otherwise steps are the engine's own, from the present
signal: screened covariates, weights of the mixture likelihood, population curvature. They need no more samples than the
population's moments do, so a batch may be small, and unlike a robust gradient they lose nothing to trimming; averaged over
batches the estimate keeps improving. The robust gradient then vouches for the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.candidate_steps import advance, at_rest, evaluate, placed
from robustphase.initialise.start import screened_problem
from robustphase.likelihood import compare
from robustphase.likelihood.comparison import comparison_floor
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: Steps on a batch: iterated weights follow slowly, so one alone goes only part of the way.
STEPS = 3


class BatchStep(NamedTuple):
    """Where a batch would move the signal, where its residuals are centred, weights of its samples and of its rows (m, 1)."""

    signal: Array
    centre: float
    weights: Array
    covariate_weights: Array


def batch_step(samples: Samples, signal: Array, centre: float, contamination: float, seed: int) -> BatchStep:
    """The signal that a batch asks for, near the present one.

    The location of the residuals is free even where the noise mean is known to be zero, as in the likelihood fit: the equation
    for the signal is then unbiased under skewed noise too.
    """
    problem, _ = screened_problem(samples, contamination, unknown_mean=True, thorough=True, seed=seed)
    problem = problem.floored(comparison_floor(problem.levels))
    unit = float(problem.units[0])
    here = placed(problem, (signal / np.sqrt(unit))[:, np.newaxis], np.array([centre / unit]))
    there = advance(problem, at_rest(problem, here), STEPS).candidates
    seen = evaluate(problem, there.signals, there.backgrounds)
    _, ratio = compare(seen.residuals, problem.density, seen.scales, problem.levels)
    weights = np.clip((1 - problem.levels / ratio) * problem.weights, 0.0, 1.0)
    return BatchStep(np.sqrt(unit) * there.signals[:, 0], float(there.backgrounds[0]) * unit, weights, problem.weights)
