"""Complex signals: ``a ~ CN(0, I)``, ``y = |aᴴx*|² + z`` (not in the paper).

``CN(0, I)`` has ``E[a aᴴ] = I`` and ``E[a aᵀ] = 0``. Wick's rule then pairs each ``a`` with an ``ā`` only, which is
why every real constant changes: ``E|aᴴu|⁴ = 2‖u‖⁴`` instead of ``3‖u‖⁴``.

The risk is ``f(w) = E[(|aᴴw|² − y)²] / 2``, with a half and not a quarter, so that its Wirtinger gradient ``∂f/∂w̄``
is the mean of ``(|aᴴw|² − y)(aᴴw)a``: the same row-scaled vectors as in the real case. With an unknown noise mean the
background is profiled out, ``f_new(w) = Var(|aᴴw|² − y) / 2``; pairing does not factor for complex signals
(``(y − y')/2`` is the real part of ``bᴴx xᴴc``).

``w`` and ``exp(iφ)w`` have the same risk, so the curvature is zero along ``iw``. Across ``w`` it is ``‖x‖²``; along
``w`` it is ``4‖x‖²`` if the noise mean is known to be zero and ``2‖x‖²`` if the background is profiled out.
"""

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import (
    ComplexMatrix,
    ComplexVector,
    NoiseMean,
    check_noise_mean,
    check_noise_variance,
    complex_vectors,
)


def risk(
    w: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    noise_mean: NoiseMean = "zero",
    noise_variance: float = 0.0,
    background: float = 0.0,
) -> float:
    """Population risk ``f(w)`` or, with ``noise_mean="unknown"``, the risk with the background profiled out.

    ``Var(aᴴMa) = ‖M‖²_F`` and ``E[aᴴMa] = tr M`` for Hermitian ``M = wwᴴ − x*x*ᴴ``.

    Parameters
    ----------
    w, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Whether the noise mean is known to be zero.
    noise_variance : float, default 0
        ``σ²``; it only adds the constant ``σ²/2``.
    background : float, default 0
        Mean of the noise; profiled out, it changes nothing.

    Returns
    -------
    float
    """
    w_, truth_ = complex_vectors(w=w, truth=truth)
    check_noise_mean(noise_mean)
    check_noise_variance(noise_variance)
    ww, ss = _power(w_), _power(truth_)
    variance = ww**2 + ss**2 - 2.0 * abs(np.vdot(truth_, w_)) ** 2 + noise_variance
    squared_mean = (ww - ss - background) ** 2 if noise_mean == "zero" else 0.0
    return float(variance + squared_mean) / 2.0


def gradient(
    w: npt.ArrayLike, truth: npt.ArrayLike, *, noise_mean: NoiseMean = "zero", background: float = 0.0
) -> ComplexVector:
    """Wirtinger gradient ``∂f/∂w̄ = 2‖w‖²w − ‖x*‖²w − x*(x*ᴴw)``, less ``E[z] w`` if there is a background.

    With the background profiled out it is ``‖w‖²w − x*(x*ᴴw)``.

    Parameters
    ----------
    w, truth, noise_mean, background
        As in :func:`risk`.

    Returns
    -------
    ndarray of shape (n,), complex
    """
    w_, truth_ = complex_vectors(w=w, truth=truth)
    check_noise_mean(noise_mean)
    ww, ss = _power(w_), _power(truth_)
    factor = 2.0 * ww - ss - background if noise_mean == "zero" else ww
    return factor * w_ - complex(np.vdot(truth_, w_)) * truth_


def curvature(
    w: npt.ArrayLike, truth: npt.ArrayLike, direction: npt.ArrayLike, *, noise_mean: NoiseMean = "zero"
) -> ComplexVector:
    """Derivative of the Wirtinger gradient at ``w`` in the given direction ``h``.

    ``2‖w‖²h − ‖x‖²h − x(xᴴh) + 4 Re(wᴴh) w``, or ``‖w‖²h − x(xᴴh) + 2 Re(wᴴh) w`` with the background profiled out.
    It is linear over the real numbers only, hence a function and not a matrix; it is self-adjoint for ``Re⟨·,·⟩``. At
    ``w = x`` its eigenvalues are ``‖x‖²`` across ``x``, ``4‖x‖²`` (or ``2‖x‖²``) along ``x`` and 0 along ``ix``.

    Parameters
    ----------
    w, truth, direction : array_like of shape (n,)
        The point, the true signal ``x*`` and the direction ``h``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Whether the noise mean is known to be zero.

    Returns
    -------
    ndarray of shape (n,), complex
    """
    w_, truth_, h = complex_vectors(w=w, truth=truth, direction=direction)
    check_noise_mean(noise_mean)
    ww, ss = _power(w_), _power(truth_)
    factor, along = (2.0 * ww - ss, 4.0) if noise_mean == "zero" else (ww, 2.0)
    return factor * h - complex(np.vdot(truth_, h)) * truth_ + along * float(np.vdot(w_, h).real) * w_


def response_mean(truth: npt.ArrayLike, *, background: float = 0.0) -> float:
    """``E[y] = ‖x*‖² + E[z]``."""
    (truth_,) = complex_vectors(truth=truth)
    return _power(truth_) + background


def response_variance(truth: npt.ArrayLike, noise_variance: float = 0.0) -> float:
    """``Var(y) = ‖x*‖⁴ + σ²`` (``2‖x*‖⁴ + σ²`` in the real case): ``|aᴴx*|²`` is exponential with mean ``‖x*‖²``."""
    (truth_,) = complex_vectors(truth=truth)
    check_noise_variance(noise_variance)
    return _power(truth_) ** 2 + noise_variance


def weighted_second_moment(truth: npt.ArrayLike, *, background: float = 0.0) -> ComplexMatrix:
    """``E[y aaᴴ] = (‖x*‖² + E[z])I + x*x*ᴴ``: eigenvalue ratio 2 without background, where the real case has 3."""
    (truth_,) = complex_vectors(truth=truth)
    return (_power(truth_) + background) * np.eye(truth_.size) + np.outer(truth_, truth_.conj())


def scaled_rows_covariance(
    truth: npt.ArrayLike, noise_variance: float = 0.0, *, background: float = 0.0
) -> ComplexMatrix:
    """``Cov(y a) = (2‖x*‖⁴ + 2μ‖x*‖² + μ² + σ²)I + (4‖x*‖² + 2μ)x*x*ᴴ`` with ``μ = E[z]``.

    The mean of ``y a`` is zero, and ``E|a₁|⁶ = 6`` along ``x*`` against ``E|a₁|⁴ = 2`` across it.
    """
    (truth_,) = complex_vectors(truth=truth)
    check_noise_variance(noise_variance)
    power = _power(truth_)
    diagonal = 2.0 * power**2 + 2.0 * background * power + background**2 + noise_variance
    spike = 4.0 * power + 2.0 * background
    return diagonal * np.eye(truth_.size) + spike * np.outer(truth_, truth_.conj())


def _power(v: ComplexVector) -> float:
    """Squared norm, as a real number."""
    return float(np.vdot(v, v).real)
