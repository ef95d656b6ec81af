"""The filter for few, long points: one reading of the data for all of its passes.

The filter turns with the points: it sees nothing but their inner products. N points of dimension d ≫ N, such as the
updates of N workers to a model with d weights, lie in N − 1 dimensions. One pass gives the N × N inner products about one
of the points, a decomposition of these gives coordinates, the filter runs on the coordinates, and its answer is a
weighted mean of the points: a second pass. The products tell more than projections on single directions do, so groups
of points that lean the same way are taken first: :mod:`robustphase.means.collusion`.

The products are taken about a point amid the data, since those about zero lose digits if the data is far from zero. Which
point that is the products themselves tell; if the first choice was bad, they are taken again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robustphase.constants import budget, numeric
from robustphase.means.collusion import without_colluders
from robustphase.means.filter import filter_mean
from robustphase.means.geometric_median import near
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

    Parameters
    ----------
    inner : callable
        Inner products about a point.
    contamination : float or "auto"
        Fraction of the points that may be bad, positive.
    usable : ndarray of bool, shape (N,)
        Points that may be looked at.

    Returns
    -------
    MeanResult
        Its ``location`` is one of the coordinates and of no use; the mean of the points with its ``weights`` is the estimate.
        ``directions`` is None.
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
