"""The bulk of the points, where more of them may be bad than quartiles can bear.

Everywhere else the quartiles along a direction tell what good points explain. A group of a quarter of the points on one side of a
direction is a quartile itself, and smaller ones move it. The *shortest half* (least median of squares in one dimension) holds
good points as long as these are more than half and the bad ones are not tighter than they are: its middle and its length stand
for median and quartiles here. It is known less precisely, so it is asked only where the stated contamination makes quartiles
useless, and never takes more than that.

A one-sided group hides among good points in the direction in which whitened points lean most. A group shifted by a few deviations
along one direction raises the variance there, and whitening takes that back: no spectrum shows it, and none of its points is near
its direction. What is left is skewness. Its third-moment tensor has n³ entries, but one pass gives a first guess (the points
weighted by their squared lengths), one more the matrix of third moments along the guess, whose leading eigenvectors are far
better, and power steps on the tensor from each do the rest, all without making it.

Among all directions normal points lean along some as well, by chance. The direction is reported only if the variance along it
exceeds what its quartiles explain by more than variances of normal points differ over all directions, ``2 √(n/N)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robustphase.constants import TINY, budget, derived
from robustphase.means.directions import moment_directions, ordinary_directions, real_columns, worst_directions
from robustphase.means.excess import NORMAL_IQR, Excess, away_from, far_end, limits_for, shape_ratio
from robustphase.rows import RowSource, ScaledRows, ShiftedRows, TransformedRows, sweep
from robustphase.rows.source import Array, Parts
from robustphase.spectra.outlyingness import weighted_moments, whitening_matrix
from robustphase.spectra.reconsider import enough_points


@dataclass(frozen=True)
class LeanOptions:
    """How long the direction is searched for, and when chance explains it."""

    starts: int = budget(8, "eigenvectors of the third moments that are sharpened; the best one counts")
    steps: int = budget(8, "power steps; a clear lean settles in three")
    chance: float = derived(2.0, "times √(n/N): how far sample variances of normal points differ over all directions")


LEAN = LeanOptions()


def leaning_direction(
    source: RowSource,
    matrix: Array,
    keep: Array,
    lengths: Array,
    ratio: Callable[[Array], float] = shape_ratio,
) -> Array:
    """Direction of the whitened points along which the kept ones lean, shape (n, 1), or (n, 0) if chance explains it.

    ``matrix``, symmetric, whitens rows amid zero from the right; ``lengths`` (N,) are those of the whitened points, and
    ``ratio`` is the variance of projections over what good points explain.
    """
    n, count = source.shape[1], int(keep.sum())
    nothing = np.empty((n, 0), matrix.dtype)
    if source.dtype.kind == "c" or n < 2:
        return nothing
    share = keep / count
    squares = np.where(keep, lengths**2, 0.0)
    guess = _unit(matrix @ ScaledRows(source).total(share * (squares - squares @ share)))
    values, vectors = np.linalg.eigh(matrix @ _third_moments(source, matrix @ guess, share) @ matrix)
    directions = vectors[:, np.argsort(-np.abs(values))[: LEAN.starts]]
    for _ in range(LEAN.steps):
        moved = sweep(source, matrix @ directions, lambda along, part: part[:, np.newaxis] * (along**2 - 1.0), (share,))
        directions = _unit(matrix @ moved.total)
    along = ScaledRows(source).inner(matrix @ directions)[keep]
    best = [int(np.argmax(np.abs((along**3).mean(axis=0))))]
    slack = limits_for(lengths[keep], 0.0).slack + LEAN.chance * np.sqrt(n / count)
    return directions[:, best] if ratio(along[:, best]) > 1.0 + slack else nothing


def _third_moments(source: RowSource, vector: Array, share: Array) -> Array:
    """``Σ s_j (x_j·v) x_j x_jᵀ``, an n × n matrix: one pass."""

    def kernel(block: Array, part: Array) -> Parts:
        along = np.dot(block, vector.astype(block.dtype)) * part.astype(block.dtype)
        return Parts(sums=(np.dot((along[:, np.newaxis] * block).T, block),))

    return source.reduce(kernel, (share,)).sums[0]


def _unit(vectors: Array) -> Array:
    """A vector, or each column, at length one."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=0), TINY))


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
    """Points that are left once groups far from the shortest halves are taken, no more than the share ``level``.

    Along the directions of the largest variances first, and then along those in which the whitened points lean to one side.
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
