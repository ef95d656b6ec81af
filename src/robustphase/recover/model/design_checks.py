"""Checks of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from robustphase.recover.model.design import Design
from robustphase.recover.model.limits import CHECKS, largest_shift
from robustphase.recover.model.verdict import Check, Told


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
