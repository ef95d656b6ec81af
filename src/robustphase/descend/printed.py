"""Algorithms 2 and 4 of the paper: constant steps along robust gradients of fresh batches.

The printed step of Algorithm 4 does not converge (erratum A3); the corrected one is the default.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robustphase.descend.gradients import gradient_points, pairs_with, robust_gradient
from robustphase.means import MeanResult
from robustphase.means.confidence import confident_level
from robustphase.population import paper_step, printed_step
from robustphase.rows.source import Array
from robustphase.validation import EXTRAORDINARY, check_samples

#: A signal longer than the start by this factor will not come back, and its powers soon overflow.
DIVERGED = 1e6


@dataclass(frozen=True)
class StepRecord:
    """One iteration: length of the gradient and of the move, certificate, and share of the batch that was removed."""

    gradient_norm: float
    moved: float
    top_variance: float
    removed: float


@dataclass(frozen=True)
class PrintedDescent:
    """Outcome of Algorithm 2 or 4: the last iterate and a record of every step."""

    signal: Array
    step: float
    history: tuple[StepRecord, ...]


def printed_descent(
    start: Array,
    batches: Iterable[Any],
    *,
    contamination: float,
    delta: float,
    mean_estimator: str = "filter",
    paired: bool = False,
    printed: bool = False,
    random_state: Any = None,
) -> PrintedDescent:
    """Algorithm 2, or with ``paired`` Algorithm 4.

    Parameters
    ----------
    start : ndarray of shape (n,)
        ``x₀``. A zero start stays where it is: there the gradient vanishes and no step size is defined.
    batches : iterable of (A, y)
        One fresh batch per iteration.
    contamination : float
        ε, of the samples; pairing doubles it, which is done here.
    delta : float
        Confidence parameter of every iteration.
    mean_estimator : str, default="filter"
        One of :data:`robustphase.means.METHODS`.
    paired : bool, default=False
        Unknown noise mean: work on differences of samples.
    printed : bool, default=False
        Use the step as printed, also where it does not converge.
    random_state : int, RandomState or None
        For mean estimators that draw random numbers.
    """
    noise_mean: Literal["zero", "unknown"] = "unknown" if paired else "zero"
    if not np.any(start):
        warnings.warn(
            "the start is zero, where the gradient vanishes: the descent does not move.", UserWarning, stacklevel=3
        )
        return PrintedDescent(start, 0.0, ())
    if printed and paired:
        warnings.warn(
            "the step printed in Algorithm 4 is too large and ends in a two-cycle (erratum A3).",
            UserWarning,
            stacklevel=3,
        )
    size = (printed_step if printed else paper_step)(start, noise_mean=noise_mean)
    x, history = start, []
    last: MeanResult | None = None
    for A, y in batches:
        samples = check_samples(A, y, nonfinite="drop", enough=False)
        if x.shape != (samples.source.shape[1],):
            raise ValueError(
                f"x0 has shape {x.shape} but A has {samples.source.shape[1]} columns; one entry for each is needed."
            )
        if not 1 / EXTRAORDINARY <= samples.peak <= EXTRAORDINARY:
            raise ValueError(
                f"the entries of A are of the order of {samples.peak:.0e}, and the constant steps of the algorithm are for "
                f"standard normal rows. Divide A by {samples.peak:.0e}."
            )
        dropped = pairs_with(samples.dropped) if paired else samples.dropped
        if dropped.all():
            raise ValueError("a batch holds no pair of samples that can be used. Make batches of more samples.")
        view = gradient_points(samples.source, samples.responses, x, paired=paired)
        epsilon = min(2 * contamination, 0.49) if paired else contamination
        level = confident_level(epsilon, delta, view.shape[0])
        last = robust_gradient(
            view,
            level,
            mean_estimator=mean_estimator,
            start=last,
            random_state=random_state,
            dropped=dropped,
        )
        move = size * last.location
        x = x - move
        history.append(
            StepRecord(
                gradient_norm=float(np.linalg.norm(last.location)),
                moved=float(np.linalg.norm(move)),
                top_variance=last.top_variance,
                removed=last.removed,
            )
        )
        if not np.linalg.norm(x) <= DIVERGED * np.linalg.norm(start):
            warnings.warn(
                f"the descent diverged: after {len(history)} iterations the signal is {DIVERGED:.0e} times as long as the start. "
                "Likely cause: rows of A that are not standard normal, or a start that is far too short.",
                UserWarning,
                stacklevel=3,
            )
            break
    return PrintedDescent(x, size, tuple(history))
