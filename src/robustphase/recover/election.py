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
it leaves to noise. So whoever is *outshone* by another that is not refuted is not elected: the other has clearly more power over
noise, and leaves no more noise, or this one is faint, with less power than half of its residuals spread. More power alone is no
merit: an attacker may well offer a signal that is too long, and that one leaves more noise too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, empirical
from robustphase.recover.held_noise import shortest_half
from robustphase.rows.source import Array

_GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class ElectionOptions:
    """Constants of the election."""

    clear: float = empirical(1.25, "times as much power over noise make a signal clearer")
    tied: float = derived(1.0, "standard errors of a vote, or of a best half, within which it decides nothing")
    half_error: float = derived(
        1.17, "relative standard error of the best half of normal residuals, times the root of their number"
    )
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
    standing &= ~_outshone(power, halves, standing, ELECTION.tied * ELECTION.half_error / np.sqrt(voters))
    margins = np.where(standing, margins, -np.inf)
    if margins[0] >= margins.max():
        return -1
    # Who is within chance of the winner counts as elected too, and explains its best half most closely.
    tied = margins >= margins.max() - chance
    return int(np.argmin(np.where(tied[1:], halves[1:], np.inf)))


def _outshone(power: Array, halves: Array, standing: Array, chance: float) -> Array:
    """Whether one of those that stand is clearer, and they are faint or leave no less noise, but for chance, shape (l,)."""
    clarity = power / np.maximum(halves, TINY)
    clearer = standing & (clarity > ELECTION.clear * clarity[:, np.newaxis])
    as_quiet = halves <= (1 + chance) * halves[:, np.newaxis]
    faint = (clarity < 1)[:, np.newaxis]
    return np.asarray((clearer & (as_quiet | faint)).any(axis=1))


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
    # One signal after the other in memory.
    noise = np.ascontiguousarray(noise.T)
    ordered = np.sort(noise, axis=1)
    # Steps of the golden ratio through the order of the one are far from all steps through the order of the other.
    partners = (m * (np.arange(m) * _GOLDEN % 1.0)).astype(np.intp)
    surplus = np.zeros((count, count))
    beside, laws = ordered[:, partners], [_falling_law(residuals) for residuals in ordered]
    usual = [law.as_likely(residuals) for law, residuals in zip(laws, beside, strict=True)]
    likely = [law.as_likely(residuals) for law, residuals in zip(laws, noise, strict=True)]
    for one, other in combinations(range(count), 2):
        apart = np.sort(noise[other] - noise[one])
        for own, rival, steps in ((one, other, apart), (other, one, -apart[::-1])):
            expected = usual[own].votes_against(beside[own] + steps)
            surplus[own, rival] = likely[own].votes_against(noise[rival]) - expected
    return surplus


class _AsLikely(NamedTuple):
    """Where a density that falls off on both sides is as large as at some residuals, or larger; arrays of shape (m,).

    Looked up once, these ranges tell all votes against others by comparisons alone. Where the density is level, the range of
    what is likelier is shorter than that of what is as likely.
    """

    low: Array
    likelier_low: Array
    likelier_high: Array
    high: Array

    def votes_against(self, others: Array) -> float:
        """Share of the samples that find their own residuals likelier; half a vote where both are alike."""
        not_less = np.count_nonzero((others >= self.low) & (others <= self.high))
        likelier = np.count_nonzero((others > self.likelier_low) & (others < self.likelier_high))
        return 1 - (not_less + likelier) / (2 * others.size)


class _Law(NamedTuple):
    """Logarithm of a density at some places; between them it is interpolated, and beyond them nothing was ever seen."""

    places: Array
    logarithms: Array
    peak: int  # The largest of them: up to there they never fall, and from there on never rise

    def as_likely(self, values: Array) -> _AsLikely:
        """The ranges that belong to values between the first and the last place."""
        peak, levels = self.peak, np.interp(values, self.places, self.logarithms)
        low, likelier_low = _reached(self.logarithms[: peak + 1], self.places[: peak + 1], levels)
        high, likelier_high = _reached(self.logarithms[peak:][::-1], self.places[peak:][::-1], levels)
        # Values are as likely as themselves, and not likelier, whatever roundings say.
        below = values <= self.places[peak]
        return _AsLikely(
            np.minimum(low, values),
            np.where(below, np.maximum(likelier_low, values), likelier_low),
            np.where(below, likelier_high, np.minimum(likelier_high, values)),
            np.maximum(high, values),
        )


def _reached(rising: Array, places: Array, levels: Array) -> tuple[Array, Array]:
    """Places from which on numbers that never fall are as large as the levels, and from which on they are larger."""
    # Of several equal numbers NumPy takes the last one.
    return np.interp(-levels, -rising[::-1], places[::-1]), np.interp(levels, rising, places)


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
    return _Law(places, np.append(rising, np.minimum.accumulate(logarithms[peak:])[1:]), peak)
