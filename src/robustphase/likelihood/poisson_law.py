"""Counts: a reading y with the mean μ has ``P(y) = μ^y exp(−μ)/y!`` for whole numbers y ≥ 0.

The unknown background b is the dark count. The score is ``(y − μ)/μ``, the information ``1/μ``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaln, xlogy

from robustphase.likelihood.laws import (
    LAWS,
    CurvedNoise,
    Judged,
    Readings,
    average_usable,
    mixture,
    mixture_slopes,
    renewed_mixing,
)
from robustphase.likelihood.noise_model import NOISE

Array = NDArray[Any]
_TINY = float(np.finfo(np.float64).tiny)


class PoissonLaw(NamedTuple):
    """Counts; ``mixing`` (k,) is the share π of bad ones."""

    mixing: Array

    def only(self, columns: Array) -> PoissonLaw:
        """The laws of some columns."""
        return PoissonLaw(self.mixing[columns])

    def least(self, m: int) -> float:
        """Least mean that a reading may have."""
        return LAWS.least_mean / m

    def held(self, energies: Array) -> PoissonLaw:
        """The law at given energies."""
        return self

    def judge(self, readings: Readings, means: Array) -> Judged:
        """Probabilities to be clean, and the least-squares problem."""
        y = readings.responses
        counts = (y >= 0) & (y == np.rint(y))
        whole = np.where(counts, y, 0.0)
        residuals = whole - means
        logs = np.where(counts, xlogy(whole, means) - means - gammaln(whole + 1), -np.inf)
        if readings.censored is not None:
            # Σ_{i ≥ c} of the law is the incomplete gamma function of c at μ, for zero it is one.
            level = np.maximum(whole, 0.5)
            tail = np.where(whole > 0, gammainc(level, means), 1.0)
            hazard = np.exp(xlogy(whole - 1, means) - means - gammaln(level)) * (whole > 0) / np.maximum(tail, _TINY)
            # Far below the threshold both vanish, and the expected reading is just above it.
            hazard = np.where(tail > 1e-280, hazard, whole / means)
            residuals = np.where(readings.censored, means * hazard, residuals)
            logs = np.where(readings.censored, np.log(np.maximum(tail, _TINY)), logs)
        clean, total = mixture(logs, self.mixing, readings)
        return Judged(clean, clean * readings.weights / means, residuals, total)

    def slopes(self, judged: Judged, readings: Readings, means: Array) -> Array:
        """Minus the derivative of the score of the mixture by the mean, with the expected one of the law."""
        return mixture_slopes(judged)

    def as_model(self, energies: Array, backgrounds: Array, readings: Readings) -> CurvedNoise:
        """What is reported."""
        zeros = np.zeros(self.mixing.size)
        scales = np.sqrt(average_usable(energies, readings.weights) + backgrounds)
        return CurvedNoise(
            scales,
            zeros + NOISE.lightest,
            zeros,
            self.mixing,
            backgrounds,
            zeros + 1.0,
            zeros,
            np.ones(zeros.size, bool),
        )

    def renewed(self, judged: Judged, readings: Readings, means: Array, most: Array, unknowns: float) -> PoissonLaw:
        """The law that the judgement asks for: the m-step."""
        return PoissonLaw(renewed_mixing(judged.clean, readings.weights, most))
