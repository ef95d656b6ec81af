"""Recover a signal from phaseless measurements when part of the data is wrong.

Each measurement is ``y = (a·x)² + z``: the noise ``z`` may have heavy tails and an unknown mean, and an adversary may
have rewritten a fraction of the samples, sensing vectors ``a`` and responses ``y`` alike. The library implements
Buna and Rebeschini, *Robust Gradient Descent for Phase Retrieval*, and what the paper leaves open.

Every public name is loaded when it is first asked for (SPEC 1): ``import robustphase`` costs next to nothing, and who
wants the closed forms does not wait for scikit-learn.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = (
    False  # That of typing, without its import, during which Ctrl-C in the command line would be a traceback.
)
if TYPE_CHECKING:
    import typing

    from robustphase import baselines, experiments, files, paper, plot, population, report, rows, simulate, testing
    from robustphase.estimator import RobustPhaseRetrieval
    from robustphase.experiments import plan
    from robustphase.initialise import spectral_init
    from robustphase.means import robust_mean
    from robustphase.population import distance
    from robustphase.spectra import leading_eigenvector, robust_covariance
    from robustphase.statistics import RobustCovariance, RobustEnvelope, RobustPCA, aggregate

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

#: Where the functions and classes offered here live.
_HOMES = {
    "RobustCovariance": "statistics",
    "RobustEnvelope": "statistics",
    "RobustPCA": "statistics",
    "RobustPhaseRetrieval": "estimator",
    "aggregate": "statistics",
    "distance": "population",
    "leading_eigenvector": "spectra",
    "plan": "experiments",
    "robust_covariance": "spectra",
    "robust_mean": "means",
    "spectral_init": "initialise",
}
#: Modules offered here.
_MODULES = frozenset(
    {"baselines", "experiments", "files", "paper", "plot", "population", "report", "rows", "simulate", "testing"}
)
#: Rooms that are not offered by name, but are attributes of the package as any imported subpackage is.
_ROOMS = frozenset(
    {
        "descend",
        "estimator",
        "initialise",
        "likelihood",
        "means",
        "problem",
        "recover",
        "spectra",
        "statistics",
        "validation",
    }
)


def __getattr__(name: str) -> typing.Any:
    if name in _MODULES or name in _ROOMS:
        return import_module(f"robustphase.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"robustphase.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'robustphase' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
