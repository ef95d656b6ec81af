"""Principal components that bad rows do not turn.

Three steps. *Which rows are bad?* What the robust covariance finds; where there are too few rows to whiten, what the filter for
leading eigenvectors finds. *Which lengths count?* If the lengths of the good rows vary more than those of normal rows with the
same covariance, rows beyond the median length are brought in to it: that keeps the directions of elliptical data and takes the
say from the few longest rows. *The components* are the leading eigenvectors of what is left, by the smaller of the two products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from robustphase.constants import TINY
from robustphase.means.excess import limits_for
from robustphase.rows import RowSource, ScaledRows, ShiftedRows, project
from robustphase.rows.gram import gram_about
from robustphase.rows.source import Array
from robustphase.spectra import leading_eigenvector, robust_covariance
from robustphase.spectra.covariance import second_moment
from robustphase.spectra.leading import winsorising_factors
from robustphase.spectra.outlyingness import OPTIONS as OUTLYINGNESS
from robustphase.spectra.reconsider import enough_points
from robustphase.statistics.inputs import open_points
from robustphase.validation import check_contamination


class RobustPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal component analysis of rows of which a fraction is arbitrary.

    The same place in a program as :class:`sklearn.decomposition.PCA`. There may be more features than rows.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None, default=None
        Number of components; a fraction: as many as explain it of the variance; None: all there are.
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the rows that may be bad. Zero gives ordinary components.

    Attributes
    ----------
    components_ : ndarray of shape (k, n_features)
        Orthonormal directions, most variance first; the largest entry of each is positive.
    explained_variance_ : ndarray of shape (k,)
        Variance of the good rows along them.
    explained_variance_ratio_ : ndarray of shape (k,)
        The same over the total variance of the good rows.
    mean_ : ndarray of shape (n_features,)
        Mean of the good rows.
    weights_ : ndarray of shape (n_samples,)
        1 for good rows, 0 for bad ones, between where they overlap.
    contamination_ : float
        Fraction of the weight that was taken away.
    n_components_, n_samples_, n_features_in_ : int
        How many components, rows and features.
    converged_ : bool
        Whether the good rows vary along every direction looked at as clean ones would.

    Notes
    -----
    ``X`` may be an array, a data frame, or rows on disk or on a cluster (a path, an h5py, zarr or dask array, a
    :class:`robustphase.rows.RowSource`), which are never loaded whole.

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 40)) * np.r_[3, 2.2, np.ones(38)]
    >>> X[:150, 2], X[150:300, 2] = 12, -12  # opposite outliers along the third axis
    >>> model = rp.RobustPCA(n_components=2, contamination=0.1).fit(X)
    >>> bool((np.abs(np.diag(model.components_)) > 0.97).all())
    True
    """

    def __init__(self, n_components: float | None = None, *, contamination: float | str = 0.1) -> None:
        self.n_components = n_components
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> RobustPCA:
        """Find the components of the good rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The data.
        y : ignored
            For pipelines.

        Returns
        -------
        RobustPCA
            Itself.
        """
        level = check_contamination(self.contamination, allow_auto=True)
        source = open_points(self, X, reset=True)
        wanted = self._wanted(source.shape)
        good = _good_rows(source, level)
        centred = ShiftedRows(source, good.mean)
        squares = ScaledRows(centred).squared_distances()
        spectrum = _spectrum(centred, good.weights)
        if level != 0 and _long_tails(squares, good.weights, spectrum.values):
            factors = winsorising_factors(np.sqrt(squares), good.weights > OUTLYINGNESS.good)
            spectrum = _spectrum(centred, good.weights * factors**2)
        self._keep(centred, good, spectrum.vectors, float(good.weights @ squares), wanted)
        self.mean_, self.weights_, self.converged_ = good.mean, good.weights, good.converged
        self.contamination_, self.n_samples_ = 1.0 - float(good.weights.mean()), source.shape[0]
        return self

    def _wanted(self, shape: tuple[int, int]) -> int | float:
        most, wanted = min(shape), self.n_components
        if wanted is None:
            return most
        if isinstance(wanted, (float, np.floating)) and 0 < wanted < 1:
            return float(wanted)
        if isinstance(wanted, bool) or not isinstance(wanted, (int, np.integer)) or not 1 <= wanted <= most:
            raise ValueError(
                f"n_components must be None, a fraction between 0 and 1 or a whole number from 1 to {most}, the smaller of "
                f"the numbers of rows and features, got {wanted!r}."
            )
        return int(wanted)

    def _keep(self, centred: RowSource, good: _Good, vectors: Array, total: float, wanted: int | float) -> None:
        """Take over the leading vectors, in the order of the variance of the good rows along them."""
        degrees = max(float(good.weights.sum()) - 1.0, 1.0)
        variances = good.weights @ project(centred, vectors) ** 2 / degrees
        order = np.argsort(-variances, kind="stable")
        variances, vectors = variances[order], vectors[:, order]
        ratios = variances / max(total / degrees, TINY)
        if isinstance(wanted, float):
            wanted = min(int(np.searchsorted(np.cumsum(ratios), wanted)) + 1, variances.size)
        signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(variances.size)])
        self.components_ = (vectors * signs).T[:wanted]
        self.explained_variance_, self.explained_variance_ratio_ = variances[:wanted], ratios[:wanted]
        self.n_components_ = len(self.components_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> Array:
        """Coordinates of rows in the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, k)
        """
        check_is_fitted(self)
        source = open_points(self, X, reset=False)
        return project(ShiftedRows(source, self.mean_), self.components_.T)

    def inverse_transform(self, X: Any) -> Array:
        """Rows with the given coordinates and nothing else.

        Parameters
        ----------
        X : array-like of shape (n_samples, k)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return np.asarray(np.asarray(X) @ self.components_ + self.mean_)


class _Good(NamedTuple):
    """Weights of the rows, their weighted mean, and whether the search settled."""

    weights: Array
    mean: Array
    converged: bool


class _Spectrum(NamedTuple):
    """Variances, largest first, and their directions."""

    values: Array
    vectors: Array


def _good_rows(source: RowSource, level: float | str) -> _Good:
    count, n = source.shape
    if level == 0:
        weights, converged = np.ones(count), True
    elif enough_points(float(count), n):
        found = robust_covariance(source, level)
        weights, converged = found.weights, found.converged
    else:
        leading = leading_eigenvector(source, level)
        weights, converged = leading.weights, leading.converged
    return _Good(weights, ScaledRows(source).mean(weights), converged)


def _long_tails(squares: Array, weights: Array, variances: Array) -> bool:
    """Whether squared lengths vary more than those of normal rows, whose variance is twice the sum of squared variances."""
    share = weights / weights.sum()
    spread = float(share @ (squares - share @ squares) ** 2)
    slack = limits_for(np.sqrt(squares[weights > 0]), 0.0).slack
    return spread > (1.0 + slack) * 2.0 * float((variances**2).sum())


def _spectrum(centred: RowSource, weights: Array) -> _Spectrum:
    """Eigenvalues of the weighted second moment and orthonormal eigenvectors, as many as there can be."""
    count, n = centred.shape
    share = weights / weights.sum()
    if n <= count:
        values, vectors = np.linalg.eigh(second_moment(centred, weights))
        return _Spectrum(np.maximum(values[::-1], 0.0), vectors[:, ::-1])
    roots = np.sqrt(share)
    values, inside = np.linalg.eigh(roots[:, np.newaxis] * _gram(centred) * roots)
    order = np.argsort(-values)
    # Vectors of directions without variance are arbitrary, and must be orthonormal all the same.
    vectors = np.linalg.qr(ScaledRows(centred).total(roots[:, np.newaxis] * inside[:, order]))[0]
    return _Spectrum(np.maximum(values[order], 0.0), vectors)


def _gram(centred: RowSource) -> Array:
    """Inner products of rows about zero."""
    about_first = gram_about(centred, 0)
    first = project(centred, ScaledRows(centred).total(np.eye(1, centred.shape[0])[0]))
    return np.asarray(about_first + first[:, np.newaxis] + first - first[0])
