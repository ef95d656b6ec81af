"""The absolute loss ``f(x) = 1/m Σ | |aᴴx|² − y |`` and a subgradient: what the l1 methods have in common.

With clean Gaussian covariates f is sharp around the signal and weakly convex, even when a share of the responses is
arbitrary (Duchi and Ruan, 2019). A sample pulls with strength ``2|aᴴx|``, so leveraged rows are its weakness.
"""

from __future__ import annotations

import numpy as np

from robustphase.baselines.descent import weighted_sum
from robustphase.baselines.problem import Problem
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


def absolute_loss(problem: Problem, signal: Array) -> tuple[float, Array]:
    """The loss at ``signal``, and the subgradient ``2/m Σ sign(|s|² − y) s a``."""
    s = project(problem.source, signal)
    residuals = abs2(s) - problem.responses
    return float(np.abs(residuals).mean()), weighted_sum(problem.source, 2 * np.sign(residuals) * s)
