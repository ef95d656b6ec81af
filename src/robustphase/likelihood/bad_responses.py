"""The density of bad responses: what a response is compared with that no signal explains.

Before anything is known of the bad samples it is the marginal density of all responses. Once a signal has been fitted, the
doubts about each sample say where bad responses lie, and the density is that of the doubted ones alone. That matters with
many samples: a density that also follows the clean responses doubts some residuals more than others because of their
covariates, and the signal is then fitted with a bias which no number of samples removes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.constants import derived, empirical

Array = NDArray[Any]


@dataclass(frozen=True)
class DensityOptions:
    """Constants of the density of bad responses, whose unit is one over the interquartile range of the responses."""

    neighbours: float = empirical(0.02, "share of the samples on either side that a local density is taken from")
    floor: float = empirical(
        0.3, "least density of bad responses: lower, they are so dear that wider noise explains them better"
    )
    low_floor: float = empirical(
        0.1, "the same where surprising samples are to tell: scoring finalists, and counting bad samples"
    )
    fewest: int = derived(5, "neighbours on either side: with fewer a width is mostly chance (its error is 1/√10)")

    hidden: float = empirical(
        50.0, "bad samples that may hide among the responses of one neighbourhood without contradicting the signal"
    )


DENSITY = DensityOptions()


def response_density(responses: Array, mass: Array) -> Array:
    """Density at every response of those with the given mass, by the width of its neighbourhood, shape (m, k).

    Parameters
    ----------
    responses : ndarray of shape (m, k)
        In units of their interquartile range.
    mass : ndarray of shape (m, 1) or (m, k)
        How much each response counts: zero for one that cannot be used, its doubt where bad ones are sought.
    """
    density = np.empty(responses.shape)
    masses = np.broadcast_to(mass, responses.shape)
    for column in range(responses.shape[1]):
        density[:, column] = _column_density(responses[:, column], masses[:, column])
    return density


def bad_density(problem_density: Array, responses: Array, doubts: Array) -> Array:
    """Density of bad responses where a fit doubts samples, shape (m, k): at most that of all responses.

    Parameters
    ----------
    problem_density : ndarray of shape (m, k)
        Density of all responses.
    responses : ndarray of shape (m, k)
        In units of their interquartile range.
    doubts : ndarray of shape (m, k)
        Probability of every sample to be bad; zero for one that cannot be used.
    """
    m = responses.shape[0]
    # Clean samples with large noise are doubted a little, all together a lot: only those that contradict the signal count.
    contradicting = np.where(doubts > 0.5, doubts, 0.0)
    total = np.maximum(doubts.sum(axis=0), np.finfo(np.float64).tiny)
    found = response_density(responses, contradicting) * (contradicting.sum(axis=0) / total)
    hiding = problem_density * (DENSITY.hidden * m / (2 * _reach(m) * total))
    density: Array = np.minimum(problem_density, found + hiding)
    return density


def _reach(m: int) -> int:
    """Neighbours on either side that a local density is taken from."""
    return max(DENSITY.fewest, int(DENSITY.neighbours * m))


def _column_density(responses: Array, mass: Array) -> Array:
    m = responses.size
    order = np.argsort(responses, kind="stable")
    ordered = responses[order]
    cumulated = np.concatenate(([0.0], np.cumsum(mass[order], dtype=np.float64)))
    reach = _reach(m)
    low, high = np.maximum(np.arange(m) - reach, 0), np.minimum(np.arange(m) + reach, m - 1)
    density = np.empty(m)
    total = max(float(cumulated[-1]), float(np.finfo(np.float64).tiny))
    # Ties (erased responses) have zero width; a neighbourhood gets no narrower than its share of the unit.
    density[order] = (cumulated[high] - cumulated[low]) / (
        total * np.maximum(ordered[high] - ordered[low], DENSITY.neighbours)
    )
    return density
