"""An election among signals: which of them the samples contradict least.

Each sample has one vote between two signals, so that nobody has more influence than the number of samples he holds. Were a signal
the truth, its residuals would be noise, independent of the covariates, and samples would rarely be likelier under another signal
*with the same noise*. So, with a signal on trial, a sample votes for it if the density of its residuals is larger at the residual
that it leaves than at the one that the other would leave. For noise that is symmetric about its peak, that is the closer one of
the two; for skewed noise closeness decides little. How many votes the truth would get against each other signal follows from
the same residuals, beside every difference of the two predictions; whoever rewrites a share ε of the samples takes ε of them at
most. A signal that misses more is *refuted*, and of the others the one wins that misses the fewest against its worst opponent:
Yatracos' (1985) estimate of least distance, with tests of Scheffé. Where all are refuted nobody is elected: noise that depends on
the covariates, as that of counts does, refutes the truth as well.

A signal that is wrong comes with a noise of its own, and that may be wrong as well. So every sample has a second vote, between
signals with their noises: for a signal on trial if its residual is likelier under the noise of that signal than the other's
residual is under the noise of the other (Scheffé's set of the two laws). If a share ε of the samples is bad, the noise of a
signal is what the others leave: the densities are those of the shortest interval that holds 1 − ε of the residuals. With all of
them, bad samples that were made for a wrong signal widen the noise of the right one, and narrow that of the wrong one. Second
votes tell signals apart whose noises differ much, skewed ones above all; but a signal that is right but inaccurate loses some to
one that was made for them. So nobody is refuted by second votes, but those who are left stand for election by both.

Densities are taken to fall off from one peak on both sides. Without that, bad samples at a distance would make a peak of their
own, to which other signals would bring samples.

Where these tie, the shorter best half of residuals decides (Martin, Yohai and Zamar, 1989).

Who holds a share of the samples can bring two signals to a tie, the farther apart, the shorter the second one is: noise hides
it, and it leaves much to noise. So whoever is *outshone* is not elected: a *dim* signal, with hardly more power than its
residuals spread, where another that is not refuted, or the answer, has clearly more power over noise. Among signals that are not
dim power is no merit, for an attacker may well offer one that is too long.
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

    clear: float = empirical(0.25, "how much more power over noise makes a signal clearer, as a share")
    dim: float = empirical(
        2.0,
        "power over half the length of the best half of residuals up to which noise may hide a signal: the half is as long",
    )
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
    settled : ndarray of bool, shape (l,)
        Which fits have settled, the answer among them.
    """

    level: float
    lead: float
    settled: Array


class Votes(NamedTuple):
    """Share of the votes that each signal, on trial, gets against each other one beyond what the truth would, each (l, l).

    Attributes
    ----------
    own : ndarray
        Votes by the density of the residuals of the signal on trial.
    both : ndarray
        Votes by the noises of either signal.
    """

    own: Array
    both: Array


class Verdict(NamedTuple):
    """What an election ends with.

    Attributes
    ----------
    winner : int
        Who is elected, 0 for the answer: it stays where nobody else is.
    missed : ndarray of shape (l,)
        Share of the votes that each signal misses against its worst opponent, beyond what contamination takes from the truth.
    left : ndarray of bool, shape (l,)
        Which signals are not refuted.
    """

    winner: int
    missed: Array
    left: Array


def elected(residuals: Array, power: Array, used: Array, rules: Rules) -> Verdict:
    """Which signal the samples elect, of the answer and others.

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
    lead, error = np.zeros((noise.shape[1], noise.shape[1])), 1 / (2 * np.sqrt(voters))
    lead[0, 1:] = rules.lead * error
    own, both = surplus_of_votes(noise, rules.level)
    margins, joint = ((votes + lead).min(axis=1) + rules.level for votes in (own, (own + both) / 2))
    halves = np.array([shortest_half(column)[1] for column in seen.T])
    clarity = power / np.maximum(halves, TINY)
    able = margins >= -ELECTION.tied * error
    standing = able & ~_outshone(clarity, able)
    settled = standing & rules.settled
    standing = settled if settled.any() else standing
    winner = _winner(np.where(standing, joint, -np.inf), halves, ELECTION.tied * error) if standing.any() else 0
    return Verdict(winner, -margins, able)


def _winner(margins: Array, halves: Array, chance: float) -> int:
    """Who has the most votes, the answer before others; of others within chance who explains its best half most closely."""
    if margins[0] >= margins.max():
        return 0
    tied = margins >= margins.max() - chance
    return 1 + int(np.argmin(np.where(tied[1:], halves[1:], np.inf)))


def _outshone(clarity: Array, able: Array) -> Array:
    """Which signals are dim beside a clearer one of those that are able to stand, or beside the answer, shape (l,)."""
    beside = able.copy()
    beside[0] = True
    clearer = beside & (clarity > (1 + ELECTION.clear) * clarity[:, np.newaxis])
    return np.asarray((clarity < ELECTION.dim) & clearer.any(axis=1))


def surplus_of_votes(noise: Array, level: float) -> Votes:
    """The votes between signals with these residuals (m, l), of median zero, over those that the truth would get.

    If a signal were the truth, every difference of predictions might stand beside every one of its residuals. Of these pairs an
    even spread is looked at, one for each sample: what that leaves to chance is a fraction of what the votes do. A share
    ``level`` of the samples may be bad.
    """
    m, count = noise.shape
    # One signal after the other in memory.
    noise = np.ascontiguousarray(noise.T)
    ordered = np.sort(noise, axis=1)
    clean = [_shortest(residuals, 1 - level) for residuals in ordered]
    beside, beside_clean = ([_spread(each, m) for each in some] for some in (ordered, clean))
    wide, laws = ([_falling_law(each) for each in some] for some in (ordered, clean))
    usual, likely = ([law.reach(row) for law, row in zip(wide, rows, strict=True)] for rows in (beside, noise))
    expected, seen = ([law.at(row) for law, row in zip(laws, rows, strict=True)] for rows in (beside_clean, noise))
    votes = Votes(*np.zeros((2, count, count)))
    for one, other in combinations(range(count), 2):
        apart = np.sort(noise[other] - noise[one])
        for own, rival, steps in ((one, other, apart), (other, one, -apart[::-1])):
            chance = usual[own].votes_against(beside[own] + steps)
            votes.own[own, rival] = likely[own].votes_against(noise[rival]) - chance
            chance = _votes(expected[own], laws[rival].at(beside_clean[own] + steps))
            votes.both[own, rival] = _votes(seen[own], seen[rival]) - chance
    return votes


def _shortest(ordered: Array, share: float) -> Array:
    """Those of numbers in their order that are in the shortest interval that holds this share of them."""
    count = max(int(np.ceil(share * ordered.size)), 1)
    low = int((ordered[count - 1 :] - ordered[: ordered.size - count + 1]).argmin())
    return np.asarray(ordered[low : low + count])


def _spread(ordered: Array, count: int) -> Array:
    """So many of these numbers, evenly, and in an order that is far from theirs."""
    # Steps of the golden ratio through the order of the one are far from all steps through the order of the other.
    return np.asarray(ordered[(ordered.size * (np.arange(count) * _GOLDEN % 1.0)).astype(np.intp)])


def _votes(own: Array, rival: Array) -> float:
    """Share of the samples that are likelier under the own density; half a vote where both are alike."""
    more, less = np.count_nonzero(own > rival), np.count_nonzero(own < rival)
    return 0.5 + (more - less) / (2 * own.size)


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

    def at(self, values: Array) -> Array:
        """The logarithms of the density at values."""
        return np.interp(values, self.places, self.logarithms, left=-np.inf, right=-np.inf)

    def reach(self, values: Array) -> _AsLikely:
        """Where the density is as large as at values between the first and the last place."""
        peak, levels = self.peak, self.at(values)
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
