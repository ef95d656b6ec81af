r"""How far a signal can be that nobody could tell from the answer: no certificate promises less.

A sample of the signal x has the row a and, given it, noise around :math:`|a^H x|^2`. Two signals share the law of the rows, so
their laws are

.. math:: \mathrm{TV}(x, x') = \mathbb{E}_a\, \tau\big(\big||a^H x|^2 - |a^H x'|^2\big|\big), \qquad
          \tau(d) = \sup_c P(c < z \le c + d)

apart: noise with one peak, shifted by d, loses as much as an interval of that length holds at most. Whoever rewrites a share ε of
the samples takes ε from the law of the truth. Of what comes instead, a part is recognised and flagged, and a share h is kept. If
samples of x and of x' can end as the same data, ε was taken from either law and h was added to it, so the two are ε + h apart at
most. Without a flag these are the 2ε of Huber's and of the minimax theory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from robustphase.constants import TINY, budget, numeric
from robustphase.likelihood.noise_model import NoiseModel
from robustphase.population.plane import prediction_differences
from robustphase.rows.source import Array


@dataclass(frozen=True)
class IndistinguishableOptions:
    """Constants of the search for signals that cannot be told apart."""

    points: int = budget(1024, "rows over which means are taken")
    directions: int = budget(7, "directions from the answer in which signals are sought, from longer to shorter ones")
    steps: int = budget(14, "most steps towards a distance; about five are made")
    in_proportion: int = budget(
        4, "first steps, in which a distance moves in proportion to what is missing of its variation"
    )
    exact: float = numeric(0.01, "relative error of a distance, which is at most so much too long")
    shifts: int = budget(64, "shifts at which the variation of the noise is tabulated")
    nearest: float = numeric(1e-9, "relative distances below it are roundings")


INDISTINGUISHABLE = IndistinguishableOptions()
#: Largest distance looked at, over the norm.
_FARTHEST = 2.0
#: Shifts of the table, in scales of the noise.
_SHIFTS = np.concatenate(([0.0], np.geomspace(0.02, 200.0, INDISTINGUISHABLE.shifts)))


def indistinguishable_distances(
    noise: NoiseModel,
    energies: Array,
    variations: Array,
    least: Array,
    *,
    is_complex: bool = False,
    unknown_mean: bool = False,
) -> Array:
    """Largest distances, over the norms, of signals whose laws are no farther than this from those of the answers, shape (k,).

    Infinite where signals at a right angle are among them: then the answer may be anything.

    Parameters
    ----------
    noise : NoiseModel
        Laws of the noise.
    energies : ndarray of shape (k,)
        Squared norms of the answers.
    variations : ndarray of shape (k,)
        Total variations that contamination bridges, ε + h.
    least : ndarray of shape (k,)
        Smaller distances are not asked for: the larger of the two is returned.
    is_complex : bool, default=False
        Whether the signals are complex.
    unknown_mean : bool, default=False
        Whether the signals may have different backgrounds.
    """
    # Halves of a Student law share the best interval in proportion to their scales, so it holds the same part of both.
    tables = 2 * stdtr(noise.degrees[:, np.newaxis], _SHIFTS / (1 + noise.skews[:, np.newaxis])) - 1
    units = energies / np.maximum(noise.scales, np.maximum(INDISTINGUISHABLE.nearest * energies, TINY))
    return np.array(
        [
            _distance(partial(_apart, _Laws(unit, table, is_complex, unknown_mean)), variation, shortest)
            for unit, table, variation, shortest in zip(units, tables, variations, least, strict=True)
        ]
    )


class _Laws(NamedTuple):
    """Energy of the answer over the scale of the noise, the variation of the noise at the shifts of the table, and the model."""

    unit: float
    table: Array
    is_complex: bool
    unknown_mean: bool


def _apart(laws: _Laws, first: Array, second: Array) -> Array:
    """Total variation between the answer, of norm one, and signals with these components along and across it, shape (k,)."""
    differences = laws.unit * prediction_differences(INDISTINGUISHABLE.points, laws.is_complex, first, second)
    away = np.interp(np.abs(differences), _SHIFTS, laws.table).mean(axis=0)
    if laws.unknown_mean:
        # The median is about the background that hides most.
        centred = differences - np.median(differences, axis=0)
        away = np.minimum(away, np.interp(np.abs(centred), _SHIFTS, laws.table).mean(axis=0))
    return np.asarray(away)


def _distance(apart: Callable[[Array, Array], Array], variation: float, least: float) -> float:
    """The largest distance from (1, 0) at which signals are no farther apart than this, or the least one."""
    angles = np.linspace(0.0, np.pi, INDISTINGUISHABLE.directions)
    cosines, sines = np.cos(angles), np.sin(angles)
    # Up to signals at a right angle, beyond which the other sign is nearer.
    right = cosines < 0
    farthest = np.where(right, -1 / np.where(right, cosines, -1.0), _FARTHEST)
    nearest = max(least, INDISTINGUISHABLE.nearest)

    def variations(distances: Array) -> Array:
        return apart(1 + distances * cosines, distances * sines)

    short = np.minimum(nearest, farthest)
    if not least < _FARTHEST or not (near := variations(short) <= variation).any():
        return least
    if (variations(farthest) <= variation).any():
        return np.inf
    # Of the directions in which there is a distance that is long enough. It lies between two that are known to be too short and
    # too long. Variations grow nearly in proportion to it at first, so a few steps in proportion end a little beyond it; where
    # they hardly grow any more the range is halved.
    low, high, guesses = np.where(near, short, 0.0), np.where(near, farthest, 0.0), short
    for step in range(INDISTINGUISHABLE.steps):
        found = variations(guesses)
        low, high = (
            np.where(near & (found <= variation), guesses, low),
            np.where(near & (found > variation), guesses, high),
        )
        if high.max() <= (1 + INDISTINGUISHABLE.exact) * low.max():
            break
        guesses = guesses * variation / np.maximum(found, TINY) * (1 + INDISTINGUISHABLE.exact / 2)
        inside = (low < guesses) & (guesses < high) & (step < INDISTINGUISHABLE.in_proportion)
        guesses = np.where(inside, guesses, np.sqrt(low * high))
    return float(high.max())
