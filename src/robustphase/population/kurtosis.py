"""Exact ``κ₄`` of the vectors whose covariance ``CovEst`` estimates (Proposition 2.2.2, proof of Theorem 3.2).

``κ₄`` is the largest ``E[(v·X)⁴]^(1/4)`` over ``v`` with ``Var(v·X) = 1``. For ``X = y a`` and ``X = υ b`` both
moments depend on ``v`` only through ``u = (v·x*)²/(‖v‖²‖x*‖²)``: the fourth moment is a quadratic in ``u``, the
variance is linear, and the maximum of their ratio over ``[0, 1]`` is explicit. Without noise ``κ₄⁴ = 105/2`` for
``y a`` and ``270/7`` for ``υ b``, against the paper's bound ``16⁴``.
"""

import math
from collections.abc import Sequence

import numpy.typing as npt

from robustphase.population._vectors import real_vectors

# Moments of a standard normal variable: E[g⁰], E[g²], E[g⁴], …
_EVEN = (1.0, 1.0, 3.0, 15.0, 105.0, 945.0, 10395.0)


def kappa_4(
    truth: npt.ArrayLike,
    noise_variance: float = 0.0,
    noise_third_moment: float = 0.0,
    noise_fourth_moment: float = 0.0,
) -> float:
    """``κ₄`` of ``y a``, exactly, given the central moments of the noise (zero-mean model).

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``.
    noise_variance, noise_third_moment, noise_fourth_moment : float, default 0
        ``σ²``, ``E[z³]`` and ``K₄⁴ = E[z⁴]``.

    Returns
    -------
    float
    """
    (truth_,) = real_vectors(truth=truth)
    _check_noise_moments(noise_variance, noise_third_moment, noise_fourth_moment)
    power = float(truth_ @ truth_)
    noise = (1.0, 0.0, noise_variance, noise_third_moment, noise_fourth_moment)
    # (s² + z)⁴ by the binomial theorem, with s = ‖x*‖ g along the signal.
    terms = [(math.comb(4, k) * power**k * noise[4 - k], k) for k in range(5)]
    variance = (3.0 * power**2 + noise_variance, 12.0 * power**2)
    return _largest_ratio(_fourth_moment(terms), variance, truth_.size)


def paired_kappa_4(truth: npt.ArrayLike, noise_variance: float = 0.0, noise_fourth_moment: float = 0.0) -> float:
    """``κ₄`` of ``υ b``, exactly, given the central moments of the noise ``z`` of one response (unknown-mean model).

    The noise of a pair is ``ζ = (z − z')/2``: symmetric, with ``E[ζ²] = σ²/2`` and ``E[ζ⁴] = (K₄⁴ + 3σ⁴)/8``.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``.
    noise_variance, noise_fourth_moment : float, default 0
        ``σ²`` and ``K₄⁴ = E[(z − E[z])⁴]``.

    Returns
    -------
    float
    """
    (truth_,) = real_vectors(truth=truth)
    _check_noise_moments(noise_variance, 0.0, noise_fourth_moment)
    power = float(truth_ @ truth_)
    pair_variance = noise_variance / 2.0
    pair_fourth = (noise_fourth_moment + 3.0 * noise_variance**2) / 8.0
    # (g g'‖x*‖² + ζ)⁴: odd powers of g' vanish, E[g'⁴] = 3.
    terms = [(pair_fourth, 0), (6.0 * power**2 * pair_variance, 1), (3.0 * power**4, 2)]
    variance = (power**2 + pair_variance, 2.0 * power**2)
    return _largest_ratio(_fourth_moment(terms), variance, truth_.size)


def kappa_4_bound(truth: npt.ArrayLike, noise_fourth_moment: float = 0.0) -> float:
    """Upper bound ``16 + 3K₄/‖x*‖²`` on ``κ₄`` of ``y a`` from the proof of Theorem 3.2.

    It holds, with room to spare, although the published derivation rounds ``83160^(1/4) = 16.98`` down to 16; see
    docs/errata.md, entry B3.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``, not zero.
    noise_fourth_moment : float, default 0
        ``K₄⁴``.

    Returns
    -------
    float
    """
    (truth_,) = real_vectors(truth=truth)
    power = float(truth_ @ truth_)
    if power == 0.0:
        raise ValueError("truth is zero: the bound is relative to its norm")
    return 16.0 + 3.0 * math.sqrt(math.sqrt(noise_fourth_moment)) / power


def _fourth_moment(terms: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """Coefficients in ``u`` of the sum of ``c · E[g²ᵏ (√u g + √(1−u) g')⁴]`` over the terms ``(c, k)``."""
    constant = linear = quadratic = 0.0
    for c, k in terms:
        along, mixed, across = _EVEN[k + 2], 6.0 * _EVEN[k + 1], 3.0 * _EVEN[k]
        constant += c * across
        linear += c * (mixed - 2.0 * across)
        quadratic += c * (along - mixed + across)
    return constant, linear, quadratic


def _largest_ratio(fourth: tuple[float, float, float], variance: tuple[float, float], dimension: int) -> float:
    """Fourth root of the maximum over ``u`` in [0, 1] of ``(c₀ + c₁u + c₂u²)/(A + Bu)²``."""
    c0, c1, c2 = fourth
    base, spike = variance
    if base + spike == 0.0:
        raise ValueError("truth and noise are both zero: the vectors have no variance, and κ₄ is not defined")
    candidates = [1.0] if dimension == 1 else [0.0, 1.0]
    # The derivative of the ratio vanishes where a linear function of u does.
    slope = 2.0 * c2 * base - spike * c1
    if dimension > 1 and slope != 0.0:
        stationary = (2.0 * spike * c0 - c1 * base) / slope
        if 0.0 < stationary < 1.0:
            candidates.append(stationary)
    return float(max((c0 + c1 * u + c2 * u * u) / (base + spike * u) ** 2 for u in candidates) ** 0.25)


def _check_noise_moments(variance: float, third: float, fourth: float) -> None:
    """Refuse moments that no distribution with mean zero has (Pearson's inequality)."""
    tolerance = 1e-9 * max(fourth, variance**2)
    impossible = variance < 0.0 or fourth * variance + tolerance * variance < variance**3 + third**2
    if impossible or (variance == 0.0 and (third != 0.0 or fourth != 0.0)):
        raise ValueError(
            f"no noise has variance {variance}, third moment {third} and fourth moment {fourth}: "
            "the fourth moment must be at least variance² + third²/variance"
        )
