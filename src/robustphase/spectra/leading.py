"""Leading eigenvector of a covariance under contamination and heavy tails: robust one-component PCA.

Two ideas. *Points farther out than the median distance are winsorised, brought in to it*: an elliptical distribution keeps its
eigenvectors, and the few longest points no longer decide (the winsorised covariance of Raymaekers and Rousseeuw, 2019,
as efficient as Tyler's on heavy tails). *Then the filter*: along the top directions of what is left, outliers raise the
variance above what the quartiles explain, and are taken from the far ends until they do not. A real spike raises both
alike and stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustphase.means.filter import filter_points
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array
from robustphase.spectra.covariance import SECOND_MOMENTS, centred_rows
from robustphase.validation import check_contamination


@dataclass(frozen=True)
class WinsorisingOptions:
    """How points farther out than the median are brought in."""

    tie_break: float = 1e-6  # numeric: share of the logarithm of its length that a point keeps, so that ranks stay


OPTIONS = WinsorisingOptions()


@dataclass(frozen=True)
class EigenResult:
    """Leading eigenvector of a covariance, and its evidence.

    Attributes
    ----------
    vector : ndarray of shape (n,)
        Unit vector; its sign (phase) is arbitrary.
    value : float
        Variance of the kept points along it.
    vectors : ndarray of shape (n, k)
        The leading few eigenvectors, for those who want to see what comes next.
    values : ndarray of shape (k,)
        Variances of the kept, winsorised points along them, largest first; close values mean that ``vector`` is not well
        determined.
    weights : ndarray of shape (N,)
        1 for kept points, 0 for those treated as bad.
    removed : float
        Fraction of the points that was taken away.
    location : ndarray of shape (n,)
        The centre used.
    n_iter : int
        Rounds of the filter.
    converged : bool
        Whether no direction was left that clean points do not explain.
    """

    vector: Array
    value: float
    vectors: Array
    values: Array
    weights: Array
    removed: float
    location: Array
    n_iter: int
    converged: bool


def leading_eigenvector(
    X: Any, contamination: float | str = 0.1, *, assume_centered: bool = False, nonfinite: str = "raise"
) -> EigenResult:
    """Direction of largest variance of points of which a fraction is arbitrary.

    Parameters
    ----------
    X : array-like of shape (N, n) or RowSource
        The points, one per row; real or complex.
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the points that may be bad. Zero gives the leading eigenvector of the winsorised covariance.
    assume_centered : bool, default=False
        The points have mean zero; otherwise their robust mean is subtracted first.
    nonfinite : {"raise", "drop"}, default="raise"
        What to do with rows that hold NaN or infinities: raise an error, or count them as contamination, as finite rows too
        large to square always are.

    Returns
    -------
    EigenResult

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 40)) * np.r_[2.2, np.ones(39)]  # most variance along the first axis
    >>> X[:150, 1], X[150:300, 1] = 9, -9  # opposite outliers along the second
    >>> plain = np.linalg.eigh(X.T @ X)[1][:, -1]
    >>> robust = rp.leading_eigenvector(X, contamination=0.1).vector
    >>> bool(abs(plain[0]) < 0.9 < 0.98 < abs(robust[0]))
    True
    """
    level = check_contamination(contamination, allow_auto=True)
    centred = centred_rows(X, level, assume_centered=assume_centered, nonfinite=nonfinite)
    return leading_direction(ScaledRows(centred.source), level, usable=centred.usable, location=centred.location)


def leading_direction(
    view: ScaledRows,
    contamination: float | str,
    *,
    usable: Array | None = None,
    location: Array | None = None,
    strict: bool = False,
) -> EigenResult:
    """:func:`leading_eigenvector` for the points of a view with mean zero.

    ``strict``: never take more than the stated contamination. For points such as the paper's ``y a``, whose tails are
    heavier along the signal than across it: to the filter the signal itself looks like an outlier.
    """
    keep = np.ones(view.shape[0], bool) if usable is None else usable
    winsorised = view.scaled(winsorising_factors(np.sqrt(view.squared_distances()), keep))
    # Without contamination there is no budget, and only what is blatant would be taken.
    state = filter_points(winsorised, keep, contamination, options=replace(SECOND_MOMENTS, strict=strict))
    # The rows of a source are the aᴴ, so a view's eigenvectors are conjugates of those of the rows.
    vectors = state.worst.vectors.conj()
    along = view.inner(state.worst.vectors[:, 0])[state.keep]
    return EigenResult(
        vector=vectors[:, 0],
        value=float(np.mean(np.abs(along) ** 2)),
        vectors=vectors,
        values=state.worst.variances,
        weights=state.keep.astype(np.float64),
        removed=1.0 - float(state.keep.mean()),
        location=np.zeros(view.shape[1]) if location is None else location,
        n_iter=state.rounds,
        converged=state.converged,
    )


def winsorising_factors(lengths: Array, keep: Array) -> Array:
    """Factors that bring the points farther out than the median length (of those not at zero) in to it."""
    away = lengths[keep & (lengths > 0)]
    radius = float(np.median(away)) if away.size else 0.0
    factor = np.ones(lengths.shape)
    outside = lengths > radius
    # Not quite all the way: the filter looks at ranks of lengths, and roundings must not decide them.
    factor[outside] = (radius / lengths[outside]) ** (1 - OPTIONS.tie_break)
    return factor
