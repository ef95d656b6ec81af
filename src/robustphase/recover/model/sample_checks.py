"""Checks of the samples: how many there are, what rows they have, how many are flagged, what explains them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from robustphase.recover.model.design import Design
from robustphase.recover.model.figures import Figures
from robustphase.recover.model.limits import CHECKS, FIGURES, largest_shift
from robustphase.recover.model.verdict import Check, Told


def signal_check(figures: Figures, no_signal: bool) -> Check:
    """Whether there is a signal at all."""
    return Check(
        "signal",
        figures.energy,
        0.0,
        no_signal,
        no_signal,
        "the responses hold no signal at all: they do not depend on A, as those of a dead or covered detector",
        "Check that every response stands beside its own row.",
    )


def samples_check(figures: Figures, is_complex: bool) -> Check:
    """Whether the samples that fit are enough for the unknowns."""
    unknowns = figures.unknowns / (2 if is_complex else 1)
    least = CHECKS.few_complex if is_complex else CHECKS.few_real
    ratio = figures.kept / unknowns
    few = ratio < least
    return Check(
        "samples per unknown",
        ratio,
        least,
        few,
        few,
        f"{figures.kept} samples that fit do not determine {int(unknowns)} unknowns: other signals fit them as well",
        f"Collect at least {int((6 if is_complex else 4) * unknowns)} samples, or check that A is not transposed.",
    )


def flagged_check(figures: Figures, told: Told) -> Check:
    """Whether no more samples are flagged than may be bad."""
    stated = told.stated
    chance = math.sqrt(0.25 / max(figures.samples, 1))
    if isinstance(stated, str):
        limit = CHECKS.flagged_auto
        remedy = "Check the units of A and y, and that less than a third of the samples are bad; "
    else:
        few = CHECKS.flagged_few * figures.unknowns / max(figures.samples, 1)
        margin = CHECKS.flagged_more + CHECKS.flagged_share * stated + few + 1.5 * chance
        limit = min(stated + margin, 0.5)
        if not figures.unexplained > CHECKS.exact and figures.missing > stated + CHECKS.deviations * chance:
            # An exact fit has no tails and no neighbours of bad responses: what it does not explain is bad.
            limit = stated + CHECKS.deviations * chance
        remedy = f'Try contamination="auto", or contamination={min(figures.flagged + 0.03, 0.49):.2f}; '
    if figures.crowded:
        remedy += "saturation=... with the upper limit of the readings, since many of them are equal; "
    if not told.whitened:
        remedy += "whiten=True if the rows of A have another scale, mean or covariance; "
    remedy += "y**2 if y holds magnitudes; groups=... if whole frames or detectors go bad together."
    too_many = figures.flagged > limit
    return Check(
        "flagged share",
        figures.flagged,
        limit,
        too_many,
        too_many,
        "far more samples disagree with the answer than may be bad",
        remedy,
    )


def rival_check(figures: Figures, stated: float | str, design: Design | None) -> Check:
    """Whether no other signal explains more samples than may be bad."""
    error = math.sqrt(0.25 / max(figures.samples, 1))
    chance = CHECKS.deviations / 2 * error
    level = CHECKS.rival_auto if isinstance(stated, str) else stated
    limit = level + CHECKS.rival + chance
    # A rival whose samples are of every kind has more of them than can be seen. Where no level was stated it counts from where it
    # may as well be the answer; up to a stated level it may be an adversary's.
    least, mixed = (
        (CHECKS.rival_least, CHECKS.rival_mixed) if isinstance(stated, str) else (stated + CHECKS.rival, limit)
    )
    there = figures.rival > limit or (figures.rival_everywhere > mixed and figures.rival > least)
    # Rows with few entries that are not zero are where a descent ends with a wrong one; elsewhere the best of many is chance.
    sparse = design is not None and design.kurtosis > FIGURES.sparse
    of_chance = CHECKS.deviations + (0.0 if sparse else math.sqrt(2 * math.log(max(figures.unknowns, 1))))
    if figures.entry > of_chance:
        return Check(
            "rival signal",
            figures.entry,
            of_chance,
            True,
            True,
            "the same signal with another value of one entry explains more samples: the rows have so few entries that the "
            "descent ended at a signal which is not the best",
            "Use rows with more entries that are not zero, or pass another start as init=... .",
        )
    if _second_gain(figures, stated):
        return Check(
            "rival signal",
            figures.at_second_gain,
            limit,
            True,
            True,
            f"{figures.second_gain:.2g} times what the answer predicts explains more of every kind of samples than may be bad: "
            "two gains or exposure times in one file, or units mixed",
            "Check that the gain and the units of y are the same throughout, or fit the parts of the data by themselves.",
        )
    if figures.crowded > mixed:
        return Check(
            "rival signal",
            figures.crowded,
            mixed,
            True,
            True,
            "a large part of the responses is equal though the rows are not, and a constant explains more of them than may be "
            "bad: a detector that is clipped or tells clicks instead of counts, or values that were filled in",
            "Pass saturation=... with the upper limit of the readings if they are clipped; leave out what was filled in.",
        )
    return Check(
        "rival signal",
        figures.rival,
        limit,
        there,
        there,
        "another signal explains a large part of the samples: rows told wrongly, columns in another order or another gain in a "
        "part of the data, or more bad samples than good ones",
        "Fit the flagged samples by themselves and compare; check that A and the units of y are the same throughout; pass the "
        "frames or detectors as groups=... if some of them may be bad as a whole.",
    )


def votes_check(figures: Figures) -> Check:
    """Whether contamination can take as many votes from the answer as it misses against other signals."""
    limit = CHECKS.deviations / (2 * math.sqrt(max(figures.samples, 1)))
    refuted = figures.missed > limit
    return Check(
        "votes of the samples",
        figures.missed,
        limit,
        refuted,
        refuted,
        "more samples are likelier under other signals than may be bad, and under each of those others are: no signal explains "
        "the data with noise that is the same for all",
        'Check that A is what was measured with; try contamination="auto", or a larger contamination if more samples may be bad; '
        'noise="auto" or "poisson" if the noise grows with the signal.',
    )


def _second_gain(figures: Figures, stated: float | str) -> bool:
    """Whether the answer at another gain explains more of every kind of samples than may be bad: its length is in doubt."""
    # Tails that are all on one side look like a small share of another gain.
    told = CHECKS.rival_auto if isinstance(stated, str) else stated + CHECKS.rival
    may_be_bad = max(told, CHECKS.rival_mixed)
    matters = abs(math.sqrt(max(figures.second_gain, 0.0)) - 1) > CHECKS.length
    # What an adversary erases or clips may be explained by a small gain, but does not follow the predictions.
    follow = figures.follow > CHECKS.deviations and figures.flagged_spread < CHECKS.rough / 2
    return figures.at_second_gain > may_be_bad and matters and follow


def explained_check(figures: Figures, stated: float | str) -> Check:
    """Whether responses that the fit has not seen are predicted."""
    share = figures.unknowns / max(figures.samples, 1)
    chance = 2.0 / math.sqrt(max(figures.checked, 1))
    limit = CHECKS.correlation + min(CHECKS.capacity * share, CHECKS.most_capacity) + float(chance)
    # Where large responses are as uncertain as they are large, a fit has more noise to follow.
    limit *= min(max(figures.rough / CHECKS.rough, 1.0), CHECKS.rough_capacity)
    # Samples are flagged because they are not explained, which flatters the others; the more so, the fewer there are. Those
    # beyond what may be bad, by more than chance, are not explained though they should be, and count twice.
    bad = CHECKS.rival_auto if isinstance(stated, str) else stated
    beyond = max(figures.missing - bad - 2 * math.sqrt(bad * (1 - bad) / max(figures.samples, 1)), 0.0)
    flattered = CHECKS.selection * (figures.flagged + beyond) * min(1.0, 15 * share)
    figure = max(figures.correlation, figures.kept_correlation - flattered)
    return Check(
        "explained responses",
        figure,
        limit,
        figure < limit,
        figure < limit,
        "the responses do not depend on A as the answer says: samples that the fit had not seen are not predicted",
        "Check that every response stands beside its own row (shifted, sorted or shuffled rows), or collect more samples.",
    )


def noise_check(figures: Figures, expected: float) -> Check:
    """Whether the noise leaves an answer; ``expected`` is the error that it leaves behind the rows as they were given."""
    # The length of an error of so many parts has a relative standard deviation of 1/sqrt(2 unknowns): one in six has more.
    limit = CHECKS.noisy / (1 + 1 / math.sqrt(2 * figures.unknowns))
    drowned = not expected <= limit
    return Check(
        "expected error",
        expected,
        limit,
        drowned,
        drowned,
        "the noise is too large for so few samples",
        "Collect more samples, or reduce the noise.",
    )


def design_checks(design: Design, n: int, told: Told) -> Iterator[Check]:
    """Scale, mean, covariance, curvature and variety of the rows."""
    remedy = (
        "The rows were standardised already: check them for constant or duplicate columns."
        if told.whitened
        else "Try whiten=True, or standardise the columns of A."
    )
    rows = max(design.rows, 1)
    scale_limit = max(CHECKS.scale, CHECKS.deviations * 1.8 / math.sqrt(n * rows)) + 2 / (9 * n) * 3
    yield Check(
        "scale of the rows",
        design.scale,
        1.0 + float(scale_limit),
        abs(design.scale - 1) > scale_limit,
        False,
        "the entries of A do not have mean square one",
        remedy,
    )
    shift_limit = largest_shift(n, rows)
    yield Check(
        "mean of the rows",
        design.shift,
        shift_limit,
        design.shift > shift_limit,
        False,
        "the rows of A are not centred",
        remedy,
    )
    chance = CHECKS.deviations * math.sqrt(2 / n) * math.sqrt(n / rows)
    spread_limit = CHECKS.spread + float(chance)
    yield Check(
        "covariance of the rows",
        design.spread,
        spread_limit,
        design.spread > spread_limit,
        design.spread > CHECKS.wide + chance,
        "the rows of A have a covariance far from the identity",
        remedy,
    )
    if not math.isnan(design.curvature):
        yield Check(
            "curvature",
            design.curvature,
            CHECKS.curvature,
            design.curvature < CHECKS.curvature,
            design.curvature < CHECKS.flat * min(design.scale, 1.0) ** 2,
            "the rows of A do not determine the signal: constant, duplicate or missing columns, few distinct rows, or patterns "
            "that cannot tell signals apart",
            "Look at the singular values of A; use other rows, or fewer unknowns.",
        )
    if n >= CHECKS.variety_fewest:
        needed = CHECKS.variety * (4 if told.is_complex else 2) * n
        yield Check(
            "variety of the rows",
            design.variety,
            needed,
            design.variety < needed,
            design.variety < needed,
            "responses to such rows cannot tell all signals apart, however many there are: few distinct rows, or a Fourier "
            "transform without masks, which leaves out the phases between the entries",
            "Use random masks or other rows, or tell what else is known of the signal.",
        )
