"""Truncated amplitude flow: least squares on amplitudes without the samples whose sign is in doubt.

Wang, Giannakis and Eldar, "Solving systems of random quadratic equations via truncated amplitude flow", IEEE
Transactions on Information Theory 2018, Algorithm 1.

Samples with a prediction far below ``ψ = √y`` are left out. That is a defence against wrong signs and not against
outliers: a response that is too large is left out only as long as its prediction stays small. Made for few noiseless
samples, about 3n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, phases, weighted_sum
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import maximal_correlation_start
from robustphase.rows import project
from robustphase.rows.source import Array

#: γ: samples with ``|aᴴx| < ψ/(1 + γ)`` are left out.
TRUNCATION = 0.7
#: Step μ for real and for complex data.
REAL_STEP, COMPLEX_STEP = 0.6, 1.0


def truncated_amplitude_flow(
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
    """Truncated generalised gradient steps on the amplitude loss ``Σ (|aᴴx| − √y)²``.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses; negative ones count as zero.
    start : ndarray of shape (n,), optional
        Starting point. Default: the orthogonality-promoting start.
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
    first = maximal_correlation_start(problem) if problem.start is None else problem.start
    amplitudes, step = problem.amplitudes, COMPLEX_STEP if problem.is_complex else REAL_STEP

    def propose(x: Array, t: int) -> Array | None:
        s = project(problem.source, x)
        sizes = np.abs(s)
        kept = (1 + TRUNCATION) * sizes >= amplitudes
        if not kept.any():
            return None
        return weighted_sum(problem.source, np.where(kept, step * (sizes - amplitudes) * phases(s), 0.0))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
