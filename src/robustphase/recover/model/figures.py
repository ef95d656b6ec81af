"""Figures that tell whether a fit believes in the right model.

A fit follows its own samples, and with few of them it follows anything; so what can be is measured on samples that the
measured thing has not seen. Residuals are clipped, so that heavy tails decide nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.recover.model.design import Design, design_of, first_pass, mostly
from robustphase.recover.model.determinacy import random_directions
from robustphase.recover.model.directions import changes, dependence, strongest_directions
from robustphase.recover.model.held_out import last_pass, without_half
from robustphase.recover.model.limits import CHECKS, FIGURES
from robustphase.recover.model.power import power_of
from robustphase.recover.model.residuals import (
    clip,
    correlation,
    correlations,
    crowded_counts,
    crowded_share,
    followed,
    in_order,
    in_thirds,
    located,
    missing_shares,
    order_of,
    ordered,
    rank_correlation,
    roughness,
    slope_along,
    unevenness,
    unexplained_share,
    weighed_noise,
    without_tails,
)
from robustphase.recover.model.rival_signal import Least, Rival, find_rival
from robustphase.recover.model.samples import FittedSamples, Part, taken
from robustphase.recover.model.single_entries import single_entry_gain
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


class Figures(NamedTuple):
    """What was measured of one signal.

    Attributes
    ----------
    samples, kept, unknowns : int
        Samples that could be used, samples that are kept, and real unknowns.
    flagged : float
        Share of the usable samples that are not kept.
    checked : int
        Kept samples that the other figures rest on.
    energy, scale : float
        Squared norm of the signal (mean prediction, for a linear operator), and robust standard deviation of the kept residuals.
    correlation : float
        Rank correlation of the responses with predictions from the other half, over all samples with good covariates.
    kept_correlation : float
        The same over the samples that are kept.
    unexplained : float
        Variance of the kept residuals over that of the kept responses.
    power, power_evidence : float
        Exponent q of ``y ≈ b + c (|a·x|²)^q`` along bins of the prediction, and by how much it fits better than 1, in units of
        the variance of a bin.
    noise : float
        Root mean square of the kept residuals as the gradient weighs them, by the prediction; clipped.
    uneven, rough : float
        Scale of the residuals in the upper third of the predictions over that in the lower third, and over the median prediction
        of the upper third.
    dependence, dependence_evidence : float
        Share of the variance of the residuals that one direction of the covariates explains, judged on the other half, and the
        number of standard deviations that it lies above chance.
    linear, linear_evidence : float
        Share of the variance of the residuals that is linear in the covariates, beyond chance, and the number of standard
        deviations that it lies above chance.
    slope, slope_error : float
        Slope of the kept responses along the predictions, which is one, and its standard error.
    background : float
        Mean of the kept residuals ``y − |a·x|²``, as far as they are clipped.
    neighbours, drift, gain : float
        Correlation of residuals with those of the next row, with the number of the row, and with prediction times that number.
    turn, turn_evidence : float
        How far apart the signals behind the first and the last half of the rows are, relative to the norm, beyond chance, and the
        number of standard deviations that it lies above chance.
    rival, rival_everywhere : float
        Share of the samples that another signal explains instead, of all, and of every kind of samples that tells it from the
        answer; sought where more samples are flagged than are expected.
    second_gain, at_second_gain : float
        Another gain at which the answer explains flagged samples, and the share of every kind of samples that it explains at
        least; sought where more than a few samples are flagged.
    entry : float
        Standard deviations of chance by which the answer with another value of one entry explains more samples; sought where the
        rows hold the signal loosely.
    crowded : float
        Share of the samples with one and the same response, where rows and noise do not explain that; of counts, how much more
        than their law explains.
    missing, missing_low, missing_high : float
        Share of the samples with good covariates that are not kept, of all and of the lower and upper third of the predictions.
    growth : float
        The same as ``uneven`` for residuals as they are, where ``uneven`` is about what the noise model leaves; one for counts.
    missed : float
        Share of the votes that the answer misses against other signals, beyond what contamination takes from the truth; NaN where
        the samples were not asked.
    follow, flagged_spread : float
        Standard deviations that the rank correlation of flagged responses with held-out predictions lies above chance, and half
        the range of the middle 68% of the logarithms of the larger ones over their predictions.
    efficient : float
        Standard deviation of even noise that would leave as much information; NaN where the noise does not depend on the signal.
    law, skew : float
        Standard deviation of normal noise that would leave as much information as the fitted law of even noise does, and the
        ratio of the scales of this law above and below zero; NaN and one where the noise depends on the signal.
    stretch : float
        How many times larger a typical error is, relative to the signal, behind the rows as they were given: directions of the
        signal that hardly show in them are known worst.
    balance : float
        The same for a complex signal behind real rows, whose real and imaginary parts are unequally long in the phase that makes
        them so: each is seen by its own length.
    """

    samples: int
    kept: int
    unknowns: int
    flagged: float
    checked: int
    energy: float
    scale: float
    correlation: float
    kept_correlation: float
    unexplained: float
    power: float
    power_evidence: float
    noise: float
    uneven: float
    rough: float
    dependence: float
    dependence_evidence: float
    linear: float
    linear_evidence: float
    slope: float
    slope_error: float
    background: float
    neighbours: float
    drift: float
    gain: float
    turn: float
    turn_evidence: float
    rival: float
    rival_everywhere: float
    entry: float = 0.0
    crowded: float = 0.0
    missing: float = 0.0
    missing_low: float = 0.0
    missing_high: float = 0.0
    growth: float = 1.0
    second_gain: float = 1.0
    at_second_gain: float = 0.0
    missed: float = float("nan")
    follow: float = 0.0
    flagged_spread: float = 0.0
    efficient: float = np.nan
    law: float = np.nan
    skew: float = 1.0
    stretch: float = 1.0
    balance: float = 1.0


def measure(fit: FittedSamples, *, seed: int = 0) -> tuple[list[Figures], Design | None]:
    """The figures of every signal, and those of the design unless it is a linear operator."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", invalid="ignore"):
        return _measure(taken(fit, rng), rng)


def _measure(part: Part, rng: np.random.Generator) -> tuple[list[Figures], Design | None]:
    fit = part.fit
    n, p = fit.signals.shape
    usable, keep = part.read, part.keep
    depth = FIGURES.depth if part.single is not None else FIGURES.passes if p <= FIGURES.swept_signals else 0
    starts = random_directions(n, 2, fit.signals.dtype, rng)
    first = first_pass(part, starts[:, :1], rng)
    predictions = first.predictions if fit.predictions is None else fit.predictions
    residuals = fit.responses - predictions - fit.centres
    left = [r[k] for r, k in zip(residuals.T, keep.T, strict=True)]
    tailless = [not fit.counts and without_tails(r) for r in left]
    scales = np.array([located(r, tailless=t).scale for r, t in zip(left, tailless, strict=True)])
    design = (
        None
        if first.lengths is None
        else design_of(first, fit.source.dtype.kind != "c", mostly(keep)[:, 0], usable[:, 0], n)
    )
    powers = abs2(fit.signals).sum(axis=0)
    energies = powers
    sizes = np.full(p, 1.0 if design is None or not design.scale > 0 else design.scale)
    if design is None:
        # Rows of an operator have any size, and only their responses tell it.
        strengths = np.where(keep, predictions, 0.0).sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
        sizes = np.maximum(strengths, TINY) / np.maximum(energies, TINY)
        energies = strengths
    clipped, means = clip(residuals, scales, keep)
    standard = residuals
    if fit.spreads is not None:
        # Where noise grows with the signal, every residual is worth what its own scale makes of it.
        standard = residuals / np.maximum(fit.spreads, TINY)
        clipped = clip(standard, scales, keep)[0]
    directions = strongest_directions(part, clipped, starts, depth)
    held_out, squares = last_pass(part, without_half(part, first, sizes), directions)
    evidence = dependence(part, clipped, squares) if depth else np.zeros((2, p))
    unknowns = n * (2 if np.iscomplexobj(fit.signals) else 1)
    good = (fit.covariate_weights >= 0.5) & usable
    turns, linear = changes(part, clipped, first, scales / np.maximum(powers * sizes**2, TINY))
    loose = _loose(design)
    entries = [_entry(part, j, first.projections[:, j], good[:, j], scales[j]) if loose else 0.0 for j in range(p)]
    figures = []
    for j in range(p):
        used, k, y = usable[:, j], keep[:, j], fit.responses[:, j]
        predicted, remaining = predictions[:, j], residuals[:, j]
        g = good[:, j] if np.count_nonzero(good[:, j]) > 0.5 * np.count_nonzero(used) else used
        told_ahead, told = ordered(held_out[:, j]), ordered(y)
        by_ahead = in_order(told_ahead.order, k)
        power, power_evidence = power_of(
            told_ahead.values[by_ahead],
            y[by_ahead],
            scales[j],
            float(fit.levels[j]),
            by_means=fit.counts or tailless[j],
        )
        by_prediction = order_of(predicted)
        chosen = in_order(by_prediction, k)
        thirds = in_thirds(predicted[chosen], remaining[chosen], tailless=tailless[j])
        missing = missing_shares(k[in_order(by_prediction, g)])
        slope, slope_error = slope_along(thirds.predictions, thirds.residuals)
        # Of counts it is known how they grow.
        growth = 1.0 if fit.counts else unevenness(thirds)
        uneven = growth
        if fit.spreads is not None or fit.counts:
            own = in_thirds(thirds.predictions, standard[:, j][chosen], tailless=tailless[j])
            uneven = unevenness(own, counts=fit.counts)
        follow, flagged_spread = followed(told_ahead, told, g & ~k)
        rival = Rival(0.0, 0.0)
        if _contested(part, j, follow):
            rival = _rival(part, j, remaining, predicted, good[:, j], k, scales[j])
        along = part.along[k[part.along]]
        r, at = clipped[:, j][along], part.positions[along]
        followed_by_next = np.flatnonzero(at[1:] == at[:-1] + 1)
        drift, gain = correlations(r, at, predicted[along] * (at - at.sum() / max(at.size, 1)))
        figures.append(
            Figures(
                samples=int(part.usable[j]),
                kept=int(part.kept[j]),
                unknowns=unknowns,
                flagged=_flagged(part, j),
                checked=chosen.size,
                energy=float(energies[j]),
                scale=float(scales[j]),
                correlation=rank_correlation(told_ahead, told, g),
                kept_correlation=rank_correlation(told_ahead, told, k, by_ahead),
                unexplained=unexplained_share(thirds.residuals, y[chosen]),
                power=power,
                power_evidence=power_evidence,
                noise=weighed_noise(thirds),
                uneven=uneven,
                rough=roughness(thirds),
                dependence=float(evidence[0, j]),
                dependence_evidence=float(evidence[1, j]),
                linear=float(linear[0, j]),
                linear_evidence=float(linear[1, j]),
                slope=slope,
                slope_error=slope_error,
                background=float(fit.centres[j] + scales[j] * means[j]),
                neighbours=correlation(r[followed_by_next], r[followed_by_next + 1]),
                drift=drift,
                gain=gain,
                turn=float(turns[0, j]),
                turn_evidence=float(turns[1, j]),
                rival=rival.share,
                rival_everywhere=rival.everywhere,
                entry=entries[j],
                crowded=crowded_counts(told, g, predicted + fit.centres[j])
                if fit.counts
                else crowded_share(told, g, predicted, float(scales[j])),
                missing=missing[0],
                missing_low=missing[1],
                missing_high=missing[2],
                growth=growth,
                second_gain=rival.gain,
                at_second_gain=rival.at_gain,
                follow=follow,
                flagged_spread=flagged_spread,
            )
        )
    return figures, design


def _contested(part: Part, j: int, follow: float) -> bool:
    """Whether a rival is sought: more samples are flagged than are expected, or more than a few that follow the predictions."""
    flagged = _flagged(part, j)
    more = flagged > part.fit.expected[j] or follow > CHECKS.deviations
    return part.single is not None and flagged > CHECKS.few_flags and more


def _flagged(part: Part, j: int) -> float:
    return 1.0 - float(part.kept[j]) / max(int(part.usable[j]), 1)


def _rival(part: Part, j: int, residuals: Array, predictions: Array, good: Array, keep: Array, scale: float) -> Rival:
    """The rival of a signal; where no more samples are flagged than are expected, the answer at another gain alone."""
    assert part.single is not None
    used = np.isfinite(residuals) & good
    flagged = ~keep[used]
    # It explains no more than all flagged samples.
    share = min(np.count_nonzero(flagged) / max(flagged.size, 1), _flagged(part, j))
    expected = float(part.fit.expected[j])
    least = Least(expected / max(share, TINY), expected)
    # Another gain is seen without the rows.
    rows = part.single if least.of_flagged >= 1 or used.all() else part.single[used]
    signal = part.fit.signals[:, j]
    return find_rival(rows, residuals[used], predictions[used], flagged, signal, float(scale), least=least)


def _loose(design: Design | None) -> bool:
    """Whether the rows hold the signal loosely, or have few entries that are not zero."""
    return design is not None and (design.curvature < FIGURES.loose or design.kurtosis > FIGURES.sparse)


def _entry(part: Part, j: int, projections: Array, good: Array, scale: float) -> float:
    """What another value of one entry would gain; nothing is known of complex ones."""
    signal, responses = part.fit.signals[:, j], part.fit.responses[:, j] - part.fit.centres[j]
    if part.single is None or np.iscomplexobj(signal) or np.iscomplexobj(part.single):
        return 0.0
    used = np.isfinite(responses) & np.isfinite(projections) & good
    return single_entry_gain(part.single[used], responses[used], projections[used], signal, float(scale))
