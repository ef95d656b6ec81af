"""Checks of what the signal leaves of the responses: its curve, its dependence on rows and their order, its place and scale."""

from __future__ import annotations

import math
from collections.abc import Iterator

from robustphase.recover.model.figures import Figures
from robustphase.recover.model.limits import CHECKS, scale_by_chance, scale_ratio_by_chance
from robustphase.recover.model.power import is_another_power
from robustphase.recover.model.verdict import Check, Told


def power_check(figures: Figures, stated: float | str) -> Check:
    """Whether responses grow like ``|a·x|²``."""
    evidence = figures.power_evidence if figures.unexplained > CHECKS.exact else 0.0
    # Flags that follow the predictions, and more of them than may be bad, are what another curve leaves: less is enough. Squared
    # deviations add up, so two signs that are nearly clear do with little more than two clear ones.
    signs = [min(max(sign, 0.0), CHECKS.deviations) ** 2 for sign in (figures.follow, _more_flags(figures, stated))]
    clear = CHECKS.deviations**2
    together = evidence + sum(signs) > CHECKS.turn_hint**2 + 2 * clear
    severe = is_another_power(figures.power) and (
        evidence > (CHECKS.hint if clear in signs else CHECKS.evidence) or together
    )
    if not severe and _flags_follow(figures, stated):
        return Check(
            "power of the responses",
            figures.power,
            1.0,
            True,
            True,
            "responses that do not agree with the answer are in the order of its predictions all the same, and follow another "
            "curve than |a·x|²: magnitudes, decibels, or a detector that saturates",
            "Try y**2 if y holds magnitudes, 10**(y/10) if decibels; saturation=... with the upper limit of the readings.",
        )
    failed = severe or (evidence > CHECKS.hint and abs(math.log(figures.power)) > CHECKS.near_power)
    if figures.power < 0.3:
        cause, remedy = "the responses grow like a logarithm, as decibels do", "Try 10**(y/10) instead of y."
    elif figures.power < 1:
        cause = "the responses grow more slowly than |a·x|²: magnitudes, or a detector that saturates"
        remedy = (
            "Try y**2 if y holds magnitudes; saturation=... with the upper limit of the readings if they are clipped."
        )
    else:
        cause, remedy = (
            "the responses grow faster than |a·x|²",
            "Try the square root of y if y holds squared intensities.",
        )
    limit = CHECKS.low_power if figures.power < 1 else CHECKS.high_power
    return Check("power of the responses", figures.power, limit, bool(failed), bool(severe), cause, remedy)


def _more_flags(figures: Figures, stated: float | str) -> float:
    """Standard deviations of chance by which more samples with good rows are flagged than may be bad."""
    bad = CHECKS.rival_auto if isinstance(stated, str) else stated
    chance = math.sqrt(max(bad * (1 - bad), CHECKS.exact) / max(figures.samples, 1))
    return float(figures.missing - bad) / chance


def _flags_follow(figures: Figures, stated: float | str) -> bool:
    """Whether more samples with good rows are flagged than may be bad, and they are predicted but for the curve.

    Bad samples tell nothing of the signal: a share of them leaves no more than the rest of a perfect rank correlation, and they
    lower that of the samples kept.
    """
    more = figures.missing > (CHECKS.many_flags if isinstance(stated, str) else stated)
    follow = figures.correlation > max(1 - figures.missing / 2, figures.kept_correlation)
    return more and follow and figures.unexplained > CHECKS.exact


def dependence_check(figures: Figures, is_complex: bool) -> Check:
    """Whether residuals still depend on the rows, linearly or by a square."""
    linear = figures.linear_evidence > CHECKS.deviations and figures.linear > CHECKS.dependence
    squared = figures.dependence_evidence > CHECKS.deviations and figures.dependence > CHECKS.dependence
    if linear and not (squared and figures.dependence > figures.linear):
        there = figures.unexplained > CHECKS.exact
        return Check(
            "residuals along the rows",
            figures.linear,
            CHECKS.dependence,
            there,
            there,
            "what the signal leaves of the responses is linear in A: something constant was added before the square was taken, "
            "such as a coherent reference, or a column of A is missing",
            "Add a column of ones to A, or the reference as it falls on every row.",
        )
    clear = squared and figures.unexplained > CHECKS.exact
    cause = "what one signal leaves of the responses still depends on A: a second signal or mode, or rows that are not as stated"
    if not is_complex:
        cause += ", or a complex signal behind real rows"
    return Check(
        "residuals along the rows",
        figures.dependence,
        CHECKS.dependence,
        clear,
        clear,
        cause,
        "Check that A holds the rows that were applied, and that one signal alone was there."
        if is_complex
        else 'If the signal may be complex, no real one explains the data: pass field="complex". Otherwise check that A holds '
        "the rows applied.",
    )


def length_check(figures: Figures) -> Check:
    """Whether responses and likelihood ask for one length of the signal."""
    low, high = (1 - CHECKS.length) ** 2, (1 + CHECKS.length) ** 2
    chance = CHECKS.deviations * figures.slope_error
    other = not low - chance <= figures.slope <= high + chance and figures.unexplained > CHECKS.exact
    return Check(
        "length of the signal",
        figures.slope,
        low if figures.slope < 1 else high,
        other,
        other,
        "the responses ask for another length of the signal than the most likely one: their noise is skewed and grows with the "
        "signal (a gain of its own for every row), so that mean, median and most likely value are different lengths",
        "Take the direction of the answer only, or average the responses to equal rows first.",
    )


def background_check(figures: Figures, expected: float) -> Check:
    """Whether residuals are centred at zero; ``expected`` is the error that noise leaves behind the rows as they were given."""
    limit = max(
        CHECKS.background * figures.energy,
        CHECKS.background_noise * figures.scale,
        CHECKS.deviations * figures.scale / math.sqrt(max(figures.checked, 1)),
    )
    there = abs(figures.background) > limit
    # Intensity that the signal does not explain grows with it, more than a noise model tells, which neither a constant nor skewed
    # noise does.
    left_over = (
        figures.background > max(CHECKS.left_over * figures.energy, CHECKS.background_noise * figures.scale)
        and figures.rough > CHECKS.left_over_rough
        and figures.uneven > CHECKS.left_over_uneven
        and figures.unexplained > CHECKS.exact
    )
    left_over = left_over or (_missed(figures) > CHECKS.noisy and _no_constant(figures, expected))
    # The location of the residuals is fitted in any case, so a constant alone does no harm.
    return Check(
        "background",
        figures.background,
        limit,
        there or left_over,
        (there and figures.unexplained > CHECKS.background_unexplained) or left_over,
        "the responses have a background, or parts that this signal does not explain (other modes, rows not as stated)",
        'Try noise_mean="unknown", or background=... if it was measured.',
    )


def _missed(figures: Figures) -> float:
    """Relative error of the signal if the mean of the residuals is intensity of it that the answer misses; zero if it is not.

    A part of the signal of energy b that is missed leaves a mean of b and, by interference with an answer of energy E, residuals
    of a scale of about ``sqrt(E b)``. A constant leaves the mean alone, and noise alone no mean that its chance does not explain.
    """
    missed = figures.background
    chance = CHECKS.deviations / math.sqrt(max(figures.checked, 1))
    if not missed > max(CHECKS.missed_noise, chance) * figures.scale or not figures.unexplained > CHECKS.exact:
        return 0.0
    if math.sqrt(missed * figures.energy) > CHECKS.missed_width * figures.scale:
        return 0.0
    return math.sqrt(missed / (figures.energy + missed))


def _no_constant(figures: Figures, expected: float) -> bool:
    """Whether the mean of the residuals may be more than a constant, which leaves them even and without a direction.

    With many samples either would show. With few of them, or behind rows that hardly show some directions, the mean is all there
    is.
    """
    ratio = max(figures.uneven, 1 / max(figures.uneven, 1e-9))
    uneven = ratio > scale_ratio_by_chance(figures.checked, CHECKS.deviations)
    return uneven or figures.dependence_evidence > CHECKS.turn_hint or expected > CHECKS.blind


def evenness_check(figures: Figures, told: Told) -> Check:
    """Whether the noise is the same for small and large predictions."""
    ratio = max(figures.uneven, 1 / max(figures.uneven, 1e-9))
    limit = CHECKS.uneven * scale_ratio_by_chance(figures.checked, CHECKS.deviations)
    matters = ratio > limit and figures.unexplained > CHECKS.exact
    # Where responses are uncertain by half of themselves, their median, mean and most likely value are different lengths of x,
    # also if a noise model has learnt how they grow.
    grows = grows_with_signal(figures) or (matters and figures.uneven > 1)
    # The roughest samples are flagged first, and their share is missing here. Where the noise model has learnt how the noise
    # grows, and nothing tells of another curve, chance is allowed for.
    curved = figures.power_evidence > CHECKS.turn_hint**2 and is_another_power(figures.power)
    chance = 0.0 if math.isnan(figures.efficient) or curved else CHECKS.turn_hint
    rough = figures.rough > CHECKS.rough * (1 - figures.flagged) * scale_by_chance(figures.checked, chance)
    # As many as may be bad need not have been clean.
    more = figures.flagged > (CHECKS.many_flags if isinstance(told.stated, str) else told.stated)
    proportional = (
        (grows and rough) or (more and _trimmed(figures)) or _follow(figures, told.stated) or _gains_in_turn(figures)
    )
    severe = proportional and figures.unexplained > CHECKS.exact
    return Check(
        "evenness of the noise",
        max(figures.growth, figures.uneven) if severe else figures.uneven,
        limit,
        matters or severe,
        severe,
        "the noise is proportional to the signal (speckle, a gain of its own for every row), so its norm is not determined"
        if severe
        else "the noise grows with the signal (counts, multiplicative noise)",
        "Take the direction of the answer only, or average the responses to equal rows first."
        if severe
        else "The answer stands; certificates allow for it, flags of large responses are rough."
        + (' Try noise="auto", or noise="poisson" for counts.' if told.additive else ""),
    )


def _trimmed(figures: Figures) -> bool:
    """Whether residuals grow with the signal and are rough once what was flagged is counted in.

    The scale of the inner share q of a normal variable is nearly q times its own, so residuals that were cut off had a scale as
    much larger. Where large responses are flagged for their roughness, the upper third loses most of its samples. That the
    residuals grow at all must show in those that are left.
    """
    low, high = (max(1 - missing, CHECKS.least_left) for missing in (figures.missing_low, figures.missing_high))
    grows = figures.growth > scale_ratio_by_chance(figures.checked, CHECKS.deviations)
    return (
        grows
        and figures.growth * low / high > CHECKS.uneven * scale_ratio_by_chance(figures.checked, 2.0)
        and figures.rough > CHECKS.rough * high
    )


def _follow(figures: Figures, stated: float | str) -> bool:
    """Whether large responses are flagged that follow their predictions all the same, with errors of a large part of themselves.

    Bad samples do not follow, or follow at one gain; where every row has a gain of its own, or rows are not quite as told, the
    error of a response is in proportion to it, and the largest ones are flagged on either side of their predictions. Nor need
    they follow where there are more of them than may be bad. Where there are no more than were stated, an adversary may have
    placed them so: it gains most by pushing on large predictions.
    """
    more = isinstance(stated, str) or _more_flags(figures, stated) > CHECKS.deviations
    follow = more and figures.follow > CHECKS.turn_hint
    return (
        figures.missing_high > CHECKS.follow_missing
        and (follow or _more_than_bad(figures, stated))
        and figures.flagged_spread > CHECKS.rough
    )


def _more_than_bad(figures: Figures, stated: float | str) -> bool:
    """Whether more of the largest third of the predictions are flagged than can be bad, were all bad samples there.

    Tails of the noise are flagged in the lowest third as well.
    """
    if isinstance(stated, str):
        return False
    bad = min(3 * stated, 1.0)
    chance = CHECKS.deviations * math.sqrt(bad * (1 - bad) / max(figures.checked / 3, 1.0))
    return bool(figures.missing_high - figures.missing_low > bad + chance)


def _gains_in_turn(figures: Figures) -> bool:
    """Whether residuals grow with the signal and neighbours go together, as those of gains in turn do.

    Noise is not known to its neighbours, so half of the usual roughness is enough.
    """
    limit = max(CHECKS.deviations / math.sqrt(max(figures.checked, 1)), CHECKS.trend)
    return bool(grows_with_signal(figures) and figures.rough > CHECKS.rough / 2 and abs(figures.neighbours) > limit)


def grows_with_signal(figures: Figures) -> bool:
    """Whether the residuals are larger where the predictions are."""
    return figures.growth > CHECKS.uneven * scale_ratio_by_chance(figures.checked, 2.0)


def row_order_checks(figures: Figures, drifting: bool, *, ordered: bool) -> Iterator[Check]:
    """What goes together along the rows, which are in the order of time unless they are those of an operator.

    Neighbouring rows of an operator are neighbours on a detector: its blur, and whatever small part of the object or the
    instrument the model leaves out, reach over several of its pixels, and say nothing of a drift.
    """
    limit = max(CHECKS.deviations / math.sqrt(max(figures.checked, 1)), CHECKS.trend)
    limit = limit if figures.unexplained > CHECKS.exact else 1.0
    for name, figure, cause in (
        ("neighbouring residuals", figures.neighbours, "residuals of neighbouring rows go together"),
        ("drift of the background", figures.drift, "the background drifts along the rows"),
        ("drift of the gain", figures.gain, "the gain drifts along the rows"),
    ):
        yield Check(
            name,
            figure,
            float(limit),
            abs(figure) > limit,
            abs(figure) > limit + CHECKS.strong_trend - CHECKS.trend and (ordered or name != "neighbouring residuals"),
            cause,
            ("Fit" if drifting else 'Try drift="auto" if the rows stand in the order in which they were read, or fit')
            + " shorter stretches of rows, or divide the responses by a reference.",
        )


def turn_check(figures: Figures) -> Check:
    """Whether the first and the last half of the rows tell of one signal."""
    # A signal that turns leaves residuals that grow with it, so less evidence is enough where they do.
    needed = CHECKS.turn_hint if grows_with_signal(figures) else CHECKS.deviations
    turns = figures.turn_evidence > needed and figures.turn > CHECKS.turn
    turns &= figures.unexplained > CHECKS.exact
    return Check(
        "drift of the signal",
        figures.turn,
        CHECKS.turn,
        turns,
        turns,
        "the first and the last half of the rows tell of different signals: it changed while it was measured",
        "Fit shorter stretches of rows.",
    )
