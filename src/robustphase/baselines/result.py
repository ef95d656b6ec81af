"""What every baseline returns."""

from __future__ import annotations

from dataclasses import dataclass

from robustphase.rows.source import Array


@dataclass(frozen=True)
class BaselineResult:
    """Outcome of a baseline method.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        The estimate, defined up to its sign (real) or global phase (complex).
    initial_signal : ndarray of shape (n,)
        Where the method started.
    n_iter : int
        Iterations made after the start.
    converged : bool
        Whether the stopping rule was met.
    """

    signal: Array
    initial_signal: Array
    n_iter: int
    converged: bool
