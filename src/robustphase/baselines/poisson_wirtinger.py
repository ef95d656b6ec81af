"""Wirtinger flow for Poisson counts, with the step that Fisher's information asks for.

Li, Lange and Fessler, "Poisson phase retrieval in very low-count regimes", IEEE Transactions on Computational Imaging 2022.

The gradient is that of ``Σ |aᴴx|² + b − y log(|aᴴx|² + b)``; along it the loss is curved by ``Σ |aᴴg|² · 4|s|²/(|s|² + b)`` on
average over the counts (half of it for complex rows, where the phase of aᴴg may be any), so the step needs no line search. The
mean background b is known, as the paper assumes. Without one the gradient of a sample is ``y/s``: where a mean is below ``LEAST``
of the typical response, that is divided by instead.
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

#: Least mean of a reading over the mean response.
LEAST = 1e-3
#: Longest step, as a fraction of the signal.
LONGEST = 0.5


def poisson_wirtinger_flow(
    A: Any,
    y: Any,
    *,
    start: Any = None,
    max_iter: int = 500,
    tol: float = 1e-6,
    random_state: Any = None,
    background: float = 0.0,
    nonfinite: str = "raise",
) -> BaselineResult:
    """Gradient steps on the Poisson loss ``Σ |aᴴx|² + b − y log(|aᴴx|² + b)``, of the length that Fisher's information asks for.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates; complex rows are the ``aᴴ``.
    y : array-like of shape (m,)
        Counts; negative ones count as zero.
    start : ndarray of shape (n,), optional
        Starting point. Default: the plain spectral start.
    max_iter : int, default=500
        Most gradient steps.
    tol : float, default=1e-6
        Stop when a step moves the signal by less than this fraction of its norm.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the first guess of the start; None is as good as 0.
    background : float, default=0.0
        Mean background b of every reading, known.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or leave them out, as overflowing ones always are.

    Returns
    -------
    BaselineResult
    """
    if not 0 <= background < np.inf:
        raise ValueError(f"background must be a number that is zero or positive, got {background!r}.")
    problem = pose(A, y, start=start, max_iter=max_iter, tol=tol, random_state=random_state, nonfinite=nonfinite)
    first = plain_start(problem) if problem.start is None else problem.start
    counts = np.maximum(problem.responses, 0.0)
    b = background / problem.unit
    least = LEAST * float(counts.mean())

    def propose(x: Array, t: int) -> Array:
        s = project(problem.source, x)
        means = abs2(s) + b
        divisors = np.maximum(means, least)
        gradient = weighted_sum(problem.source, 2 * (means - counts) / divisors * s)
        information = (2.0 if problem.is_complex else 4.0) * abs2(s) / divisors
        curvature = float(np.mean(information * abs2(project(problem.source, gradient))))
        move = gradient * (length(gradient) ** 2 / max(curvature, np.finfo(np.float64).tiny))
        return move * min(1.0, LONGEST * length(x) / max(length(move), np.finfo(np.float64).tiny))

    return descend(problem, first, propose, max_iter=max_iter, tol=tol)
