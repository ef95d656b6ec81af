"""Spectral filter: a stability-based robust mean (MeanEstStab, Proposition 2.1), the default.

Repeat: find the directions in which the kept points vary most; if their spread along each is what clean points explain,
stop; otherwise take away the points that cause the excess. Bad points can only move the mean by first creating such a
direction, and then they are among the farthest along it.

What the literature leaves open, and our choices (figures in ``docs/means.md``):

* *What do clean points explain?* What the quartiles along a direction suggest, in comparison with ordinary directions of
  the same data: :mod:`robustphase.means.excess`.
* *How much to take?* From the far end of the projections, until the excess is gone: few rounds, and almost exactly the
  bad points. Up to the stated contamination where the excess is moderate; beyond it only where it is blatant, and then
  the result says so.
* *What of heavy tails?* Points of unusual norm that are left count less, as far as that lowers the variance of the mean
  without moving it: :mod:`robustphase.means.reweight`.
* *Several directions per round*, from a deterministic start built of moments of the data: no random numbers, so the
  estimate moves with the points under shifts, rotations and reorderings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from robustphase.means.directions import (
    Directions,
    moment_directions,
    ordinary_directions,
    real_columns,
    worst_directions,
)
from robustphase.means.excess import OPTIONS as EXCESS
from robustphase.means.excess import Limits, limits_for, shape_ratio, take_excess
from robustphase.means.geometric_median import geometric_median, near
from robustphase.means.result import MeanResult, unexplained_spread, usable_points
from robustphase.means.reweight import norm_weights
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


@dataclass(frozen=True)
class FilterOptions:
    """What the filter is asked for, and the passes it may use."""

    strict: bool = False  # Never take more than the stated contamination, however blatant the excess
    #: Leave balanced far ends alone, since they do not move a mean; a covariance asks for their removal.
    for_mean: bool = True
    centred: bool = False  # The mean is known to be zero
    max_rounds: int = 20  # budget: most data need two to four
    cold_depth: int = 5  # budget: passes that look for the worst directions from scratch
    warm_depth: int = 3  # budget: the same when those of the last round are known
    check_depth: int = 2  # budget: the same when only the weights change a little


OPTIONS = FilterOptions()


class Filtered(NamedTuple):
    """Points that are left, and what is known of them."""

    keep: Array  # bool (N,): the points that were not taken
    mean: Array  # (n,): their mean, or zero if that is known to be it
    worst: Directions  # Worst directions of the last round
    limits: Limits  # The limits that were kept to
    rounds: int  # Rounds made
    converged: bool  # Whether every direction looked at varies as clean points would, or only in a balanced way


def filter_mean(
    view: ScaledRows,
    contamination: float | str,
    *,
    start: MeanResult | None = None,
    dropped: Array | None = None,
    strict: bool = False,
    max_rounds: int = OPTIONS.max_rounds,
) -> MeanResult:
    """Robust mean of the points of ``view`` when a fraction ``contamination`` of them is arbitrary.

    Parameters
    ----------
    view : ScaledRows
        The points.
    contamination : float or "auto"
        ε' of Proposition 2.1, positive. ``"auto"``: take away only what stands out clearly, and report the fraction.
    start : MeanResult, optional
        Result on similar points, such as those of the previous descent step: its directions and centre save passes.
    dropped : ndarray of bool, shape (N,), optional
        Points known to be unusable; they get weight zero and count as contamination.
    strict : bool, default=False
        Never take more than the stated contamination, however blatant the excess, and let the points that are left count
        alike: for points whose clean distribution is known to be skewed and heavy-tailed along some directions, such as
        the paper's ``y a_i a``.
    max_rounds : int, default=20
        Most rounds.

    Returns
    -------
    MeanResult
    """
    options = replace(OPTIONS, strict=strict, max_rounds=max_rounds)
    state = filter_points(view, usable_points(view, dropped), contamination, start=start, options=options)
    if strict or isinstance(contamination, str):
        return _report(state, None, contamination)
    worst = state.worst
    lighter = norm_weights(
        view, state.keep, state.mean, real_columns(worst.projections), contamination, copies=state.limits.copies
    )
    if lighter is None:
        return _report(state, None, contamination)
    # The certificate has to hold for the weights that are returned.
    worst = worst_directions(view, lighter.weights, lighter.mean, worst.vectors, options.check_depth)
    return _report(state._replace(worst=worst, mean=lighter.mean), lighter.weights, contamination)


def filter_points(
    view: ScaledRows,
    keep: Array,
    contamination: float | str,
    *,
    start: MeanResult | None = None,
    options: FilterOptions = OPTIONS,
) -> Filtered:
    """The rounds of the filter: find the worst directions, take away what causes an excess, until none is left.

    It begins with the points ``keep``, bool (N,), which are not changed; for ``start`` see :func:`filter_mean`.
    """
    keep = keep.copy()
    centre, distances = _first_centre(view, keep, start, options)
    keep &= near(distances, keep, contamination, strict=options.strict)
    guess = start.directions if start is not None else None
    if guess is None:
        guess = moment_directions(view, keep, centre, distances)
    ordinary = ordinary_directions(view, keep, distances)
    ordinary_projections = view.inner(ordinary)
    limits = limits_for(distances[keep], contamination, strict=options.strict)
    if view.shape[1] == 1 and not options.strict:
        limits = limits._replace(blatant=EXCESS.blatant_alone)

    depth = options.cold_depth if start is None else options.warm_depth
    rounds, taken = 0, 1
    while taken and rounds < options.max_rounds:
        rounds += 1
        mean = _mean_of_kept(view, keep, options)
        worst = worst_directions(view, keep.astype(np.float64), mean, guess, depth)
        usual = _usual_ratio(ordinary, ordinary_projections, worst, keep)
        taken, explained = take_excess(worst.projections, keep, distances, usual, limits, for_mean=options.for_mean)
        guess, depth = worst.vectors, options.warm_depth
    if taken:
        mean = _mean_of_kept(view, keep, options)
    return Filtered(keep, mean, worst, limits, rounds, taken == 0 and explained)


def _first_centre(
    view: ScaledRows, keep: Array, start: MeanResult | None, options: FilterOptions
) -> tuple[Array, Array]:
    """A centre that a minority cannot move far, and the distances of all points to it."""
    if options.centred:
        return np.zeros(view.shape[1]), np.sqrt(view.squared_distances())
    known = None if start is None else start.location
    found = geometric_median(view, start=known, weights=keep.astype(np.float64))
    return found.centre, found.distances


def _mean_of_kept(view: ScaledRows, keep: Array, options: FilterOptions) -> Array:
    return np.zeros(view.shape[1]) if options.centred else view.mean(keep.astype(np.float64))


def _usual_ratio(ordinary: Array, projections: Array, worst: Directions, keep: Array) -> float:
    """What :func:`robustphase.means.excess.ordinary_ratio` finds, from projections on the ordinary directions, not a pass."""
    if ordinary.shape[0] < 2:
        return 1.0
    known = worst.vectors[:, : ordinary.shape[0] // 2]
    shared = known.conj().T @ ordinary
    # The ratio knows no shift and no scale, so it matters neither that these are centred nor how long the rest is.
    return shape_ratio(projections[keep] - worst.projections[keep, : known.shape[1]] @ shared)


def _report(state: Filtered, weights: Array | None, contamination: float | str) -> MeanResult:
    keep = state.keep
    removed = 1.0 - float(keep.mean())
    level = removed if contamination == "auto" else float(contamination)
    if removed > level + 1.0 / keep.size:
        message = (
            f"{removed:.3f} of the points had to be removed where contamination={level:.3g} was stated: along some "
            'directions the points varied far more than clean ones would. Raise contamination, or use "auto".'
        )
    elif state.converged:
        message = "converged: along every direction the points vary as clean points would"
    else:
        message = unexplained_spread(level, '"auto"')
    if weights is None:
        weights = keep.astype(np.float64)
    else:
        message = message.rstrip(".") + "; points of unusual norm count less, for precision under heavy tails."
    return MeanResult(
        location=state.mean,
        weights=weights,
        top_variance=float(state.worst.variances[0]),
        removed=1.0 - float(weights.mean()),
        contamination=level,
        n_iter=state.rounds,
        converged=state.converged,
        message=message,
        directions=state.worst.vectors,
    )
