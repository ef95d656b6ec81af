"""Distance between signals that phaseless responses can tell apart (paper, equation (2)).

``x`` and ``-x`` explain the same responses; in the complex case so do all ``exp(iφ) x``. The distance is therefore
the smallest one over the global sign or phase, and the best phase is that of ``⟨truth, x⟩``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt


def distance(x: npt.ArrayLike, truth: npt.ArrayLike, *, relative: bool = False) -> float:
    """Distance from ``x`` to ``truth`` up to the global sign (real) or phase (complex), paper's ``dist(x, x*)``.

    Parameters
    ----------
    x, truth : array_like
        Two signals of the same shape. If either is complex, the minimum is over the global phase.
    relative : bool, default False
        Divide by ``‖truth‖``.

    Returns
    -------
    float
        ``min(‖x − truth‖, ‖x + truth‖)``, or ``min over φ of ‖x − exp(iφ) truth‖``. With ``relative=True`` and a zero
        truth: 0 if ``x`` is zero as well, infinity otherwise. NaN if an entry is NaN, infinity if one is infinite.

    Examples
    --------
    >>> distance([3.0, 4.0], [-3.0, -4.0])
    0.0
    >>> distance([1j, 1j], [1.0, 1.0])
    0.0
    >>> distance([2.0, 0.0], [4.0, 0.0], relative=True)
    0.5
    """
    x_, truth_ = np.asarray(x), np.asarray(truth)
    if x_.shape != truth_.shape:
        raise ValueError(f"x and truth must have the same shape, got {x_.shape} and {truth_.shape}")
    if x_.size == 0:
        return 0.0
    # Dividing by the largest entry first keeps the squares inside the norms from overflowing or vanishing.
    scale = float(np.maximum(np.max(np.abs(x_)), np.max(np.abs(truth_))))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    u, v = _scaled(x_, scale), _scaled(truth_, scale)
    if np.iscomplexobj(u) or np.iscomplexobj(v):
        inner = complex(np.vdot(v, u))
        phase = inner / abs(inner) if inner != 0 else 1.0
        gap = float(np.linalg.norm(u - phase * v))
    else:
        gap = min(float(np.linalg.norm(u - v)), float(np.linalg.norm(u + v)))
    if not relative:
        return scale * gap
    size = float(np.linalg.norm(v))
    return gap / size if size > 0.0 else float("inf")


def _scaled(array: npt.NDArray[Any], scale: float) -> npt.NDArray[Any]:
    """Flatten and divide by ``scale`` in double precision."""
    wide = np.complex128 if np.iscomplexobj(array) else np.float64
    # Two factors, because 1/scale alone overflows for a subnormal scale.
    root = float(np.sqrt(scale))
    flat: npt.NDArray[Any] = array.ravel().astype(wide)
    return flat / root / root
