"""A covariance estimator of scikit-learn that bad rows do not move, and the outliers beside it.

Outliers are found by their outlyingness: how far out they are, and how far along the directions of the rows that were taken for
bad.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import OutlierMixin
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils.validation import check_is_fitted

from robustphase.rows import RowSource, ShiftedRows
from robustphase.rows.source import Array, Parts
from robustphase.spectra import CovarianceResult, robust_covariance
from robustphase.spectra.outlyingness import OPTIONS as OUTLYINGNESS
from robustphase.spectra.outlyingness import scores_by, yardstick_of
from robustphase.statistics.inputs import open_points
from robustphase.validation import check_contamination


class RobustCovariance(EmpiricalCovariance):  # type: ignore[misc]
    """Mean and covariance of rows of which a fraction is arbitrary.

    The same place in a program as :class:`sklearn.covariance.MinCovDet`, and any number of features: the cost is that of a few
    dozen passes over the data. Bad rows are found along the directions in which they would change the covariance, so they may be
    no farther out than good ones.

    Parameters
    ----------
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the rows that may be bad. Zero gives the empirical covariance. ``"auto"`` takes away only what stands out
        clearly.
    assume_centered : bool, default=False
        The good rows have mean zero.
    store_precision : bool, default=True
        Keep the (pseudo-)inverse of the covariance.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Mean of the good rows.
    covariance_ : ndarray of shape (n_features, n_features)
        Their covariance.
    precision_ : ndarray of shape (n_features, n_features)
        Its pseudo-inverse, if ``store_precision``.
    weights_ : ndarray of shape (n_samples,)
        1 for good rows, 0 for bad ones, between where they overlap.
    support_ : ndarray of bool, shape (n_samples,)
        Rows that are rather good than bad.
    dist_ : ndarray of shape (n_samples,)
        Squared Mahalanobis distances of the training rows.
    contamination_ : float
        Fraction of the weight that was taken away.
    n_iter_ : int
        Rounds made.
    converged_ : bool
        Whether the good rows vary along every direction looked at as clean ones would.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    ``X`` may be an array, a data frame, or rows on disk or on a cluster (a path, an h5py, zarr or dask array, a
    :class:`robustphase.rows.RowSource`), which are never loaded whole. ``score`` is the mean log-likelihood of rows under a
    normal law with this mean and covariance, as in scikit-learn; it is not robust itself.

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 30))
    >>> X[:200] = 6 * np.eye(30)[0] + 0.1 * rng.standard_normal((200, 30))
    >>> model = rp.RobustCovariance(contamination=0.1).fit(X)
    >>> bool(np.cov(X.T)[0, 0] > 3 > 1.3 > model.covariance_[0, 0])
    True
    >>> int(model.support_[:200].sum())
    0
    """

    _parameter_constraints: dict[str, Any] = {}  # noqa: RUF012

    def __init__(
        self, *, contamination: float | str = 0.1, assume_centered: bool = False, store_precision: bool = True
    ) -> None:
        super().__init__(store_precision=store_precision, assume_centered=assume_centered)
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> RobustCovariance:
        """Estimate mean and covariance of the good rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The data.
        y : ignored
            For pipelines.

        Returns
        -------
        RobustCovariance
            Itself.
        """
        self._fit(X)
        return self

    def _fit(self, X: Any) -> tuple[RowSource, CovarianceResult]:
        level = check_contamination(self.contamination, allow_auto=True)
        source = open_points(self, X, reset=True)
        found = robust_covariance(source, level, assume_centered=self.assume_centered)
        self.location_, self.weights_ = found.location, found.weights
        self._set_covariance(found.covariance)
        self.support_ = found.weights > OUTLYINGNESS.good
        self.contamination_, self.n_iter_, self.converged_ = found.removed, found.n_iter, found.converged
        self.dist_ = self._distances(source)
        return source, found

    def mahalanobis(self, X: Any) -> Array:
        """Squared Mahalanobis distances of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._distances(open_points(self, X, reset=False))

    def score(self, X_test: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows under a normal law with the mean and covariance found; not robust itself.

        Parameters
        ----------
        X_test : array-like of shape (n_samples, n_features), or stored rows
            The rows.
        y : ignored
            For pipelines.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        precision = self.get_precision()
        sign, volume = np.linalg.slogdet(precision)
        squares = self._distances(open_points(self, X_test, reset=False))
        constant = len(precision) * np.log(2 * np.pi)
        return float(0.5 * ((volume if sign > 0 else -np.inf) - constant - squares.mean()))

    def _distances(self, source: RowSource) -> Array:
        precision, location = self.get_precision(), self.location_

        def kernel(block: Array) -> Parts:
            deviations = block - location
            return Parts(rows=(np.vecdot(np.dot(deviations, precision), deviations),))

        return np.asarray(np.maximum(source.reduce(kernel).rows[0], 0.0))


class RobustEnvelope(OutlierMixin, RobustCovariance):  # type: ignore[misc]
    """Outlier detection in data that is normal but for a fraction of arbitrary rows.

    The same place in a program as :class:`sklearn.covariance.EllipticEnvelope`. An envelope of distances alone cannot see
    outliers that are no farther out than good rows, such as a tight cluster: in many dimensions there is room at every distance.
    So two scores count, both standard normal for good rows: the length of the whitened row, and its length within the directions
    in which the rows taken for bad would change the covariance. A row is as outlying as the larger of the two.

    Parameters
    ----------
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the training rows that are called outliers, and that the covariance is guarded against. With ``"auto"`` only
        what stands out clearly is guarded against, and rows are outliers if they are as outlying as the rows found bad, or more
        than the most outlying of as many good rows would be.
    assume_centered : bool, default=False
        The good rows have mean zero.
    store_precision : bool, default=True
        Keep the (pseudo-)inverse of the covariance.

    Attributes
    ----------
    offset_ : float
        ``decision_function`` is ``score_samples`` minus this; negative for outliers.
    outlyingness_ : ndarray of shape (n_samples,)
        Outlyingness of the training rows, in deviations of a good row.
    location_, covariance_, precision_, weights_, support_, dist_, contamination_, n_iter_, converged_
        As in :class:`RobustCovariance`.

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 30))
    >>> X[:200] = 6 * np.eye(30)[0] + 0.1 * rng.standard_normal((200, 30))
    >>> found = rp.RobustEnvelope(contamination=0.1).fit_predict(X)
    >>> bool((found[:200] == -1).all() and (found[200:] == 1).all())
    True
    """

    def fit(self, X: Any, y: Any = None) -> RobustEnvelope:
        """Find the covariance of the good rows of ``X``, and how outlying each row is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The data.
        y : ignored
            For pipelines.

        Returns
        -------
        RobustEnvelope
            Itself.
        """
        source, found = self._fit(X)
        every = np.ones(source.shape[0], bool)
        moved = ShiftedRows(source, found.location)
        self._yardstick = yardstick_of(moved, found.weights, every, centred=True)[0]
        # As a fresh row would be judged, so that predictions for the training rows are those of the fit.
        scores = scores_by(moved, self._yardstick)
        self.outlyingness_ = scores.max(axis=1)
        self.offset_ = -self._limit(scores)
        return self

    def _limit(self, scores: Array) -> float:
        """Outlyingness from which on a row is an outlier."""
        worst = scores.max(axis=1)
        if not isinstance(self.contamination, str):
            return float(np.quantile(worst, 1.0 - self.contamination))
        # One good row in the whole data set is expected to exceed this in any of its scores.
        chance = float(norm.isf(1.0 / scores.size))
        return min(chance, float(np.quantile(worst, 1.0 - self.contamination_)))

    def score_samples(self, X: Any) -> Array:
        """Minus the outlyingness of rows: the lower, the more outlying.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        source: RowSource = open_points(self, X, reset=False)
        return np.asarray(-scores_by(ShiftedRows(source, self.location_), self._yardstick).max(axis=1))

    def decision_function(self, X: Any) -> Array:
        """``score_samples`` minus ``offset_``: negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> Array:
        """-1 for outliers and 1 for the rest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or stored rows
            The rows.

        Returns
        -------
        ndarray of int, shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
