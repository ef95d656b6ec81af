"""Groups of readings that are bad together, judged under the law of the readings.

What additive noise says of groups does not hold where the noise depends on the signal: a row with large energies has wide
residuals behind every signal, and is as good as the others. So groups are judged again by residuals that the law makes alike:
over their standard deviation, and for counts by the difference of roots ``2 (√(y + 3/8) − √(μ + 3/8))`` (Anscombe), which has the
variance one from a few counts on and less below, so that no row looks bad for want of light.
"""

from __future__ import annotations

import numpy as np

from robustphase.descend.shared_weights import SampleFit, Shared, nothing_shared, shared_weights
from robustphase.likelihood.bad_responses import marginal_law
from robustphase.likelihood.noise_model import NoiseModel, law_mean, law_variance
from robustphase.problem import Problem
from robustphase.recover.law.answers import Detector, Lawful
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)
#: What makes the variance of the root of a count most even (Anscombe 1948).
ANSCOMBE = 3 / 8


def groups_under_law(problem: Problem, lawful: Lawful, detector: Detector) -> Shared:
    """What an answer under a law says of the groups.

    Parameters
    ----------
    problem : Problem
        The samples, with weights that know nothing of groups.
    lawful : Lawful
        The answer, in the units of the responses.
    detector : Detector
        What is known of the readings.
    """
    if not problem.groupings:
        return nothing_shared(problem)
    means = lawful.predictions + lawful.backgrounds
    read = problem.responses * problem.units
    counted = bool(np.all(lawful.noise.counts))
    if counted:
        residuals, slopes = _root_residuals(read, means, detector.offsets)
        # Ties have a probability, and no density.
        law = marginal_law(read, np.broadcast_to(problem.weights > 0, read.shape), counts=True)
    else:
        residuals, slopes = _scaled_residuals(read, means, lawful.noise.variance(lawful.predictions))
        law = problem.density / problem.units
    shape = NoiseModel(np.ones_like(lawful.noise.scales), *lawful.noise[1:4])
    if not counted:
        shape = shape._replace(scales=1 / np.sqrt(law_variance(shape)))
        # Residuals are counted from the mean, the law from its peak.
        residuals = residuals + law_mean(shape)
    weights = problem.weights
    if detector.censored is not None:
        weights = weights * ~detector.censored
    alike = problem._replace(density=law / np.maximum(slopes, _TINY), weights=weights)
    return shared_weights(alike, SampleFit(residuals, np.zeros_like(residuals), lawful.clean, shape))


def _root_residuals(counts: Array, means: Array, offsets: Array | None) -> tuple[Array, Array]:
    """Differences of the roots of counts and means, and their derivatives by the count."""
    known = 0.0 if offsets is None else offsets
    roots = np.sqrt(np.maximum(counts + known, 0.0) + ANSCOMBE)
    return 2 * (roots - np.sqrt(np.maximum(means + known, 0.0) + ANSCOMBE)), 1 / roots


def _scaled_residuals(read: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Residuals over their standard deviations, and their derivatives by the reading."""
    deviations = np.sqrt(np.maximum(variances, _TINY))
    return (read - means) / deviations, 1 / deviations
