"""Robust statistics with the interfaces that people know.

The library's robust means and covariances (:mod:`robustphase.means`, :mod:`robustphase.spectra`) for everybody, phases or not:

* :class:`RobustCovariance`, a covariance estimator of scikit-learn;
* :class:`RobustEnvelope`, which tells outliers by it;
* :class:`RobustPCA`, principal components that bad rows do not turn;
* :func:`aggregate`, the mean of a few long vectors some of which are not to be trusted, in NumPy or torch.

Where each of them shines and where it does not: ``docs/statistics.md``.
"""

from robustphase.statistics.aggregation import aggregate
from robustphase.statistics.covariance import RobustCovariance, RobustEnvelope
from robustphase.statistics.pca import RobustPCA

__all__ = ["RobustCovariance", "RobustEnvelope", "RobustPCA", "aggregate"]
