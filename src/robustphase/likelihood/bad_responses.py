"""The density of bad responses: what a response is compared with that no signal explains.

Before anything is known of the bad samples it is the marginal density of all responses. Once a signal has been fitted, the doubts
about each sample say where bad responses lie, and the density is that of the doubted ones alone. That matters with many samples:
a density that also follows the clean responses doubts some residuals more than others because of their covariates, and the signal
is then fitted with a bias which no number of samples removes.

Bad readings may know the covariates. An adversary rewrites the readings that say most: those of large energies, or those which
move the signal most in some direction. One share π and one law f for all samples then understate what is bad where it matters,
and the fit follows. So samples are put into classes by an order that the fit itself gives (their energies; later their grip on a
doubtful direction), and every class has a share of its own, π times how *prone* to be bad its readings are, and a law f of its
own: that of the doubted readings of the class, mixed with a few readings of the marginal law. Where bad readings do not know the
covariates all classes agree, and one class for all learns most (:mod:`robustphase.recover.law.bad_counts` chooses).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustphase.constants import TINY, budget, derived, empirical
from robustphase.ordering import stable_order

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

    knots: int = budget(1024, "points of a curve: twenty for each neighbourhood")
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
    return mixed_density(problem_density, *doubted_density(responses, doubts))


def mixed_density(everything: Array, doubted: Array, hiding: Array | float) -> Array:
    """Density of bad responses, from that of all, of the doubted ones, and the share of all that may hide bad ones besides."""
    density: Array = np.minimum(everything, doubted + hiding * everything)
    return density


def doubted_density(responses: Array, doubts: Array) -> tuple[Array, Array]:
    """Density of the responses that contradict the signal (m, k), and the share of all that may hide bad ones besides (k,)."""
    m = responses.shape[0]
    # Clean samples with large noise are doubted a little, all together a lot: only those that contradict the signal count.
    contradicting = np.where(doubts > 0.5, doubts, 0.0)
    total = np.maximum(doubts.sum(axis=0), np.finfo(np.float64).eps)
    found = response_density(responses, contradicting) * (contradicting.sum(axis=0) / total)
    return found, DENSITY.hidden * m / (2 * _reach(m) * total)


class DensityCurves(NamedTuple):
    """Two densities of responses at some of them, from which they are interpolated at others."""

    responses: Array  # (r,): increasing responses
    #: (r,): the density of all responses there, and of those that contradict the signal.
    everything: Array
    doubted: Array

    def at(self, responses: Array) -> tuple[Array, Array]:
        """Both densities at any responses; beyond all, those of the last."""
        # As parts of complex numbers: most of the time is that of finding responses among the knots, once for both.
        values = np.interp(responses, self.responses, self.everything + 1j * self.doubted)
        return values.real, values.imag


def density_curves(responses: Array, everything: Array, doubted: Array) -> DensityCurves:
    """Densities (m,) at responses (m,) as curves through as many of them as their neighbourhoods can tell apart."""
    order = stable_order(responses)
    ordered = responses[order]
    different = np.concatenate(([True], ordered[1:] > ordered[:-1]))
    ordered, first = ordered[different], order[different]
    places = np.unique(np.linspace(0, ordered.size - 1, min(ordered.size, DENSITY.knots)).round().astype(int))
    knots = first[places]
    return DensityCurves(ordered[places], everything[knots], doubted[knots])


def _reach(m: int) -> int:
    """Neighbours on either side that a local density is taken from."""
    return max(DENSITY.fewest, int(DENSITY.neighbours * m))


def _column_density(responses: Array, mass: Array) -> Array:
    m = responses.size
    order = stable_order(responses)
    ordered = responses[order]
    cumulated = np.concatenate(([0.0], np.cumsum(mass[order], dtype=np.float64)))
    reach = _reach(m)
    low, high = np.maximum(np.arange(m) - reach, 0), np.minimum(np.arange(m) + reach, m - 1)
    density = np.empty(m)
    total = max(float(cumulated[-1]), TINY)
    # Ties (erased responses) have zero width; a neighbourhood gets no narrower than its share of the unit.
    density[order] = (cumulated[high] - cumulated[low]) / (
        total * np.maximum(ordered[high] - ordered[low], DENSITY.neighbours)
    )
    return density


def marginal_law(responses: Array, mass: Array, *, counts: bool) -> Array:
    """Law of all readings with the given mass, smoothed over neighbours, at every reading, shape (m, k).

    It is the probability of whole numbers if these are ``counts``, and a density otherwise. Ties are one value: a count that
    many readings share has their share as its probability, whatever the neighbours hold.
    """
    law = np.empty(responses.shape)
    masses = np.broadcast_to(mass, responses.shape)
    for column in range(responses.shape[1]):
        law[:, column] = _smoothed(responses[:, column], masses[:, column], counts)
    return law


def censored_law(law: Array, responses: Array, mass: Array, censored: Array) -> Array:
    """The law of bad readings, with the share of all readings of at least y where that is all a reading says."""
    whole = np.array(np.broadcast_to(law, np.broadcast_shapes(law.shape, censored.shape)))
    masses = np.broadcast_to(mass, whole.shape)
    for column in range(whole.shape[1]):
        at = np.broadcast_to(censored, whole.shape)[:, column]
        if not at.any():
            continue
        y, w = np.broadcast_to(responses, whole.shape)[:, column], masses[:, column]
        order = np.argsort(y)
        above = np.concatenate((np.cumsum(w[order][::-1])[::-1], [0.0])) / max(float(w.sum()), TINY)
        whole[at, column] = above[np.searchsorted(y[order], y[at])]
    return whole


def _smoothed(responses: Array, mass: Array, counts: bool) -> Array:
    values, places = np.unique(responses, return_inverse=True)
    own = np.bincount(places, mass, values.size)
    before = np.concatenate(([0.0], np.cumsum(own)))
    total = max(float(before[-1]), TINY)
    reach = max(DENSITY.neighbours * total, total * DENSITY.fewest / responses.size)
    # A value that holds enough by itself needs no neighbours.
    lonely = (own < reach) * reach
    low = np.maximum(np.searchsorted(before, before[:-1] - lonely, side="right") - 1, 0)
    high = np.minimum(np.searchsorted(before, before[1:] + lonely, side="left"), values.size)
    high = np.maximum(high, np.arange(values.size) + 1)
    held = before[high] - before[low]
    widths = values[high - 1] - values[low]
    if counts:
        widths = np.maximum(np.rint(widths), 0.0) + 1
    else:
        spread = float(np.subtract(*np.quantile(responses, (0.75, 0.25)))) or float(np.mean(np.abs(responses))) or 1.0
        widths = np.maximum(widths, DENSITY.neighbours * spread)
    law: Array = held / (total * widths)
    return law[places]


@dataclass(frozen=True)
class ClassOptions:
    """Constants of the classes."""

    readings: int = derived(100, "readings of a class, at least: a share of a tenth is then known to a third of itself")
    most: int = derived(10, "classes: with more, readings of one class differ by less than their noise")
    joined: int = derived(2, "classes of shares for one class of laws, which has more to learn")
    known: float = derived(
        5.0, "readings of the marginal law in the law of a class: as many as make a local density more than chance"
    )


CLASSES = ClassOptions()


class BadClasses(NamedTuple):
    """Law f of bad readings and how prone readings are to be bad, on average one; both of shape (m, k)."""

    law: Array
    prone: Array


def classes_of(order: Array, weights: Array) -> Array:
    """Class of every sample, whole numbers of shape (m,); equally many usable samples in each, the largest first.

    Samples of weight zero cannot be used; they belong to the last class and do not count.
    """
    usable = np.flatnonzero(weights > 0)
    count = int(np.clip(usable.size // CLASSES.readings, 1, CLASSES.most))
    classes = np.full(order.size, count - 1)
    ranked = usable[np.argsort(-order[usable], kind="stable")]
    classes[ranked] = np.arange(ranked.size) * count // max(ranked.size, 1)
    return classes


def bad_classes(responses: Array, marginal: Array, doubts: Array, weights: Array, orders: Array | None) -> BadClasses:
    """Shares and laws of bad counts, class by class, where each is bad with the probability ``doubts`` (m, k).

    ``marginal`` is the law of all counts, ``weights`` are those of the covariates. Samples are put in order by ``orders`` (m,
    k); without it they are all of one class.
    """
    shape = doubts.shape
    law, prone = np.array(np.broadcast_to(marginal, shape)), np.ones(shape)
    read, weights = np.broadcast_to(responses, shape), np.broadcast_to(weights, shape)
    for column in range(shape[1]):
        w = weights[:, column]
        d = doubts[:, column] * w
        share = d.sum() / max(float(w.sum()), TINY)
        shares = np.zeros(w.size, int) if orders is None else classes_of(orders[:, column], w)
        found = np.bincount(shares, d) / np.maximum(np.bincount(shares, w), TINY)
        prone[:, column] = (found / max(share, TINY))[shares]
        laws = shares // CLASSES.joined
        for one in range(laws.max() + 1):
            at = laws == one
            total = float(d[at].sum())
            seen = marginal_law(read[at, column][:, np.newaxis], d[at][:, np.newaxis], counts=True)[:, 0]
            law[at, column] = (total * seen + CLASSES.known * law[at, column]) / (total + CLASSES.known)
    return BadClasses(law, prone)
