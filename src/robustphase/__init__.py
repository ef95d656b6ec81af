"""Recover a signal from phaseless measurements when part of the data is wrong.

Each measurement is ``y = (a·x)² + z``: the noise ``z`` may have heavy tails and an unknown mean, and an adversary may
have rewritten a fraction of the samples, sensing vectors ``a`` and responses ``y`` alike. The library implements
Buna and Rebeschini, *Robust Gradient Descent for Phase Retrieval*, and what the paper leaves open.
"""

from robustphase import baselines, population, rows, simulate, testing
from robustphase.population import distance

__all__ = ["__version__", "baselines", "distance", "population", "rows", "simulate", "testing"]
__version__ = "0.1.0"
