"""The estimator of Proposition 2.2, made as exact as can be in small dimensions.

For a unit vector v let E(v) be the mean of the squared projections (p_j·v)² after the largest k of them are left out,
k = ⌈ε N⌉. The estimate is the positive semi-definite matrix M that minimises ``sup_v |vᵀM v − E(v)|``.

Over a finite set of directions this is a linear programme in the entries of M, whose value is a lower bound on the true
one; ascent from many starts finds the direction it fits worst, which joins the set. Lower bound and worst direction close
in on each other; the remaining gap is reported. The ascent is a search, so the upper end is the best found, not a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from robustphase.constants import TINY
from robustphase.rows.source import Array


@dataclass(frozen=True)
class MinMaxOptions:
    """How closely the programme is solved, and how hard directions are searched for."""

    gap: float = 0.05  # budget: stop when the worst direction found is this close to the lower bound
    max_rounds: int = 60  # budget: programmes solved
    fewest: int = 200  # budget: random directions to begin with, where the dimension does not ask for more
    probes: int = 100  # budget: new random directions per round and dimension
    starts: int = 10  # budget: starts of the ascent per dimension
    steps: int = 40  # budget: steps of the ascent
    first_step: float = 0.5  # budget: its first step, on the unit sphere
    shorter: float = 0.6  # budget: factor on a step that did not gain
    loose: float = 0.6  # budget: directions with a smaller misfit, over the largest, leave the programme
    cuts: int = 10  # budget: cuts per dimension that make the matrix positive semi-definite
    programme: float = 1e-9  # numeric: roundings of the linear programme, relative
    ordinary: float = 1e3  # numeric: points larger or smaller by this factor are divided by their size first


OPTIONS = MinMaxOptions()


class MinMaxSolution(NamedTuple):
    """The matrix, the relative gap between worst direction and lower bound, and the rounds made."""

    matrix: Array
    gap: float
    rounds: int


def minmax_covariance(points: Array, contamination: float, *, seed: int = 0) -> MinMaxSolution:
    """Solve the min-max problem for centred points of shape (N, n)."""
    count, n = points.shape
    size = float(np.abs(points).max())
    if size == 0:
        return MinMaxSolution(np.zeros((n, n)), 0.0, 0)
    if not 1 / OPTIONS.ordinary <= size <= OPTIONS.ordinary:
        # The tolerances of linear programmes are absolute.
        unit = minmax_covariance(points / size, contamination, seed=seed)
        return unit._replace(matrix=unit.matrix * size**2)
    trimmed = min(int(np.ceil(contamination * count)), count - 1)
    rng = np.random.default_rng(seed)
    directions = _unit_rows(np.vstack((np.eye(n), rng.standard_normal((max(n * (n + 1), OPTIONS.fewest), n)))))
    best, least, bound, rounds, gap = np.zeros((n, n)), np.inf, 0.0, 0, np.inf
    while gap > OPTIONS.gap and rounds < OPTIONS.max_rounds:
        rounds += 1
        targets = trimmed_moments(points, directions, trimmed)
        matrix, value = _closest_matrix(directions, targets)
        probes = _unit_rows(rng.standard_normal((OPTIONS.probes * n, n)))
        found, misfits = _worst_fits(
            points,
            matrix,
            trimmed,
            np.vstack((directions, probes)),
            np.concatenate((targets, trimmed_moments(points, probes, trimmed))),
        )
        worst = float(misfits.max())
        if worst < least:
            best, least = matrix, worst
        bound = max(bound, value)
        # Roundings of the linear programme are all there is when the bound is at zero.
        rounding = OPTIONS.programme * float(np.abs(targets).max())
        gap = max(least / max(bound, rounding, TINY) - 1.0, 0.0) if least > 0 else 0.0
        # Directions that fit with room to spare only make the programme larger; without them its value is still a bound.
        needed = _misfits(matrix, directions, targets) > OPTIONS.loose * value
        directions = np.vstack((directions[needed], found[misfits > value]))
    return MinMaxSolution(best, gap, rounds)


def trimmed_moments(points: Array, directions: Array, trimmed: int) -> Array:
    """``E(v)`` for each row v of ``directions``."""
    squares = (directions @ points.T) ** 2
    if trimmed == 0:
        return np.asarray(squares.mean(axis=1))
    kept = squares.shape[1] - trimmed
    return np.asarray(np.partition(squares, kept - 1, axis=1)[:, :kept].mean(axis=1))


def _closest_matrix(directions: Array, targets: Array) -> tuple[Array, float]:
    """Matrix that minimises the largest misfit on the given directions, and that misfit."""
    n = directions.shape[1]
    rows, columns = np.triu_indices(n)
    twice = np.where(rows == columns, 1.0, 2.0)
    cuts: list[Array] = []
    while True:
        features = directions[:, rows] * directions[:, columns] * twice
        positive = [-(cut[rows] * cut[columns] * twice) for cut in cuts]
        ones = np.ones((len(features), 1))
        left = np.vstack([np.hstack((features, -ones)), np.hstack((-features, -ones))])
        right = np.concatenate((targets, -targets))
        if positive:
            left = np.vstack((left, np.hstack((np.array(positive), np.zeros((len(positive), 1))))))
            right = np.concatenate((right, np.zeros(len(positive))))
        cost = np.zeros(rows.size + 1)
        cost[-1] = 1.0
        bounds = [(None, None)] * rows.size + [(0, None)]
        solved = linprog(cost, A_ub=left, b_ub=right, bounds=bounds, method="highs")
        solution = np.asarray(solved.x)
        matrix = np.zeros((n, n))
        matrix[rows, columns] = matrix[columns, rows] = solution[:-1]
        values, vectors = np.linalg.eigh(matrix)
        if values[0] >= -OPTIONS.programme * max(values[-1], TINY) or len(cuts) > OPTIONS.cuts * n:
            return (vectors * np.maximum(values, 0.0)) @ vectors.T, float(solution[-1])
        # Positive semi-definiteness enters as cuts vᵀMv >= 0 along the eigenvectors that violate it.
        cuts.extend(vectors[:, values < 0].T)


def _worst_fits(points: Array, matrix: Array, trimmed: int, directions: Array, targets: Array) -> tuple[Array, Array]:
    """Ascend ``|vᵀM v − E(v)|`` from the directions that fit worst and from eigenvectors; unit rows and their misfits."""
    starts = OPTIONS.starts * points.shape[1]
    top = directions[np.argsort(-_misfits(matrix, directions, targets))[:starts]]
    current = _unit_rows(np.vstack((top, np.linalg.eigh(matrix)[1].T)))
    kept = points.shape[0] - trimmed
    # Each start has its own step: one that still gains must not keep the others from settling.
    step = np.full((len(current), 1), OPTIONS.first_step)
    gap = _signed_gap(points, matrix, trimmed, current)
    for _ in range(OPTIONS.steps):
        projections = current @ points.T
        squares = projections**2
        if trimmed:
            projections = np.where(
                squares <= np.partition(squares, kept - 1, axis=1)[:, kept - 1 : kept], projections, 0
            )
        gradient = np.sign(gap)[:, np.newaxis] * (current @ matrix - projections @ points / kept)
        gradient -= (gradient * current).sum(axis=1, keepdims=True) * current
        size = np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), TINY)
        moved = _unit_rows(current + step * gradient / size)
        new_gap = _signed_gap(points, matrix, trimmed, moved)
        better = np.abs(new_gap) > np.abs(gap)
        current, gap = np.where(better[:, np.newaxis], moved, current), np.where(better, new_gap, gap)
        step = np.where(better[:, np.newaxis], step, OPTIONS.shorter * step)
    return current, np.abs(gap)


def _signed_gap(points: Array, matrix: Array, trimmed: int, directions: Array) -> Array:
    return np.asarray(np.einsum("ij,jk,ik->i", directions, matrix, directions)) - trimmed_moments(
        points, directions, trimmed
    )


def _misfits(matrix: Array, directions: Array, targets: Array) -> Array:
    return np.asarray(np.abs(np.einsum("ij,jk,ik->i", directions, matrix, directions) - targets))


def _unit_rows(vectors: Array) -> Array:
    unit: Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
