"""Population risk of the zero-mean model, ``r(x) = E[((a·x)² − y)²] / 4`` (paper, equation (3) and Lemma E.1).

``a`` is standard normal, ``y = (a·x*)² + z``, and ``z`` has variance ``noise_variance`` and is independent of ``a``.
The paper takes ``E[z] = 0``; every function here also takes the mean of the noise, ``background``, because it shows
what a background does to this risk: the minimisers stay on the line of the truth and only their length changes,
``‖x‖² = ‖x*‖² + E[z]/3``.
"""

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import Matrix, Vector, check_noise_variance, real_vectors


def risk(x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_variance: float = 0.0, background: float = 0.0) -> float:
    """Population risk ``r(x)``, paper's equation (3).

    From ``E[(a·u)²(a·v)²] = ‖u‖²‖v‖² + 2(u·v)²``.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_variance : float, default 0
        ``σ²``; it only adds the constant ``σ²/4``.
    background : float, default 0
        Mean of the noise. The paper's zero-mean model has 0.

    Returns
    -------
    float
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    check_noise_variance(noise_variance)
    xx, ss, xs = x_ @ x_, truth_ @ truth_, x_ @ truth_
    without_background = 3.0 * xx**2 - 2.0 * xx * ss - 4.0 * xs**2 + 3.0 * ss**2
    return float(without_background - 2.0 * background * (xx - ss) + background**2 + noise_variance) / 4.0


def gradient(x: npt.ArrayLike, truth: npt.ArrayLike, *, background: float = 0.0) -> Vector:
    """Gradient ``3‖x‖²x − ‖x*‖²x − 2(x*·x)x*``, paper's Lemma E.1.

    It is the mean of ``((a·x)² − y)(a·x)a``, the vectors of Algorithm 2.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    background : float, default 0
        Mean of the noise; it adds ``−E[z] x``.

    Returns
    -------
    ndarray of shape (n,)
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    return (3.0 * (x_ @ x_) - truth_ @ truth_ - background) * x_ - 2.0 * (truth_ @ x_) * truth_


def hessian(x: npt.ArrayLike, truth: npt.ArrayLike, *, background: float = 0.0) -> Matrix:
    """Hessian ``3(2xxᵀ + ‖x‖²I) − (‖x*‖²I + 2x*x*ᵀ)``, paper's Lemma E.1.

    At the solution it is ``2‖x‖²I + 4xxᵀ``: eigenvalues ``6‖x‖²`` along ``x`` and ``2‖x‖²`` across it.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    background : float, default 0
        Mean of the noise; it adds ``−E[z] I``.

    Returns
    -------
    ndarray of shape (n, n)
    """
    x_, truth_ = real_vectors(x=x, truth=truth)
    diagonal = 3.0 * (x_ @ x_) - truth_ @ truth_ - background
    return diagonal * np.eye(x_.size) + 6.0 * np.outer(x_, x_) - 2.0 * np.outer(truth_, truth_)


def minimiser(truth: npt.ArrayLike, *, background: float = 0.0) -> Vector:
    """Minimiser of ``r`` nearest to the truth when the noise has mean ``background``.

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
