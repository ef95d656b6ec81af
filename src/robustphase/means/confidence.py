"""Confidence as contamination: what it costs to be right with probability 1 − δ."""

from __future__ import annotations

import numpy as np

from robustphase.validation import check_fraction

#: Samples that confidence 1 − δ costs, per unit of log(1/δ): the constant in ε' = ε + c·log(1/δ)/N of Proposition 2.1.
CONFIDENCE_COST = 1.0
#: With half of the points bad nobody can tell good from bad, however little confidence is asked for.
HIGHEST_LEVEL = 0.49


def confident_level(contamination: float | str, delta: float | None, count: int) -> float | str:
    """The level ``ε' = ε + log(1/δ)/N`` to use on N points; ``"auto"``, and any level without a δ, stays as it is."""
    if delta is None or isinstance(contamination, str):
        return contamination
    return min(
        contamination + CONFIDENCE_COST * float(np.log(1 / check_fraction("delta", delta))) / count, HIGHEST_LEVEL
    )
