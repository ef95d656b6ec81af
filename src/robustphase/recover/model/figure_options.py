"""Constants of the figures of a model check."""

from __future__ import annotations

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
#: Share of flagged samples from which on a rival is sought, if no larger one was stated.
RIVAL_FROM = 0.05
#: The same where the level is to be found.
RIVAL_AUTO = 0.12
