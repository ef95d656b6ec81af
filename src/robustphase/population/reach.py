"""How far the truth can be, given the displacement that the risk asks for.

At ``x`` the population risk of the truth ``x*`` asks for the displacement ``d = H⁻¹∇R(x)`` (`steps.newton_step`), and near the
truth ``d ≈ x − x*``. Farther away the two differ: across ``x`` at ``‖x*‖² = 3‖x‖²`` there is a stationary point that no
displacement leaves. So whoever knows that ``‖d‖ ≤ b‖x‖`` knows that the truth lies in the part of this set that is connected
with ``x``, and nothing if that part reaches signals across ``x``.

Everything happens in the plane of ``x`` and ``x*``. With ``‖x‖ = 1`` and ``x* = c x + s w`` for a unit vector w across, the
gradient is

    real rows, zero mean:     ``(3 − |x*|² − 2c²) x − 2cs w``,   curvatures 6 and 2;
    real rows, unknown mean:  ``(2 − 2c²) x − 2cs w``,           curvatures 4 and 2;
    complex rows, zero mean:  ``(2 − |x*|² − c²) x − cs w``,     curvatures 4 and 1;
    complex, unknown mean:    ``(1 − c²) x − cs w``,             curvatures 2 and 1.
"""

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import NoiseMean, check_noise_mean

#: Largest distance looked at, over the norm, and the fineness of distances and of directions of the truth.
_FARTHEST: Final = 3.0
_DISTANCES, _DIRECTIONS = 1500, 360


def reach(displacement: npt.ArrayLike, *, noise_mean: NoiseMean = "zero", is_complex: bool = False) -> npt.NDArray[Any]:
    """Largest distance of a truth that asks for a displacement no longer than this, both over the norm of the signal.

    Parameters
    ----------
    displacement : array_like
        Bounds ``b`` on ``‖H⁻¹∇R(x)‖/‖x‖``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    is_complex : bool, default False
        Whether rows and signal are complex.

    Returns
    -------
    ndarray
        Distances, a little more than ``b`` where it is small, and infinite where signals across ``x`` are not ruled out:
        from 0.42 on with a zero mean, from a half on with an unknown one.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(reach([0.0, 0.05, 0.2, 0.5]), 2)
    array([0.  , 0.05, 0.23,  inf])
    """
    check_noise_mean(noise_mean)
    bounds = np.asarray(displacement, dtype=np.float64)
    needed, most = _needed(noise_mean, is_complex)
    distances = np.linspace(0.0, _FARTHEST, _DISTANCES)
    found: npt.NDArray[Any] = np.interp(bounds, needed, distances)
    return np.where(bounds < most, np.maximum(found, bounds), np.where(np.isnan(bounds), np.nan, np.inf))


@cache
def _needed(noise_mean: NoiseMean, is_complex: bool) -> tuple[npt.NDArray[Any], float]:
    """The displacement that must be allowed for before a truth at each distance is, and before one across the signal is."""
    distances = np.linspace(0.0, _FARTHEST, _DISTANCES)[:, np.newaxis]
    directions = np.linspace(0.0, np.pi, _DIRECTIONS)
    along, across = 1 + distances * np.cos(directions), distances * np.sin(directions)
    # The largest on the way there: truths farther out that ask for less are not connected.
    on_the_way = np.maximum.accumulate(_lengths(along, across, noise_mean, is_complex), axis=0)
    # Beyond a right angle it is the other sign of the truth that is near.
    allowed = np.where(along >= 0, on_the_way, np.inf)
    most = float(np.where(along <= 0, on_the_way, np.inf).min())
    return np.maximum.accumulate(allowed.min(axis=1)), most


def _lengths(
    along: npt.NDArray[Any], across: npt.NDArray[Any], noise_mean: NoiseMean, is_complex: bool
) -> npt.NDArray[Any]:
    """Lengths of the displacements at ``x``, for truths ``along x + across w``."""
    weight = 1 if is_complex else 2
    radial = weight * (1 - along**2)
    if noise_mean == "zero":
        radial = radial + 1 - along**2 - across**2
    curvature = 2 * weight if noise_mean == "unknown" else 2 * weight + 2
    lengths: npt.NDArray[Any] = np.hypot(radial / curvature, along * across)
    return lengths
