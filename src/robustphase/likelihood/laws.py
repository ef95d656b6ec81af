"""Laws of readings whose noise depends on the signal, each beside a share of bad readings.

A reading y of a sample with the mean μ = |aᴴx|² + b + B (b unknown, B known) is clean with probability 1 − π and then follows a
law: that of counts, or one with a variance curve (:mod:`robustphase.likelihood.dependent_noise`).

A censored reading (a saturated camera) says "at least y": its likelihood is the probability of that, and its residual what the
expected reading lies above the mean. A bad reading follows a law f that does not know the covariates; at a censored reading f is
the probability of at least that.

Every law answers the same question: given means, how likely are the readings, and which weighted least-squares problem has the
same gradient (EM, and Fisher's scoring). So one fit serves all of them (:mod:`robustphase.descend.law_fit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.likelihood.noise_model import NOISE, NoiseModel, law_mean, law_variance

Array = NDArray[Any]


@dataclass(frozen=True)
class LawOptions:
    """Constants of the laws."""

    least_mean: float = derived(1.0, "least mean count times the number of readings: one count in all of them")
    least_variance: float = numeric(
        1e-6, "least of τ² over its average: smaller ones would let a few readings decide alone"
    )
    variance_rounds: int = budget(30, "multiplicative updates of the variance curve between two looks at the signal")
    surest: float = numeric(0.999, "largest share of bad readings of a kind: none is taken for bad unread")


LAWS = LawOptions()


class Readings(NamedTuple):
    """What was read."""

    responses: Array  # (m, 1) or (m, k): y, in the units in which it was read
    weights: Array  # (m, 1) or (m, k): weights of the covariates; zero for samples that cannot be used
    censored: Array | None  # bool (m, 1) or (m, k): readings that say "at least that"
    offsets: Array  # (m, 1): known background B
    #: (m, 1) or (m, k): law f of bad readings: density (probability, for counts); the probability of at least y where
    #: censored.
    bad: Array
    #: (m, 1) or (m, k): share of bad readings among those like this one, over that of all
    #: (:mod:`robustphase.likelihood.bad_responses`); one, if none is given.
    prone: Array | None = None

    def only(self, columns: Array) -> Readings:
        """The readings of some of the signals; all, where one column serves every candidate."""
        if self.responses.shape[1] == 1:
            return self
        responses, weights, offsets, bad = (
            part if part.shape[1] == 1 else part[:, columns]
            for part in (self.responses, self.weights, self.offsets, self.bad)
        )
        censored = self.censored
        if censored is not None and censored.shape[1] > 1:
            censored = censored[:, columns]
        prone = self.prone
        if prone is not None and prone.shape[1] > 1:
            prone = prone[:, columns]
        return Readings(responses, weights, censored, offsets, bad, prone)

    def rows(self, some: Array) -> Readings:
        """The readings of some samples."""
        censored = None if self.censored is None else self.censored[some]
        prone = None if self.prone is None else self.prone[some]
        return Readings(self.responses[some], self.weights[some], censored, self.offsets[some], self.bad[some], prone)


class Judged(NamedTuple):
    """What a law says of readings."""

    clean: Array  # (m, k): probability to be clean
    #: (m, k): the least-squares problem with the same gradient: weights (times those of the covariates) and working
    #: residuals.
    weights: Array
    residuals: Array
    log_likelihood: Array  # (k,): sum of ``w log[(1 − π) p + π f]``


class CurvedNoise(NamedTuple):
    """Fitted noise with the variance ``read + shot e + relative e²``, e = |aᴴx|²; k columns, or numbers for one signal.

    Attributes
    ----------
    scales : ndarray of shape (k,)
        Standard deviation of a typical clean reading.
    tails, log_skews : ndarray of shape (k,)
        One over the degrees of freedom, and the logarithm of the skew, of the standardised residuals; those of counts are nearly
        normal and have no skew but their own.
    mixing : ndarray of shape (k,)
        Share π of bad readings.
    read, shot, relative : ndarray of shape (k,)
        The variance curve. For Poisson counts the dark count, 1 and 0.
    counts : ndarray of bool, shape (k,)
        Whether the readings are Poisson counts.
    """

    scales: Array
    tails: Array
    log_skews: Array
    mixing: Array
    read: Array
    shot: Array
    relative: Array
    counts: Array

    @property
    def kind(self) -> str:
        """``"poisson"`` for counts, ``"variance"`` for noise with a fitted curve, ``"additive"`` where that is flat."""
        if np.all(self.counts):
            return "poisson"
        return "variance" if np.any(self.shot) or np.any(self.relative) else "additive"

    @property
    def degrees(self) -> Array:
        """Degrees of freedom ν."""
        degrees: Array = 1 / self.tails
        return degrees

    @property
    def skews(self) -> Array:
        """Scale above zero over the scale below."""
        skews: Array = np.exp(self.log_skews)
        return skews

    def only(self, columns: Array) -> CurvedNoise:
        """The models of some columns."""
        return CurvedNoise(*(part[columns] for part in self))

    def variance(self, energies: Array) -> Array:
        """Variance of a clean reading with this ``|aᴴx|²``."""
        variance: Array = self.read + self.shot * energies + self.relative * energies**2
        return variance

    def density(self, residuals: Array) -> Array:
        """Density of clean residuals of typical readings, shape (m, k)."""
        noise = NoiseModel(np.ones_like(self.scales), self.tails, self.log_skews, self.mixing)
        scales = self.scales / np.sqrt(law_variance(noise))
        # Residuals are counted from the mean, the law from its peak.
        return noise._replace(scales=scales).density(residuals + scales * law_mean(noise))


def means_of(energies: Array, backgrounds: Array, readings: Readings, least: float) -> Array:
    """μ of readings with energies ``|aᴴx|²`` (m, k), not below what the law allows."""
    means: Array = np.maximum(energies + backgrounds + readings.offsets, least)
    return means


def mixture(logs: Array, mixing: Array, readings: Readings) -> tuple[Array, Array]:
    """Probabilities to be clean (m, k) from log-likelihoods of clean readings, and the log-likelihood of the mixture (k,)."""
    if readings.prone is not None:
        mixing = np.minimum(mixing * readings.prone, LAWS.surest)
    with np.errstate(divide="ignore"):
        likely = logs + np.log1p(-mixing)
        unlikely = np.log(np.maximum(readings.bad, TINY)) + np.log(mixing)
    both = np.logaddexp(likely, unlikely)
    clean: Array = np.exp(likely - both)
    return clean, (readings.weights * both).sum(axis=0)


def mixture_slopes(judged: Judged) -> Array:
    """``w − (w r)² (1 − c)/c``: weights, less what a sample loses because it becomes more doubtful."""
    doubts = (1 - judged.clean) / np.maximum(judged.clean, TINY)
    with np.errstate(over="ignore"):
        slopes: Array = judged.weights - np.where(
            judged.clean > 0, doubts * (judged.weights * judged.residuals) ** 2, 0.0
        )
    return slopes


def renewed_mixing(clean: Array, weights: Array, most: Array) -> Array:
    """Share of readings that are doubted, within its bounds."""
    mass = np.maximum(np.broadcast_to(weights, clean.shape).sum(axis=0), TINY)
    return share_within(1 - (clean * weights).sum(axis=0) / mass, most)


def share_within(share: Array, most: Array) -> Array:
    """A share of bad readings, within its bounds."""
    mixing: Array = np.clip(share, NOISE.least_share, np.maximum(most, NOISE.least_share))
    return mixing


def average_usable(values: Array, weights: Array) -> Array:
    """Mean over the readings that can be used, shape (k,)."""
    used = np.broadcast_to(weights > 0, values.shape)
    average: Array = (values * used).sum(axis=0) / np.maximum(used.sum(axis=0), 1)
    return average
