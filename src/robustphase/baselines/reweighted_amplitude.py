"""Reweighted amplitude flow: least squares on amplitudes with soft weights.

Wang, Giannakis, Saad and Chen, "Phase retrieval via reweighted amplitude flow", IEEE Transactions on Signal Processing
2018, Algorithm 1; "Solving most systems of random quadratic equations", NIPS 2017.

A sample counts by how large its prediction is against its response. Made for few noiseless samples. The weights fall
off so slowly that outliers keep most of their pull.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, phases, weighted_sum
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import weighted_maximal_correlation_start
from robustphase.rows import project
from robustphase.rows.source import Array

#: β: weights are ``|aᴴx| / (|aᴴx| + β ψ)``; and the step μ. Each for real and for complex data.
REAL_WEIGHTING, COMPLEX_WEIGHTING = 10.0, 5.0
REAL_STEP, COMPLEX_STEP = 2.0, 6.0


def reweighted_amplitude_flow(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-8,
    random_state: Any = None,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Reweighted generalised gradient steps on the amplitude loss ``Σ (|aᴴx| − √y)²``.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses; negative ones count as zero.
    start : ndarray of shape (n,), optional
        Starting point. Default: the weighted maximal correlation start.
    max_iter : int, default=500
        Most gradient steps.
    tol : float, default=1e-8
        Stop when a step moves the signal by less than this fraction of its norm.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
    problem = pose(
        A,
        y,
        start=start,
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
        nonfinite=nonfinite,
        field=field,
    )
    first = weighted_maximal_correlation_start(problem) if problem.start is None else problem.start
    amplitudes = problem.amplitudes
    weighting = COMPLEX_WEIGHTING if problem.is_complex else REAL_WEIGHTING
    step = COMPLEX_STEP if problem.is_complex else REAL_STEP

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        sizes = np.abs(s)
        # The paper's 1/(1 + β ψ/|s|), written so that neither ψ = 0 nor s = 0 divides by zero alone.
        below = sizes + weighting * amplitudes
        weights = sizes / np.where(below > 0, below, 1.0)
        return weighted_sum(problem.source, step * weights * (sizes - amplitudes) * phases(s))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
