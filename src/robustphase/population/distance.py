"""Distance between signals that phaseless responses can tell apart (paper, equation (2)).

``x`` and ``-x`` explain the same responses; in the complex case so do all ``exp(iφ) x``. The distance is therefore
the smallest one over the global sign or phase, and the best phase is that of ``⟨truth, x⟩``. Behind real rows a complex signal
and its conjugate explain the same responses too.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from robustphase.population.real_rows import PairedSignal


def distance(
    x: npt.ArrayLike, truth: npt.ArrayLike, *, relative: bool = False, conjugate: bool | str = "auto"
) -> float:
    """Distance from ``x`` to ``truth`` up to the global sign (real) or phase (complex), paper's ``dist(x, x*)``.

    Parameters
    ----------
    x, truth : array_like
        Two signals of the same shape. If either is complex, the minimum is over the global phase.
    relative : bool, default False
        Divide by ``‖truth‖``.
    conjugate : bool or "auto", default "auto"
        Whether the conjugate of a signal is the same signal, as it is behind real rows. ``"auto"``: if either of the two says
        that it stands behind real rows, as what a fit finds there does (:class:`~robustphase.population.PairedSignal`). Plain
        complex arrays say nothing of their rows; pass True for two of them.

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
    >>> distance([1.0, 1j], [1.0, -1j])
    2.0
    >>> distance([1.0, 1j], [1.0, -1j], conjugate=True)
    0.0
    """
    if conjugate not in (True, False, "auto"):
        raise ValueError(f'conjugate must be True, False or "auto", got {conjugate!r}.')
    behind_real_rows = isinstance(x, PairedSignal) or isinstance(truth, PairedSignal)
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
        both = behind_real_rows if conjugate == "auto" else conjugate
        gap = min(_gap(u, w) for w in ((v, v.conj()) if both else (v,)))
    else:
        gap = min(float(np.linalg.norm(u - v)), float(np.linalg.norm(u + v)))
    if not relative:
        return scale * gap
    size = float(np.linalg.norm(v))
    return gap / size if size > 0.0 else float("inf")


def _gap(u: npt.NDArray[Any], v: npt.NDArray[Any]) -> float:
    """Distance over the global phase."""
    inner = complex(np.vdot(v, u))
    phase = inner / abs(inner) if inner != 0 else 1.0
    return float(np.linalg.norm(u - phase * v))


def _scaled(array: npt.NDArray[Any], scale: float) -> npt.NDArray[Any]:
    """Flatten and divide by ``scale`` in double precision."""
    wide = np.complex128 if np.iscomplexobj(array) else np.float64
    # Two factors, because 1/scale alone overflows for a subnormal scale.
    root = float(np.sqrt(scale))
    flat: npt.NDArray[Any] = array.ravel().astype(wide)
    return flat / root / root
