"""One name for each quantity of both noise models: ``risk``, ``gradient``, ``hessian``.

``noise_mean="zero"`` is Section 2.2 of the paper (module ``zero_mean``), ``noise_mean="unknown"`` is Section 2.3
(module ``paired``). A complex ``x`` or ``truth`` selects ``complex_model``.
"""

import numpy as np
import numpy.typing as npt

from robustphase.population import complex_model, paired, zero_mean
from robustphase.population._vectors import ComplexVector, Matrix, NoiseMean, Vector, check_noise_mean


def risk(
    x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_mean: NoiseMean = "zero", noise_variance: float = 0.0
) -> float:
    """Population risk: equation (3) for a zero noise mean, equation (9) for an unknown one.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``, real or complex.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    noise_variance : float, default 0
        ``σ²``, the variance of the noise in a single response.

    Returns
    -------
    float
    """
    check_noise_mean(noise_mean)
    if _any_complex(x, truth):
        return complex_model.risk(x, truth, noise_mean=noise_mean, noise_variance=noise_variance)
    if noise_mean == "zero":
        return zero_mean.risk(x, truth, noise_variance=noise_variance)
    return paired.risk(x, truth, noise_variance=noise_variance)


def gradient(x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_mean: NoiseMean = "zero") -> Vector | ComplexVector:
    """Gradient of the population risk, Lemmas E.1 and E.2; the Wirtinger gradient if complex.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``, real or complex.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    ndarray of shape (n,)
    """
    check_noise_mean(noise_mean)
    if _any_complex(x, truth):
        return complex_model.gradient(x, truth, noise_mean=noise_mean)
    return zero_mean.gradient(x, truth) if noise_mean == "zero" else paired.gradient(x, truth)


def hessian(x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_mean: NoiseMean = "zero") -> Matrix:
    """Hessian of the population risk, Lemmas E.1 and E.2.

    For real signals; the curvature of the complex risk is ``complex_model.curvature``.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    ndarray of shape (n, n)
    """
    check_noise_mean(noise_mean)
    return zero_mean.hessian(x, truth) if noise_mean == "zero" else paired.hessian(x, truth)


def _any_complex(*values: npt.ArrayLike) -> bool:
    return any(np.iscomplexobj(np.asarray(value)) for value in values)
