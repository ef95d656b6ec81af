"""The bulk of the points, where more of them may be bad than quartiles can bear.

Everywhere else the quartiles along a direction tell what good points explain. A group of a quarter of the points on one side of
a direction is a quartile itself, and smaller ones move it. The *shortest half* (least median of squares in one dimension) holds
good points as long as these are more than half and the bad ones are not tighter than they are: its middle and its length stand
for median and quartiles here. It is known less precisely, so it is asked only where the stated contamination makes quartiles
useless, and never takes more than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget, derived
from robustphase.means.directions import moment_directions, ordinary_directions, real_columns, worst_directions
from robustphase.means.excess import NORMAL_IQR, Excess, away_from, far_end, limits_for
from robustphase.rows import RowSource, ScaledRows, ShiftedRows, TransformedRows
from robustphase.rows.source import Array
from robustphase.spectra.lean import leaning_direction
from robustphase.spectra.outlyingness import weighted_moments, whitening_matrix
from robustphase.spectra.reconsider import enough_points


@dataclass(frozen=True)
class BulkOptions:
    """Where shortest halves are asked, and how often."""

    from_level: float = derived(0.15, "a one-sided group of this share raises the quartile variance by two thirds")
    rounds: int = budget(10, "a group is gone after one or two; each round has directions anew")
    depth: int = budget(5, "passes that look for the directions of the largest variances")
    less_known: float = derived(4.0, "over √N: shortest halves are known half as well as quartiles")


OPTIONS = BulkOptions()


def too_many_for_quartiles(contamination: float | str) -> bool:
    """Whether so many points may be bad that quartiles could be theirs."""
    return not isinstance(contamination, str) and contamination > OPTIONS.from_level


def shortest_half(values: Array) -> tuple[float, float]:
    """Middle of the shortest interval that holds half of the values, and the variance of a normal law with such a half."""
    ordered = np.sort(values)
    half = (values.size + 1) // 2
    lengths = ordered[half - 1 :] - ordered[: values.size - half + 1]
    first = int(np.argmin(lengths))
    return 0.5 * float(ordered[first] + ordered[first + half - 1]), (float(lengths[first]) / NORMAL_IQR) ** 2


def bulk_ratio(projections: Array) -> float:
    """Median over directions of the variance over that of the shortest half."""
    ratios = []
    for column in real_columns(projections).T:
        explained = shortest_half(column)[1]
        if explained > 0:
            ratios.append(float(column.var()) / explained)
    return float(np.median(ratios)) if ratios else 1.0


def take_groups(projections: Array, keep: Array, usual: float, slack: float, level: float) -> bool:
    """Take away, in place, groups far from the shortest half along any direction; whether any was."""
    before = int(keep.sum())
    for column in real_columns(projections).T:
        flagged = False
        while True:
            kept = np.flatnonzero(keep)
            middle, variance = shortest_half(column[kept])
            explained = usual * variance
            ratio = float(column[kept].var()) / explained if explained > 0 else 1.0
            flagged = flagged or ratio > 1.0 + slack
            if not flagged or ratio <= 1.0:
                break
            gone = far_end(
                column[kept], Excess(ratio, middle, explained), int(level * keep.size) - (keep.size - kept.size)
            )
            if gone.size == 0:
                break
            keep[kept[gone]] = False
    return int(keep.sum()) < before


def bulk_of(source: RowSource, usable: Array, level: float, *, centred: bool) -> Array:
    """Points that are left once groups far from the shortest halves are taken.

    Along the directions of the largest variances first, and then along those in which the whitened points lean to one side.

    Parameters
    ----------
    source : RowSource
        The rows.
    usable : ndarray of bool, shape (N,)
        Rows that can be computed with.
    level : float
        Share of the points that may be taken.
    centred : bool
        The mean of the good points is known to be zero.
    """
    view, keep = ScaledRows(source), usable.copy()
    distances = np.sqrt(view.squared_distances())
    ordinary = ordinary_directions(view, keep, distances)
    guess = moment_directions(view, keep, np.zeros(view.shape[1]), distances)
    slack = limits_for(distances[keep], level, strict=True).slack + OPTIONS.less_known / np.sqrt(
        max(int(keep.sum()), 1)
    )
    for _ in range(OPTIONS.rounds):
        weights = keep.astype(np.float64)
        mean = np.zeros(view.shape[1]) if centred else view.mean(weights)
        worst = worst_directions(view, weights, mean, guess, OPTIONS.depth)
        usual = _usual_ratio(view, keep, worst.vectors, ordinary)
        if not take_groups(worst.projections, keep, usual, slack, level):
            break
        guess = worst.vectors
    for _ in range(OPTIONS.rounds):
        if not enough_points(float(keep.sum()), view.shape[1]) or not _take_leaning(view, keep, slack, level):
            break
    return keep


def _take_leaning(view: ScaledRows, keep: Array, slack: float, level: float) -> bool:
    """Take away, in place, a group along the direction in which the whitened points lean; whether any was."""
    moments = weighted_moments(view.source, keep.astype(np.float64))
    moved = ShiftedRows(view.source, moments.first)
    matrix = whitening_matrix(moments.about(moments.first), float(keep.sum()))
    white = ScaledRows(TransformedRows(moved, matrix))
    lengths = np.sqrt(white.squared_distances())
    leaning = leaning_direction(moved, matrix, keep, lengths, bulk_ratio)
    if not leaning.size:
        return False
    usual = _usual_ratio(white, keep, leaning, ordinary_directions(white, keep, lengths))
    return take_groups(white.inner(leaning), keep, usual, slack, level)


def _usual_ratio(view: ScaledRows, keep: Array, worst: Array, ordinary: Array) -> float:
    """The shape of the points along ordinary directions."""
    return 1.0 if view.shape[1] < 2 else bulk_ratio(view.inner(away_from(worst, ordinary))[keep])
