"""The law of clean residuals: a Student density with its own scale, tails and skew, beside a share of bad ones.

Fitting the law instead of assuming one is what makes the last step efficient: with normal noise it weighs all clean samples
alike, with heavy tails it does better than least squares on the clean samples alone.

Residuals come as columns, one for each candidate or signal, each with a law of its own. What a law needs to know of the
residuals are a few sums over the samples (:class:`Tally`), so it is renewed in the course of a pass: scale, skew and share
by expectation-maximisation, the tails by Fisher's scoring.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from robustphase.likelihood.types import Array

#: Bounds of the inverse degrees of freedom: from nearly normal tails to variances that barely exist.
LIGHTEST, HEAVIEST = 1 / 60, 1 / 2.5
#: Largest logarithm of the skew.
MOST_SKEW = float(np.log(4.0))
#: Longest step of the inverse degrees of freedom.
LONGEST_STEP = 0.1
#: Least share of bad samples: a mixture without any would trust every sample.
LEAST = 0.002
#: Smallest scale, in units of the responses: below it residuals are roundings.
TINY_SCALE = 1e-13
#: Most rounds of counting bad samples, and the relative change of scale and share at which the count is over.
COUNTS, COUNTED = 20, 1e-2
#: Standardised residuals and leverages beyond this are this large: their squares still fit into single precision.
LARGEST = 1e15
_TINY = float(np.finfo(np.float64).tiny)


class NoiseLaw(NamedTuple):
    """Laws of the residuals of k columns: two halves of Student densities, of different width, joined at zero.

    Attributes
    ----------
    scales : ndarray of shape (k,)
        Scale of the clean residuals below zero.
    tails : ndarray of shape (k,)
        One over the degrees of freedom.
    tilts : ndarray of shape (k,)
        Logarithm of the skew, the scale above zero over the scale below.
    shares : ndarray of shape (k,)
        Share of bad samples.
    """

    scales: Array
    tails: Array
    tilts: Array
    shares: Array

    @property
    def degrees(self) -> Array:
        """Degrees of freedom."""
        degrees: Array = 1 / self.tails
        return degrees

    @property
    def skews(self) -> Array:
        """Scale above zero over scale below."""
        skews: Array = np.exp(self.tilts)
        return skews

    def only(self, columns: Array) -> NoiseLaw:
        """The laws of some columns."""
        return NoiseLaw(*(part[columns] for part in self))


class Tally(NamedTuple):
    """Sums over the samples from which a law is renewed; each of shape (k,), weighted by the covariates.

    Attributes
    ----------
    mass, clean : ndarray
        Of the weights, and of the weights times the probability to be clean.
    below, above : ndarray
        Of clean residuals squared, weighted by iterated least squares (without the skew), below and above zero; half of the
        leverages with either.
    logarithms, ratios : ndarray
        Of ``log(1 + q/ν)`` and ``q/(ν + q)`` with q the squared standardised clean residual.
    """

    mass: Array
    clean: Array
    below: Array
    above: Array
    logarithms: Array
    ratios: Array


class Judged(NamedTuple):
    """What a law says of residuals.

    Attributes
    ----------
    clean, weights : ndarray of shape (m, k)
        Probability to be clean, and weight in iterated least squares.
    tally : Tally
        For the next law.
    """

    clean: Array
    weights: Array
    tally: Tally


def cautious_law(scales: Array, shares: Array) -> NoiseLaw:
    """Where a fit begins: no skew, and nearly normal tails.

    Where bad responses lie just outside the noise there are two ways to explain them, as bad or as the tail of the noise, and
    each holds on to itself. Beginning with light tails they count as bad, unless the noise has such tails all around.
    """
    return NoiseLaw(scales, np.full(scales.shape, LIGHTEST), np.zeros(scales.shape), shares)


def judge(residuals: Array, density: Array, law: NoiseLaw, weights: Array, leverages: Array) -> Judged:
    """The step of expectation.

    Parameters
    ----------
    residuals : ndarray of shape (m, k)
        Response minus prediction.
    density : ndarray of shape (m, 1) or (m, k)
        Density of bad responses. Its precision is that of the judgement: in single precision logarithms are several times
        as fast, and seven digits of a doubt are enough where no rounding may be noticed.
    law : NoiseLaw
        The laws of the columns.
    weights : ndarray of shape (m, 1) or (m, k)
        Weights of the covariates.
    leverages : ndarray of shape (m, k)
        Variance of the predictions, in units of the product of the two scales: squared residuals count as that much larger.
    """
    degrees, skews, scales = law.degrees, law.skews, np.maximum(law.scales, TINY_SCALE)
    log_peak = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
    log_factor = log_peak + np.log((1 - law.shares) * 2 / (1 + skews) / scales)
    precision = density.dtype
    # Few operations, and in place: with one column a block is so small that each of them costs more than its arithmetic.
    positive = residuals > 0
    stretch = np.where(positive, skews**-2, 1.0).astype(precision, copy=False)
    # What single precision cannot hold is infinite until it is clipped.
    with np.errstate(over="ignore"):
        base = (residuals / scales).astype(precision, copy=False)
    np.clip(base, -LARGEST, LARGEST, out=base)
    base *= base
    base *= stretch
    leverages = np.minimum(leverages, LARGEST).astype(precision, copy=False)
    base += leverages
    base *= law.tails.astype(precision)
    base += 1
    logarithms = np.log(base)
    likely = logarithms * (-(degrees + 1) / 2).astype(precision)
    likely += log_factor.astype(precision)
    np.exp(likely, out=likely)
    clean = density * law.shares.astype(precision)
    clean += likely
    np.divide(likely, clean, out=clean)
    counted = weights * clean
    # u = (ν + 1)/(ν + q) is (1 + 1/ν) over the base; the stretch above zero divides the weights as it did the squares.
    shrunk = clean / base
    np.divide(counted, base, out=base)
    total, kept = _sums(counted), _sums(base)
    above, kept_above = _sums(counted * positive), _sums(base * positive)
    # Leverages have no sign, so either side gets half of them; the differences below gave them to the side of the residual.
    base *= leverages
    excess = (1 + law.tails) * scales**2 * (_sums(base * positive) - _sums(base) / 2)
    shrunk *= stretch
    shrunk *= (1 + law.tails).astype(precision)
    spread = (degrees + 1) * scales**2
    tally = Tally(
        np.broadcast_to(_sums(weights), total.shape),
        total,
        spread * ((total - above) - (kept - kept_above)) + excess,
        skews**2 * (spread * (above - kept_above) - excess),
        _sums(counted * logarithms),
        total - kept,
    )
    return Judged(clean, shrunk, tally)


def _sums(values: Array) -> Array:
    sums: Array = values.sum(axis=0, dtype=np.float64)
    return sums


def renew(law: NoiseLaw, tally: Tally, most: float) -> NoiseLaw:
    """The step of maximisation.

    Scale and skew solve ``N/(σ₋ + σ₊) = S₋/σ₋³ = S₊/σ₊³`` for the two halves of the density.

    Parameters
    ----------
    law : NoiseLaw
        Law with which the residuals were judged.
    tally : Tally
        What they came to.
    most : float
        Largest share of bad samples.
    """
    clean = np.maximum(tally.clean, _TINY)
    below, above = np.maximum(tally.below, _TINY), np.maximum(tally.above, _TINY)
    tilts = np.clip((np.log(above) - np.log(below)) / 3, -MOST_SKEW, MOST_SKEW)
    skews = np.exp(tilts)
    # With a skew held at its bound, the scale is still the best for it.
    scales = np.sqrt((below + above / skews**2) / clean)
    shares = np.clip(1 - tally.clean / np.maximum(tally.mass, _TINY), LEAST, max(most, LEAST))
    return NoiseLaw(np.maximum(scales, TINY_SCALE), _scored_tails(law, tally), tilts, shares)


def _scored_tails(law: NoiseLaw, tally: Tally) -> Array:
    """Fisher's scoring for η = 1/ν, where the information stays finite as the tails become normal."""
    clean = np.maximum(tally.clean, _TINY)
    nu = law.degrees
    score = 0.5 * (digamma((nu + 1) / 2) - digamma(nu / 2) - 1 / nu)
    score += 0.5 * ((nu + 1) / nu * tally.ratios - tally.logarithms) / clean
    information = 0.25 * (polygamma(1, nu / 2) - polygamma(1, (nu + 1) / 2)) - 0.5 * (nu + 5) / (
        nu * (nu + 1) * (nu + 3)
    )
    step = np.clip(-score / (nu**2 * information), -LONGEST_STEP, LONGEST_STEP)
    tails: Array = np.clip(law.tails + step, LIGHTEST, HEAVIEST)
    return tails


def count_bad(residuals: Array, density: Array, weights: Array, leverages: Array, law: NoiseLaw, most: float) -> Array:
    """Probabilities to be clean, (m, k), under the law whose share of bad samples is their count: more likely bad than clean.

    Bad responses may look ordinary, so a fit takes every clean sample for a little bit bad, and the average of these doubts
    feeds on itself. That is cautious for an estimate, and too much for a report.

    Parameters
    ----------
    residuals : ndarray of shape (m, k)
        Residuals of k signals.
    density : ndarray of shape (m, 1) or (m, k)
        Density of bad responses.
    weights : ndarray of shape (m, 1) or (m, k)
        Weights of the covariates.
    leverages : ndarray of shape (m, k)
        Variance of the predictions, in units of the product of the two scales.
    law : NoiseLaw
        Where to start.
    most : float
        Largest share of bad samples.
    """
    # In units of the scale, because single precision, with which many columns have to do, has no room for all units.
    precision = np.float64 if residuals.shape[1] == 1 else np.float32
    with np.errstate(over="ignore"):
        residuals = (residuals / law.scales).astype(precision)
        leverages = leverages.astype(precision)
    density = (density * law.scales).astype(precision)
    weights = weights.astype(precision)
    law = law._replace(scales=np.ones_like(law.scales))
    judged = judge(residuals, density, law, weights, leverages)
    counting = np.ones(law.shares.shape, bool)
    for _ in range(COUNTS):
        bad = np.clip(_sums(weights * (judged.clean < 0.5)) / _sums(weights), LEAST, max(most, LEAST))
        renewed = renew(law, judged.tally, most)._replace(shares=bad)
        # A column whose count is over keeps its law: its result must not depend on its company.
        last, law = law, NoiseLaw(*(np.where(counting, new, old) for new, old in zip(renewed, law, strict=True)))
        judged = judge(residuals, density, law, weights, leverages)
        counting &= np.maximum(np.abs(law.scales / last.scales - 1), np.abs(law.shares / last.shares - 1)) > COUNTED
        if not counting.any():
            break
    return judged.clean.astype(np.float64)
