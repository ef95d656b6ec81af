"""An election among signals: which of them the samples contradict least.

Each sample has one vote between two signals, so that nobody has more influence than the number of samples he holds. Were a signal
the truth, its residuals would be noise, independent of the covariates, and samples would rarely be likelier under another signal
*with the same noise*. So, with a signal on trial, a sample votes for it if the density of its residuals is larger at the residual
that it leaves than at the one that the other would leave. For noise that is symmetric about its peak, that is the closer one of
the two; for skewed noise closeness decides little. How many votes the truth would get against each other signal follows from
the same residuals, beside every difference of the two predictions; whoever rewrites a share ε of the samples takes ε of them at
most. A signal that misses more is *refuted*, and of the others the one wins that misses the fewest against its worst opponent:
Yatracos' (1985) estimate of least distance, with tests of Scheffé.

Densities are taken to fall off from one peak on both sides. Without that, bad samples at a distance would make a peak of their
own, to which other signals would bring samples.

Where these tie, the shorter best half of residuals decides (Martin, Yohai and Zamar, 1989). Fits that have not settled vote
against others but are not elected: halfway between two signals nobody is contradicted much.

Who holds a share of the samples can bring two signals to a tie, the farther apart, the shorter the second one is and the more
it leaves to noise. So of those that are not refuted only the *clear* ones stand, with about as much power over the noise that
they leave as the clearest has. The truth then loses ties with longer signals, which are near it, and wins those with shorter
ones, which need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, empirical
from robustphase.recover.held_noise import shortest_half
from robustphase.rows.source import Array

_GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class ElectionOptions:
    """Constants of the election."""

    clear: float = empirical(1.5, "times as much power over noise make a signal clearer")
    tied: float = derived(1.0, "standard errors of a vote within which it decides nothing")
    places: int = budget(101, "residuals, from the least to the largest, at which their density is read off")
    neighbours: float = empirical(0.04, "share of the residuals in the neighbourhood from which it is read off")


ELECTION = ElectionOptions()


class Rules(NamedTuple):
    """What an election goes by.

    Attributes
    ----------
    level : float
        Share of the samples that may be bad.
    lead : float
        Standard errors of the vote by which another must beat the answer: what it would lead by without being closer.
    settled : ndarray of bool, shape (l,), optional
        Which signals have settled; None for all.
    """

    level: float
    lead: float
    settled: Array | None = None


def elected(residuals: Array, power: Array, used: Array, rules: Rules) -> int:
    """Which of the other signals the samples elect instead of the answer, or -1 for none.

    Whoever is still on the way from one signal to another is a compromise that nobody contradicts much, and right for nobody: it
    may refute others but is not elected.

    Parameters
    ----------
    residuals : ndarray of shape (m, l)
        Residuals of the answer, and of the others.
    power : ndarray of shape (l,)
        Squared norms of the signals.
    used : ndarray of bool, shape (m,)
        The samples that vote.
    rules : Rules
        What the election goes by.
    """
    seen, voters = residuals[used], max(int(used.sum()), 1)
    # Around their medians: what a fit takes for the background depends on how it treats the tails of skewed noise.
    noise = seen - np.median(seen, axis=0)
    # The others were made for such a vote, and the answer was not.
    lead = np.zeros((noise.shape[1], noise.shape[1]))
    lead[0, 1:] = rules.lead / (2 * np.sqrt(voters))
    margins = (surplus_of_votes(noise) + lead).min(axis=1) + rules.level
    chance = ELECTION.tied / (2 * np.sqrt(voters))
    halves = np.array([shortest_half(column)[1] for column in seen.T])
    if rules.settled is not None:
        margins = np.where(rules.settled, margins, -np.inf)
    standing = margins >= min(float(margins.max()), 0.0) - chance
    clarity = power / np.maximum(halves, TINY)
    standing &= ELECTION.clear * clarity >= clarity[standing].max()
    margins = np.where(standing, margins, -np.inf)
    if margins[0] >= margins.max():
        return -1
    # Who is within chance of the winner counts as elected too, and explains its best half most closely.
    tied = margins >= margins.max() - chance
    return int(np.argmin(np.where(tied[1:], halves[1:], np.inf)))


def surplus_of_votes(noise: Array) -> Array:
    """Share of the votes that each signal, on trial, gets against each other one beyond what the truth would, shape (l, l).

    If it were the truth, every difference of predictions might stand beside every one of its residuals. Of these pairs an even
    spread is looked at, one for each sample: what that leaves to chance is a fraction of what the votes do.

    Parameters
    ----------
    noise : ndarray of shape (m, l)
        Residuals of the signals, of median zero.
    """
    m, count = noise.shape
    ordered = np.sort(noise, axis=0)
    # Steps of the golden ratio through the order of the one are far from all steps through the order of the other.
    partners = (m * (np.arange(m) * _GOLDEN % 1.0)).astype(np.intp)
    surplus = np.zeros((count, count))
    for own in range(count):
        law = _falling_law(ordered[:, own])
        beside = ordered[partners, own]
        usual, likely = law.at(beside), law.at(noise[:, own])
        for other in range(count):
            if other != own:
                apart = noise[:, other] - noise[:, own]
                # In order, as looking up neighbours one after the other is many times as fast.
                expected = _votes(usual, law.at(beside + np.sort(apart)))
                surplus[own, other] = _votes(likely, law.at(noise[:, other])) - expected
    return surplus


def _votes(own: Array, other: Array) -> float:
    """Share of the samples that find their own likelier; half a vote where both are alike."""
    return float(np.mean(own > other) + np.mean(own >= other)) / 2


class _Law(NamedTuple):
    """Logarithm of a density at some places; between them it is interpolated, and beyond them nothing was ever seen."""

    places: Array
    logarithms: Array

    def at(self, values: Array) -> Array:
        return np.asarray(np.interp(values, self.places, self.logarithms, left=-np.inf, right=-np.inf))


def _falling_law(ordered: Array) -> _Law:
    """The density of numbers in their order, read off the width of neighbourhoods that hold a fixed share of them.

    It falls off from its peak: where it would rise again it stays as it was.
    """
    last = ordered.size - 1
    ranks = np.linspace(0.0, 1.0, ELECTION.places)
    half = ELECTION.neighbours / 2
    low, high = np.maximum(ranks - half, 0.0), np.minimum(ranks + half, 1.0)
    places, below, above = (ordered[np.rint(last * share).astype(np.intp)] for share in (ranks, low, high))
    logarithms = np.log((high - low) / np.maximum(above - below, TINY))
    peak = int(np.argmax(logarithms))
    rising = np.minimum.accumulate(logarithms[peak::-1])[::-1]
    return _Law(places, np.append(rising, np.minimum.accumulate(logarithms[peak:])[1:]))
