"""Wirtinger flow: plain least squares by gradient descent from a spectral start (Candès, Li and Soltanolkotabi, 2015).

The reference point of every comparison: as accurate as it gets on clean data with Gaussian noise, and defenceless.

How this differs from the paper: its step ``min(1 − exp(−t/330), 0.2)`` grows slowly in the first 70 iterations, which it
notes to be a precaution; ours begins with 0.2 (pass ``warm_up=330`` for the paper's), and no step is longer than half of
the signal, as every careful user would see to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.baselines.descent import descend, length, weighted_sum
from robustphase.baselines.problem import pose
from robustphase.baselines.result import BaselineResult
from robustphase.baselines.starts import plain_start
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Gradient step in units of 1/‖x₀‖² (μ_max of the paper): close to the best for curvatures between 2 and 6.
STEP = 0.2
#: Longest step, as a fraction of the signal.
LONGEST = 0.5


def wirtinger_flow(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-6,
    random_state: Any = None,
    warm_up: float = 0.0,
    nonfinite: str = "raise",
    field: str = "auto",
) -> BaselineResult:
    """Least squares ``min Σ (|aᴴx|² − y)²`` by gradient descent.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Responses.
    start : ndarray of shape (n,), optional
        Starting point. Default: the plain spectral start.
    max_iter : int, default=500
        Most gradient steps.
    tol : float, default=1e-6
        Stop when a step moves the signal by less than this fraction of its norm.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    warm_up : float, default=0.0
        Time constant of the growing step, 330 in the paper; 0 for none.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    BaselineResult
    """
    if not 0 <= warm_up < np.inf:
        raise ValueError(f"warm_up must be a number that is zero or positive, got {warm_up!r}.")
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
    first = plain_start(problem) if problem.start is None else problem.start
    step = STEP / max(length(first) ** 2, np.finfo(np.float64).tiny)

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        grown = min(1.0, -np.expm1(-(t + 1) / warm_up) / STEP) if warm_up > 0 else 1.0
        move = grown * step * weighted_sum(problem.source, (abs2(s) - problem.responses) * s)
        # Bad data can make the flow diverge.
        return move * min(1.0, LONGEST * length(x) / max(length(move), np.finfo(np.float64).tiny))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
