"""What is reported of noise whose variance is a curve of the energies, whatever law was fitted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustphase.likelihood.noise_model import NoiseModel, law_mean, law_variance

Array = NDArray[Any]


class CurvedNoise(NamedTuple):
    """Fitted noise with the variance ``read + shot e + relative e²``, e = |aᴴx|²; k columns, or numbers for one signal.

    Attributes
    ----------
    scales : ndarray of shape (k,)
        Standard deviation of a typical clean reading.
    tails, log_skews : ndarray of shape (k,)
        One over the degrees of freedom, and the logarithm of the skew, of the standardised residuals; those of counts are nearly
        normal and have no skew but their own.
    mixing : ndarray of shape (k,)
        Share π of bad readings.
    read, shot, relative : ndarray of shape (k,)
        The variance curve. For Poisson counts the dark count, 1 and 0.
    counts : ndarray of bool, shape (k,)
        Whether the readings are Poisson counts.
    """

    scales: Array
    tails: Array
    log_skews: Array
    mixing: Array
    read: Array
    shot: Array
    relative: Array
    counts: Array

    @property
    def kind(self) -> str:
        """``"poisson"`` for counts, ``"variance"`` for noise with a fitted curve, ``"additive"`` where that is flat."""
        if np.all(self.counts):
            return "poisson"
        return "variance" if np.any(self.shot) or np.any(self.relative) else "additive"

    @property
    def degrees(self) -> Array:
        """Degrees of freedom ν."""
        degrees: Array = 1 / self.tails
        return degrees

    @property
    def skews(self) -> Array:
        """Scale above zero over the scale below."""
        skews: Array = np.exp(self.log_skews)
        return skews

    def only(self, columns: Array) -> CurvedNoise:
        """The models of some columns."""
        return CurvedNoise(*(part[columns] for part in self))

    def variance(self, energies: Array) -> Array:
        """Variance of a clean reading with this ``|aᴴx|²``."""
        variance: Array = self.read + self.shot * energies + self.relative * energies**2
        return variance

    def density(self, residuals: Array) -> Array:
        """Density of clean residuals of typical readings, shape (m, k)."""
        noise = NoiseModel(np.ones_like(self.scales), self.tails, self.log_skews, self.mixing)
        scales = self.scales / np.sqrt(law_variance(noise))
        # Residuals are counted from the mean, the law from its peak.
        return noise._replace(scales=scales).density(residuals + scales * law_mean(noise))
