r"""The noise model that is fitted along with a signal: an asymmetric Student law beside a share of bad samples.

A clean residual r has the density

.. math:: p(r) = \frac{2}{\sigma_- + \sigma_+}\, t_\nu\!\left(\sqrt{q}\right), \qquad q = \frac{r^2}{\sigma_\pm^2} +
\frac{v}{\sigma_- \sigma_+},

two halves of Student densities of ν degrees of freedom joined at zero, with the scale σ₋ below and σ₊ above; a bad response
has the density f, and a share π of the samples is bad. The prediction of a sample is itself uncertain, and v is its variance:
a fit follows each of its samples, so residuals are smaller than the noise, by just that much on average. A law fitted to
residuals as they are would find the noise too small and its tails too heavy.

Fitting the law instead of assuming one is what makes the last step efficient: with normal noise it weighs all clean samples
alike, with heavy tails it does better than least squares on the clean samples alone. What it needs to know of the residuals
are a few sums over the samples (:class:`Statistics`), so it is renewed in the course of a pass: scales and share by the
m-step, the tails by Fisher's scoring. Residuals come as columns, one for each signal, each with a law of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from robustphase.constants import TINY, budget, empirical, numeric

Array = NDArray[Any]


@dataclass(frozen=True)
class NoiseOptions:
    """Constants of the noise model."""

    lightest: float = numeric(1 / 60, "least inverse degrees of freedom: at 60 the tails are normal for all purposes")
    heaviest: float = empirical(1 / 2.5, "largest inverse degrees of freedom: variances that barely exist")
    most_skew: float = empirical(
        4.0, "largest ratio of the two scales: noise that ends on one side would have more, and its fit not settle"
    )
    least_share: float = numeric(
        0.002, "least share of bad samples: towards none at all expectation maximisation would go ever more slowly"
    )
    longest_tail_step: float = numeric(0.1, "longest step of the inverse degrees of freedom in Fisher's scoring")
    tiny_scale: float = numeric(1e-13, "scales below it, in units of the responses, are roundings")
    least_scale: float = numeric(
        1e-150, "scales of a classification count as at least that: its square is still a number"
    )
    largest: float = numeric(1e15, "standardised residuals beyond it count as that large: squares fit single precision")
    counts: int = budget(20, "most rounds of the classification")
    numbers: int = budget(
        1 << 13,
        "numbers of one array of an e-step at a time: a dozen of them fit a core's cache, and no memory is asked from the system",
    )
    rows: int = budget(64, "and at least so many samples")
    counted: float = numeric(1e-2, "relative change of scale and share at which a classification is over")


NOISE = NoiseOptions()


class NoiseModel(NamedTuple):
    """Noise models of k columns.

    Attributes
    ----------
    scales : ndarray of shape (k,)
        Scale of the clean residuals below zero, σ₋.
    tails : ndarray of shape (k,)
        One over the degrees of freedom, 1/ν.
    log_skews : ndarray of shape (k,)
        Logarithm of the skew σ₊/σ₋.
    mixing : ndarray of shape (k,)
        Share π of bad samples.
    """

    scales: Array
    tails: Array
    log_skews: Array
    mixing: Array

    @property
    def kind(self) -> str:
        """The same noise for every sample."""
        return "additive"

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

    @property
    def efficient_scales(self) -> Array:
        """Standard deviations of normal noise that would tell as much of a location: ``σ₋σ₊(ν + 3)/(ν + 1)`` is their square.

        Half a Student density of the scale σ has the information ``(ν + 1)/((ν + 3)σ²)``, and the halves hold shares of the
        samples in proportion to their scales.
        """
        scales: Array = self.scales * np.sqrt(self.skews * (1 + 3 * self.tails) / (1 + self.tails))
        return scales

    @property
    def steepest(self) -> Array:
        """Largest slope of the influence: at zero, on the side of the smaller scale."""
        steepest: Array = (1 + self.tails) / np.maximum(
            self.scales * np.minimum(self.skews, 1.0), NOISE.least_scale
        ) ** 2
        return steepest

    def influences(self, residuals: Array) -> tuple[Array, Array]:
        """Minus the derivative of the log-density at clean residuals (..., k), and its slope there."""
        sides = np.maximum(np.where(residuals > 0, self.skews, 1.0) * self.scales, NOISE.least_scale)
        reduced = np.clip(residuals / sides, -NOISE.largest, NOISE.largest)
        tails = reduced**2 * self.tails
        base = 1 + tails
        return (1 + self.tails) * reduced / base / sides, (1 + self.tails) * (1 - tails) / base**2 / sides**2

    def only(self, columns: Array) -> NoiseModel:
        """The models of some columns."""
        return NoiseModel(*(part[columns] for part in self))

    def density(self, residuals: Array) -> Array:
        """Density of clean residuals, shape (m, k)."""
        sides = np.maximum(np.where(residuals > 0, self.skews, 1.0) * self.scales, NOISE.tiny_scale)
        reduced = np.clip(residuals / sides, -NOISE.largest, NOISE.largest)
        value: Array = np.exp(_log_peak(self)) * (1 + reduced**2 * self.tails) ** (-(self.degrees + 1) / 2)
        return value


class Statistics(NamedTuple):
    """Sums over the samples from which a model is renewed; each of shape (k,), weighted by the covariates."""

    #: Of the weights, and of the weights times the probability to be clean.
    mass: Array
    clean: Array
    #: Of r² of clean samples, weighted by iterated least squares, below and above zero; with each half of the ``v`` of
    #: all.
    below: Array
    above: Array
    leverage: Array  # Of ``v/(σ₋σ₊)`` of clean samples, weighted by iterated least squares
    #: Of ``log(1 + q/ν)`` and ``q/(ν + q)`` of clean samples.
    logarithms: Array
    ratios: Array
    log_likelihood: Array  # Of ``log[(1 − π) p(r) + π f]``


class Expectation(NamedTuple):
    """What a model says of residuals."""

    #: (m, k): probability to be clean, and weight of r² in iterated least squares, in units of 1/σ₋².
    clean: Array
    weights: Array
    spread_weights: Array  # (m, k): weight of v, in the same units
    statistics: Statistics  # For the m-step


def initial_model(scales: Array, mixing: Array) -> NoiseModel:
    """Where a fit begins: no skew, and nearly normal tails.

    Where bad responses lie just outside the noise there are two ways to explain them, as bad or as the tail of the noise, and
    each holds on to itself. Beginning with light tails they count as bad, unless the noise has such tails all around.
    """
    return NoiseModel(scales, np.full(scales.shape, NOISE.lightest), np.zeros(scales.shape), mixing)


def e_step(residuals: Array, spreads: Array, density: Array, weights: Array, model: NoiseModel) -> Expectation:
    """Probabilities to be clean, weights of iterated least squares, and the sums of the m-step.

    Parameters
    ----------
    residuals : ndarray of shape (m, k)
        Response minus prediction.
    spreads : ndarray of shape (m, k)
        Variances v of the predictions.
    density : ndarray of shape (m, 1) or (m, k)
        Density of bad responses. Its precision is that of the e-step: in single precision logarithms are several times as
        fast, and seven digits of a doubt are enough where no rounding may be noticed.
    weights : ndarray of shape (m, 1) or (m, k)
        Weights of the covariates.
    model : NoiseModel
        The models of the columns.
    """
    law, (m, k) = prepared(model, density.dtype), residuals.shape
    clean, squares, spread_weights = (np.empty((m, k), density.dtype) for _ in range(3))
    sums = np.zeros((9, k))
    step = max(NOISE.numbers // max(k, 1), NOISE.rows)
    for low in range(0, m, step):
        part = slice(low, low + step)
        seen = expected(residuals[part], spreads[part], density[part], weights[part], law)
        clean[part], squares[part], spread_weights[part] = seen.clean, seen.weights, seen.spread_weights
        sums += seen.sums
    return Expectation(clean, squares, spread_weights, statistics_of(model, sums))


class Prepared(NamedTuple):
    """What an e-step has to know of k models, computed once for all blocks of a pass."""

    #: (k,): σ₋ and ``σ₋σ₊``.
    scales: Array
    variances: Array
    #: (k,): 1/ν, ``1 + 1/ν``, ``−(ν + 1)/2``, the logarithm of ``(1 − π) p(0)``, π, ``(σ₋/σ₊)²`` and ``σ₊/σ₋``, all of
    #: the precision of the e-step.
    tails: Array
    factors: Array
    exponents: Array
    log_peaks: Array
    mixing: Array
    stretches: Array
    skews: Array


def prepared(model: NoiseModel, precision: np.dtype[Any]) -> Prepared:
    """The models for e-steps of this precision."""
    degrees, skews, scales = model.degrees, model.skews, np.maximum(model.scales, NOISE.tiny_scale)
    rounded = (
        model.tails,
        1 + model.tails,
        -(degrees + 1) / 2,
        _log_peak(model) + np.log(1 - model.mixing),
        model.mixing,
        skews**-2,
        skews,
    )
    return Prepared(scales, scales**2 * skews, *(part.astype(precision) for part in rounded))


class Expected(NamedTuple):
    """What models say of some of the residuals: as in :class:`Expectation`, with sums (9, k) that :func:`statistics_of` reads."""

    clean: Array
    weights: Array
    spread_weights: Array
    sums: Array


def expected(residuals: Array, spreads: Array, density: Array, weights: Array, model: Prepared) -> Expected:
    """The e-step of a block; parameters as in :func:`e_step`."""
    precision = density.dtype
    # Few operations, and in place: with one column a block is so small that each of them costs more than its arithmetic.
    positive = residuals > 0
    stretch = np.where(positive, model.stretches, precision.type(1))
    # What single precision cannot hold is infinite until it is clipped.
    with np.errstate(over="ignore"):
        base = (residuals / model.scales).astype(precision, copy=False)
    np.clip(base, -NOISE.largest, NOISE.largest, out=base)
    base *= base
    base *= stretch
    leverages = np.minimum(spreads / model.variances, NOISE.largest).astype(precision, copy=False)
    base += leverages
    base *= model.tails
    base += 1
    logarithms = np.log(base)
    likely = logarithms * model.exponents
    likely += model.log_peaks
    np.exp(likely, out=likely)
    mixture = density * model.mixing
    mixture += likely
    clean = np.divide(likely, mixture, out=likely)
    np.log(mixture, out=mixture)
    counted = weights * clean
    # u = (ν + 1)/(ν + q) is (1 + 1/ν) over the base; the stretch above zero divides the weights as it did the squares.
    shrunk = clean / base
    np.divide(counted, base, out=base)
    sums = np.empty((9, clean.shape[1]))
    _sum_into(sums[0], weights)
    _sum_into(sums[1], counted)
    _sum_into(sums[2], counted * positive)
    _sum_into(sums[3], base)
    _sum_into(sums[4], base * positive)
    base *= leverages
    _sum_into(sums[5], base)
    base *= positive
    _sum_into(sums[6], base)
    logarithms *= counted
    _sum_into(sums[7], logarithms)
    mixture *= weights
    _sum_into(sums[8], mixture)
    shrunk *= model.factors
    stretch *= shrunk
    shrunk /= model.skews
    return Expected(clean, stretch, shrunk, sums)


def statistics_of(model: NoiseModel, sums: Array) -> Statistics:
    """The statistics that sums of :class:`Expected`, added over the blocks, amount to."""
    skews, scales = model.skews, np.maximum(model.scales, NOISE.tiny_scale)
    mass, total, above, kept, kept_above, held, held_above, logarithms, log_likelihood = sums
    # Leverages have no sign, so either scale gets half of them; the differences below gave them to the side of the residual.
    leverage = (1 + model.tails) * held
    excess = scales**2 * ((1 + model.tails) * held_above - leverage / 2)
    spread = (model.degrees + 1) * scales**2
    return Statistics(
        mass,
        total,
        spread * ((total - above) - (kept - kept_above)) + excess,
        skews**2 * (spread * (above - kept_above) - excess),
        leverage,
        logarithms,
        total - kept,
        log_likelihood,
    )


def m_step(model: NoiseModel, statistics: Statistics, most: Array) -> NoiseModel:
    """The model that the sums ask for.

    The scales solve ``N/(σ₋ + σ₊) = S₋/σ₋³ = S₊/σ₊³`` for the two halves of the density.

    Parameters
    ----------
    model : NoiseModel
        Model of the e-step.
    statistics : Statistics
        What it summed.
    most : ndarray of shape (1,) or (k,)
        Largest share of bad samples.
    """
    clean = np.maximum(statistics.clean, TINY)
    below, above = np.maximum(statistics.below, TINY), np.maximum(statistics.above, TINY)
    limit = np.log(NOISE.most_skew)
    log_skews = np.clip((np.log(above) - np.log(below)) / 3, -limit, limit)
    # With a skew held at its bound, the scale is still the best for it.
    scales = np.sqrt((below + above / np.exp(2 * log_skews)) / clean)
    mixing = np.clip(1 - statistics.clean / statistics.mass, NOISE.least_share, np.maximum(most, NOISE.least_share))
    return NoiseModel(np.maximum(scales, NOISE.tiny_scale), _scored_tails(model, statistics), log_skews, mixing)


def classify(
    residuals: Array, spreads: Array, density: Array, weights: Array, model: NoiseModel, most: Array
) -> tuple[Array, NoiseModel]:
    """Probabilities to be clean, (m, k), under the model whose share of bad samples is their number, and that model.

    Bad responses may look ordinary, so a fit takes every clean sample for a little bit bad, and the average of these doubts
    feeds on itself. That is cautious for an estimate, and too much for a report; here only samples count that are more likely
    bad than clean. Parameters as in :func:`e_step` and :func:`m_step`.
    """
    # In units of the scale, because single precision, with which many columns have to do, has no room for all units.
    precision = np.float64 if residuals.shape[1] == 1 else np.float32
    # Of responses that are all alike the scale may vanish.
    model = model._replace(scales=np.maximum(model.scales, NOISE.least_scale))
    units = model.scales
    with np.errstate(over="ignore"):
        residuals = (residuals / model.scales).astype(precision)
        spreads = (spreads / model.scales**2).astype(precision)
    density, weights = (density * model.scales).astype(precision), weights.astype(precision)
    model = model._replace(scales=np.ones_like(model.scales))
    seen = e_step(residuals, spreads, density, weights, model)
    counting = np.ones(model.mixing.shape, bool)
    for _ in range(NOISE.counts):
        bad = column_sums(weights * (seen.clean < 0.5)) / column_sums(weights)
        bad = np.clip(bad, NOISE.least_share, np.maximum(most, NOISE.least_share))
        renewed = m_step(model, seen.statistics, most)._replace(mixing=bad)
        # A column whose count is over keeps its model: its result must not depend on its company.
        last, model = (
            model,
            NoiseModel(*(np.where(counting, new, old) for new, old in zip(renewed, model, strict=True))),
        )
        seen = e_step(residuals, spreads, density, weights, model)
        change = np.maximum(np.abs(model.scales / last.scales - 1), np.abs(model.mixing / last.mixing - 1))
        counting &= change > NOISE.counted
        if not counting.any():
            break
    return seen.clean.astype(np.float64), model._replace(scales=units * model.scales)


def _log_peak(model: NoiseModel) -> Array:
    """Logarithm of the density of a clean residual of zero."""
    degrees, scales = model.degrees, np.maximum(model.scales, NOISE.tiny_scale)
    student = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
    peak: Array = student + np.log(2 / (1 + model.skews) / scales)
    return peak


def _scored_tails(model: NoiseModel, statistics: Statistics) -> Array:
    """Fisher's scoring for η = 1/ν, where the information stays finite as the tails become normal."""
    clean = np.maximum(statistics.clean, TINY)
    nu = model.degrees
    score = 0.5 * (digamma((nu + 1) / 2) - digamma(nu / 2) - 1 / nu)
    score += 0.5 * ((nu + 1) / nu * statistics.ratios - statistics.logarithms) / clean
    information = 0.25 * (polygamma(1, nu / 2) - polygamma(1, (nu + 1) / 2)) - 0.5 * (nu + 5) / (
        nu * (nu + 1) * (nu + 3)
    )
    longest = NOISE.longest_tail_step
    step = np.clip(-score / (nu**2 * information), -longest, longest)
    tails: Array = np.clip(model.tails + step, NOISE.lightest, NOISE.heaviest)
    return tails


def _sum_into(total: Array, values: Array) -> None:
    """The sums of the columns of values (m, k), or of one for all, put into ``total`` (k,)."""
    total[:] = column_sums(values)


def column_sums(values: Array) -> Array:
    """The sums of the columns of values (m, k), in double precision, shape (k,)."""
    # A sum along the first axis is made row by row, and takes three times as long where rows are short.
    sums: Array = np.einsum("mk->k", values, dtype=np.float64)
    return sums


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
