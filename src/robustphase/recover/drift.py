r"""Slow drift of gain and background over the rows.

Rows are read one after the other, and meanwhile lamps fade and electronics warm up: ``y = γ(t) |aᴴx|² + b + δ(t) + noise``
with the place t of the row in the order of reading. Both curves are broken lines with equal pieces, of which there are as many as
the residuals of a fit ask for, by Schwarz' criterion (BIC), none if they ask for none. Gain one and background zero are those of
the average row, so that the signal keeps its meaning.

A fit that knows of no drift still finds the signal by and large; from its residuals the curves are read, responses are corrected
by them, and the fit is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, derived, numeric
from robustphase.rows.source import Array

DRIFTS = (None, "auto")
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class DriftOptions:
    """Constants of the drift."""

    pieces: tuple[int, ...] = budget(
        (0, 1, 2, 4, 8, 16), "numbers of pieces that are tried for either curve; 0 is no drift"
    )
    fewest: int = derived(30, "readings per knot: with fewer, a knot is known no better than a fifth of the noise")
    least_gain: float = numeric(0.1, "least gain: a detector that reads less at times reads nothing")
    rounds: int = budget(4, "fits at most")
    settled: float = numeric(
        0.05, "change of the curves between two fits, in scales of the noise, at which they have settled"
    )


DRIFT = DriftOptions()


class Drift(NamedTuple):
    """Gains and backgrounds of every reading, both of shape (m, p); one and zero on average."""

    gains: Array
    backgrounds: Array

    @property
    def any(self) -> bool:
        """Whether anything drifts."""
        return bool(np.any(self.gains != 1) or np.any(self.backgrounds != 0))

    def corrected(self, responses: Array) -> Array:
        """Responses (m, p) as they would have been read without the drift."""
        corrected: Array = (responses - self.backgrounds) / self.gains
        return corrected


def no_drift(shape: tuple[int, ...]) -> Drift:
    """Nothing drifts."""
    return Drift(np.ones(shape), np.zeros(shape))


def find_drift(responses: Array, energies: Array, weights: Array) -> Drift:
    """The drift that the residuals of a fit show.

    Parameters
    ----------
    responses : ndarray of shape (m, p)
        As they were read, in the order in which they were read.
    energies : ndarray of shape (m, p)
        ``|A x|²`` of the fit.
    weights : ndarray of shape (m, p)
        Of the last least-squares problem: zero for bad readings, smaller where the noise is wider.
    """
    found = [_column(*columns) for columns in zip(responses.T, energies.T, weights.T, strict=True)]
    gains, backgrounds = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
    return Drift(gains, backgrounds)


def _column(y: Array, energies: Array, weights: Array) -> tuple[Array, Array]:
    m, mass = y.size, max(float(weights.sum()), _TINY)
    w = weights / mass
    unit = max(float(w @ energies), _TINY)
    e = energies / unit
    # As many readings as weigh alike: bad ones do not count.
    count = 1 / max(float(w @ w), _TINY)
    allowed = [pieces for pieces in DRIFT.pieces if pieces * DRIFT.fewest <= count]
    best, chosen = np.inf, (0, 0)
    for pieces in product(allowed, allowed):
        _, squares = _solved(y / unit, e, w, *pieces)
        unknowns = sum(piece + 1 for piece in pieces)
        criterion = count * np.log(max(squares, _TINY)) + unknowns * np.log(max(count, 2.0))
        if criterion < best:
            best, chosen = criterion, pieces
    (offsets, gains), _ = _solved(y / unit, e, w, *chosen)
    middle = float(w @ offsets)
    average = max(float(w @ gains), _TINY)
    gains = np.maximum(gains / average, DRIFT.least_gain) if chosen[1] else np.ones(m)
    return gains, unit * (offsets - middle) if chosen[0] else np.zeros(m)


def _solved(y: Array, energies: Array, weights: Array, first: int, second: int) -> tuple[tuple[Array, Array], float]:
    """Curves of background and gain with so many pieces, and the weighted mean square of what they leave."""
    one, other = broken_lines(y.size, first), broken_lines(y.size, second)
    columns = np.hstack((one, other * energies[:, np.newaxis]))
    moments = columns.T @ (weights[:, np.newaxis] * columns)
    solution = np.linalg.lstsq(moments, columns.T @ (weights * y), rcond=1e-12)[0]
    left = y - columns @ solution
    return (one @ solution[: first + 1], other @ solution[first + 1 :]), float(weights @ (left * left))


def broken_lines(m: int, pieces: int) -> Array:
    """Hat functions of the knots of so many equal pieces, shape (m, pieces + 1); a constant for none."""
    if pieces == 0:
        return np.ones((m, 1))
    places = np.linspace(0.0, pieces, m)[:, np.newaxis]
    hats: Array = np.clip(1 - np.abs(places - np.arange(pieces + 1)), 0.0, None)
    return hats
