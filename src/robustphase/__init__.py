"""Recover a signal from phaseless measurements when part of the data is wrong.

Each measurement is ``y = (a·x)² + z``: the noise ``z`` may have heavy tails and an unknown mean, and an adversary may
have rewritten a fraction of the samples, sensing vectors ``a`` and responses ``y`` alike. The library implements
Buna and Rebeschini, *Robust Gradient Descent for Phase Retrieval*, and what the paper leaves open.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from robustphase import baselines, paper, population, rows, simulate, testing
from robustphase.estimator import RobustPhaseRetrieval
from robustphase.initialise import spectral_init
from robustphase.means import robust_mean
from robustphase.population import distance
from robustphase.spectra import leading_eigenvector, robust_covariance
from robustphase.statistics import RobustCovariance, RobustEnvelope, RobustPCA, aggregate

if TYPE_CHECKING:
    from robustphase import experiments, files, plot, report
    from robustphase.experiments import plan

__all__ = [
    "RobustCovariance",
    "RobustEnvelope",
    "RobustPCA",
    "RobustPhaseRetrieval",
    "__version__",
    "aggregate",
    "baselines",
    "distance",
    "experiments",
    "files",
    "leading_eigenvector",
    "paper",
    "plan",
    "plot",
    "population",
    "report",
    "robust_covariance",
    "robust_mean",
    "rows",
    "simulate",
    "spectral_init",
    "testing",
]
__version__ = "0.1.0"

#: Rooms on top of the library, opened when somebody asks for them: importing robustphase stays quick.
_OPENED_LATER = ("experiments", "files", "plot", "report")


def __getattr__(name: str) -> Any:
    if name in _OPENED_LATER:
        return import_module(f"robustphase.{name}")
    if name == "plan":
        return import_module("robustphase.experiments").plan
    raise AttributeError(f"module 'robustphase' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
