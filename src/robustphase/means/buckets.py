"""Medians of bucket means: the classical way to a sub-Gaussian mean of heavy-tailed data.

The points are dealt at random into k buckets. If fewer than half of the buckets hold a bad point, a median of the
bucket means is near the mean; with ``k = 3 ε' N`` at most a third do. Averaging first makes the points nearly Gaussian;
the price is that the contamination of the buckets is a third, however small that of the points was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from robustphase.means.columns import column_groups, coordinatewise, plain_result, usable_points
from robustphase.means.pilot import geometric_median
from robustphase.means.result import MeanResult
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array

#: Buckets per bad point.
PER_BAD = 3.0


class Buckets:
    """Points dealt at random into buckets of nearly equal size; the bucket means as a cloud that is never made.

    Parameters
    ----------
    view : ScaledRows
        The points.
    keep : ndarray of bool, shape (N,)
        Points to deal out.
    count : int
        Number of buckets.
    random_state : int, RandomState or None
        Seed.

    Attributes
    ----------
    shape : tuple of int
        Number of buckets and the dimension.
    labels : ndarray of int, shape (N,)
        Bucket of every point, −1 for those not kept.
    """

    def __init__(self, view: ScaledRows, keep: Array, count: int, random_state: Any) -> None:
        self.view = view
        self.shape = (count, view.shape[1])
        self.labels = np.full(view.shape[0], -1)
        kept = int(keep.sum())
        self.labels[keep] = check_random_state(random_state).permutation(np.arange(kept) * count // kept)
        self.sizes = np.bincount(self.labels[keep], minlength=count)
        self._keep = keep
        self._norms: Array | None = None

    def averages(self, values: Array) -> Array:
        """Bucket means of values per point: (N,) or (N, w), real or complex, to (count,) or (count, w)."""
        order = np.argsort(self.labels, kind="stable")[-int(self._keep.sum()) :]
        starts = np.concatenate(([0], np.cumsum(self.sizes)[:-1]))
        sums: Array = np.add.reduceat(values[order], starts, axis=0)
        return (sums.T / self.sizes).T

    def mean(self, weights: Array) -> Array:
        """Weighted mean of the bucket means: one pass."""
        per_point = np.where(self._keep, (weights / self.sizes)[self.labels], 0.0)
        total: Array = self.view.total(per_point / weights.sum())
        return total

    def squared_distances(self, centre: Array) -> Array:
        """Squared distances of the bucket means to a centre: one pass, and 32 partial ones the first time."""
        if self._norms is None:
            self._norms = np.zeros(self.shape[0])
            for chosen in column_groups(self.shape[1]):
                means = self.averages(self.view.columns(chosen))
                self._norms += (means.real**2 + means.imag**2).sum(axis=1)
        along = self.averages(self.view.inner(centre).real)
        squares: Array = np.maximum(self._norms - 2.0 * along + np.vdot(centre, centre).real, 0.0)
        return squares


def bucket_count(contamination: float, kept: int) -> int:
    """Three buckets for each bad point, at least one, at most one for each point."""
    return int(min(max(np.ceil(PER_BAD * contamination * kept - 1e-9), 1), kept))


def median_of_means(
    view: ScaledRows, contamination: float, *, dropped: Array | None = None, random_state: Any = None
) -> MeanResult:
    """Coordinate-wise median of the means of ``3 ε' N`` random buckets.

    Breakdown: one bad point in every other bucket, 3/2 of the stated contamination. Cost: 32 partial passes. The
    weights tell nothing but which points were dropped, and there is no certificate.
    """
    keep = usable_points(view, dropped)
    buckets = Buckets(view, keep, bucket_count(contamination, int(keep.sum())), random_state)
    # Coordinates come as those of the kept points; the buckets want all points.
    whole = np.flatnonzero(keep)

    def statistic(values: Array) -> tuple[Array, None]:
        padded = np.zeros((view.shape[0], values.shape[1]))
        padded[whole] = values
        return np.median(buckets.averages(padded), axis=0), None

    found = coordinatewise(view, keep, statistic)
    message = f"the median of {buckets.shape[0]} bucket means gives no certificate: a cluster of bad points biases it"
    return plain_result(found.location, found.weights, contamination, message)


def geometric_median_of_means(
    view: ScaledRows,
    contamination: float,
    *,
    dropped: Array | None = None,
    random_state: Any = None,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> MeanResult:
    """Geometric median of the means of ``3 ε' N`` random buckets (Minsker 2015).

    Breakdown: one bad point in every other bucket, 3/2 of the stated contamination. Cost: 32 partial passes, then two
    for each of some ten Weiszfeld iterations. A point's weight is the pull of its bucket over the largest; there is no
    certificate.
    """
    keep = usable_points(view, dropped)
    buckets = Buckets(view, keep, bucket_count(contamination, int(keep.sum())), random_state)
    found = geometric_median(buckets, max_iter=max_iter, tol=tol)
    weights = np.where(keep, found.pulls[buckets.labels], 0.0)
    return plain_result(
        found.centre,
        weights,
        contamination,
        f"the geometric median of {buckets.shape[0]} bucket means gives no certificate",
        n_iter=found.n_iter,
        converged=found.n_iter < max_iter,
    )


def geometric_median_mean(
    view: ScaledRows, contamination: float, *, dropped: Array | None = None, max_iter: int = 100, tol: float = 1e-6
) -> MeanResult:
    """Geometric median: the point with the smallest sum of distances.

    Breakdown: one half, with an error of order ``sqrt(ε tr Σ)`` where the filter has ``sqrt(ε ‖Σ‖)``. Cost: two passes
    for each of some ten Weiszfeld iterations. ``contamination`` is not used. A point's weight is its pull over the
    largest; there is no certificate.
    """
    keep = usable_points(view, dropped)
    found = geometric_median(view, weights=keep.astype(np.float64), max_iter=max_iter, tol=tol)
    message = "the geometric median gives no certificate: its error grows with the dimension"
    return plain_result(
        found.centre, found.pulls, contamination, message, n_iter=found.n_iter, converged=found.n_iter < max_iter
    )
