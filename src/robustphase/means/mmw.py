"""Regret minimisation: the robust mean of Hopkins, Li and Zhang (2020), with quantum-entropy scores.

Two players. One picks weights on the points, spread so evenly that no small group dominates (the capped simplex); the
other picks directions ``U`` in which the weighted points vary much. A point that sticks out along ``U`` loses weight
multiplicatively, ``w ← Π(w · exp(−ℓ τ/ρ))`` with score ``τ_j = (p_j − μ)ᴴ U (p_j − μ)`` and the projection Π in
relative entropy. After a few rounds no direction is left in which the points vary more than clean ones would, and the
mean of the round with the smallest top variance is returned.

What the textbook leaves open, and our choices:

* *Scores.* ``U = exp(α S / ‖S‖) / tr(·)`` (matrix multiplicative weights; Dong, Hopkins and Li 2019) looks at all bad
  directions at once, so rounds do not grow with the dimension. The exponential is never formed: a few random vectors, a
  few products with the covariance ``S``, and ``U`` compressed to the Krylov space they span. Inner products with random
  combinations (Johnson–Lindenstrauss) cost the same passes and mix every bad direction with all the harmless ones.
* *Step.* Steps of the size that the regret bound asks for are tiny. As in Diakonikolas, Kane, Pensia and Pittas (2022)
  the exponent ℓ is searched: the smallest that brings the average score down to what clean points explain.
* *What clean points explain* is measured as in :mod:`robustphase.means.excess`: no scale or covariance is given.
* *Random vectors* are sums of the points with random coefficients that depend on the rank of a point's distance only:
  the estimate moves with the points under shifts, rotations and reorderings, given the same ``random_state``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from robustphase.means.directions import (
    Directions,
    never_empty,
    ordinary_directions,
    orthonormal,
    real_columns,
    ritz_directions,
    wave_coefficients,
)
from robustphase.means.excess import excess_of, limits_for, ordinary_ratio
from robustphase.means.geometric_median import geometric_median, near
from robustphase.means.result import MeanResult, unexplained_spread, usable_points
from robustphase.means.reweight import capped_simplex_projection
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array
from robustphase.validation import check_choice

SCORES = ("entropy", "direction")


@dataclass(frozen=True)
class WeightsOptions:
    """How points are scored, how far a step goes, and when the rounds end."""

    max_rounds: int = 12  # budget: usually 2 or 3 are made
    alpha: float = 4.0  # empirical: preference for the worst direction; 0 scores by distance, infinity by it alone
    sketch: int = 8  # budget: directions of the sketch
    depth: int = 3  # budget: products with the covariance that sharpen it
    frequency: float = 100.0  # empirical: largest frequency of the random coefficients
    smallest_step: float = 1e-3  # numeric: takes a thousandth of the weight of the largest scores, so nothing
    largest_step: float = 600.0  # numeric: the largest scores have lost all weight, and smaller ones would underflow
    halvings: int = 16  # numeric: of the logarithm of the step, which leaves it known to a few parts in ten thousand
    progress: float = 0.98  # empirical: a round has to lower the top variance by this factor, or it was in vain
    patience: int = 2  # budget: rounds in vain, one after the other, that are the end
    solid: float = 0.5  # empirical: points with less of the largest weight are no yardstick for the others
    later_slack: float = 0.25  # empirical: what remains of a group found is one-sided: then less excess is evidence too
    least_left: float = 0.005  # numeric: contamination that may be left after pruning is never quite none


OPTIONS = WeightsOptions()


class Scores(NamedTuple):
    """Scores of the points, and the average that clean points would have."""

    values: Array
    explained: float


class Round(NamedTuple):
    """One iterate: weights that sum to one, their mean, and how much the points vary along the worst directions."""

    weights: Array
    mean: Array
    worst: Directions


def mmw_mean(
    view: ScaledRows,
    contamination: float,
    *,
    dropped: Array | None = None,
    start: MeanResult | None = None,
    random_state: Any = None,
    scores: str = "entropy",
    max_rounds: int = OPTIONS.max_rounds,
) -> MeanResult:
    """Robust mean of the points of ``view`` by multiplicative weights on the capped simplex.

    Breakdown: the stated contamination. Cost: about 16 passes for the centre and 6 per round, usually 2 or 3 rounds.

    Parameters
    ----------
    view : ScaledRows
        The points.
    contamination : float
        ε' of Proposition 2.1, positive: the share of the total weight that may be taken away.
    dropped : ndarray of bool, shape (N,), optional
        Points known to be unusable; they get weight zero and count as contamination.
    start : MeanResult, optional
        Result on similar points: its directions and centre save passes.
    random_state : int, RandomState or None
        Seed of the sketch.
    scores : {"entropy", "direction"}, default="entropy"
        Score points along all bad directions at once, or along the worst one only (Algorithm 1 of the article).
    max_rounds : int, default=12
        Most rounds.

    Returns
    -------
    MeanResult
        Its weights are relative to the largest one.
    """
    check_choice("scores", scores, SCORES)
    usable = usable_points(view, dropped)
    distances = geometric_median(
        view, start=None if start is None else start.location, weights=usable.astype(np.float64)
    ).distances
    keep = usable & near(distances, usable, contamination)
    cap = largest_weight(keep, contamination)
    slack = limits_for(distances[keep], contamination).slack
    ordinary = ordinary_directions(view, keep, distances)
    sketch = random_directions(view, keep, distances, random_state)
    guess, half = sketch, OPTIONS.sketch // 2
    if start is not None and start.directions is not None:
        guess = np.hstack((start.directions, sketch))[:, : OPTIONS.sketch]

    weights = keep / keep.sum()
    best: Round | None = None
    converged, idle, round_ = False, 0, 0
    while not converged and idle < OPTIONS.patience and round_ < max_rounds:
        round_ += 1
        mean = view.mean(weights)
        worst = ritz_directions(view, weights, mean, guess, OPTIONS.depth)
        improves = best is None or worst.variances[0] < OPTIONS.progress * best.worst.variances[0]
        idle = 0 if improves else idle + 1
        if best is None or worst.variances[0] < best.worst.variances[0]:
            best = Round(weights, mean, worst)
        solid = weights > OPTIONS.solid * weights.max()
        usual = ordinary_ratio(view, solid, ordinary, worst.vectors)
        scored = score(worst, solid, usual, sharp=scores == "direction")
        allowed = slack if round_ == 1 else OPTIONS.later_slack * slack
        converged = float(weights @ scored.values) <= (1 + allowed) * scored.explained
        if not converged:
            weights = lower(weights, scored, cap)
            guess = np.hstack((worst.vectors[:, :half], sketch[:, :half]))
    assert best is not None
    return _report(best, contamination, round_, converged)


def largest_weight(keep: Array, contamination: float) -> float:
    """The cap on normalised weights: what pruning has taken is taken off the contamination that may be left."""
    left = max(contamination - (1.0 - float(keep.mean())), OPTIONS.least_left)
    return 1.0 / ((1.0 - left) * float(keep.sum()))


def random_directions(view: ScaledRows, keep: Array, distances: Array, random_state: Any) -> Array:
    """Random combinations of the points, whose coefficients are random waves in the rank of their distance."""
    rng = check_random_state(random_state)
    frequencies, phases = (
        rng.uniform(1.0, OPTIONS.frequency, OPTIONS.sketch),
        rng.uniform(0.0, 2 * np.pi, OPTIONS.sketch),
    )
    return never_empty(view.total(wave_coefficients(keep, distances, frequencies, phases)))


def score(worst: Directions, solid: Array, usual: float, *, sharp: bool) -> Scores:
    """Quantum-entropy scores ``(p − μ)ᴴ U (p − μ)``, or squares along the worst direction if ``sharp``.

    Parameters
    ----------
    worst : Directions
        The directions in which U is represented, with the projections of all points on them.
    solid : ndarray of bool, shape (N,)
        Points whose quartiles tell what clean points explain.
    usual : float
        Variance over quartile variance of clean points.
    sharp : bool
        Use the first direction only.
    """
    top = worst.variances[0]
    importance = np.exp(OPTIONS.alpha * (worst.variances / top - 1.0)) if top > 0 else np.ones(worst.variances.size)
    if sharp:
        importance[1:] = 0.0
    importance /= importance.sum()
    squares = worst.projections.real**2 + worst.projections.imag**2
    columns = real_columns(worst.projections)[solid]
    repeated = np.tile(importance, columns.shape[1] // importance.size)
    explained = sum(u * excess_of(column, usual).explained for u, column in zip(repeated, columns.T, strict=True))
    return Scores(squares @ importance, float(explained))


def lower(weights: Array, scored: Scores, cap: float) -> Array:
    """Weights after the smallest multiplicative step that brings the average score down to the explained one.

    If none does, the largest step: then all the weight that may be taken has been taken from the largest scores.
    """
    relative = scored.values / scored.values[weights > 0].max()
    target = scored.explained / scored.values[weights > 0].max()

    def after(step: float) -> Array:
        return capped_simplex_projection(weights * np.exp(-step * np.minimum(relative, 1.0)), cap)

    # ``sparing`` never reaches the target, ``enough`` does or is the last resort.
    sparing, enough = OPTIONS.smallest_step, OPTIONS.largest_step
    if float(after(enough) @ relative) > target:
        return after(enough)
    for _ in range(OPTIONS.halvings):
        middle = float(np.sqrt(sparing * enough))
        if float(after(middle) @ relative) > target:
            sparing = middle
        else:
            enough = middle
    return after(enough)


def _report(best: Round, contamination: float, rounds: int, converged: bool) -> MeanResult:
    weights = best.weights / best.weights.max()
    if converged:
        message = "converged: along every direction the weighted points vary as clean points would"
    else:
        message = unexplained_spread(contamination, 'method="filter"')
    return MeanResult(
        location=best.mean,
        weights=weights,
        top_variance=float(best.worst.variances[0]),
        removed=1.0 - float(weights.mean()),
        contamination=contamination,
        n_iter=rounds,
        converged=converged,
        message=message,
        directions=orthonormal(best.worst.vectors),
    )
