"""Moments of the zero-mean model, ``y = (a·x*)² + z`` (paper, Section 2.2, Lemma E.3, proofs of Theorems 3.1 to 3.3).

These are the means the algorithms estimate and the covariances that say how hard the estimation is. All follow from
two Gaussian moments, ``E[(a·u)²aaᵀ] = ‖u‖²I + 2uuᵀ`` and the sixth-order one of Lemma E.3 (3). ``σ²`` is
``noise_variance``; ``background`` is ``E[z]`` where a formula is useful with it (the paper has 0).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import (
    Matrix,
    Vector,
    check_dimension,
    check_noise_variance,
    check_relative_radius,
    nearer_sign,
    real_vectors,
)


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


def scaled_rows_covariance(truth: npt.ArrayLike, noise_variance: float = 0.0, *, background: float = 0.0) -> Matrix:
    """``Cov(y a) = (3‖x*‖⁴ + σ²)I + 12‖x*‖²x*x*ᵀ``: the covariance configuration of Procedure 1 (Section 2.2.3).

    With a background ``μ = E[z]`` it is ``(3‖x*‖⁴ + 2μ‖x*‖² + μ² + σ²)I + (12‖x*‖² + 4μ)x*x*ᵀ``, so the truth stays
    the leading eigenvector as long as ``μ > −3‖x*‖²``. The mean of ``y a`` is zero.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``.
    noise_variance : float, default 0
        ``σ²``.
    background : float, default 0
        Mean of the noise.

    Returns
    -------
    ndarray of shape (n, n)
    """
    (truth_,) = real_vectors(truth=truth)
    check_noise_variance(noise_variance)
    ss = truth_ @ truth_
    diagonal = 3.0 * ss**2 + 2.0 * background * ss + background**2 + noise_variance
    return diagonal * np.eye(truth_.size) + (12.0 * ss + 4.0 * background) * np.outer(truth_, truth_)


def column_covariance(truth: npt.ArrayLike, direction: npt.ArrayLike, noise_variance: float = 0.0) -> Matrix:
    """``Σ_i = Cov(y (a·e_i) a)``, proof of Theorem 3.1, for any ``direction`` in place of ``e_i``.

    For ``direction = e_i`` and ``p = ‖x*‖²`` it is
    ``(12x_i²p + 3p²)I + 5p²e_ie_iᵀ + 22x_ip(e_ix*ᵀ + x*e_iᵀ) + (20x_i² + 12p)x*x*ᵀ + σ²(I + 2e_ie_iᵀ)``. The
    paper prints ``22x_i‖x*‖⁴`` and ``σ²(I + e_ie_iᵀ)``; see docs/errata.md, entry B2.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``.
    direction : array_like of shape (n,)
        Usually a coordinate vector.
    noise_variance : float, default 0
        ``σ²``.

    Returns
    -------
    ndarray of shape (n, n)
    """
    truth_, d = real_vectors(truth=truth, direction=direction)
    check_noise_variance(noise_variance)
    mean = cubic_moment(d, truth_)
    noise = (d @ d) * np.eye(d.size) + 2.0 * np.outer(d, d)
    return sextic_moment(d, truth_) - np.outer(mean, mean) + noise_variance * noise


def gradient_covariance(x: npt.ArrayLike, truth: npt.ArrayLike, noise_variance: float = 0.0) -> Matrix:
    """``Σ = Cov(((a·x)² − y)(a·x)a)``, the covariance of the vectors of Algorithm 2, proof of Lemma E.3 (4).

    Computed from the coefficients ``w₁, …, w₄`` of the proof, in powers of ``h = x − x*``: expressed in ``x`` and
    ``x*`` the terms cancel near the solution, where the noiseless part shrinks like ``‖h‖²``. In that other
    expression the paper prints ``91‖x‖⁴`` for ``81‖x‖⁴``; see docs/errata.md, entry B1.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_variance : float, default 0
        ``σ²``.

    Returns
    -------
    ndarray of shape (n, n)
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    check_noise_variance(noise_variance)
    t = nearer_sign(x_, truth_)
    h = x_ - t
    hh, hs, ss = h @ h, h @ t, t @ t
    w1 = (
        15.0 * hh**3
        + 72.0 * hs**3
        + 90.0 * hh**2 * hs
        + 156.0 * hh * hs**2
        + 39.0 * hh**2 * ss
        + 12.0 * hh * ss**2
        + 48.0 * ss * hs**2
        + 108.0 * hh * ss * hs
    )
    w2 = 69.0 * hh**2 + 80.0 * hs**2 + 192.0 * hs * hh + 48.0 * ss * hh
    w3 = 81.0 * hh**2 + 276.0 * hs**2 + 20.0 * ss**2 + 324.0 * hs * hh + 192.0 * hs * ss + 144.0 * hh * ss
    w4 = 81.0 * hh**2 + 192.0 * hs**2 + 88.0 * hs * ss + 282.0 * hs * hh + 102.0 * hh * ss
    signal = w1 * np.eye(h.size) + w2 * np.outer(t, t) + w3 * np.outer(h, h) + w4 * (np.outer(t, h) + np.outer(h, t))
    noise = (x_ @ x_) * np.eye(x_.size) + 2.0 * np.outer(x_, x_)
    return signal + noise_variance * noise


def gradient_covariance_bounds(relative_radius: float = 1.0 / 9.0, *, dimension: int) -> CovarianceBounds:
    """Smallest constants for which the bounds of Lemma E.3 (4) hold in the ball ``‖x − x*‖ ≤ relative_radius · ‖x*‖``.

    In terms of ``h = x − x*`` all coefficients of ``Σ`` are non-negative, so every bound is attained at ``h``
    parallel to ``x*``: ``(15n + 81)c`` and ``96c`` with ``c = (1 + R)²(2 + R)²`` for the error part,
    ``(n + 2)(1 + R)²`` and ``3(1 + R)²`` for the noise part. At ``R = 1/9`` the operator norm needs 528.2, slightly
    more than the printed 525; see docs/errata.md, entry A9.

    Parameters
    ----------
    relative_radius : float in [0, 1), default 1/9
        Radius of the ball over ``‖x*‖``.
    dimension : int
        ``n``.

    Returns
    -------
    CovarianceBounds
    """
    check_relative_radius(relative_radius)
    check_dimension(dimension)
    stretch = (1.0 + relative_radius) ** 2
    error = stretch * (2.0 + relative_radius) ** 2
    return CovarianceBounds((15.0 * dimension + 81.0) * error, (dimension + 2.0) * stretch, 96.0 * error, 3.0 * stretch)
