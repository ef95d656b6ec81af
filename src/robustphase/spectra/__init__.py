"""Robust spectra: CovEst of the paper, and the leading eigenvector it is needed for.

The paper starts its descent at the leading eigenvector of a covariance, and estimates the covariance with an estimator
nobody can compute (Proposition 2.2). Two ways out, both here:

* the estimator itself, solved to a stated gap in up to about twenty dimensions (``minmax``): the reference;
* the filter of the robust mean, asked about second moments instead (``covariance``, ``leading``): any dimension, a few
  passes. Outliers that raise the variance along a direction stand out there against its own quartiles, whether they form
  a cluster or two opposite ones.
"""

from robustphase.spectra.covariance import CovarianceResult, robust_covariance
from robustphase.spectra.leading import EigenResult, leading_eigenvector

__all__ = ["CovarianceResult", "EigenResult", "leading_eigenvector", "robust_covariance"]
