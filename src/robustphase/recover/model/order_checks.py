"""Checks along the rows in the order in which they were read."""

from __future__ import annotations

import math
from collections.abc import Iterator

from robustphase.recover.model.figures import Figures
from robustphase.recover.model.limits import CHECKS
from robustphase.recover.model.residual_checks import grows_with_signal
from robustphase.recover.model.verdict import Check


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
