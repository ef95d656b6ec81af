"""Constants of a model check: what its figures rest on, and their limits, what chance and harmless imperfections explain."""

from __future__ import annotations

import math
from dataclasses import dataclass

from robustphase.constants import budget, derived, empirical, numeric


@dataclass(frozen=True)
class FigureOptions:
    """Constants of the figures."""

    clip: float = empirical(3.0, "residuals count up to so many robust standard deviations: tails decide nothing")
    bins: int = budget(12, "bins of the prediction along which the responses are followed")
    fewest: int = budget(8, "fewest samples of a bin")
    rows: int = derived(
        3000, "fewest rows: half of two thirds of them show a share of 0.02 with 4.5 standard deviations"
    )
    rows_per_unknown: float = empirical(8.0, "fewest rows for every real unknown: a direction is found in half of them")
    rows_share: float = budget(0.125, "rows that are taken over all of them, where memory has room for so many")
    numbers: int = budget(1 << 24, "numbers in the rows that are taken")
    depth: int = budget(4, "steps of Lanczos' method for directions in the residuals of rows in memory")
    passes: int = budget(2, "steps of it for rows that are swept")
    swept_signals: int = budget(8, "most signals for which directions are sought where rows are swept")
    least_spread: float = empirical(
        0.3, "least scale of a bin in units of that of all: a few samples may agree by chance"
    )
    huber: float = derived(
        1.5,
        "robust standard deviations up to which the residuals of a bin count: 0.96 of the information of normal ones",
    )
    least_ratio: float = numeric(1e-3, "least response over its prediction, where logarithms of such ratios are taken")
    loose: float = empirical(0.4, "least curvature over that of normal rows below which other entries are tried")
    sparse: float = empirical(5.0, "kurtosis of the entries from which on they are tried as well: many are zero")
    crowded: float = empirical(
        10.0,
        "times as many equal responses as is usual make a value that no noise has: levels of a camera differ by less",
    )
    uniform_kurtosis: float = derived(1.8, "kurtosis of a uniform law, below which values have no tails but peaks")
    powers: int = budget(45, "exponents that are tried")


FIGURES = FigureOptions()


@dataclass(frozen=True)
class CheckOptions:
    """Constants of the checks."""

    deviations: float = derived(3.9, "standard deviations that chance exceeds to either side in one fit of 10⁴")
    evidence: float = derived(20.0, "gain in squared deviations that one more parameter exceeds in one fit of 10⁵")
    hint: float = derived(12.0, "the same exceeded in one fit of 2000: then nothing is certified")
    exact: float = numeric(
        1e-12, "unexplained share of the variance below which residuals are roundings, and say nothing"
    )
    flagged_more: float = empirical(0.07, "share of flagged samples above the stated level that heavy tails explain")
    flagged_share: float = empirical(
        0.2, "and this part of the stated level: bad samples take clean neighbours with them"
    )
    flagged_few: float = empirical(0.3, "and this for every unknown per sample")
    flagged_auto: float = empirical(0.39, "share of flagged samples beyond which a found level is not believed")
    correlation: float = empirical(0.05, "rank correlation with held-out predictions below which nothing is explained")
    capacity: float = empirical(2.5, "what a fit explains of unrelated responses, for every unknown per sample")
    most_capacity: float = empirical(0.45, "and at most")
    rough_capacity: float = empirical(
        2.0, "times as much at most, in proportion to the noise over the responses themselves where both are large"
    )
    selection: float = empirical(1.5, "what flagging a share of the samples adds to the correlation of the others")
    few_real: float = derived(2.0, "samples per unknown below which real signals are not unique (2n − 1)")
    few_complex: float = derived(
        3.0, "samples per complex unknown: below, no method finds the signal even without noise"
    )
    noisy: float = derived(
        0.25, "expected relative error from noise alone from which on an answer counts as wrong, as of its length"
    )
    by_squares: float = empirical(
        1.5, "error of a part of no length behind real rows, over the root of the error of a part as long as the other"
    )
    low_power: float = empirical(0.85, "exponents below it are not rounding: magnitudes have 0.5, logarithms less")
    high_power: float = empirical(1.3, "exponents above it: squared responses have 2")
    near_power: float = empirical(0.08, "logarithm of an exponent that no certificate covers")
    dependence: float = empirical(
        0.02, "share of the residuals' variance explained by one direction that harms the answer"
    )
    length: float = derived(
        0.25,
        "relative error of the norm, half that of the slope of the responses, from which on an answer counts as wrong",
    )
    background: float = empirical(
        0.35, "mean residual over the energy of the signal that is no accident of skewed noise"
    )
    background_noise: float = empirical(0.4, "and over the scale of the noise")
    left_over: float = empirical(
        0.15, "mean residual over the energy of the signal, where residuals are also rough and grow with it"
    )
    left_over_rough: float = empirical(0.2, "scale of the noise over the responses themselves, where both are large")
    left_over_uneven: float = empirical(1.25, "ratio of residuals between large and small predictions")
    background_unexplained: float = empirical(
        0.3, "unexplained share of the variance with which it is more than a constant"
    )
    missed_noise: float = empirical(
        0.3,
        "mean residual over the scale of the noise that no adversary leaves, and that may be signal which was missed",
    )
    blind: float = empirical(
        0.06, "expected error from noise alone above which directions in the residuals show little of what was missed"
    )
    missed_width: float = empirical(
        2.5,
        "interference of that signal with the answer over the scale of the residuals: what is narrower is a constant",
    )
    few_flags: float = empirical(
        0.05, "share of flagged samples, or of equal counts, up to which nothing is sought in them"
    )
    many_flags: float = empirical(
        0.12, "share of flagged samples that counts as more than may be bad where no level was stated"
    )
    rival: float = empirical(0.02, "share of the samples that a rival may explain above the stated contamination")
    rival_auto: float = derived(0.35, "the level where none was stated: the most that is assumed")
    rival_mixed: float = empirical(
        0.22, "share of a rival in every kind of samples, where no level was stated, that is no accident"
    )
    rival_least: float = empirical(0.12, "and share of all samples that it must be seen to explain")
    turn_hint: float = derived(
        2.5, "standard deviations that one fit of 160 exceeds: enough where the noise grows with the signal as well"
    )
    turn: float = empirical(
        0.1, "difference of the signals behind either half of the rows, over the norm, that matters"
    )
    uneven: float = empirical(1.5, "ratio of noise between large and small predictions that costs accuracy")
    rough: float = empirical(
        0.35, "scale of the noise over the responses themselves, where both are large, that is too much"
    )
    follow_missing: float = empirical(
        0.3,
        "flagged share of the largest third of the predictions from which on it is asked whether responses follow them",
    )
    least_left: float = numeric(0.1, "least share of a third of the samples that its scale is made up from")
    trend: float = empirical(0.1, "correlation along the rows that is worth a look")
    strong_trend: float = empirical(0.3, "and one that spoils the answer: a tenth of the variance of the residuals")
    scale: float = empirical(
        0.1, "relative deviation of the mean square of an entry from one that matters to the certificate"
    )
    shift: float = empirical(
        0.02, "squared length of the mean row, relative to that of a row, that matters to the certificate"
    )
    spread: float = empirical(
        0.05, "relative variance of the eigenvalues of the rows' covariance that matters to the certificate"
    )
    wide: float = empirical(1.2, "the same beyond which also the answer suffers: a condition number of about a hundred")
    curvature: float = empirical(0.4, "least curvature over that of the assumed design that chance does not fall below")
    flat: float = empirical(0.05, "least curvature below which other signals fit as well")
    variety: float = derived(
        0.5,
        "numbers that rows must tell apart, over 2n for real and 4n for complex ones, which is what signals need: a lower bound "
        "of their rank may lie below it by this factor",
    )
    variety_fewest: int = derived(8, "unknowns from which on normal rows have twice what they need")
    skew_error: float = empirical(
        3.5, "standard deviation of the logarithm of a fitted skew of symmetric noise, times the root of the samples"
    )
    sampling: float = empirical(2.0, "standard errors of the signal that a certificate covers at least")


CHECKS = CheckOptions()


def scale_by_chance(samples: int, deviations: float) -> float:
    """Robust scale of a third of so many samples so many standard deviations of chance above one.

    The logarithm of a robust scale of k normal variables has the standard deviation 1.17/sqrt(2k).
    """
    return math.exp(deviations * 1.17 * math.sqrt(1.5 / max(samples, 1)))


def scale_ratio_by_chance(samples: int, deviations: float) -> float:
    """The same of the ratio of the scales of two thirds."""
    return scale_by_chance(samples, math.sqrt(2) * deviations)


def largest_shift(n: int, rows: int) -> float:
    """Squared length of the mean of so many rows of length n, relative to that of a row, up to which they count as centred."""
    return max(CHECKS.shift, (1 + CHECKS.deviations * math.sqrt(2 / n)) / max(rows, 1) * 2)
