"""Bad readings that know the covariates: their share and their law, class by class of the energies.

An adversary rewrites the readings that say most: those of large energies, or those which move the signal most in some direction.
One share π and one law f for all samples then understate what is bad where it matters, and the fit follows. So samples are put
into classes by an order that the fit itself gives (their energies; later their grip on a doubtful direction), and every class has
a share of its own, π times how *prone* to be bad its readings are, and a law f of its own: that of the doubted readings of the
class, mixed with a few readings of the marginal law. Where bad readings do not know the covariates all classes agree, and one
class for all learns most (:mod:`robustphase.recover.law.bad_counts` chooses).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustphase.constants import derived
from robustphase.likelihood.bad_responses import marginal_law

Array = NDArray[Any]
_TINY = float(np.finfo(np.float64).tiny)


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

    Parameters
    ----------
    order : ndarray of shape (m,)
        What the samples are put in order by.
    weights : ndarray of shape (m,)
        Zero for samples that cannot be used; they belong to the last class and do not count.
    """
    usable = np.flatnonzero(weights > 0)
    count = int(np.clip(usable.size // CLASSES.readings, 1, CLASSES.most))
    classes = np.full(order.size, count - 1)
    ranked = usable[np.argsort(-order[usable], kind="stable")]
    classes[ranked] = np.arange(ranked.size) * count // max(ranked.size, 1)
    return classes


def bad_classes(responses: Array, marginal: Array, doubts: Array, weights: Array, orders: Array | None) -> BadClasses:
    """Shares and laws of bad counts, class by class.

    Parameters
    ----------
    responses : ndarray of shape (m, k)
        Counts.
    marginal : ndarray of shape (m, k)
        Law of all of them.
    doubts : ndarray of shape (m, k)
        Probability of each to be bad.
    weights : ndarray of shape (m, 1) or (m, k)
        Weights of the covariates.
    orders : ndarray of shape (m, k), optional
        What the samples are put in order by; without it they are all of one class.
    """
    shape = doubts.shape
    law, prone = np.array(np.broadcast_to(marginal, shape)), np.ones(shape)
    read, weights = np.broadcast_to(responses, shape), np.broadcast_to(weights, shape)
    for column in range(shape[1]):
        w = weights[:, column]
        d = doubts[:, column] * w
        share = d.sum() / max(float(w.sum()), _TINY)
        shares = np.zeros(w.size, int) if orders is None else classes_of(orders[:, column], w)
        found = np.bincount(shares, d) / np.maximum(np.bincount(shares, w), _TINY)
        prone[:, column] = (found / max(share, _TINY))[shares]
        laws = shares // CLASSES.joined
        for one in range(laws.max() + 1):
            at = laws == one
            total = float(d[at].sum())
            seen = marginal_law(read[at, column][:, np.newaxis], d[at][:, np.newaxis], counts=True)[:, 0]
            law[at, column] = (total * seen + CLASSES.known * law[at, column]) / (total + CLASSES.known)
    return BadClasses(law, prone)
