"""Moments of the unknown-mean model, ``υ = (b·x*)(c·x*) + ζ`` (paper, Appendix B and Lemma E.4).

``b`` and ``c`` are independent standard normal vectors and ``ζ`` has mean zero and variance ``σ²/2``. Throughout,
``noise_variance`` is ``σ²``, the variance of the noise in a single response, and not that of ``ζ``.

The one to look at is ``scale_variance``: the quantity from which Procedure 3 estimates the length of the signal has a
variance that grows with the dimension. ``directional_scale_variance`` is the remedy. See docs/errata.md, entry A5.
"""

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import (
    Matrix,
    check_dimension,
    check_noise_variance,
    check_relative_radius,
    nearer_sign,
    real_vectors,
)
from robustphase.population.moments import CovarianceBounds


def cross_moment(truth: npt.ArrayLike) -> Matrix:
    """``E[υ bcᵀ] = x*x*ᵀ``, Lemma E.4 (1): what the mean configuration of Procedure 3 estimates."""
    (truth_,) = real_vectors(truth=truth)
    return np.outer(truth_, truth_)


def scaled_rows_covariance(truth: npt.ArrayLike, noise_variance: float = 0.0) -> Matrix:
    """``Cov(υ b) = (‖x*‖⁴ + σ²/2)I + 2‖x*‖²x*x*ᵀ``, Appendix B: the covariance configuration of Procedure 3.

    The gap between its two eigenvalues is ``2‖x*‖⁴`` whatever the noise, so it holds the length of the signal too.
    """
    (truth_,) = real_vectors(truth=truth)
    check_noise_variance(noise_variance)
    ss = truth_ @ truth_
    return (ss**2 + noise_variance / 2.0) * np.eye(truth_.size) + 2.0 * ss * np.outer(truth_, truth_)


def column_covariance(truth: npt.ArrayLike, direction: npt.ArrayLike, noise_variance: float = 0.0) -> Matrix:
    """``Cov(υ (c·e_i) b)``, Lemma E.4 (2), for any ``direction`` in place of ``e_i``.

    For ``direction = e_i``: ``(‖x*‖⁴ + 2x_i²‖x*‖² + σ²/2)I + (2‖x*‖² + 3x_i²)x*x*ᵀ``.
    The paper prints ``x₁`` for ``x_i``.

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
    ss, dd, ds = truth_ @ truth_, d @ d, truth_ @ d
    diagonal = ss**2 * dd + 2.0 * ds**2 * ss + noise_variance * dd / 2.0
    return diagonal * np.eye(d.size) + (2.0 * ss * dd + 3.0 * ds**2) * np.outer(truth_, truth_)


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


def gradient_covariance(x: npt.ArrayLike, truth: npt.ArrayLike, noise_variance: float = 0.0) -> Matrix:
    """``Σ = Cov((xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x)``, for the vectors of Algorithm 4, Lemma E.4 (3), right as printed.

    Written, as in the proof of Lemma E.3 (4), in powers of ``h = x − x*``, so that nothing cancels near the solution.

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
        6.0 * hh**3
        + 24.0 * hs**3
        + 36.0 * hh**2 * hs
        + 60.0 * hh * hs**2
        + 18.0 * hh**2 * ss
        + 8.0 * hh * ss**2
        + 16.0 * ss * hs**2
        + 48.0 * hh * ss * hs
    )
    w2 = 22.0 * hh**2 + 20.0 * hs**2 + 56.0 * hs * hh + 16.0 * ss * hh
    w3 = 26.0 * hh**2 + 88.0 * hs**2 + 12.0 * ss**2 + 104.0 * hs * hh + 72.0 * hs * ss + 52.0 * hh * ss
    w4 = 26.0 * hh**2 + 56.0 * hs**2 + 28.0 * hs * ss + 88.0 * hs * hh + 36.0 * hh * ss
    signal = w1 * np.eye(h.size) + w2 * np.outer(t, t) + w3 * np.outer(h, h) + w4 * (np.outer(t, h) + np.outer(h, t))
    noise = (x_ @ x_) * np.eye(x_.size) + np.outer(x_, x_)
    return signal + noise_variance * noise


def gradient_covariance_bounds(relative_radius: float = 1.0 / 6.0, *, dimension: int) -> CovarianceBounds:
    """Smallest constants for which the bounds of Lemma E.4 (3) hold in the ball ``‖x − x*‖ ≤ relative_radius · ‖x*‖``.

    As in the zero-mean case they are attained at ``x − x*`` parallel to ``x*``: ``(6n + 26)c`` and ``32c`` with
    ``c = (1 + R)²(2 + R)²`` for the error part, ``(n + 1)(1 + R)²`` and ``2(1 + R)²`` for the noise part. At
    ``R = 1/6`` the operator norm needs 204.5; the printed 242 is right, and loose.

    Parameters
    ----------
    relative_radius : float in [0, 1), default 1/6
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
    return CovarianceBounds((6.0 * dimension + 26.0) * error, (dimension + 1.0) * stretch, 32.0 * error, 2.0 * stretch)
