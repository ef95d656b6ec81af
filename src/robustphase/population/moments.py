"""Moments of both models: the means the algorithms estimate, and the covariances that say how hard that is.

``noise_mean="zero"``: ``y = (a·x*)² + z`` (paper, Section 2.2, Lemma E.3, proofs of Theorems 3.1 to 3.3). All follow from
two Gaussian moments, ``E[(a·u)²aaᵀ] = ‖u‖²I + 2uuᵀ`` and the sixth-order one of Lemma E.3 (3).

``noise_mean="unknown"``: ``υ = (b·x*)(c·x*) + ζ`` (Appendix B and Lemma E.4) with independent standard normal ``b`` and
``c``, and ``ζ`` of mean zero and variance ``σ²/2``. The one to look at is ``scale_variance``: the quantity from which
Procedure 3 estimates the length of the signal has a variance that grows with the dimension.
``directional_scale_variance`` is the remedy. See docs/errata.md, entry A5.

Throughout, ``noise_variance`` is ``σ²``, the variance of the noise in a single response; ``background`` is ``E[z]`` where a
formula is useful with it (the paper has 0).
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import (
    Matrix,
    NoiseMean,
    Vector,
    check_dimension,
    check_noise_mean,
    check_noise_variance,
    check_relative_radius,
    nearer_sign,
    real_vectors,
)

# Radii of the balls of Lemmas E.3 (4) and E.4 (3), over ‖x*‖.
_RADII: Final[dict[str, float]] = {"zero": 1.0 / 9.0, "unknown": 1.0 / 6.0}

# Coefficients of the gradient covariance in powers of h = x − x*, proofs of Lemmas E.3 (4) and E.4 (3), with
# hh = ‖h‖², hs = h·x* and ss = ‖x*‖². That of the identity:
#   hh³   hs³  hh²hs  hh hs²  hh²ss  hh ss²  ss hs²  hh ss hs
_IDENTITY: Final[dict[str, tuple[float, ...]]] = {
    "zero": (15.0, 72.0, 90.0, 156.0, 39.0, 12.0, 48.0, 108.0),
    "unknown": (6.0, 24.0, 36.0, 60.0, 18.0, 8.0, 16.0, 48.0),
}
# Those of x*x*ᵀ, of hhᵀ, and of x*hᵀ + hx*ᵀ:
#    hh²   hs²   ss²   hs hh  hs ss  hh ss
_OUTER: Final[dict[str, tuple[tuple[float, ...], ...]]] = {
    "zero": (
        (69.0, 80.0, 0.0, 192.0, 0.0, 48.0),
        (81.0, 276.0, 20.0, 324.0, 192.0, 144.0),
        (81.0, 192.0, 0.0, 282.0, 88.0, 102.0),
    ),
    "unknown": (
        (22.0, 20.0, 0.0, 56.0, 0.0, 16.0),
        (26.0, 88.0, 12.0, 104.0, 72.0, 52.0),
        (26.0, 56.0, 0.0, 88.0, 28.0, 36.0),
    ),
}


class CovarianceBounds(NamedTuple):
    """Constants of ``tr Σ ≤ trace_error ‖x − x*‖²‖x*‖⁴ + trace_noise σ²‖x*‖²``, and the same for ``‖Σ‖``."""

    trace_error: float
    trace_noise: float
    operator_error: float
    operator_noise: float


def response_mean(truth: npt.ArrayLike, *, background: float = 0.0) -> float:
    """``E[y] = ‖x*‖² + E[z]``: what Step 3 of Procedure 1 estimates (with ``E[z] = 0``)."""
    (truth_,) = real_vectors(truth=truth)
    return float(truth_ @ truth_) + background


def response_variance(truth: npt.ArrayLike, noise_variance: float = 0.0) -> float:
    """``Var(y) = 2‖x*‖⁴ + σ²``, proof of Theorem 3.1. It does not depend on the dimension."""
    (truth_,) = real_vectors(truth=truth)
    check_noise_variance(noise_variance)
    return 2.0 * float(truth_ @ truth_) ** 2 + noise_variance


def cubic_moment(x: npt.ArrayLike, truth: npt.ArrayLike) -> Vector:
    """``E[(a·x*)²(a·x)a] = 2(x*·x)x* + ‖x*‖²x``, Lemma E.3 (1)."""
    x_, truth_ = real_vectors(x=x, truth=truth)
    return 2.0 * (truth_ @ x_) * truth_ + (truth_ @ truth_) * x_


def weighted_second_moment(truth: npt.ArrayLike, *, background: float = 0.0) -> Matrix:
    """``E[y aaᵀ] = (‖x*‖² + E[z])I + 2x*x*ᵀ``, Lemma E.3 (2): its leading eigenvector is the direction of the truth.

    The columns ``E[y (a·e_i) a]`` are what the mean configuration of Procedure 1 estimates.
    """
    (truth_,) = real_vectors(truth=truth)
    return (truth_ @ truth_ + background) * np.eye(truth_.size) + 2.0 * np.outer(truth_, truth_)


def sextic_moment(x: npt.ArrayLike, truth: npt.ArrayLike) -> Matrix:
    """``E[(a·x)²(a·x*)⁴ aaᵀ] = v₁I + v₂xxᵀ + v₃(x*xᵀ + xx*ᵀ) + v₅x*x*ᵀ``, Lemma E.3 (3) (``v₄ = v₃``).

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        Any two vectors; ``x`` enters with the second power and ``truth`` with the fourth.

    Returns
    -------
    ndarray of shape (n, n)
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    xx, ss, xs = x_ @ x_, truth_ @ truth_, x_ @ truth_
    v1 = 12.0 * xs**2 * ss + 3.0 * ss**2 * xx
    v2 = 6.0 * ss**2
    v3 = 24.0 * xs * ss
    v5 = 24.0 * xs**2 + 12.0 * ss * xx
    return (
        v1 * np.eye(x_.size)
        + v2 * np.outer(x_, x_)
        + v3 * (np.outer(truth_, x_) + np.outer(x_, truth_))
        + v5 * np.outer(truth_, truth_)
    )


def cross_moment(truth: npt.ArrayLike) -> Matrix:
    """``E[υ bcᵀ] = x*x*ᵀ``, Lemma E.4 (1): what the mean configuration of Procedure 3 estimates."""
    (truth_,) = real_vectors(truth=truth)
    return np.outer(truth_, truth_)


def scaled_rows_covariance(
    truth: npt.ArrayLike, noise_variance: float = 0.0, *, noise_mean: NoiseMean = "zero", background: float = 0.0
) -> Matrix:
    """``Cov(y a) = (3‖x*‖⁴ + σ²)I + 12‖x*‖²x*x*ᵀ``: the covariance configuration of Procedure 1 (Section 2.2.3).

    With a background ``μ = E[z]`` it is ``(3‖x*‖⁴ + 2μ‖x*‖² + μ² + σ²)I + (12‖x*‖² + 4μ)x*x*ᵀ``, so the truth stays
    the leading eigenvector as long as ``μ > −3‖x*‖²``. The mean of ``y a`` is zero.

    With an unknown noise mean ``Cov(υ b) = (‖x*‖⁴ + σ²/2)I + 2‖x*‖²x*x*ᵀ``, Appendix B: the covariance configuration of
    Procedure 3. The gap between its two eigenvalues is ``2‖x*‖⁴`` whatever the noise, so it holds the length of the
    signal too.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``.
    noise_variance : float, default 0
        ``σ²``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    background : float, default 0
        Mean of the noise; pairing removes it.

    Returns
    -------
    ndarray of shape (n, n)
    """
    (truth_,) = real_vectors(truth=truth)
    check_noise_mean(noise_mean)
    check_noise_variance(noise_variance)
    ss = truth_ @ truth_
    if noise_mean == "unknown":
        diagonal, spike = ss**2 + noise_variance / 2.0, 2.0 * ss
    else:
        diagonal = 3.0 * ss**2 + 2.0 * background * ss + background**2 + noise_variance
        spike = 12.0 * ss + 4.0 * background
    return diagonal * np.eye(truth_.size) + spike * np.outer(truth_, truth_)


def column_covariance(
    truth: npt.ArrayLike,
    direction: npt.ArrayLike,
    noise_variance: float = 0.0,
    *,
    noise_mean: NoiseMean = "zero",
) -> Matrix:
    """``Σ_i = Cov(y (a·e_i) a)`` or ``Cov(υ (c·e_i) b)``, for any ``direction`` in place of ``e_i``.

    For ``direction = e_i`` and ``p = ‖x*‖²`` the first (proof of Theorem 3.1) is
    ``(12x_i²p + 3p²)I + 5p²e_ie_iᵀ + 22x_ip(e_ix*ᵀ + x*e_iᵀ) + (20x_i² + 12p)x*x*ᵀ + σ²(I + 2e_ie_iᵀ)``. The
    paper has ``22x_i‖x*‖⁴`` and ``σ²(I + e_ie_iᵀ)``; see docs/errata.md, entry B2. The second (Lemma E.4 (2)) is
    ``(p² + 2x_i²p + σ²/2)I + (2p + 3x_i²)x*x*ᵀ``, where the paper has ``x₁`` for ``x_i``.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``.
    direction : array_like of shape (n,)
        Usually a coordinate vector.
    noise_variance : float, default 0
        ``σ²``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    ndarray of shape (n, n)
    """
    truth_, d = real_vectors(truth=truth, direction=direction)
    check_noise_mean(noise_mean)
    check_noise_variance(noise_variance)
    if noise_mean == "unknown":
        ss, dd, ds = truth_ @ truth_, d @ d, truth_ @ d
        diagonal = ss**2 * dd + 2.0 * ds**2 * ss + noise_variance * dd / 2.0
        return diagonal * np.eye(d.size) + (2.0 * ss * dd + 3.0 * ds**2) * np.outer(truth_, truth_)
    mean = cubic_moment(d, truth_)
    noise = (d @ d) * np.eye(d.size) + 2.0 * np.outer(d, d)
    return sextic_moment(d, truth_) - np.outer(mean, mean) + noise_variance * noise


def scale_mean(truth: npt.ArrayLike) -> float:
    """``E[υ b·c] = ‖x*‖²``: what Step 3 of Procedure 3 estimates."""
    (truth_,) = real_vectors(truth=truth)
    return float(truth_ @ truth_)


def scale_variance(truth: npt.ArrayLike, noise_variance: float = 0.0) -> float:
    """``Var(υ b·c) = (n + 7)‖x*‖⁴ + nσ²/2``: it grows with the dimension, unlike ``Var(y)``.

    Along ``x*`` the product contributes ``E[b₁⁴]E[c₁⁴] = 9``, each of the other ``n − 1`` coordinates 1, and the
    squared mean is taken away.
    """
    (truth_,) = real_vectors(truth=truth)
    check_noise_variance(noise_variance)
    n, ss = truth_.size, float(truth_ @ truth_)
    return (n + 7.0) * ss**2 + n * noise_variance / 2.0


def directional_scale_mean(truth: npt.ArrayLike, direction: npt.ArrayLike) -> float:
    """``E[υ (b·u)(c·u)] = (u·x*)²``, the squared length of the truth along ``direction``."""
    truth_, u = real_vectors(truth=truth, direction=direction)
    return float(truth_ @ u) ** 2


def directional_scale_variance(truth: npt.ArrayLike, direction: npt.ArrayLike, noise_variance: float = 0.0) -> float:
    """``Var(υ (b·u)(c·u)) = (‖x*‖²‖u‖² + 2(u·x*)²)² − (u·x*)⁴ + σ²‖u‖⁴/2``.

    At most ``8‖x*‖⁴ + σ²/2`` for a unit ``u``, in any dimension.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``.
    direction : array_like of shape (n,)
        ``u``, usually the leading eigenvector found in Step 2, from other samples.
    noise_variance : float, default 0
        ``σ²``.

    Returns
    -------
    float
    """
    truth_, u = real_vectors(truth=truth, direction=direction)
    check_noise_variance(noise_variance)
    ss, uu, us = float(truth_ @ truth_), float(u @ u), float(truth_ @ u)
    return (ss * uu + 2.0 * us**2) ** 2 - us**4 + noise_variance * uu**2 / 2.0


def gradient_covariance(
    x: npt.ArrayLike, truth: npt.ArrayLike, noise_variance: float = 0.0, *, noise_mean: NoiseMean = "zero"
) -> Matrix:
    """Covariance of the vectors of Algorithm 2 (proof of Lemma E.3 (4)) or Algorithm 4 (Lemma E.4 (3)).

    ``Cov(((a·x)² − y)(a·x)a)`` or ``Cov((xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x)``. Computed in powers of ``h = x − x*``: expressed
    in ``x`` and ``x*`` the terms cancel near the solution, where the noiseless part shrinks like ``‖h‖²``. In that
    other expression Lemma E.3 has ``91‖x‖⁴`` for ``81‖x‖⁴``; see docs/errata.md, entry B1.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_variance : float, default 0
        ``σ²``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    ndarray of shape (n, n)
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    check_noise_mean(noise_mean)
    check_noise_variance(noise_variance)
    t = nearer_sign(x_, truth_)
    h = x_ - t
    hh, hs, ss = h @ h, h @ t, t @ t
    sixth = (hh**3, hs**3, hh**2 * hs, hh * hs**2, hh**2 * ss, hh * ss**2, ss * hs**2, hh * ss * hs)
    fourth = (hh**2, hs**2, ss**2, hs * hh, hs * ss, hh * ss)
    identity = np.dot(_IDENTITY[noise_mean], sixth)
    of_truth, of_error, mixed = np.dot(_OUTER[noise_mean], fourth)
    signal = identity * np.eye(h.size) + of_truth * np.outer(t, t) + of_error * np.outer(h, h)
    signal += mixed * (np.outer(t, h) + np.outer(h, t))
    along = 2.0 if noise_mean == "zero" else 1.0
    noise = (x_ @ x_) * np.eye(x_.size) + along * np.outer(x_, x_)
    covariance: Matrix = signal + noise_variance * noise
    return covariance


def gradient_covariance_bounds(
    relative_radius: float | None = None, *, dimension: int, noise_mean: NoiseMean = "zero"
) -> CovarianceBounds:
    """Smallest constants for which the bounds of Lemmas E.3 (4) and E.4 (3) hold in a ball around the truth.

    In terms of ``h = x − x*`` all coefficients of ``Σ`` are non-negative, so every bound is attained at ``h`` parallel
    to ``x*``. With ``c = (1 + R)²(2 + R)²`` and a zero noise mean they are ``(15n + 81)c`` and ``96c`` for the error
    part, ``(n + 2)(1 + R)²`` and ``3(1 + R)²`` for the noise part. At ``R = 1/9`` the operator norm needs 528.2,
    slightly more than the published 525; see docs/errata.md, entry A9. With an unknown one they are ``(6n + 26)c``,
    ``32c``, ``(n + 1)(1 + R)²`` and ``2(1 + R)²``; at ``R = 1/6`` the published 242 is right, and loose (204.5).

    Parameters
    ----------
    relative_radius : float in [0, 1), optional
        Radius of the ball over ``‖x*‖``. Default: that of the lemma, 1/9 or 1/6.
    dimension : int
        ``n``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    CovarianceBounds
    """
    check_noise_mean(noise_mean)
    radius = _RADII[noise_mean] if relative_radius is None else relative_radius
    check_relative_radius(radius)
    check_dimension(dimension)
    stretch = (1.0 + radius) ** 2
    error = stretch * (2.0 + radius) ** 2
    if noise_mean == "unknown":
        trace, noise, operator, operator_noise = 6.0 * dimension + 26.0, dimension + 1.0, 32.0, 2.0
    else:
        trace, noise, operator, operator_noise = 15.0 * dimension + 81.0, dimension + 2.0, 96.0, 3.0
    return CovarianceBounds(trace * error, noise * stretch, operator * error, operator_noise * stretch)
