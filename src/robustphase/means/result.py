"""What every robust mean is given and gives back: the points it may look at, and what it knows about its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


@dataclass(frozen=True)
class MeanResult:
    """A robust mean and its evidence.

    Attributes
    ----------
    location : ndarray of shape (n,)
        The estimate.
    weights : ndarray of shape (N,)
        Weight of every point in [0, 1]; 0 means treated as bad.
    top_variance : float
        The certificate: variance of the weighted points along the worst direction found. If a fraction ε of the points
        is bad, the mean is off by at most a constant times ``sqrt(ε · top_variance)`` (Proposition 2.1).
    removed : float
        Fraction of the points that was taken away, soft weights included.
    contamination : float
        The level used (ε' of Proposition 2.1), or the level found with ``contamination="auto"``.
    n_iter : int
        Rounds made.
    converged : bool
        Whether the stopping rule was met.
    message : str
        In words: why it stopped, and what to try if that is not good.
    directions : ndarray of shape (n, k) or None
        Worst directions of the last round; a later call on similar points starts from them. None for few, long points, of
        which only inner products are looked at.
    """

    location: Array
    weights: Array
    top_variance: float
    removed: float
    contamination: float
    n_iter: int
    converged: bool
    message: str
    directions: Array | None = field(default=None, repr=False)


def result_without_certificate(
    location: Array, weights: Array, contamination: float, message: str, *, n_iter: int = 1, converged: bool = True
) -> MeanResult:
    """Result of an estimator that gives no certificate: its ``top_variance`` is NaN."""
    return MeanResult(
        location=location,
        weights=weights,
        top_variance=float("nan"),
        removed=1.0 - float(weights.mean()),
        contamination=contamination,
        n_iter=n_iter,
        converged=converged,
        message=message,
    )


def unexplained_spread(contamination: float, remedy: str) -> str:
    """The message of an estimator that stopped before the points varied as clean ones would."""
    return (
        "stopped with more spread along one direction than clean points explain. Likely cause: heavy tails, or a "
        f"share of bad points above contamination={contamination:.3g}; if so raise it, or use {remedy}."
    )


def usable_points(view: ScaledRows, dropped: Array | None) -> Array:
    """Which points may be looked at: those that are not dropped."""
    return np.ones(view.shape[0], bool) if dropped is None else ~dropped
