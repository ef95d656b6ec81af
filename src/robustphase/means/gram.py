"""The filter for few, long points: one reading of the data for all of its passes.

The filter turns with the points: it sees nothing but their inner products. N points of dimension d ≫ N, such as the
updates of N workers to a model with d weights, lie in N − 1 dimensions. One pass gives the N × N inner products about one
of the points, a decomposition of these gives coordinates, the filter runs on the coordinates, and its answer is a
weighted mean of the points: a second pass.

The products are taken about a point amid the data, since those about zero lose digits if the data is far from zero. Which
point that is the products themselves tell; if the first choice was bad, they are taken again.

They tell more than projections on single directions do, so groups of points that lean the same way are taken first. Along one
direction 20 points tell little. In d ≫ N dimensions they need not: deviations of independent points are nearly
orthogonal, so the cosines between them are all near one value, and the largest eigenvalue of their matrix is near its edge
``(1 + s √k)²`` for k points and cosines that spread by s (Marchenko and Pastur, with the effective dimension 1/s²). Points
that act together have cosines near one, however near to the others they stay, and raise it to the size of their group.

The spread s is a median over pairs. If independent points share a few large directions, it is wide, the edge is high, and
nobody is accused. From a share ``ε = 1 − 1/√2`` of bad points on most pairs hold one, and the median says nothing; then the
filter is alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robustphase.constants import TINY, budget, derived, empirical, numeric
from robustphase.means.excess import OPTIONS as EXCESS
from robustphase.means.filter import filter_mean
from robustphase.means.geometric_median import geometric_median, near
from robustphase.means.result import MeanResult
from robustphase.rows import MemoryRows, ScaledRows
from robustphase.rows.source import Array

#: ``inner(j)``: inner products of all points about point j, shape (N, N), double precision.
InnerProducts = Callable[[int], Array]


@dataclass(frozen=True)
class GramOptions:
    """Where inner products are cheaper than passes, and when they are taken about another point."""

    most: int = budget(128, "points; the passes of the filter multiply with about as many vectors in all")
    longer: int = budget(4, "dimension over points; below it the coordinates are hardly shorter than the points")
    far: float = numeric(100.0, "distance over spread; products lose twice as many digits as this has")


OPTIONS = GramOptions()


def few_and_long(shape: tuple[int, int]) -> bool:
    """Whether inner products of all pairs cost less than the passes of the filter."""
    count, dimension = shape
    return 1 < count <= OPTIONS.most and dimension >= OPTIONS.longer * count


def filter_by_products(inner: InnerProducts, contamination: float | str, usable: Array) -> MeanResult:
    """What :func:`robustphase.means.filter.filter_mean` finds once groups are gone, from inner products alone.

    The ``location`` of the result is one of the coordinates and of no use; the mean of the points with its ``weights`` is the
    estimate. ``directions`` is None.
    """
    gram = products_amid(inner, usable)
    # Absurdly far points would cost the others their digits in the decomposition; the filter would not look at them either.
    usable = usable & near(np.sqrt(np.diag(gram).real), usable, contamination)
    points = coordinates(gram, usable)
    keep = without_colluders(points, usable, contamination)
    found = filter_mean(ScaledRows(MemoryRows(points)), contamination, dropped=~keep)
    return replace(found, directions=None)


def products_amid(inner: InnerProducts, usable: Array) -> Array:
    """Inner products about the usable point with the smallest median distance to the others, shape (N, N)."""
    reference = int(np.flatnonzero(usable)[0])
    gram = inner(reference)
    typical = np.median(_squared_distances(gram)[np.ix_(usable, usable)], axis=0)
    middle = int(np.flatnonzero(usable)[np.argmin(typical)])
    if gram[middle, middle].real > OPTIONS.far**2 * typical.min():
        return inner(middle)
    return np.asarray(gram - gram[:, [middle]] - gram[[middle], :] + gram[middle, middle])


def coordinates(gram: Array, usable: Array) -> Array:
    """Points with the given inner products, shape (N, r); those that are not usable are at zero."""
    variances, vectors = np.linalg.eigh(np.where(np.logical_and.outer(usable, usable), gram, 0.0))
    points: Array = (vectors * np.sqrt(np.maximum(variances, 0.0)))[:, variances > 0]
    return points if points.shape[1] else np.zeros((len(gram), 1))


def _squared_distances(gram: Array) -> Array:
    lengths = np.diag(gram).real
    return np.asarray(np.maximum(lengths[:, np.newaxis] + lengths - 2 * gram.real, 0.0))


@dataclass(frozen=True)
class CollusionOptions:
    """When a group is one, and who belongs to it."""

    edge: float = derived(4.0, "times k^(-2/3), by which the edge fluctuates; four deviations of a skewed law")
    together: float = derived(
        0.5, "squared share over the largest; a point at half of it has cosine 0.7 with the group"
    )
    deviation: float = derived(1.4826, "standard deviation over median absolute deviation, for normal cosines")
    whole: float = numeric(1e-9, "a count that is whole up to roundings is not rounded down")
    fewest: int = empirical(5, "points; fewer have too few cosines for a median")


COLLUSION = CollusionOptions()


def without_colluders(points: Array, usable: Array, contamination: float | str) -> Array:
    """The usable points without groups that lean the same way, shape (N,) boolean.

    No more are taken than the stated contamination allows; with ``"auto"``, up to nearly half, if the group is clear.
    """
    keep = usable.copy()
    clear, most = (EXCESS.clear, EXCESS.most) if isinstance(contamination, str) else (1.0, contamination)
    centre = geometric_median(ScaledRows(MemoryRows(points)), weights=keep.astype(np.float64)).centre.conj()
    while keep.sum() >= COLLUSION.fewest:
        # A product of whole size must not lose its last point to a rounding.
        room = int(most * keep.size + COLLUSION.whole) - int(keep.size - keep.sum())
        group = _largest_group(points[keep] - centre, clear)
        if room <= 0 or group.size == 0:
            break
        keep[np.flatnonzero(keep)[group[:room]]] = False
        centre = points[keep].mean(axis=0)
    return keep


def _largest_group(deviations: Array, clear: float) -> Array:
    """Who raises the largest eigenvalue of the cosines above its edge, most involved first; empty if nobody does."""
    count = len(deviations)
    unit = deviations / np.maximum(np.linalg.norm(deviations, axis=1, keepdims=True), TINY)
    cosines = (unit @ unit.conj().T).real
    pairs = cosines[np.triu_indices(count, 1)]
    common = float(np.median(pairs))
    spread = COLLUSION.deviation * float(np.median(np.abs(pairs - common)))
    # What all share comes from a centre that is off, not from a group.
    values, vectors = np.linalg.eigh(cosines - common * (1.0 - np.eye(count)))
    slack = EXCESS.slack + COLLUSION.edge * count ** (-2 / 3)
    if values[-1] <= clear * (1.0 + slack) * (1.0 + spread * np.sqrt(count)) ** 2:
        return np.empty(0, np.intp)
    shares = vectors[:, -1] ** 2
    order = np.argsort(-shares, kind="stable")
    group: Array = order[shares[order] >= COLLUSION.together * shares.max()]
    return group
