r"""Laws of readings whose noise depends on the signal, each beside a share of bad readings.

A reading y of a sample with the mean μ = |aᴴx|² + b + B (b unknown, B known) is clean with probability 1 − π and then follows

*Poisson* (:class:`PoissonLaw`): ``P(y) = μ^y exp(−μ)/y!`` for whole numbers y ≥ 0; b is the dark count. Score ``(y − μ)/μ``,
information ``1/μ``.

*variance* (:class:`VarianceLaw`): ``y = μ + τ (z − E z)`` with ``τ² = c₀ + c₁ e + c₂ e²`` of the energy ``e = |aᴴx|²`` (read
noise and whatever a background adds, shot noise, multiplicative noise) and z of the asymmetric Student law of
:mod:`robustphase.likelihood.noise_model`. The energies in τ are held while signals move and renewed where they arrived, as in
quasi-likelihood: what the fit says of the mean then rests on the mean alone, whatever the law.

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
from scipy.special import erfcx, gammainc, gammaln, stdtr, xlogy

from robustphase.constants import budget, derived, numeric
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.likelihood.noise_model import NOISE, NoiseModel, e_step, m_step

Array = NDArray[Any]
_TINY = float(np.finfo(np.float64).tiny)
#: Standardised residuals beyond it count as that large: exp(a²/2) is still a number.
LARGEST = 35.0


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


class Readings(NamedTuple):
    """What was read.

    Attributes
    ----------
    responses : ndarray of shape (m, 1) or (m, k)
        y, in the units in which it was read.
    weights : ndarray of shape (m, 1) or (m, k)
        Weights of the covariates; zero for samples that cannot be used.
    censored : ndarray of bool, shape (m, 1) or (m, k), optional
        Readings that say "at least that".
    offsets : ndarray of shape (m, 1)
        Known background B.
    bad : ndarray of shape (m, 1) or (m, k)
        Law f of bad readings: density (probability, for counts); the probability of at least y where censored.
    prone : ndarray of shape (m, 1) or (m, k), optional
        Share of bad readings among those like this one, over that of all (:mod:`robustphase.likelihood.bad_classes`); one, if
        none is given.
    """

    responses: Array
    weights: Array
    censored: Array | None
    offsets: Array
    bad: Array
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
    """What a law says of readings.

    Attributes
    ----------
    clean : ndarray of shape (m, k)
        Probability to be clean.
    weights, residuals : ndarray of shape (m, k)
        The least-squares problem with the same gradient: weights (times those of the covariates) and working residuals.
    log_likelihood : ndarray of shape (k,)
        Sum of ``w log[(1 − π) p + π f]``.
    """

    clean: Array
    weights: Array
    residuals: Array
    log_likelihood: Array


class PoissonLaw(NamedTuple):
    """Counts; ``mixing`` (k,) is the share π of bad ones."""

    mixing: Array

    def only(self, columns: Array) -> PoissonLaw:
        """The laws of some columns."""
        return PoissonLaw(self.mixing[columns])

    def least(self, m: int) -> float:
        """Least mean that a reading may have."""
        return LAWS.least_mean / m

    def held(self, energies: Array) -> PoissonLaw:
        """The law at given energies."""
        return self

    def judge(self, readings: Readings, means: Array) -> Judged:
        """Probabilities to be clean, and the least-squares problem."""
        y = readings.responses
        counts = (y >= 0) & (y == np.rint(y))
        whole = np.where(counts, y, 0.0)
        residuals = whole - means
        logs = np.where(counts, xlogy(whole, means) - means - gammaln(whole + 1), -np.inf)
        if readings.censored is not None:
            # Σ_{i ≥ c} of the law is the incomplete gamma function of c at μ, for zero it is one.
            level = np.maximum(whole, 0.5)
            tail = np.where(whole > 0, gammainc(level, means), 1.0)
            hazard = np.exp(xlogy(whole - 1, means) - means - gammaln(level)) * (whole > 0) / np.maximum(tail, _TINY)
            # Far below the threshold both vanish, and the expected reading is just above it.
            hazard = np.where(tail > 1e-280, hazard, whole / means)
            residuals = np.where(readings.censored, means * hazard, residuals)
            logs = np.where(readings.censored, np.log(np.maximum(tail, _TINY)), logs)
        clean, total = mixture(logs, self.mixing, readings)
        return Judged(clean, clean * readings.weights / means, residuals, total)

    def slopes(self, judged: Judged, readings: Readings, means: Array) -> Array:
        """Minus the derivative of the score of the mixture by the mean, with the expected one of the law."""
        return mixture_slopes(judged)

    def as_model(self, energies: Array, backgrounds: Array, readings: Readings) -> CurvedNoise:
        """What is reported."""
        zeros = np.zeros(self.mixing.size)
        scales = np.sqrt(_average(energies, readings.weights) + backgrounds)
        return CurvedNoise(
            scales,
            zeros + NOISE.lightest,
            zeros,
            self.mixing,
            backgrounds,
            zeros + 1.0,
            zeros,
            np.ones(zeros.size, bool),
        )

    def renewed(self, judged: Judged, readings: Readings, means: Array, most: Array, unknowns: float) -> PoissonLaw:
        """The law that the judgement asks for: the m-step."""
        return PoissonLaw(renewed_mixing(judged.clean, readings.weights, most))


class VarianceLaw(NamedTuple):
    """Noise with a variance curve.

    Attributes
    ----------
    noise : NoiseModel
        Law of the standardised residuals, of scale one.
    curve : ndarray of shape (3, k)
        c₀, c₁ and c₂.
    energies : ndarray of shape (m, k)
        Energies in τ, where they were last held.
    """

    noise: NoiseModel
    curve: Array
    energies: Array

    @property
    def mixing(self) -> Array:
        """Share of bad readings."""
        return self.noise.mixing

    @property
    def spreads(self) -> Array:
        """τ²."""
        c, e = self.curve, self.energies
        spreads = c[0] + (c[1] + c[2] * e) * e
        bounded: Array = np.maximum(spreads, np.maximum(LAWS.least_variance * spreads.mean(axis=0), _TINY))
        return bounded

    def only(self, columns: Array) -> VarianceLaw:
        """The laws of some columns."""
        return VarianceLaw(self.noise.only(columns), self.curve[:, columns], self.energies[:, columns])

    def least(self, m: int) -> float:
        """Least mean that a reading may have."""
        return -np.inf

    def deviations(self, readings: Readings, means: Array) -> Array:
        """Readings from the peak of their law, which lies below the mean where it is skewed.

        A skewed law with its peak at the mean would shift predictions by a multiple of τ, and so the norm of the signal.
        """
        deviations: Array = readings.responses - means + np.sqrt(self.spreads) * law_mean(self.noise)
        return deviations

    def held(self, energies: Array) -> VarianceLaw:
        """The law with the variances that these energies have."""
        return self._replace(energies=energies)

    def judge(self, readings: Readings, means: Array) -> Judged:
        """Probabilities to be clean, and the least-squares problem."""
        spreads, noise = self.spreads, self.noise
        roots = np.sqrt(spreads)
        residuals = self.deviations(readings, means)
        standard = residuals / roots
        seen = e_step(standard, np.zeros_like(standard), readings.bad * roots, readings.weights, noise)
        clean, weights = seen.clean, seen.weights / spreads
        total = seen.statistics.log_likelihood - (readings.weights * np.log(roots)).sum(axis=0)
        if readings.censored is not None:
            density, tail = noise.density(standard) / roots, survival(standard, noise)
            there = readings._replace(weights=readings.weights * readings.censored)
            with np.errstate(divide="ignore"):
                surely, added = mixture(np.log(tail), noise.mixing, there)
            # What the e-step has counted for these readings was the density of a reading that ends there.
            before = density * (1 - noise.mixing) + noise.mixing * readings.bad
            total = total + added - (there.weights * np.log(np.maximum(before, _TINY))).sum(axis=0)
            # Of all weights that a reading can have the largest: its score rises by no more.
            full = (1 + noise.tails) / (spreads * np.minimum(1.0, noise.skews**2))
            clean = np.where(readings.censored, surely, clean)
            weights = np.where(readings.censored, surely * full, weights)
            residuals = np.where(readings.censored, density / np.maximum(tail, _TINY) / full, residuals)
        return Judged(clean, weights * readings.weights, residuals, total)

    def slopes(self, judged: Judged, readings: Readings, means: Array) -> Array:
        """Minus the derivative of the score of the mixture by the mean: a residual that grows loses weight."""
        deviations = self.deviations(readings, means)
        # u r²/τ², the weight of the Student law times the squared residual.
        squares = judged.weights / np.maximum(judged.clean * readings.weights, _TINY) * deviations**2
        lost = 2 / (1 + self.noise.degrees) * squares
        if readings.censored is not None:
            lost = np.where(readings.censored, 0.0, lost)
        slopes: Array = mixture_slopes(judged) - judged.weights * lost
        return slopes

    def as_model(self, energies: Array, backgrounds: Array, readings: Readings) -> CurvedNoise:
        """What is reported."""
        noise, width = self.noise, law_variance(self.noise)
        scales = np.sqrt(width * _average(self.held(energies).spreads, readings.weights))
        counts = np.zeros(scales.size, bool)
        read, shot, relative = width * self.curve
        return CurvedNoise(scales, noise.tails, noise.log_skews, noise.mixing, read, shot, relative, counts)

    def renewed(self, judged: Judged, readings: Readings, means: Array, most: Array, unknowns: float) -> VarianceLaw:
        """The law that the judgement asks for: the m-step of tails, skew and share, and of the variance curve."""
        seen = readings.weights if readings.censored is None else readings.weights * ~readings.censored
        spreads, noise = self.spreads, self.noise
        roots, residuals = np.sqrt(spreads), self.deviations(readings, means)
        found = e_step(residuals / roots, np.zeros_like(residuals), readings.bad * roots, seen, noise)
        renewed = m_step(noise, found.statistics, most)
        # Residuals are smaller than noise: a signal was fitted to them.
        mass = np.maximum((found.clean * seen).sum(axis=0), 1.0)
        inflation = 1 / np.maximum(1 - unknowns / mass, 0.5)
        masses = found.clean * seen
        if readings.censored is not None:
            # The side above is seen only in part, which would pass for a skew.
            renewed = renewed._replace(log_skews=noise.log_skews)
        sides = np.where(residuals > 0, (noise.skews / renewed.skews) ** 2, 1.0)
        squares = seen * found.weights * residuals**2 * sides * inflation
        if readings.censored is not None:
            # What a reading beyond the ceiling adds on average, E[z² | z ≥ a] = 1 + a h(a) of a normal variable.
            unseen = judged.clean * readings.weights * readings.censored
            squares = squares + unseen * spreads * beyond(residuals / roots)
            masses = masses + unseen
        curve = fitted_curve(self.curve * renewed.scales**2, squares, masses, self.energies)
        renewed = renewed._replace(
            scales=np.ones_like(renewed.scales), mixing=renewed_mixing(judged.clean, readings.weights, most)
        )
        return VarianceLaw(renewed, curve, self.energies)


Law = PoissonLaw | VarianceLaw


def means_of(energies: Array, backgrounds: Array, readings: Readings, least: float) -> Array:
    """μ of readings with energies ``|aᴴx|²`` (m, k), not below what the law allows."""
    means: Array = np.maximum(energies + backgrounds + readings.offsets, least)
    return means


def fitted_curve(curve: Array, squares: Array, masses: Array, energies: Array) -> Array:
    """The variance curve that lowers ``Σ w [log τ² + u r²/τ²]``, by multiplicative updates that keep its parts positive.

    Parameters
    ----------
    curve : ndarray of shape (3, k)
        Where to begin.
    squares, masses : ndarray of shape (m, k)
        ``w u r²`` and ``w``.
    energies : ndarray of shape (m, k)
        Energies of the readings.
    """
    powers = (np.ones_like(energies), energies, energies**2)
    for _ in range(LAWS.variance_rounds):
        spreads = curve[0] + (curve[1] + curve[2] * energies) * energies
        inverse = 1 / np.maximum(spreads, np.maximum(LAWS.least_variance * spreads.mean(axis=0), _TINY))
        ratios = [
            (power * squares * inverse**2).sum(axis=0) / np.maximum((power * masses * inverse).sum(axis=0), _TINY)
            for power in powers
        ]
        curve = curve * np.sqrt(np.stack(ratios))
    return curve


def law_mean(noise: NoiseModel) -> Array:
    """Mean of the asymmetric Student law over its lower scale: ``(k − 1) E|t|`` for the skew k, shape (k,)."""
    nu = noise.degrees
    size = 2 * np.sqrt(nu / np.pi) / (nu - 1) * np.exp(gammaln((nu + 1) / 2) - gammaln(nu / 2))
    mean: Array = noise.scales * (noise.skews - 1) * size
    return mean


def law_variance(noise: NoiseModel) -> Array:
    """Variance of the asymmetric Student law: ``(1 − k + k²) ν/(ν − 2)`` about its peak, less the squared mean; shape (k,)."""
    k, nu = noise.skews, noise.degrees
    variance: Array = noise.scales**2 * (1 - k + k**2) * nu / (nu - 2) - law_mean(noise) ** 2
    return variance


def beyond(standard: Array) -> Array:
    """Mean square of a standard normal variable that is at least this: ``1 + a h(a)`` with its hazard h."""
    # The hazard is sqrt(2/π)/erfcx(a/√2), and a sure thing far below the mean.
    a = np.clip(standard, -LARGEST, LARGEST)
    square: Array = 1 + a * np.sqrt(2 / np.pi) / erfcx(a / np.sqrt(2))
    return square


def survival(standard: Array, noise: NoiseModel) -> Array:
    """Probability of a standardised residual of at least this."""
    below = 1 / (1 + noise.skews)
    scaled = standard / noise.scales
    # Two halves of Student laws: below zero with the mass 1/(1 + k), above with k/(1 + k).
    lower = 1 - 2 * below * stdtr(noise.degrees, np.minimum(scaled, 0.0))
    upper = 2 * (1 - below) * stdtr(noise.degrees, -np.maximum(scaled, 0.0) / noise.skews)
    tail: Array = np.where(standard < 0, lower, upper)
    return tail


def mixture(logs: Array, mixing: Array, readings: Readings) -> tuple[Array, Array]:
    """Probabilities to be clean (m, k) from log-likelihoods of clean readings, and the log-likelihood of the mixture (k,)."""
    if readings.prone is not None:
        mixing = np.minimum(mixing * readings.prone, LAWS.surest)
    with np.errstate(divide="ignore"):
        likely = logs + np.log1p(-mixing)
        unlikely = np.log(np.maximum(readings.bad, _TINY)) + np.log(mixing)
    both = np.logaddexp(likely, unlikely)
    clean: Array = np.exp(likely - both)
    return clean, (readings.weights * both).sum(axis=0)


def mixture_slopes(judged: Judged) -> Array:
    """``w − (w r)² (1 − c)/c``: weights, less what a sample loses because it becomes more doubtful."""
    doubts = (1 - judged.clean) / np.maximum(judged.clean, _TINY)
    with np.errstate(over="ignore"):
        slopes: Array = judged.weights - np.where(
            judged.clean > 0, doubts * (judged.weights * judged.residuals) ** 2, 0.0
        )
    return slopes


def renewed_mixing(clean: Array, weights: Array, most: Array) -> Array:
    """Share of bad readings, within its bounds."""
    mass = np.maximum(np.broadcast_to(weights, clean.shape).sum(axis=0), _TINY)
    share = 1 - (clean * weights).sum(axis=0) / mass
    mixing: Array = np.clip(share, NOISE.least_share, np.maximum(most, NOISE.least_share))
    return mixing


def marginal_law(responses: Array, mass: Array, *, counts: bool) -> Array:
    """Law of all readings with the given mass, smoothed over neighbours, at every reading, shape (m, k).

    Ties are one value: a count that many readings share has their share as its probability, whatever the neighbours hold.

    Parameters
    ----------
    responses : ndarray of shape (m, k)
        Readings.
    mass : ndarray of shape (m, 1) or (m, k)
        How much each counts.
    counts : bool
        Probabilities of whole numbers, instead of a density.
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
        above = np.concatenate((np.cumsum(w[order][::-1])[::-1], [0.0])) / max(float(w.sum()), _TINY)
        whole[at, column] = above[np.searchsorted(y[order], y[at])]
    return whole


def _average(values: Array, weights: Array) -> Array:
    """Mean over the readings that can be used, shape (k,)."""
    used = np.broadcast_to(weights > 0, values.shape)
    average: Array = (values * used).sum(axis=0) / np.maximum(used.sum(axis=0), 1)
    return average


def _smoothed(responses: Array, mass: Array, counts: bool) -> Array:
    values, places = np.unique(responses, return_inverse=True)
    own = np.bincount(places, mass, values.size)
    before = np.concatenate(([0.0], np.cumsum(own)))
    total = max(float(before[-1]), _TINY)
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
