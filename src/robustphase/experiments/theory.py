"""What error to expect, and how many samples are needed.

All errors are relative to ‖x*‖ and all noise to ‖x*‖², for Gaussian noise, which is the least favourable of given variance to
methods that learn the law of the noise. Write s = σ/‖x*‖². Errors are closed forms, and no constant in them was fitted.

*Without contamination.* Least squares has the Fisher information ``4(I + 2x*x*ᵀ)/σ²`` per sample, so its squared error is
``s²((n−1)/4 + 1/12)/m`` once m is much larger than n. Where it is not, the inverse of the information of a *sample* is larger
than the inverse of its mean. The information is a sum of ``w aaᵀ`` with weights w = (a·x*)², and across the signal a does not
depend on w; so for n and m of the same order the factor is the t that solves ``1 = t E[w/(1 + tγw)]``, γ = n/m (the fixed
point of Marchenko and Pastur for a weighted sample covariance).

*With contamination.* An adversary who rewrites at random leaves ``1 − ε`` of the samples. One who erases the most informative
leaves the weights below the quantile ``q`` of order 1 − ε, and with them the share ``P(χ²₃ ≤ q)`` of the information. One who
knows signal and noise makes two signals indistinguishable: see `floor`.

*Samples.* The theorems ask for ``m ≥ C₂ max{n log n, log(1/δ)} σ²/‖x*‖⁴`` and ``ε ≤ C₁‖x*‖⁴/σ²`` with constants that are not
given. Ours keep that shape: ``n log n + log(1/δ)`` samples, more with noise and towards a breakdown level that falls with the
noise. ``benchmarks/calibrate_plan.py`` measures the constants on the default engine, against all adversaries of
``robustphase.simulate``; docs/planning.md shows its figures. The paper's own conditions are given beside.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf, k0
from scipy.stats import chi2, norm

#: Nodes for expectations over w = (a·x*)²; the integrands are smooth.
_NODES, _LENGTHS = np.polynomial.legendre.leggauss(120)
#: Logarithm of a factor that is as good as infinite: barely as many samples as unknowns.
LARGEST_LOG = 40.0
#: Signals are told apart up to their sign, so none are farther apart than this in units of ‖x*‖.
FARTHEST = math.sqrt(2.0)
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


def least_squares_error(
    n: float, m: float, noise_std: float, *, background: bool = False, erased: float = 0.0
) -> float:
    """Root mean squared error of least squares on clean samples; infinite with fewer samples than unknowns.

    ``noise_std`` is σ/‖x*‖². A background that is fitted as well costs a third of the information along the signal. ``erased``
    is the fraction of the samples, those with the largest (a·x*)², that is missing from the m.
    """
    along = 1.0 / 8.0 if background else 1.0 / 12.0
    freedom = (n - 1.0) / 4.0 + along
    factor = inverse_information(n / m, erased)
    return math.inf if math.isinf(factor) else noise_std * math.sqrt(freedom / m * factor)


def inverse_information(aspect: float, erased: float = 0.0) -> float:
    """Mean inverse of the information of a sample, over the inverse of the mean information of all samples.

    It is the t > 0 with ``1 = t E[w 1(w ≤ q)/(1 + tγw)]`` for the aspect γ = n/m, where a fraction of the samples, those with
    the largest weights, is ``erased``; infinite if γ ≥ 1 − erased.
    """
    if aspect >= 1.0 - erased:
        return math.inf
    # w is the square of a normal variable u, and q = edge².
    edge = 12.0 if erased == 0.0 else float(norm.isf(erased / 2.0))
    u = 0.5 * edge * (_NODES + 1.0)
    masses = edge * norm.pdf(u) * _LENGTHS
    weights = u**2

    def excess(log_t: float) -> float:
        t = math.exp(log_t)
        return float(masses @ (t * weights / (1.0 + t * aspect * weights))) - 1.0

    # The expectation grows with t, from what it is without the denominator to (1 − erased)/γ > 1.
    low = -math.log(float(masses @ weights)) - 1e-9
    high = low + 1.0
    while excess(high) < 0.0:
        high += 1.0
        if high > LARGEST_LOG:
            return math.inf
    return math.exp(brentq(excess, low, high, xtol=1e-13))


def confidence_factor(n: float, delta: float) -> float:
    """The error that is exceeded with probability ``delta``, over the root mean squared one: a χ²ₙ variable."""
    return math.sqrt(float(chi2.isf(delta, n)) / n)


def floor(noise_std: float, contamination: float) -> float:
    """Error that some adversary can force on every method, however many samples there are, under Gaussian noise.

    Take signals x ± h/2 of norm one at distance h. The laws P and Q of their samples, given a, are normal with means that
    differ by ``2(a·x)(a·h)``, so their total variation is ``E erf(c|w|)`` with w a product of two normal variables and ``c = h
    sqrt(1 − h²/4)/(s√2)``, s = σ/‖x*‖². If it is at most 2ε, rewriting a fraction ε of the samples turns either law into (P +
    Q)/2. Nobody can then tell the two apart, and for one of them the error is at least h/2. The adversary need not touch a. So
    the error is h/2 for the largest such h, about 1.97 sε while that is small; at most 1/√2.
    """
    if contamination == 0.0 or noise_std == 0.0:
        return 0.0

    def surplus(h: float) -> float:
        return _product_erf(h * math.sqrt(1.0 - h * h / 4.0) / (noise_std * math.sqrt(2.0))) - 2.0 * contamination

    if surplus(FARTHEST) <= 0.0:
        return FARTHEST / 2.0
    return float(brentq(surplus, 0.0, FARTHEST, xtol=1e-12)) / 2.0


def _product_erf(c: float) -> float:
    """``E erf(c|uv|)`` for independent standard normal u, v; the product has the density K₀(|w|)/π."""
    # In units in which erf turns at one: for large c the mass of the integrand is near zero.
    scale = 1.0 / max(c, 1.0)
    value = quad(
        lambda v: k0(v * scale) * erf(c * v * scale) * scale, 0.0, 40.0 / scale, points=(1.0, 3.0, 10.0), limit=400
    )
    return 2.0 / math.pi * float(value[0])


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
