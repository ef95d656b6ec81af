"""Population risks of the paper's two models, with their gradients and Hessians.

``a`` is standard normal, ``y = (a·x*)² + z``, and ``z`` has variance ``noise_variance``, mean ``background`` and is
independent of ``a``.

``noise_mean="zero"`` (Section 2.2, Lemma E.1): ``r(x) = E[((a·x)² − y)²] / 4``, equation (3). The paper takes
``E[z] = 0``; every function here also takes the mean of the noise, because it shows what a background does to this
risk: the minimisers stay on the line of the truth and only their length changes, ``‖x‖² = ‖x*‖² + E[z]/3``.

``noise_mean="unknown"`` (Section 2.3, Lemma E.2): ``r_new(x) = E[(xᵀb cᵀx − υ)²] / 2``, equation (9). Subtracting one
sample from another removes any noise mean: ``b = (a + a')/√2``, ``c = (a − a')/√2`` and ``υ = (y − y')/2`` obey
``υ = (b·x*)(c·x*) + ζ`` with ``E[ζ] = 0`` and ``Var ζ = σ²/2``, so a background changes nothing. The same function
appears a second time. Keep single samples, add a free background ``β`` to the zero-mean risk and minimise over it:
``min over β of E[((a·x)² + β − y)²] / 4 = Var((a·x)² − y) / 4 = r_new(x)``, exactly. Fitting the background therefore has
the population geometry of pairing, without halving the sample or doubling the contamination. Lemma E.2 has two misprints;
see docs/errata.md, entry A4.

A complex ``x`` or ``truth`` selects ``complex_model``.
"""

import numpy as np
import numpy.typing as npt

from robustphase.population import complex_model
from robustphase.population._vectors import (
    ComplexVector,
    Matrix,
    NoiseMean,
    Vector,
    check_noise_mean,
    check_noise_variance,
    real_vectors,
)


def risk(
    x: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    noise_mean: NoiseMean = "zero",
    noise_variance: float = 0.0,
    background: float = 0.0,
) -> float:
    """Population risk: ``r(x)`` of equation (3), or ``‖xxᵀ − x*x*ᵀ‖²_F / 2 + σ²/4`` of equation (9).

    From ``E[(a·u)²(a·v)²] = ‖u‖²‖v‖² + 2(u·v)²``.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``, real or complex.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    noise_variance : float, default 0
        ``σ²``, the variance of the noise in a single response; it only adds the constant ``σ²/4``.
    background : float, default 0
        Mean of the noise. The paper's zero-mean model has 0; the other one does not see it.

    Returns
    -------
    float
    """
    check_noise_mean(noise_mean)
    if _any_complex(x, truth):
        return complex_model.risk(x, truth, noise_mean=noise_mean, noise_variance=noise_variance, background=background)
    x_, truth_ = real_vectors(x=x, truth=truth)
    check_noise_variance(noise_variance)
    xx, ss, xs = x_ @ x_, truth_ @ truth_, x_ @ truth_
    if noise_mean == "unknown":
        return float((xx**2 + ss**2 - 2.0 * xs**2) / 2.0 + noise_variance / 4.0)
    without_background = 3.0 * xx**2 - 2.0 * xx * ss - 4.0 * xs**2 + 3.0 * ss**2
    return float(without_background - 2.0 * background * (xx - ss) + background**2 + noise_variance) / 4.0


def gradient(
    x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_mean: NoiseMean = "zero", background: float = 0.0
) -> Vector | ComplexVector:
    """Gradient of the population risk; the Wirtinger gradient if complex.

    ``3‖x‖²x − ‖x*‖²x − 2(x*·x)x*`` (Lemma E.1) is the mean of ``((a·x)² − y)(a·x)a``, the vectors of Algorithm 2, and
    ``2‖x‖²x − 2(x·x*)x*`` (Lemma E.2, where the published last factor ``x`` must be ``x*``) that of
    ``(xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x``, the vectors of Algorithm 4.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``, real or complex.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    background : float, default 0
        Mean of the noise; it adds ``−E[z] x`` where the model takes it for zero.

    Returns
    -------
    ndarray of shape (n,)
    """
    check_noise_mean(noise_mean)
    if _any_complex(x, truth):
        return complex_model.gradient(x, truth, noise_mean=noise_mean, background=background)
    x_, truth_ = real_vectors(x=x, truth=truth)
    if noise_mean == "unknown":
        return 2.0 * (x_ @ x_) * x_ - 2.0 * (x_ @ truth_) * truth_
    return (3.0 * (x_ @ x_) - truth_ @ truth_ - background) * x_ - 2.0 * (truth_ @ x_) * truth_


def hessian(
    x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_mean: NoiseMean = "zero", background: float = 0.0
) -> Matrix:
    """Hessian of the population risk, for real signals; the curvature of the complex risk is ``complex_model.curvature``.

    ``3(2xxᵀ + ‖x‖²I) − (‖x*‖²I + 2x*x*ᵀ)`` (Lemma E.1): at the solution the eigenvalues are ``6‖x‖²`` along ``x`` and
    ``2‖x‖²`` across it. ``2‖x‖²I + 4xxᵀ − 2x*x*ᵀ`` (Lemma E.2, where the published ``‖x*‖²I`` must be ``‖x‖²I``): there
    they are ``4‖x‖²`` and ``2‖x‖²``.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    background : float, default 0
        Mean of the noise; it adds ``−E[z] I`` where the model takes it for zero.

    Returns
    -------
    ndarray of shape (n, n)
    """
    check_noise_mean(noise_mean)
    x_, truth_ = real_vectors(x=x, truth=truth)
    if noise_mean == "unknown":
        diagonal, spike = 2.0 * (x_ @ x_), 4.0
    else:
        diagonal, spike = 3.0 * (x_ @ x_) - truth_ @ truth_ - background, 6.0
    return diagonal * np.eye(x_.size) + spike * np.outer(x_, x_) - 2.0 * np.outer(truth_, truth_)


def minimiser(truth: npt.ArrayLike, *, background: float = 0.0) -> Vector:
    """Minimiser of the zero-mean risk nearest to the truth when the noise has mean ``background``.

    Setting the gradient to zero on the line of ``x*`` gives ``‖x‖² = ‖x*‖² + E[z]/3``, so a background leaves the
    direction right and biases the length. Below ``E[z] = −3‖x*‖²`` the minimiser is the origin and the direction is
    lost too.

    Parameters
    ----------
    truth : array_like of shape (n,)
        The true signal ``x*``, not zero.
    background : float, default 0
        Mean of the noise.

    Returns
    -------
    ndarray of shape (n,)
    """
    (truth_,) = real_vectors(truth=truth)
    power = float(truth_ @ truth_)
    if power == 0.0:
        raise ValueError("truth is zero: it has no direction, and every minimiser of the given length is as good")
    return truth_ * float(np.sqrt(max(0.0, 1.0 + background / (3.0 * power))))


def _any_complex(*values: npt.ArrayLike) -> bool:
    return any(np.iscomplexobj(np.asarray(value)) for value in values)
