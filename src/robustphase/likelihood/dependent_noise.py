"""The two laws of noise that depends on the signal: counts, and a variance curve.

Counts: a reading y with the mean μ has ``P(y) = μ^y exp(−μ)/y!`` for whole numbers y ≥ 0. The unknown background b is the dark
count. The score is ``(y − μ)/μ``, the information ``1/μ``.

Noise with a variance curve: ``y = μ + τ (z − E z)`` with ``τ² = c₀ + c₁ e + c₂ e²`` of the energy ``e = |aᴴx|²``. The parts are
read noise and whatever a background adds, shot noise, and multiplicative noise; z has the asymmetric Student law of
:mod:`robustphase.likelihood.noise_model`. The energies in τ are held while signals move and renewed where they arrived, as in
quasi-likelihood: what the fit says of the mean then rests on the mean alone, whatever the law.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, gammainc, gammaln, stdtr, xlogy

from robustphase.constants import TINY
from robustphase.likelihood.laws import (
    LAWS,
    CurvedNoise,
    Judged,
    Readings,
    average_usable,
    mixture,
    mixture_slopes,
    renewed_mixing,
)
from robustphase.likelihood.noise_model import NOISE, NoiseModel, e_step, law_mean, law_variance, m_step

Array = NDArray[Any]


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
            hazard = np.exp(xlogy(whole - 1, means) - means - gammaln(level)) * (whole > 0) / np.maximum(tail, TINY)
            # Far below the threshold both vanish, and the expected reading is just above it.
            hazard = np.where(tail > 1e-280, hazard, whole / means)
            residuals = np.where(readings.censored, means * hazard, residuals)
            logs = np.where(readings.censored, np.log(np.maximum(tail, TINY)), logs)
        clean, total = mixture(logs, self.mixing, readings)
        return Judged(clean, clean * readings.weights / means, residuals, total)

    def slopes(self, judged: Judged, readings: Readings, means: Array) -> Array:
        """Minus the derivative of the score of the mixture by the mean, with the expected one of the law."""
        return mixture_slopes(judged)

    def as_model(self, energies: Array, backgrounds: Array, readings: Readings) -> CurvedNoise:
        """What is reported."""
        zeros = np.zeros(self.mixing.size)
        scales = np.sqrt(average_usable(energies, readings.weights) + backgrounds)
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


#: Standardised residuals beyond it count as that large: exp(a²/2) is still a number.
LARGEST = 35.0


class VarianceLaw(NamedTuple):
    """Noise with a variance curve."""

    noise: NoiseModel  # Law of the standardised residuals, of scale one
    curve: Array  # (3, k): c₀, c₁ and c₂
    energies: Array  # (m, k): energies in τ, where they were last held

    @property
    def mixing(self) -> Array:
        """Share of bad readings."""
        return self.noise.mixing

    @property
    def spreads(self) -> Array:
        """τ²."""
        c, e = self.curve, self.energies
        spreads = c[0] + (c[1] + c[2] * e) * e
        bounded: Array = np.maximum(spreads, np.maximum(LAWS.least_variance * spreads.mean(axis=0), TINY))
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
            total = total + added - (there.weights * np.log(np.maximum(before, TINY))).sum(axis=0)
            # Of all weights that a reading can have the largest: its score rises by no more.
            full = (1 + noise.tails) / (spreads * np.minimum(1.0, noise.skews**2))
            clean = np.where(readings.censored, surely, clean)
            weights = np.where(readings.censored, surely * full, weights)
            residuals = np.where(readings.censored, density / np.maximum(tail, TINY) / full, residuals)
        return Judged(clean, weights * readings.weights, residuals, total)

    def slopes(self, judged: Judged, readings: Readings, means: Array) -> Array:
        """Minus the derivative of the score of the mixture by the mean: a residual that grows loses weight."""
        deviations = self.deviations(readings, means)
        # u r²/τ², the weight of the Student law times the squared residual.
        squares = judged.weights / np.maximum(judged.clean * readings.weights, TINY) * deviations**2
        lost = 2 / (1 + self.noise.degrees) * squares
        if readings.censored is not None:
            lost = np.where(readings.censored, 0.0, lost)
        slopes: Array = mixture_slopes(judged) - judged.weights * lost
        return slopes

    def as_model(self, energies: Array, backgrounds: Array, readings: Readings) -> CurvedNoise:
        """What is reported."""
        noise, width = self.noise, law_variance(self.noise)
        scales = np.sqrt(width * average_usable(self.held(energies).spreads, readings.weights))
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


def fitted_curve(curve: Array, squares: Array, masses: Array, energies: Array) -> Array:
    """The variance curve that lowers ``Σ w [log τ² + u r²/τ²]``, by multiplicative updates that keep its parts positive.

    It begins at ``curve`` (3, k); ``squares`` and ``masses`` (m, k) are ``w u r²`` and w.
    """
    powers = (np.ones_like(energies), energies, energies**2)
    for _ in range(LAWS.variance_rounds):
        spreads = curve[0] + (curve[1] + curve[2] * energies) * energies
        inverse = 1 / np.maximum(spreads, np.maximum(LAWS.least_variance * spreads.mean(axis=0), TINY))
        ratios = [
            (power * squares * inverse**2).sum(axis=0) / np.maximum((power * masses * inverse).sum(axis=0), TINY)
            for power in powers
        ]
        curve = curve * np.sqrt(np.stack(ratios))
    return curve


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
