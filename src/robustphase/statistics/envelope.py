"""Outliers by their outlyingness: how far out, and how far along the directions of the rows that were taken for bad."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from robustphase.rows import RowSource, ShiftedRows
from robustphase.rows.source import Array
from robustphase.spectra.outlyingness import scores_by, yardstick_of
from robustphase.statistics.covariance import RobustCovariance
from robustphase.statistics.inputs import open_points


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
