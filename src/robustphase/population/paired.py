"""Population risk of the unknown-mean model, ``r_new(x) = E[(xᵀb cᵀx − υ)²] / 2`` (paper, equation (9) and Lemma E.2).

Subtracting one sample from another removes any noise mean: ``b = (a + a')/√2``, ``c = (a − a')/√2`` and
``υ = (y − y')/2`` obey ``υ = (b·x*)(c·x*) + ζ`` with ``E[ζ] = 0`` and ``Var ζ = σ²/2``.

The same function appears a second time. Keep single samples, add a free background ``β`` to the zero-mean risk and
minimise over it: ``min over β of E[((a·x)² + β − y)²] / 4 = Var((a·x)² − y) / 4 = r_new(x)``, exactly. Fitting the
background therefore has the population geometry of pairing, without halving the sample or doubling the contamination.

Lemma E.2 is printed with two misprints; see docs/errata.md, entry A4.
"""

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import Matrix, Vector, check_noise_variance, real_vectors


def risk(x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_variance: float = 0.0) -> float:
    """Population risk ``r_new(x) = ‖xxᵀ − x*x*ᵀ‖²_F / 2 + σ²/4``, paper's equation (9).

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_variance : float, default 0
        ``σ²``, the variance of the noise in a single response (``ζ`` has half of it).

    Returns
    -------
    float
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    check_noise_variance(noise_variance)
    xx, ss, xs = x_ @ x_, truth_ @ truth_, x_ @ truth_
    return float((xx**2 + ss**2 - 2.0 * xs**2) / 2.0 + noise_variance / 4.0)


def gradient(x: npt.ArrayLike, truth: npt.ArrayLike) -> Vector:
    """Gradient ``2‖x‖²x − 2(x·x*)x*``, paper's Lemma E.2 (the printed last factor ``x`` must be ``x*``).

    It is the mean of ``(xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x``, the vectors of Algorithm 4.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.

    Returns
    -------
    ndarray of shape (n,)
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    return 2.0 * (x_ @ x_) * x_ - 2.0 * (x_ @ truth_) * truth_


def hessian(x: npt.ArrayLike, truth: npt.ArrayLike) -> Matrix:
    """Hessian ``2‖x‖²I + 4xxᵀ − 2x*x*ᵀ``, paper's Lemma E.2 (the printed ``‖x*‖²I`` must be ``‖x‖²I``).

    At the solution it is ``2‖x‖²I + 2xxᵀ``: eigenvalues ``4‖x‖²`` along ``x`` and ``2‖x‖²`` across it.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.

    Returns
    -------
    ndarray of shape (n, n)
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    return 2.0 * (x_ @ x_) * np.eye(x_.size) + 4.0 * np.outer(x_, x_) - 2.0 * np.outer(truth_, truth_)
