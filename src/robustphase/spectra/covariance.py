"""Robust covariance: CovEst of the paper (Proposition 2.2), the computable kind and the reference.

``"filter"`` takes away the points that raise the variance along any direction above what its quartiles explain, reconsiders
all points in the light of those, and averages with the weights that they get. ``"minmax"`` is the estimator of Oliveira and
Rico (2022) and of Abdalla and Zhivotovskiy (2024): the matrix whose quadratic form is closest, over all directions, to a
trimmed mean of the squared projections. It is solved to a stated gap for small dimensions, as a yardstick: trimming squares
costs it a bias that the filter does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.means import mean_of
from robustphase.means.directions import ordinary_directions, orthonormal
from robustphase.means.excess import limits_for, ordinary_ratio, shape_ratio, take_excess
from robustphase.means.filter import OPTIONS as FILTER
from robustphase.means.filter import filter_points
from robustphase.rows import MaskedRows, RowSource, ScaledRows, ShiftedRows, TransformedRows, as_source, rows_at
from robustphase.rows.source import Array, Parts
from robustphase.spectra.bulk import bulk_of, leaning_direction, too_many_for_quartiles
from robustphase.spectra.minmax import OPTIONS as MINMAX
from robustphase.spectra.minmax import minmax_covariance
from robustphase.spectra.outlyingness import OPTIONS as OUTLYINGNESS
from robustphase.spectra.outlyingness import yardstick_of
from robustphase.spectra.reconsider import enough_points, reconsider, some_stand_apart
from robustphase.validation import NONFINITE, check_choice, check_contamination, hide_extremes


@dataclass(frozen=True)
class CovarianceOptions:
    """How the whitened points are searched for outliers, and where the min-max estimator is offered."""

    max_rounds: int = 10  # budget: rounds on the whitened points; clean data need one
    proposals: int = 256  # budget: points that propose directions
    groups: int = 4  # budget: the proposals are looked at in this many groups, to hold fewer projections at a time
    heavy: int = 4  # budget: proposed directions that are looked at
    chance: float = (
        1.0  # derived: times √(n/N), by which deviations of normal points differ at most over all directions
    )
    flat: float = 1e-12  # numeric: directions with less of the largest variance have none
    minmax_dimension: int = 20  # budget: largest dimension for which the min-max estimator is solved


OPTIONS = CovarianceOptions()
#: What the filter is asked for where second moments are wanted of points whose mean is zero.
SECOND_MOMENTS = replace(FILTER, for_mean=False, centred=True)


@dataclass(frozen=True)
class CovarianceResult:
    """A robust covariance and its evidence.

    Attributes
    ----------
    covariance : ndarray of shape (n, n)
        The estimate.
    location : ndarray of shape (n,)
        The centre used.
    weights : ndarray of shape (N,)
        1 for good points, 0 for those treated as bad, between where good and bad ones overlap; all ones for ``"minmax"``, which
        trims in every direction anew.
    removed : float
        Fraction of the points that was taken away.
    top_variance : float
        Largest eigenvalue of the estimate.
    n_iter : int
        Rounds of the filter, or of cutting planes.
    converged : bool
        Whether the stopping rule was met.
    gap : float
        For ``"minmax"``: how far the worst direction found lies above the proven lower bound, relative to it. Zero else.
    """

    covariance: Array
    location: Array
    weights: Array
    removed: float
    top_variance: float
    n_iter: int
    converged: bool
    gap: float = 0.0


def robust_covariance(
    X: Any,
    contamination: float | str = 0.1,
    method: str = "filter",
    *,
    assume_centered: bool = False,
    nonfinite: str = "raise",
) -> CovarianceResult:
    """Covariance of points of which a fraction is arbitrary.

    Parameters
    ----------
    X : array-like of shape (N, n) or RowSource
        The points, one per row.
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the points that may be bad. Zero gives the empirical covariance. ``"auto"`` is for ``"filter"`` only.
    method : {"filter", "minmax"}, default="filter"
        ``"filter"``: any dimension, a few passes. ``"minmax"``: the estimator of Proposition 2.2, real data in at most 20
        dimensions.
    assume_centered : bool, default=False
        The points have mean zero; otherwise their robust mean is subtracted first.
    nonfinite : {"raise", "drop"}, default="raise"
        What to do with rows that hold NaN or infinities: raise an error, or count them as contamination, as finite rows too
        large to square always are.

    Returns
    -------
    CovarianceResult
    """
    level = check_contamination(contamination, allow_auto=method == "filter")
    check_choice("method", method, ("filter", "minmax"))
    centred = centred_rows(X, level, assume_centered=assume_centered, nonfinite=nonfinite)
    if method == "minmax":
        return _solve_minmax(centred.source, centred.usable, float(level), centred.location)
    return covariance_of(centred, level, thorough=True)


def covariance_of(centred: Centred, contamination: float | str, *, thorough: bool = False) -> CovarianceResult:
    """:func:`robust_covariance` by the filter, of rows that are centred already; rows that are not usable play no part.

    With ``thorough`` points may be bad for their lengths alone, also for being too short, whatever the filter finds; and where
    more of them may be bad than quartiles can bear, large groups go first.
    """
    bulk = centred.usable
    if thorough and too_many_for_quartiles(contamination):
        bulk = bulk_of(centred.source, bulk, float(contamination), centred=centred.exact)
        centred = _about(centred, bulk)
    found = _all_good(centred) if contamination == 0 else _find_good(centred, bulk, contamination, thorough=thorough)
    return CovarianceResult(
        covariance=found.covariance,
        location=centred.location + found.mean,
        weights=found.weights,
        removed=1.0 - float(found.weights.mean()),
        top_variance=float(np.linalg.eigvalsh(found.covariance)[-1]),
        n_iter=found.rounds,
        converged=found.converged,
    )


class _Found(NamedTuple):
    """Weights, the mean and covariance that they give, and how they were found."""

    weights: Array
    mean: Array
    covariance: Array
    rounds: int = 0
    converged: bool = True


def _all_good(centred: Centred) -> _Found:
    weights = centred.usable.astype(np.float64)
    return _Found(weights, np.zeros_like(centred.location), second_moment(centred.source, weights))


def _find_good(centred: Centred, bulk: Array, contamination: float | str, *, thorough: bool) -> _Found:
    """Take points away along the top of the spectrum and along heavy directions of the whitened points, and reconsider all.

    Where nothing is taken, nothing is reconsidered but lengths: clean points have the moments of all of them.
    """
    source, usable = centred.source, centred.usable
    plain = filter_points(ScaledRows(source), bulk, contamination, options=SECOND_MOMENTS)
    keep, before, rounds, settled, found = plain.keep, usable, plain.rounds, plain.converged, None
    while rounds < plain.rounds + OPTIONS.max_rounds:
        rounds += 1
        doubted = bool((keep != before).any())
        if thorough and not doubted and rounds == plain.rounds + 1:
            doubted = _groups_of_lengths(source, usable)
        if doubted and enough_points(float(keep.sum()), source.shape[1]):
            found = reconsider(source, keep, usable, contamination, centred=centred.exact, short_too=thorough)
            keep = found.weights > OUTLYINGNESS.good
            if rounds > plain.rounds + 1 and (keep == before).all():
                # What stood out along one direction is what good points look like when all is considered.
                break
        before = keep
        keep, explained = take_heavy(source, keep, contamination)
        settled = explained and (settled or found is not None)
        if (keep == before).all():
            break
        found = None
    if found is None:
        weights = keep.astype(np.float64)
        return _Found(weights, np.zeros_like(centred.location), second_moment(source, weights), rounds, settled)
    return _Found(found.weights, found.mean, found.covariance, rounds, settled)


def _groups_of_lengths(source: RowSource, usable: Array) -> bool:
    """Whether there is a group of points of another length."""
    if not enough_points(float(usable.sum()), source.shape[1]):
        return False
    yardstick, scores, _ = yardstick_of(source, usable.astype(np.float64), usable, centred=True)
    centre, scale = float(yardstick.centres[0]), float(yardstick.scales[0])
    return some_stand_apart(scores[usable, 0] * scale + centre, centre, scale)


class Centred(NamedTuple):
    """Rows with their mean at zero."""

    source: RowSource  # The rows, moved
    location: Array  # (n,): what was subtracted
    usable: Array  # bool (N,): rows that can be computed with
    #: Whether the mean of the good rows is known to be there; otherwise it is estimated again once they are known.
    exact: bool = True


def _about(centred: Centred, keep: Array) -> Centred:
    """The same rows about the mean of those that are kept, unless the mean is known."""
    if centred.exact or (keep == centred.usable).all():
        return centred
    mean = ScaledRows(centred.source).mean(keep.astype(np.float64))
    source = MaskedRows(ShiftedRows(centred.source, mean), ~centred.usable)
    return centred._replace(source=source, location=centred.location + mean)


def centred_rows(X: Any, contamination: float | str, *, assume_centered: bool, nonfinite: str) -> Centred:
    """Check the rows of ``X`` and subtract their robust mean, unless they are known to have mean zero."""
    check_choice("nonfinite", nonfinite, NONFINITE)
    source, dropped = hide_extremes(as_source(X, name="X"), nonfinite, name="X")
    if dropped.all():
        raise ValueError("every row of X holds NaN, infinite or overflowing entries; nothing is left to work with.")
    if assume_centered:
        return Centred(source, np.zeros(source.shape[1], np.result_type(source.dtype, np.float64)), ~dropped)
    location = mean_of(source, contamination, dropped=dropped).location
    # Dropped rows read as zero before the shift and must do so after it.
    return Centred(MaskedRows(ShiftedRows(source, location), dropped), location, ~dropped, exact=False)


def take_heavy(source: RowSource, keep: Array, contamination: float | str) -> tuple[Array, bool]:
    """Take away outliers that hide behind directions of large variance; what is kept, and whether no excess had to be left.

    Where clean points vary more along some directions than outliers do along theirs, the top of the spectrum does not show
    the outliers. Whitened, all directions vary alike; then outliers are looked for along directions in which they would
    show: those of points of the data, sharpened by a step towards heavier tails, and the one in which the points lean to one
    side most.
    """
    keep = keep.copy()
    matrix = whitener(second_moment(source, keep.astype(np.float64)))
    white = ScaledRows(TransformedRows(source, matrix))
    lengths = np.sqrt(white.squared_distances())
    leaning = leaning_direction(source, matrix, keep, lengths)
    suspects = orthonormal(np.hstack((leaning, heavy_directions(white, keep, lengths))))
    usual = ordinary_ratio(white, keep, ordinary_directions(white, keep, lengths), suspects)
    limits = limits_for(lengths, contamination)
    # The suspects were searched for, and normal points vary more along some directions than along others.
    limits = limits._replace(slack=limits.slack + OPTIONS.chance * np.sqrt(white.shape[1] / max(int(keep.sum()), 1)))
    _, explained = take_excess(white.inner(suspects), keep, lengths, usual, limits, for_mean=False)
    return keep, explained


def heavy_directions(white: ScaledRows, keep: Array, lengths: Array) -> Array:
    """A few orthonormal directions with heavy tails, among those of kept points of the data.

    A fixed number of points, spread over the ranks of their lengths, proposes itself; the directions with the largest
    fourth moment over squared quartile variance are moved one step up the gradient of the fourth moment.
    """
    kept = np.flatnonzero(keep)
    ranked = kept[np.argsort(lengths[kept], kind="stable")]
    chosen = ranked[np.linspace(0, ranked.size - 1, min(OPTIONS.proposals, ranked.size)).astype(int)]
    vectors = rows_at(white.source, chosen).conj().T
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), TINY)
    groups = np.array_split(vectors, OPTIONS.groups, axis=1)
    tails = np.concatenate([_tail_weights(white.inner(group)[keep]) for group in groups])
    heaviest = vectors[:, np.argsort(-tails)[: OPTIONS.heavy]]
    projections = np.where(keep[:, np.newaxis], white.inner(heaviest), 0.0)
    return orthonormal(white.total(np.abs(projections) ** 2 * projections.conj() / kept.size))


def _tail_weights(projections: Array) -> Array:
    """Variance over quartile variance for each column."""
    return np.array([shape_ratio(column[:, np.newaxis]) for column in projections.T])


def whitener(covariance: Array) -> Array:
    """Inverse square root of a covariance of rows, to be multiplied from the right; directions without variance stay out."""
    values, vectors = np.linalg.eigh(covariance.conj())
    inverse = np.where(values > OPTIONS.flat * values[-1], 1.0 / np.sqrt(np.maximum(values, TINY)), 0.0)
    matrix: Array = (vectors * inverse) @ vectors.conj().T
    return matrix


def second_moment(source: RowSource, weights: Array) -> Array:
    """``Σ w_j p_j p_jᴴ / Σ w_j`` with the rows as points, an n × n matrix: one pass."""

    def kernel(block: Array, share: Array) -> Parts:
        return Parts(sums=(np.dot((share[:, np.newaxis] * block).T, block.conj()),))

    return source.reduce(kernel, (weights / weights.sum(),)).sums[0]


def _solve_minmax(source: RowSource, usable: Array, contamination: float, location: Array) -> CovarianceResult:
    n = source.shape[1]
    if n > OPTIONS.minmax_dimension or source.dtype.kind == "c":
        raise ValueError(
            f'method="minmax" is for real data in at most {OPTIONS.minmax_dimension} dimensions, got {n} of dtype '
            f'{source.dtype}. Use method="filter".'
        )
    points = ScaledRows(source).columns(slice(None))[usable]
    solution = minmax_covariance(points, contamination)
    return CovarianceResult(
        covariance=solution.matrix,
        location=location,
        weights=usable.astype(np.float64),
        removed=1.0 - float(usable.mean()),
        top_variance=float(np.linalg.eigvalsh(solution.matrix)[-1]),
        n_iter=solution.rounds,
        converged=solution.gap <= MINMAX.gap,
        gap=solution.gap,
    )
