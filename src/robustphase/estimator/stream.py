"""One step on one batch of a stream.

The engine's own steps, from the present signal: screened covariates, weights of the mixture likelihood, population curvature.
They need no more samples than the population's moments do, so a batch may be small, and unlike a robust gradient they lose
nothing to trimming; averaged over batches the estimate keeps improving. The robust gradient then vouches for the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.objective import evaluate
from robustphase.descend.race import line_up, race
from robustphase.initialise.start import pose
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: Steps on a batch: iterated weights follow slowly, so one alone goes only part of the way.
STEPS = 3


class BatchStep(NamedTuple):
    """Where a batch would move the signal, where its residuals are centred, and the weights of its samples."""

    signal: Array
    centre: float
    weights: Array


def batch_step(samples: Samples, signal: Array, centre: float, contamination: float, seed: int) -> BatchStep:
    """The signal that a batch asks for, near the present one.

    The location of the residuals is free even where the noise mean is known to be zero, as in the polish: the equation for the
    signal is then unbiased under skewed noise too.
    """
    problem = pose(samples, contamination, unknown_mean=True, seed=seed)
    data = problem.data
    scaled = (signal / np.sqrt(problem.unit))[:, np.newaxis]
    done, _ = race(data, line_up(data, scaled, np.array([centre / problem.unit])), STEPS)
    trusted = evaluate(data, done.signals, done.backgrounds).weights[:, 0]
    clean = trusted > 0.25 * trusted.max()
    asked, location = np.sqrt(problem.unit) * done.signals[:, 0], float(done.backgrounds[0]) * problem.unit
    return BatchStep(asked, location, clean * data.weights)
