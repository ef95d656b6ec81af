"""What a robust mean knows about itself."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    directions : ndarray of shape (n, k)
        Worst directions of the last round; a later call on similar points starts from them.
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
