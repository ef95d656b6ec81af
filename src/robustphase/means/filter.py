"""Spectral filter: a stability-based robust mean (MeanEstStab, Proposition 2.1), the default.

Repeat: find the directions in which the kept points vary most; if their spread along each is what clean points explain,
stop; otherwise take away the points that cause the excess. Bad points can only move the mean by first creating such a
direction, and then they are among the farthest along it.

What the literature leaves open, and our choices (figures in ``docs/means.md``):

* *What do clean points explain?* No scale or covariance is given, so each direction is its own yardstick: the variance
  along it, over the variance its quartiles suggest. Outliers below a quarter of the data raise the first and hardly the
  second. How large this ratio is for clean data depends on their shape, so it is compared with the ratio along ordinary
  directions of the same data: combinations of all points, in which a bad minority does not stand out.
* *How much to take?* From the far end of the projections, until the excess is gone: few rounds, and almost exactly the
  bad points. Up to the stated contamination where the excess is moderate; beyond it only where it is blatant, and then
  the result says so.
* *What of heavy tails?* Points of unusual norm that are left count less, as far as that lowers the variance of the mean
  without moving it: :mod:`robustphase.means.norms`.
* *Several directions per round*, from a deterministic start built of moments of the data: no random numbers, so the
  estimate moves with the points under shifts, rotations and reorderings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.means.directions import Directions, worst_directions
from robustphase.means.norms import norm_weights
from robustphase.means.pilot import SMALLEST, geometric_median
from robustphase.means.result import MeanResult
from robustphase.means.spread import distinct_count, quartile_spread, rank_shares
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array

#: Passes that look for them: from scratch, when the last round's are known, and when only the weights change a little.
COLD_DEPTH, WARM_DEPTH, CHECK_DEPTH = 5, 3, 2
#: Points farther than this many median distances, over sqrt(ε), go at once. Chebyshev allows a fraction ε of clean
#: points beyond ``sqrt(tr Σ / ε)``.
PRUNE = 3.0
#: Beyond this excess the stated contamination cannot be right, and is no limit any more.
BLATANT = 3.0
#: The same in one dimension, where there are no ordinary directions to tell skew and heavy tails from outliers.
BLATANT_ALONE = 50.0
#: The same when no contamination is stated.
CLEAR = 1.5
#: A far end is balanced when its two sides differ by less than this many standard errors.
BALANCED = 3.5
#: Points beyond this many standard deviations are taken from balanced far ends too.
FAR = 8.0
#: No more than this fraction is ever taken: beyond it nobody can tell good from bad.
MOST = 0.45
#: Powers of the distance whose tilts guess the worst directions, see :func:`moment_directions`.
POWERS = (0, 1, 2, 4)
#: Frequencies of the ordinary directions, see :func:`ordinary_directions`.
FREQUENCIES = (17, 23, 29, 37, 43, 53, 61, 71)
_TINY = float(np.finfo(np.float64).tiny)
#: Points nearer to the centre than this fraction of the largest distance are at it.
NOWHERE = 1e-20
#: Projections that vary by less than this fraction of their size are all the same.
ROUNDING = 1e-13


class Limits(NamedTuple):
    """When points are taken, and how many.

    Attributes
    ----------
    slack : float
        Excess that is no evidence.
    budget : float
        Share of the points that may be taken.
    blatant : float
        Excess beyond which the budget is no limit.
    copies : float
        How often each point is there, on average.
    """

    slack: float
    budget: float
    blatant: float
    copies: float


class Excess(NamedTuple):
    """Spread along one direction, relative to its quartiles and to ordinary directions; 1 is clean."""

    ratio: float
    median: float
    explained: float


def filter_mean(
    view: ScaledRows,
    contamination: float | str,
    *,
    start: MeanResult | None = None,
    dropped: Array | None = None,
    strict: bool = False,
    max_rounds: int = 20,
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
    keep = np.ones(view.shape[0], bool) if dropped is None else ~dropped
    state, mean, limits = _filter_rounds(view, keep, contamination, start=start, strict=strict, max_rounds=max_rounds)
    if strict or isinstance(contamination, str):
        return _report(state, mean, None, contamination)
    worst = state.worst
    lighter = norm_weights(view, state.keep, mean, real_columns(worst.projections), contamination, copies=limits.copies)
    if lighter is None:
        return _report(state, mean, None, contamination)
    # The certificate has to hold for the weights that are returned.
    worst = worst_directions(view, lighter.weights, lighter.mean, worst.vectors, CHECK_DEPTH)
    return _report(state._replace(worst=worst), lighter.mean, lighter.weights, contamination)


class Filtered(NamedTuple):
    """Points that are left, and what is known of them.

    Attributes
    ----------
    keep : ndarray of bool, shape (N,)
        The points that were not taken.
    worst : Directions
        Worst directions of the last round.
    rounds : int
        Rounds made.
    calm : bool
        Whether every direction looked at varies as clean points would, or only in a balanced way.
    """

    keep: Array
    worst: Directions
    rounds: int
    calm: bool


def filter_points(
    view: ScaledRows,
    keep: Array,
    contamination: float | str,
    *,
    start: MeanResult | None = None,
    for_mean: bool = True,
    centred: bool = False,
    strict: bool = False,
    max_rounds: int = 20,
) -> Filtered:
    """The rounds of the filter: find the worst directions, take away what causes an excess, until none is left.

    Parameters
    ----------
    view, contamination, start, strict, max_rounds
        See :func:`filter_mean`.
    keep : ndarray of bool, shape (N,)
        Points to begin with; not changed.
    for_mean : bool, default=True
        Leave balanced far ends alone, since they do not move a mean; a covariance asks for their removal.
    centred : bool, default=False
        The mean is known to be zero.
    """
    return _filter_rounds(
        view,
        keep,
        contamination,
        start=start,
        for_mean=for_mean,
        centred=centred,
        strict=strict,
        max_rounds=max_rounds,
    )[0]


def _filter_rounds(
    view: ScaledRows,
    keep: Array,
    contamination: float | str,
    *,
    start: MeanResult | None = None,
    for_mean: bool = True,
    centred: bool = False,
    strict: bool = False,
    max_rounds: int = 20,
) -> tuple[Filtered, Array, Limits]:
    """What :func:`filter_points` finds, with the mean of the points that are left, and the limits that were kept to."""
    keep = keep.copy()
    pilot_start = np.zeros(view.shape[1]) if centred else None if start is None else start.location
    centre, distances, *_ = geometric_median(
        view, start=pilot_start, weights=keep.astype(np.float64), max_iter=0 if centred else 8
    )
    keep &= near(distances, keep, contamination, strict=strict)
    guess = start.directions if start is not None else None
    if guess is None:
        guess = moment_directions(view, keep, centre, distances)
    ordinary = ordinary_directions(view, keep, distances)
    background = view.inner(ordinary)
    limits = limits_for(distances[keep], contamination, strict=strict)
    if view.shape[1] == 1 and not strict:
        limits = limits._replace(blatant=BLATANT_ALONE)

    depth = COLD_DEPTH if start is None else WARM_DEPTH
    rounds, taken = 0, 1
    while taken and rounds < max_rounds:
        rounds += 1
        mean = centre_of(view, keep, centred)
        worst = worst_directions(view, keep.astype(np.float64), mean, guess, depth)
        usual = ratio_elsewhere(background, keep, ordinary, worst)
        taken, unexplained = take_excess(worst.projections, keep, distances, usual, limits, for_mean=for_mean)
        guess, depth = worst.vectors, WARM_DEPTH
    state = Filtered(keep, worst, rounds, taken == 0 and unexplained <= 1 + limits.slack)
    if taken:
        mean = centre_of(view, keep, centred)
    return state, mean, limits


def centre_of(view: ScaledRows, keep: Array, centred: bool) -> Array:
    """Mean of the kept points, or zero if that is known to be it."""
    return np.zeros(view.shape[1]) if centred else view.mean(keep.astype(np.float64))


def near(distances: Array, keep: Array, contamination: float | str, *, strict: bool = False) -> Array:
    """Which points are close enough to the centre to be looked at in detail; ``strict`` drops no more than the budget."""
    level = 0.01 if isinstance(contamination, str) else max(contamination, 0.01)
    limit = PRUNE * typical_distance(distances[keep]) / np.sqrt(level)
    if strict and not isinstance(contamination, str):
        # Clouds that are peaked at their centre have clean points at many median distances.
        spared = max(int(keep.sum() - np.ceil(contamination * keep.size)), 1) - 1
        limit = max(limit, float(np.partition(distances[keep], spared)[spared]))
    chosen: Array = distances <= limit
    return chosen


def limits_for(distances: Array, contamination: float | str, *, strict: bool = False) -> Limits:
    """The limits for points at these distances, with a stated contamination, never to be exceeded if ``strict``, or "auto"."""
    distinct = distinct_count(distances)
    budget, blatant = (0.0, CLEAR) if isinstance(contamination, str) else (contamination, np.inf if strict else BLATANT)
    return Limits(allowance(distinct), budget, blatant, distances.size / distinct)


def allowance(count: int) -> float:
    """Excess that is no evidence.

    Quartiles of N different points are known to about 2/sqrt(N), and the worst of several directions is looked at.
    """
    return float(0.1 + 4.0 / np.sqrt(count))


def moment_directions(view: ScaledRows, keep: Array, centre: Array, distances: Array) -> Array:
    """First guesses of the worst directions: how weighting by powers of the distance moves the mean.

    A cluster of outliers pulls at least one of them; on clean data they are as good as random, yet they rotate with the
    data and do not depend on its order.
    """
    return never_empty(view.total(moment_coefficients(keep, distances)) - centre[:, np.newaxis])


def moment_coefficients(keep: Array, distances: Array) -> Array:
    """Shares of the kept points that grow like powers of their distance, one column for each power."""
    # Where most points are at the centre their median distance is no unit for the others.
    unit = float(np.median(distances[keep])) or float(distances[keep].max()) or 1.0
    relative = np.where(keep, distances, 0.0) / unit
    tilted = keep[:, np.newaxis] * np.stack([relative**power for power in POWERS], axis=1)
    shares: Array = tilted / np.maximum(tilted.sum(axis=0), _TINY)
    return shares


def ordinary_directions(view: ScaledRows, keep: Array, distances: Array) -> Array:
    """Directions like any other: sums of all kept points with signs that swing with the rank of their distance."""
    return wave_directions(view, keep, distances, np.array(FREQUENCIES))


def wave_directions(
    view: ScaledRows, keep: Array, distances: Array, frequencies: Array, phases: Array | float = 0.0
) -> Array:
    """Sums of the kept points with coefficients that are waves in the rank of their distance, one for each frequency.

    Ranks are shares of the data, so doubling every point changes nothing; and the sums rotate with the points.
    """
    return never_empty(view.total(wave_coefficients(keep, distances, frequencies, phases)))


def wave_coefficients(keep: Array, distances: Array, frequencies: Array, phases: Array | float = 0.0) -> Array:
    """The coefficients of :func:`wave_directions`, one column for each frequency."""
    kept = np.flatnonzero(keep)
    angle = 2 * np.pi * rank_shares(distances[kept])[:, np.newaxis]
    signs = np.zeros((keep.size, frequencies.size))
    # A point at the centre has no direction to add, and the inverse of its distance is too large for single precision.
    away = distances[kept] > max(NOWHERE * float(distances[kept].max(initial=0.0)), SMALLEST)
    inverse = np.where(away, 1.0 / np.where(away, distances[kept], 1.0), 0.0)
    signs[kept] = np.cos(angle * frequencies + phases) * inverse[:, np.newaxis]
    # Centred, so that the mean of the points plays no part.
    signs[kept] -= signs[kept].mean(axis=0)
    return signs


def ordinary_ratio(view: ScaledRows, keep: Array, ordinary: Array, worst: Array) -> float:
    """Median over ordinary directions of the variance over the quartile variance: the shape of the clean points.

    What the ordinary directions share with the worst ones is taken out of them first, since that is where a group of
    bad points would show. In few dimensions only the very worst are taken out; in one there is nothing to compare
    with, and the shape of a normal distribution has to do.
    """
    if view.shape[1] < 2:
        return 1.0
    return shape_ratio(view.inner(away_from(worst, ordinary))[keep])


def ratio_elsewhere(background: Array, keep: Array, ordinary: Array, worst: Directions) -> float:
    """What :func:`ordinary_ratio` finds, from the projections on the ordinary directions instead of a pass."""
    if ordinary.shape[0] < 2:
        return 1.0
    known = worst.vectors[:, : ordinary.shape[0] // 2]
    shared = known.conj().T @ ordinary
    # The ratio knows no shift and no scale, so it matters neither that these are centred nor how long the rest is.
    elsewhere = background[keep] - worst.projections[keep, : known.shape[1]] @ shared
    return shape_ratio(elsewhere)


def away_from(worst: Array, ordinary: Array) -> Array:
    """The ordinary directions without what they share with the worst ones, or in few dimensions with the very worst."""
    known = worst[:, : worst.shape[0] // 2]
    elsewhere: Array = ordinary - known @ (known.conj().T @ ordinary)
    elsewhere /= np.maximum(np.linalg.norm(elsewhere, axis=0), _TINY)
    return elsewhere


def shape_ratio(projections: Array) -> float:
    """Median over directions of the variance over the quartile variance."""
    ratios = []
    for column in real_columns(projections).T:
        explained = quartile_spread(column).variance
        if explained > 0:
            ratios.append(float(column.var()) / explained)
    return float(np.median(ratios)) if ratios else 1.0


def excess_of(values: Array, usual: float) -> Excess:
    """Spread of the kept projections on one direction, relative to what their quartiles and the usual ratio explain."""
    median, variance = quartile_spread(values)
    explained = usual * variance
    actual = float(values.var())
    if actual <= (ROUNDING * float(np.abs(values).max())) ** 2:
        # The points are one point along this direction, up to roundings, which are nobody's outliers.
        return Excess(1.0, median, explained)
    if explained > 0:
        return Excess(actual / explained, median, explained)
    # More than half of the points coincide along this direction: whatever varies at all is an excess.
    return Excess(np.inf if actual > 0 else 1.0, median, explained)


def take_excess(
    projections: Array,
    keep: Array,
    distances: Array,
    usual: float,
    limits: Limits,
    *,
    for_mean: bool = True,
) -> tuple[int, float]:
    """Take away, in place, the points that cause an excess along any direction.

    Returns how many were taken, and the largest excess that had to be left because the budget was used up (else 1).
    Directions with an excess below ``1 + limits.slack`` are left alone; once a direction is above, points are taken from its
    far end until no excess is left, because what remains of a group of outliers is still one-sided.
    """
    costly = distances**2 > 2 * float((distances[keep] ** 2).mean())
    columns = real_columns(projections)
    taken, unexplained = 0, 1.0
    for column in columns.T:
        kept = np.flatnonzero(keep)
        excess = excess_of(column[kept], usual)
        limit = MOST if excess.ratio > limits.blatant else limits.budget
        flagged = excess.ratio > 1 + limits.slack
        while flagged and excess.ratio > 1:
            room = int(limit * keep.size) - int(keep.size - kept.size)
            gone = kept[far_end(column[kept], excess, room)]
            if gone.size == 0:
                unexplained = max(unexplained, excess.ratio)
                break
            if for_mean and not one_sided(columns[gone], columns[kept], limits.copies):
                deviations = column[gone] - excess.median
                gone = gone[costly[gone] | (deviations**2 > FAR**2 * excess.explained)]
                if gone.size == 0:
                    break
            keep[gone] = False
            taken += gone.size
            kept = np.flatnonzero(keep)
            excess = excess_of(column[kept], usual)
    return taken, unexplained


def one_sided(group: Array, everyone: Array, copies: float = 1.0) -> bool:
    """Whether a group of points at the far end of one direction pulls to one side along any of the worst directions.

    A balanced far end is what heavy tails look like, and it does not move the mean. Of a balanced group we take only
    the points beyond ``FAR`` standard deviations, where a few could outweigh the rest, and the costly ones: without a
    point whose squared distance is more than twice the average, the mean of the others has the smaller variance.
    """
    deviations = group - np.median(everyone, axis=0)
    # Copies of a point lean the same way without being more evidence.
    balanced = BALANCED * np.sqrt(copies)
    pull = np.abs(deviations.sum(axis=0)) > balanced * np.linalg.norm(deviations, axis=0)
    crowd = np.abs(np.sign(deviations).sum(axis=0)) > balanced * np.sqrt(len(group))
    return bool(pull.any() or crowd.any())


def far_end(values: Array, excess: Excess, room: int) -> Array:
    """Positions of the values farthest from the median whose removal brings the variance down to the explained one.

    At most ``room`` of them, except that values at equal distance go together: copies of a point share its fate, and a
    group of copies larger than the room that is left must not be safe for that.
    """
    room = min(room, values.size - 1)
    if room <= 0:
        return np.empty(0, np.intp)
    deviation = values - excess.median
    size = np.abs(deviation)
    # Only the farthest can go; sorting all of them would cost more than the rest of the filter.
    far = np.flatnonzero(size >= np.partition(size, size.size - room)[size.size - room])
    order = far[np.argsort(-size[far], kind="stable")]
    gone = deviation[order[:room]]
    left = values.size - np.arange(1, room + 1)
    first = deviation.sum() - np.cumsum(gone)
    second = (deviation**2).sum() - np.cumsum(gone**2)
    calm = second / left - (first / left) ** 2 <= excess.explained
    count = int(np.argmax(calm)) + 1 if calm.any() else room
    chosen: Array = order[size[order] >= size[order[count - 1]]]
    return chosen


def _report(state: Filtered, mean: Array, weights: Array | None, contamination: float | str) -> MeanResult:
    keep = state.keep
    removed = 1.0 - float(keep.mean())
    level = removed if contamination == "auto" else float(contamination)
    if removed > level + 1.0 / keep.size:
        message = (
            f"{removed:.3f} of the points had to be removed where contamination={level:.3g} was stated: along some "
            'directions the points varied far more than clean ones would. Raise contamination, or use "auto".'
        )
    elif state.calm:
        message = "converged: along every direction the points vary as clean points would"
    else:
        message = (
            "stopped with more spread along one direction than clean points explain. Likely cause: heavy tails, or a "
            f'share of bad points above contamination={level:.3g}; if so raise it, or use "auto".'
        )
    if weights is None:
        weights = keep.astype(np.float64)
    else:
        message = message.rstrip(".") + "; points of unusual norm count less, for precision under heavy tails."
    return MeanResult(
        location=mean,
        weights=weights,
        top_variance=float(state.worst.variances[0]),
        removed=1.0 - float(weights.mean()),
        contamination=level,
        n_iter=state.rounds,
        converged=state.calm,
        message=message,
        directions=state.worst.vectors,
    )


def real_columns(projections: Array) -> Array:
    """Projections as real numbers; a complex direction is two real ones."""
    if projections.dtype.kind == "c":
        return np.hstack((projections.real, projections.imag))
    return projections


def typical_distance(distances: Array) -> float:
    """Median distance, never zero."""
    return max(float(np.median(distances)), _TINY)


def never_empty(vectors: Array) -> Array:
    """The vectors, or coordinate axes where the data is so symmetric that all of them vanish."""
    size = np.linalg.norm(vectors, axis=0)
    if (size > 0).all():
        return vectors
    axes = np.eye(*vectors.shape, dtype=vectors.dtype)
    axes[0, axes.sum(axis=0) == 0] = 1
    filled: Array = np.where(size > 0, vectors, axes)
    return filled
