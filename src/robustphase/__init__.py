"""Recover a signal from phaseless measurements when part of the data is wrong.

Each measurement is ``y = (a·x)² + z``: the noise ``z`` may have heavy tails and an unknown mean, and an adversary may
have rewritten a fraction of the samples, sensing vectors ``a`` and responses ``y`` alike. The library implements
Buna and Rebeschini, *Robust Gradient Descent for Phase Retrieval*, and what the paper leaves open.
"""

from robustphase import baselines, paper, population, rows, simulate, testing
from robustphase.estimator import RobustPhaseRetrieval
from robustphase.initialise import spectral_init
from robustphase.means import robust_mean
from robustphase.population import distance
from robustphase.spectra import leading_eigenvector, robust_covariance

__all__ = [
    "RobustPhaseRetrieval",
    "__version__",
    "baselines",
    "distance",
    "leading_eigenvector",
    "paper",
    "population",
    "robust_covariance",
    "robust_mean",
    "rows",
    "simulate",
    "spectral_init",
    "testing",
]
__version__ = "0.1.0"
