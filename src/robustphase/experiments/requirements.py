"""How many samples are needed: calibrated on the default engine, and the paper's own conditions beside.

The theorems ask for ``m ≥ C₂ max{n log n, log(1/δ)} σ²/‖x*‖⁴`` and ``ε ≤ C₁‖x*‖⁴/σ²`` with constants that are not given.
Ours keep that shape: ``n log n + log(1/δ)`` samples, more with noise and towards a breakdown level that falls with the noise.
``benchmarks/calibrate_plan.py`` measures them against all adversaries of
``robustphase.simulate``; docs/planning.md shows its figures.
"""

from __future__ import annotations

import math
from typing import NamedTuple

#: Error of the default engine over that of least squares on the same clean samples, Gaussian noise.
EFFICIENCY = 1.04
#: Breakdown level without noise, and how it falls with s: ``BREAKDOWN/(1 + FRAGILITY s)``.
BREAKDOWN, FRAGILITY = 0.5, 1.6
#: C₂: samples in units of ``n log n + log(1/δ)`` without noise or contamination, and what s² adds to one.
SAMPLES, NOISY = 1.25, 0.6
#: Below this many unknowns the logarithm stays what it is here, so that there are at least four samples per unknown.
FEWEST = 25
#: Excess error of the worst adversary far from the breakdown, in units of sε.
BIAS = 0.25


def breakdown(noise_std: float) -> float:
    """Contamination from which on some adversary of the suite wins however many samples there are."""
    return BREAKDOWN / (1.0 + FRAGILITY * noise_std)


def samples_for_recovery(n: int, noise_std: float, contamination: float, delta: float = 1.0) -> float:
    """Samples with which the signal is found under all adversaries of the suite; infinite from the breakdown on.

    What an adversary leaves of the signal in the spectrum shrinks in proportion to ``1 − ε/breakdown``, and the noise of an
    average must stay below it, so the number grows with the inverse square.
    """
    left = 1.0 - contamination / breakdown(noise_std)
    if left <= 0.0:
        return math.inf
    size = n * math.log(max(n, FEWEST)) + math.log(1.0 / delta)
    return SAMPLES * (1.0 + NOISY * noise_std**2) * size / left**2


def excess_error(noise_std: float, contamination: float) -> float:
    """What the worst adversary of the suite adds to the error, however many samples there are."""
    left = 1.0 - contamination / breakdown(noise_std)
    return BIAS * noise_std * contamination / left**2 if left > 0.0 else math.inf


class PaperRequirement(NamedTuple):
    """Conditions of the paper's theorems with every unnamed constant set to one, for Gaussian noise.

    The paper assumes a constant ratio of signal to noise; at small noise the numbers of samples must be read as at least n.

    Attributes
    ----------
    start_by_means, start_by_covariance : float
        Samples for the start: Theorems 3.1 and 3.2, or B.1 and B.2.
    descent : float
        Samples for each step of the descent: Theorem 3.3 or B.3.
    most_by_means, most_by_covariance, most_in_descent : float
        Contamination that the same theorems allow.
    """

    start_by_means: float
    start_by_covariance: float
    descent: float
    most_by_means: float
    most_by_covariance: float
    most_in_descent: float


def paper_requirement(n: int, noise_std: float, delta: float, *, unknown_mean: bool) -> PaperRequirement:
    """What the paper asks for.

    For Gaussian noise its fourth moment K₄⁴ is 3σ⁴. With an unknown mean, pairs of samples are formed: Theorem B.2 counts pairs,
    and Theorems B.1 and B.3 allow twice the contamination (as printed).
    """
    power, fourth = noise_std**2, 3.0 * noise_std**4
    pairs = 2.0 if unknown_mean else 1.0
    confidence = math.log(1.0 / delta)
    return PaperRequirement(
        start_by_means=max(n**2 * math.log(n), n * math.log(n / delta)) * power,
        start_by_covariance=pairs * max(n, confidence) * fourth,
        descent=max(n * math.log(n), confidence) * power,
        most_by_means=pairs / (power * n) if power else math.inf,
        most_by_covariance=1.0 / fourth if fourth else math.inf,
        most_in_descent=pairs / power if power else math.inf,
    )
