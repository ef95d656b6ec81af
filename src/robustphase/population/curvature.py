"""How curved the population risks are: at a point, and over a ball around the truth (paper, Lemmas 2.1 and 2.3).

Both Hessians are ``p I + q xxᵀ − 2x*x*ᵀ``, so everything happens in the plane of ``x`` and ``x*``. With ``‖x*‖ = 1``,
``s = ‖x‖²`` and the angle ``θ`` between the two, the eigenvalues in that plane are

    zero mean:     2(3s − 1) ± √((3s − 1)² + 12 s sin²θ)
    unknown mean:   4s − 1   ± √((2s − 1)² +  8 s sin²θ)

and the remaining ones lie between. Over the ball ``‖x − x*‖ ≤ R < 1`` a fixed ``s`` is worst at the largest angle,
that is on the sphere, where ``4s sin²θ = 4s − (1 + s − R²)²``. The radicands become ``6(s + R²/2)² − (2 − 3R²)²/2``
and ``2(s + R²)² − (1 − 2R²)²``: the upper branch increases with ``s`` and peaks at ``s = (1 + R)²``; the lower one is
convex in ``s``, with its minimum at the stationary point if that lies on the sphere and at the end ``s = (1 − R)²``
otherwise (always for the small radii of the paper).

Two of the four constants the paper states are false, and a third is not tight; see docs/errata.md, entries A1 and A2.
"""

import math
from typing import NamedTuple

import numpy.typing as npt

from robustphase.population._vectors import (
    NoiseMean,
    check_dimension,
    check_noise_mean,
    check_relative_radius,
    real_vectors,
)


class CurvatureRange(NamedTuple):
    """Smallest and largest Hessian eigenvalue: the paper's ``α`` (strong convexity) and ``β`` (smoothness)."""

    strong_convexity: float
    smoothness: float


def curvature_at(x: npt.ArrayLike, truth: npt.ArrayLike, *, noise_mean: NoiseMean = "zero") -> CurvatureRange:
    """Smallest and largest eigenvalue of the Hessian at ``x``, without forming it.

    Parameters
    ----------
    x, truth : array_like of shape (n,)
        The point and the true signal ``x*``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    CurvatureRange
        In absolute units, not divided by ``‖truth‖²``.
    """
    check_noise_mean(noise_mean)
    x_, truth_ = real_vectors(x=x, truth=truth)
    s, t = float(x_ @ x_), float(truth_ @ truth_)
    if x_.size == 1:
        only = 9.0 * s - 3.0 * t if noise_mean == "zero" else 6.0 * s - 2.0 * t
        return CurvatureRange(only, only)
    # ‖x‖²‖x*‖² sin²θ, from the part of x across x*: the difference ‖x‖²‖x*‖² − (x·x*)² would cancel for small angles.
    across = x_ - (x_ @ truth_) / t * truth_ if t > 0.0 else 0.0 * x_
    area = t * float(across @ across)
    if noise_mean == "zero":
        centre, spread = 2.0 * (3.0 * s - t), math.sqrt((3.0 * s - t) ** 2 + 12.0 * area)
    else:
        centre, spread = 4.0 * s - t, math.sqrt((2.0 * s - t) ** 2 + 8.0 * area)
    return CurvatureRange(centre - spread, centre + spread)


def curvature_range(
    relative_radius: float, *, noise_mean: NoiseMean = "zero", dimension: int | None = None
) -> CurvatureRange:
    """Exact range of the Hessian eigenvalues over ``‖x − x*‖ ≤ relative_radius · ‖x*‖``, in units of ``‖x*‖²``.

    The corrected Lemmas 2.1 and 2.3. Both ends are attained.

    Parameters
    ----------
    relative_radius : float in [0, 1)
        Radius of the ball over ``‖x*‖``; the paper uses 1/9 for a zero and 1/6 for an unknown noise mean.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    dimension : int, optional
        Only whether it is 1 matters (then there is no direction across the signal). Default: at least 2.

    Returns
    -------
    CurvatureRange

    Examples
    --------
    The ball of Lemma 2.1: 37/27 and 73/9, where the paper has 4 and 73/9.

    >>> [round(value, 4) for value in curvature_range(1 / 9)]
    [1.3704, 8.1111]

    The ball of Lemma 2.3: 25/18 and 37/6, where the paper has 1 and 49/12.

    >>> [round(value, 4) for value in curvature_range(1 / 6, noise_mean="unknown")]
    [1.3889, 6.1667]
    """
    check_relative_radius(relative_radius)
    check_noise_mean(noise_mean)
    if dimension is not None:
        check_dimension(dimension)
    radius = relative_radius
    nearest, farthest = (1.0 - radius) ** 2, (1.0 + radius) ** 2
    if noise_mean == "zero":
        largest = 9.0 * farthest - 3.0
        smallest = 9.0 * nearest - 3.0 if dimension == 1 else _smallest_zero_mean(radius, nearest, farthest)
    else:
        largest = 6.0 * farthest - 2.0
        smallest = 6.0 * nearest - 2.0 if dimension == 1 else _smallest_unknown_mean(radius, nearest, farthest)
    return CurvatureRange(smallest, largest)


def convexity_radius(noise_mean: NoiseMean = "zero") -> float:
    """Largest relative radius below which the risk is strongly convex (dimension at least 2).

    Where the lower end of ``curvature_range`` reaches zero. For a zero noise mean that happens off the line of
    ``x*``, at ``R² = (√10 − 2)/(3 + 3√10/2)`` (R ≈ 0.387); for an unknown one on that line, at ``R = 1 − 1/√3`` (R ≈
    0.423).

    Parameters
    ----------
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.

    Returns
    -------
    float
    """
    check_noise_mean(noise_mean)
    if noise_mean == "zero":
        root = math.sqrt(10.0)
        return math.sqrt((root - 2.0) / (3.0 + 1.5 * root))
    return 1.0 - 1.0 / math.sqrt(3.0)


def _smallest_zero_mean(radius: float, nearest: float, farthest: float) -> float:
    """Minimum over s of 6s − 2 − √(6(s + R²/2)² − (2 − 3R²)²/2)."""
    stationary = abs(2.0 - 3.0 * radius**2) / math.sqrt(10.0) - radius**2 / 2.0
    if nearest < stationary < farthest:
        return 6.0 * stationary - 2.0 - (stationary + radius**2 / 2.0)
    # A stationary point beyond the far end would ask for that end; it lies below (1 + R)² for every R < 1.
    return 2.0 * (3.0 * nearest - 1.0) - abs(3.0 * nearest - 1.0)


def _smallest_unknown_mean(radius: float, nearest: float, farthest: float) -> float:
    """Minimum over s of 4s − 1 − √(2(s + R²)² − (1 − 2R²)²)."""
    stationary = 2.0 * abs(1.0 - 2.0 * radius**2) / math.sqrt(7.0) - radius**2
    if nearest < stationary < farthest:
        return 4.0 * stationary - 1.0 - (stationary + radius**2) / 2.0
    return 4.0 * nearest - 1.0 - abs(2.0 * nearest - 1.0)
