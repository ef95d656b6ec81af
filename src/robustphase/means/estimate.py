"""One function for every robust mean: checks, the level, a common frame for the data, and the choice of method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustphase.means.classical import (
    agnostic_mean,
    catoni_mean,
    coordinate_median,
    empirical_mean,
    geometric_median_of_means,
    median_of_means,
    trimmed_mean,
)
from robustphase.means.filter import filter_mean
from robustphase.means.geometric_median import geometric_median_mean
from robustphase.means.gram import few_and_long, filter_by_products
from robustphase.means.mmw import mmw_mean
from robustphase.means.result import MeanResult, usable_points
from robustphase.rows import OperatorRows, RowSource, ScaledRows, ShiftedRows, as_source, rows_at
from robustphase.rows.gram import gram_about
from robustphase.rows.opening import as_array
from robustphase.rows.source import Array
from robustphase.validation import NONFINITE, check_choice, check_contamination, check_fraction, hide_extremes

Estimator = Callable[..., MeanResult]

#: Estimators by name: ``estimator(view, contamination, *, dropped) -> MeanResult``.
METHODS: dict[str, Estimator] = {
    "filter": filter_mean,
    "mmw": mmw_mean,
    "geometric_median_of_means": geometric_median_of_means,
    "median_of_means": median_of_means,
    "geometric_median": geometric_median_mean,
    "trimmed": trimmed_mean,
    "median": coordinate_median,
    "catoni": catoni_mean,
    "lrv": agnostic_mean,
    "empirical": empirical_mean,
}
#: Methods that draw random numbers and take ``random_state``.
RANDOMISED = frozenset({"mmw", "geometric_median_of_means", "median_of_means"})
#: Methods that use no contamination level, so that ``"auto"`` asks nothing of them.
LEVEL_FREE = frozenset({"geometric_median", "median", "empirical"})


@dataclass(frozen=True)
class EstimateOptions:
    """The highest level of contamination, and when the origin is moved."""

    highest_level: float = 0.49  # derived: with half of the points bad nobody can tell good from bad
    looked_at: int = 65  # budget: points that tell how far the data is from zero
    far: float = 100.0  # numeric: distance over spread; centring after the products loses as many digits as this has


OPTIONS = EstimateOptions()
#: Highest level of contamination that is ever used, however little confidence is asked for.
HIGHEST_LEVEL = OPTIONS.highest_level


def robust_mean(
    X: Any,
    contamination: float | str = 0.1,
    method: str = "filter",
    *,
    delta: float | None = None,
    nonfinite: str = "raise",
    random_state: Any = None,
) -> MeanResult:
    """Mean of points of which a fraction is arbitrary.

    Parameters
    ----------
    X : array-like of shape (N, n) or (N,), or RowSource
        The points, one per row; real or complex. A one-dimensional array is N numbers.
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the points that may be bad. Zero (without ``delta``) gives the empirical mean. ``"auto"`` takes away
        only what stands out clearly and reports the fraction found; methods other than ``"filter"`` use the fraction
        that the filter finds, or none if they need none.
    method : str, default="filter"
        One of :data:`METHODS`: ``"filter"`` or ``"mmw"`` (error independent of the dimension), or for comparison
        ``"geometric_median_of_means"``, ``"median_of_means"``, ``"geometric_median"``, ``"trimmed"``, ``"median"``,
        ``"catoni"``, ``"lrv"``, ``"empirical"``.
    delta : float, optional
        Confidence parameter: the level used becomes ε' = ε + log(1/δ)/N, so that heavy-tailed data without
        contamination is estimated well with probability 1 − δ. Default: no such allowance.
    nonfinite : {"raise", "drop"}, default="raise"
        What to do with points that hold NaN or infinities: raise an error, or give them weight zero and count them as
        contamination, as finite points too large to square always are.
    random_state : int, RandomState or None
        Seed for the methods that draw random numbers: ``"mmw"`` and those with buckets.

    Returns
    -------
    MeanResult
        With ``location``, ``weights``, ``top_variance`` (the certificate), ``removed``, ``converged`` and ``message``.

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 50))
    >>> X[:200] += 7  # a tenth of the points, moved by 7 in every coordinate
    >>> result = rp.robust_mean(X, contamination=0.1)
    >>> bool(np.linalg.norm(X.mean(axis=0)) > 4)
    True
    >>> bool(np.linalg.norm(result.location) < 0.3)
    True
    """
    level = check_contamination(contamination, allow_auto=True)
    check_choice("method", method, tuple(METHODS))
    check_choice("nonfinite", nonfinite, NONFINITE)
    X = as_array(X, name="X") if isinstance(X, (list, tuple)) else X
    flat = not isinstance(X, RowSource) and np.ndim(X) == 1
    source = as_source(as_array(X, name="X")[:, np.newaxis] if flat else X, name="X")
    level = confident_level(level, delta, source.shape[0])
    safe, dropped = hide_extremes(source, nonfinite, name="X")
    if dropped.all():
        raise ValueError("every row of X holds NaN, infinite or overflowing entries; nothing is left to average.")
    result = mean_of(safe, level, method=method, dropped=dropped, random_state=random_state)
    if flat:
        return replace(result, location=result.location[0])
    return result


def confident_level(contamination: float | str, delta: float | None, count: int) -> float | str:
    """The level ``ε' = ε + log(1/δ)/N`` of Proposition 2.1 to use on N points: confidence 1 − δ costs contamination.

    ``"auto"``, and any level without a δ, stays as it is.
    """
    if delta is None or isinstance(contamination, str):
        return contamination
    return min(contamination + float(np.log(1 / check_fraction("delta", delta))) / count, HIGHEST_LEVEL)


def mean_of(
    source: RowSource,
    contamination: float | str,
    *,
    method: str = "filter",
    dropped: Array | None = None,
    random_state: Any = None,
) -> MeanResult:
    """Robust mean of the rows of a source that holds no overflowing numbers; see :func:`robust_mean`."""
    if (
        method == "filter"
        and contamination != 0
        and few_and_long(source.shape)
        and not isinstance(source, OperatorRows)
    ):
        return _of_few(source, contamination, dropped)
    origin = _far_origin(source, dropped)
    view = ScaledRows(source if origin is None else ShiftedRows(source, origin))
    if contamination == "auto" and method != "filter":
        contamination = _found_level(view, method, dropped)
    if contamination == 0 and method in ("filter", "mmw"):
        method = "empirical"
    options = {"random_state": random_state} if method in RANDOMISED else {}
    result = METHODS[method](view, contamination, dropped=dropped, **options)
    # A view's points are the conjugates of the rows, since the rows of A are the aᴴ; here the rows are the points.
    location = result.location.conj()
    return replace(result, location=location if origin is None else location + origin)


def _of_few(source: RowSource, contamination: float | str, dropped: Array | None) -> MeanResult:
    """The filter on few, long points: one pass for their inner products, one for the mean."""
    view = ScaledRows(source)
    found = filter_by_products(lambda point: gram_about(source, point), contamination, usable_points(view, dropped))
    return replace(found, location=view.mean(found.weights).conj())


def _found_level(view: ScaledRows, method: str, dropped: Array | None) -> float:
    """The contamination that the filter finds; not a number for methods that make no use of it."""
    return float("nan") if method in LEVEL_FREE else filter_mean(view, "auto", dropped=dropped).contamination


def _far_origin(source: RowSource, dropped: Array | None) -> Array | None:
    """A point amid the data if the data is far from zero compared with its spread, else None.

    Centring after the products loses digits, one for every factor of ten between distance and spread; moving the origin
    costs time in every pass, so it is done only where it matters.
    """
    usable = np.arange(source.shape[0]) if dropped is None else np.flatnonzero(~dropped)
    chosen = usable[np.linspace(0, usable.size - 1, min(usable.size, OPTIONS.looked_at)).astype(int)]
    some = rows_at(source, chosen)
    middle = np.median(some.real, axis=0)
    if some.dtype.kind == "c":
        middle = middle + 1j * np.median(some.imag, axis=0)
    spread = float(np.median(np.linalg.norm(some - middle, axis=1)))
    return middle if float(np.linalg.norm(middle)) > OPTIONS.far * spread else None
