"""An election among signals: which of them the samples contradict least.

Each sample votes for the signal that is closer to its response, so that nobody has more influence than the number of samples he
holds. Were a signal the truth, its residuals would be noise, independent of the covariates, which says how many votes it should
get against each other one; whoever rewrites a share ε of the samples takes ε of them at most. So a signal is *refuted* if it gets
fewer, and the winner is the one with the largest margin against its worst opponent: Yatracos' (1985) estimate of least distance,
with the tests of Scheffé. Where margins tie, the shorter best half of residuals decides (Martin, Yohai and Zamar, 1989). Fits
that have not settled vote against others but are not elected: halfway between two signals nobody is contradicted much.

Who holds a share of the samples can bring two signals to a tie, the farther apart, the shorter the second one is and the more
it leaves to noise. So of those that are not refuted only the *clear* ones stand, with about as much power over the noise that
they leave as the clearest has. The truth then loses ties with longer signals, which are near it, and wins those with shorter
ones, which need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from robustphase.constants import derived, empirical
from robustphase.recover.held_noise import shortest_half
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class ElectionOptions:
    """Constants of the election."""

    clear: float = empirical(1.5, "times as much power over noise make a signal clearer")
    tied: float = derived(1.0, "standard errors of a vote within which it decides nothing")


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
    sizes = np.abs(seen - np.median(seen, axis=0))
    closer = np.stack([(one[:, np.newaxis] < sizes).mean(axis=0) for one in sizes.T])
    shares = (1 + closer - closer.T) / 2
    # The others were made for such a vote, and the answer was not.
    shares[0, 1:] += rules.lead / (2 * np.sqrt(voters))
    chance = ELECTION.tied / (2 * np.sqrt(voters))
    halves = np.array([shortest_half(column)[1] for column in seen.T])
    margins = (shares - expected_shares(seen)).min(axis=1) + rules.level
    if rules.settled is not None:
        margins = np.where(rules.settled, margins, -np.inf)
    standing = margins >= min(float(margins.max()), 0.0) - chance
    clarity = power / np.maximum(halves, _TINY)
    standing &= ELECTION.clear * clarity >= clarity[standing].max()
    margins = np.where(standing, margins, -np.inf)
    if margins[0] >= margins.max():
        return -1
    # Who is within chance of the winner counts as elected too, and explains its best half most closely.
    tied = margins >= margins.max() - chance
    return int(np.argmin(np.where(tied[1:], halves[1:], np.inf)))


def expected_shares(residuals: Array) -> Array:
    """Share of the votes that each signal should get against each other one if it were the truth, shape (l, l).

    Its residuals would then be noise, independent of how far the two predictions are apart, and the vote would be theirs that
    are on its side of the middle between the two.

    Parameters
    ----------
    residuals : ndarray of shape (m, l)
        Residuals of the signals.
    """
    m, count = residuals.shape
    noise = residuals - np.median(residuals, axis=0)
    ordered = np.sort(noise, axis=0)
    expected = np.full((count, count), 0.5)
    for own, other in permutations(range(count), 2):
        apart = noise[:, other] - noise[:, own]
        below = np.searchsorted(ordered[:, own], -apart / 2) / m
        expected[own, other] = np.where(apart > 0, 1 - below, below).mean()
    return expected
