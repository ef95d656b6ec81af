"""The classical estimators, for comparison and for data that is kind to them; none gives a certificate.

* *Empirical mean*: optimal for Gaussian data without contamination, defenceless against anything else.
* *One coordinate at a time*: median, trimmed mean, and the M-estimator of Catoni and Holland. Each bounds what one bad
  point can do to one coordinate. A cluster of bad points moves all n coordinates a little, which adds up to an error of
  order ``sqrt(n) ε`` where the filter has ``sqrt(ε)``; and none is invariant under rotations.
* *Medians of bucket means*: the points are dealt at random into k buckets. If fewer than half of the buckets hold a bad
  point, a median of the bucket means is near the mean; with ``k = 3 ε' N`` at most a third do. Averaging first makes the
  points nearly Gaussian; the price is that the contamination of the buckets is a third, however small that of the points.
* *The agnostic mean* of Lai, Rao and Vempala: bad points that matter make directions of large variance. So in the half
  of the directions with the smallest variances the plain mean of what is left after truncation is good, and only the
  other half is worth a closer look: recurse there, until one direction is left, where the median will do.

Order statistics need all values of a coordinate at once. A thirtieth of the coordinates at a time costs thirty partial
readings of the data and a thirtieth of its size in memory, whatever the data and wherever it lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from robustphase.constants import TINY
from robustphase.means.excess import NORMAL_IQR
from robustphase.means.geometric_median import PRECISE, WeiszfeldOptions, geometric_median
from robustphase.means.result import MeanResult, result_without_certificate, usable_points
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array

_NO_CERTIFICATE = "treats every coordinate on its own and gives no certificate: a cluster of bad points biases it"


@dataclass(frozen=True)
class ClassicalOptions:
    """Memory, buckets, and the root finding of the M-estimator."""

    groups: int = 32  # budget: coordinates are read in this many groups, each of a thirtieth of the data
    buckets_per_bad: float = 3.0  # derived: then at most a third of the buckets hold a bad point
    whole: float = 1e-9  # numeric: a count that is whole up to roundings is not rounded up
    newton_steps: int = 50  # budget: Newton's iteration takes about five
    newton_tol: float = 1e-10  # numeric: in units of the scale
    flat: float = 1e-12  # numeric: smallest scale over the largest value, where most values coincide
    steepest: float = 300.0  # numeric: cosh of more than this comes near overflow


OPTIONS = ClassicalOptions()

#: ``statistic(values) -> (location, kept)``: values (K, w) real; location (w,); kept (K,), the average over the columns
#: of the weight each point had, or None where weights have no meaning.
Statistic = Callable[[Array], tuple[Array, Array | None]]


class Coordinatewise(NamedTuple):
    """Locations of all coordinates, and the average weight of each point over them."""

    location: Array
    weights: Array


def column_groups(count: int) -> Iterator[slice]:
    """Slices that cover ``count`` columns in at most ``OPTIONS.groups`` groups."""
    width = max(1, -(-count // OPTIONS.groups))
    for start in range(0, count, width):
        yield slice(start, min(start + width, count))


def coordinatewise(view: ScaledRows, keep: Array, statistic: Statistic) -> Coordinatewise:
    """Apply a statistic to every coordinate of the kept points; to real and imaginary parts if they are complex."""
    count, dimension = view.shape
    location = np.empty(dimension, np.result_type(view.dtype, np.float64))
    total, parts = np.zeros(int(keep.sum())), 0
    for chosen in column_groups(dimension):
        values = view.columns(chosen)[keep]
        if values.dtype.kind == "c":
            real, real_kept = statistic(np.ascontiguousarray(values.real))
            imaginary, imaginary_kept = statistic(np.ascontiguousarray(values.imag))
            location[chosen] = real + 1j * imaginary
            both = (real_kept, imaginary_kept)
        else:
            location[chosen], kept = statistic(values)
            both = (kept, kept)
        share = (chosen.stop - chosen.start) / 2
        for kept in both:
            total += share * (1.0 if kept is None else kept)
        parts += 2 * share
    weights = np.zeros(count)
    weights[keep] = np.clip(total / parts, 0.0, 1.0)
    return Coordinatewise(location, weights)


def empirical_mean(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Average of all points that are not dropped. Breakdown: a single point. Cost: one pass."""
    weights = usable_points(view, dropped).astype(np.float64)
    message = "the empirical mean: one bad point can move it anywhere"
    return result_without_certificate(view.mean(weights), weights, contamination, message)


def coordinate_median(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Median of every coordinate. Breakdown: one half. Cost: 32 partial passes.

    It estimates the mean only where the points are symmetric about it; ``contamination`` is not used, the weights tell
    nothing but which points were dropped, and there is no certificate.
    """
    keep = usable_points(view, dropped)
    found = coordinatewise(view, keep, lambda values: (np.median(values, axis=0), None))
    return result_without_certificate(
        found.location, found.weights, contamination, f"the coordinate-wise median {_NO_CERTIFICATE}"
    )


def trimmed_mean(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Mean of every coordinate without its ``contamination`` smallest and largest values.

    Breakdown: the stated contamination. Cost: 32 partial passes. A point's weight is the share of coordinates in which
    it was kept; there is no certificate.
    """
    keep = usable_points(view, dropped)
    count = int(keep.sum())
    cut = min(int(np.ceil(contamination * count - OPTIONS.whole)), (count - 1) // 2)

    def statistic(values: Array) -> tuple[Array, Array]:
        parted = np.partition(values, (cut, count - 1 - cut), axis=0)
        low, high = parted[cut], parted[count - 1 - cut]
        inside = (values >= low) & (values <= high)
        return parted[cut : count - cut].mean(axis=0, dtype=np.float64), inside.mean(axis=1)

    found = coordinatewise(view, keep, statistic)
    return result_without_certificate(
        found.location, found.weights, contamination, f"the trimmed mean {_NO_CERTIFICATE}"
    )


def catoni_mean(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """M-estimator of every coordinate in the manner of Catoni (2012), with Holland's bounded influence function.

    The root θ of ``Σ ψ((x − θ) / s) = 0`` with the Gudermannian ``ψ(u) = 2 arctan(tanh(u / 2))``: the mean for what is
    within the scale s, a median for what is far beyond it. Catoni's scale for confidence 1 − δ is
    ``σ sqrt(N / (2 log(1/δ)))``; with ε' in place of ``log(1/δ) / N`` it serves contamination too, ``s = σ/sqrt(2ε')``.
    The spread σ is that of the quartiles, so nothing has to be known.

    Breakdown: a quarter, that of the quartiles. Cost: 32 partial passes, and a few looks at each group in memory. A
    point's weight is the average over coordinates of ``ψ(u) / u``; there is no certificate.
    """
    keep = usable_points(view, dropped)
    if contamination == 0:
        weights = keep.astype(np.float64)
        return result_without_certificate(
            view.mean(weights), weights, 0.0, "the empirical mean: no contamination was stated"
        )
    rounds: list[int] = []

    def statistic(values: Array) -> tuple[Array, Array]:
        low, centre, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
        scale = (high - low) / NORMAL_IQR / np.sqrt(2 * contamination)
        # More than half of the values of a column coincide: its median is the answer, and any tiny scale gives it.
        scale = np.maximum(scale, np.maximum(OPTIONS.flat * np.abs(values).max(axis=0), TINY))
        round_, step = 0, scale
        while round_ < OPTIONS.newton_steps and (np.abs(step) > OPTIONS.newton_tol * scale).any():
            round_ += 1
            relative = (values - centre) / scale
            influence = gudermannian(relative)
            # Newton: the derivative of ψ is 1/cosh, at least one half of the points being within a few scales.
            step = (
                scale
                * influence.mean(axis=0)
                / (1.0 / np.cosh(np.clip(relative, -OPTIONS.steepest, OPTIONS.steepest))).mean(axis=0)
            )
            centre = centre + step
        rounds.append(round_)
        share = np.divide(influence, relative, out=np.ones_like(relative), where=relative != 0)
        return centre, share.mean(axis=1)

    found = coordinatewise(view, keep, statistic)
    return result_without_certificate(
        found.location,
        found.weights,
        contamination,
        f"the Catoni-Holland estimator {_NO_CERTIFICATE}",
        n_iter=max(rounds),
        converged=max(rounds) < OPTIONS.newton_steps,
    )


def gudermannian(u: Array) -> Array:
    """``2 arctan(tanh(u / 2))``: the identity near zero, bounded by π/2."""
    bounded: Array = 2.0 * np.arctan(np.tanh(u / 2.0))
    return bounded


class Buckets:
    """Points dealt at random into buckets of nearly equal size; the bucket means as a cloud that is never made.

    ``labels`` (N,) are the buckets of the points, −1 for those not kept; ``shape`` is the number of buckets and the dimension.
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
    return int(min(max(np.ceil(OPTIONS.buckets_per_bad * contamination * kept - OPTIONS.whole), 1), kept))


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
    return result_without_certificate(found.location, found.weights, contamination, message)


def geometric_median_of_means(
    view: ScaledRows,
    contamination: float,
    *,
    dropped: Array | None = None,
    random_state: Any = None,
    options: WeiszfeldOptions = PRECISE,
) -> MeanResult:
    """Geometric median of the means of ``3 ε' N`` random buckets (Minsker 2015).

    Breakdown: one bad point in every other bucket, 3/2 of the stated contamination. Cost: 32 partial passes, then two
    for each of some ten Weiszfeld iterations. A point's weight is that of its bucket over the largest; there is no
    certificate.
    """
    keep = usable_points(view, dropped)
    buckets = Buckets(view, keep, bucket_count(contamination, int(keep.sum())), random_state)
    found = geometric_median(buckets, options=options)
    weights = np.where(keep, found.weights[buckets.labels], 0.0)
    return result_without_certificate(
        found.centre,
        weights,
        contamination,
        f"the geometric median of {buckets.shape[0]} bucket means gives no certificate",
        n_iter=found.n_iter,
        converged=found.n_iter < options.max_iter,
    )


def agnostic_mean(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Agnostic mean of Lai, Rao and Vempala (2016), which halves the dimension again and again.

    Each level forgets the share ``contamination`` of the points that is farthest from the coordinate-wise median within
    the directions still open, takes the mean of the others along the quieter half of the directions, and hands the rest
    down.

    Breakdown: the stated contamination, with an error of order ``sqrt(ε ‖Σ‖ log n)``. Cost: ``log2 n`` levels and about
    130 passes, ``N n²`` operations and n × n memory: it is here for comparison. A point's weight is the share of
    coordinates whose mean it entered; there is no certificate.
    """
    usable = usable_points(view, dropped)
    dimension = view.shape[1]
    kind = np.result_type(view.dtype, np.float64)
    open_, location = np.eye(dimension, dtype=kind), np.zeros(dimension, kind)
    weights, levels = np.zeros(view.shape[0]), 0
    while open_.shape[1] > 1:
        levels += 1
        keep = truncated(view, usable, open_, contamination)
        mean = view.mean(keep.astype(np.float64))
        noisy, quiet = halves(view, keep, mean, open_)
        location += quiet @ (quiet.conj().T @ mean)
        weights += keep * (quiet.shape[1] / dimension)
        open_ = noisy
    last = view.inner(open_[:, 0])[usable].conj()
    middle = np.median(last.real) + (1j * np.median(last.imag) if last.dtype.kind == "c" else 0.0)
    location += open_[:, 0] * middle
    weights += usable / dimension
    message = "the dimension-halving estimator gives no certificate"
    return result_without_certificate(location, np.minimum(weights, 1.0), contamination, message, n_iter=levels)


def truncated(view: ScaledRows, usable: Array, basis: Array, contamination: float) -> Array:
    """The usable points without the farthest share ``contamination``, by distance to the median along ``basis``."""
    squares = np.zeros(view.shape[0])
    for chosen in column_groups(basis.shape[1]):
        along = view.inner(basis[:, chosen])
        squares += ((along.real - np.median(along.real[usable], axis=0)) ** 2).sum(axis=1)
        if along.dtype.kind == "c":
            squares += ((along.imag - np.median(along.imag[usable], axis=0)) ** 2).sum(axis=1)
    return usable & (squares <= np.quantile(squares[usable], 1.0 - contamination, method="higher"))


def halves(view: ScaledRows, keep: Array, mean: Array, basis: Array) -> tuple[Array, Array]:
    """The half of ``basis``'s span in which the kept points vary most, and the rest of it."""
    weights = keep.astype(np.float64)
    products = [view.covariance_times(weights, mean, basis[:, chosen])[0] for chosen in column_groups(basis.shape[1])]
    small = basis.conj().T @ np.hstack(products)
    _, rotation = np.linalg.eigh((small + small.conj().T) / 2)
    rotated: Array = basis @ rotation
    cut = basis.shape[1] - basis.shape[1] // 2
    return rotated[:, cut:], rotated[:, :cut]
