"""Complex signals behind real rows: ``a`` real, ``y = |aᵀx|² + z = (aᵀu)² + (aᵀv)² + z`` with ``x = u + iv``.

Only ``uuᵀ + vvᵀ`` shows in the responses, so ``x``, ``exp(iφ)x`` and ``x̄`` are one signal. A change ``h`` of the signal
changes a prediction by ``2 Re(s̄ aᵀh)`` with ``s = aᵀx``, and half of the curvature of the weighted squares is::

    H h = Σ w s · 2 Re(s̄ aᵀh) a  =  Σ w (|s|² aᵀh + s² aᵀh̄) a.

Across ``u`` and ``v`` a standard normal row is independent of ``s``, which leaves ``H h = σ h + π h̄`` with ``σ = Σ w|s|²`` and
the pseudo-moment ``π = Σ w s²``: curvatures ``σ ± |π|``, which is ``2‖u‖²`` and ``2‖v‖²`` after the phase that makes ``u`` and
``v`` orthogonal. (Complex rows turn their phase, π vanishes.) In the four real dimensions spanned by ``u``, ``v``, ``iu`` and
``iv`` the curvature follows from the fourth moments of ``s``; along ``ix`` it is zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_TINY = float(np.finfo(np.float64).tiny)
#: Part of a signal, over the whole, that is rounding: the root of the precision, since it is squared.
VANISHED = float(np.sqrt(np.finfo(np.float64).eps))


class PairedSignal(np.ndarray[Any, np.dtype[Any]]):
    """A complex signal behind real rows: an array like any other, which says that its conjugate is the same signal."""


class JointMoments(NamedTuple):
    """Weighted moments of the projections ``s = aᵀx`` of k signals, each of shape (k,).

    Attributes
    ----------
    mass, second, fourth : ndarray
        ``Σ w``, ``Σ w|s|²`` and ``Σ w|s|⁴``.
    pseudo, mixed, quartic : ndarray of complex numbers
        ``Σ w s²``, ``Σ w|s|²s²`` and ``Σ w s⁴``.
    """

    mass: Array
    second: Array
    fourth: Array
    pseudo: Array
    mixed: Array
    quartic: Array


class PairedCurvature:
    """The inverse of H for k signals.

    Parameters
    ----------
    signals : ndarray of shape (n, k)
        Where the signals are.
    moments : JointMoments
        Of their projections.
    profiled : bool
        A background is fitted along, which takes from the curvature what a constant explains.
    kurtosis : float
        Of the lengths of the rows, by which curvatures across u and v are larger than behind rows of one length.
    least_across, least_along : ndarray of shape (k,)
        Curvatures count as at least this, across u and v, and in their span.
    """

    def __init__(
        self,
        signals: Array,
        moments: JointMoments,
        *,
        profiled: bool,
        kurtosis: float = 1.0,
        least_across: Array,
        least_along: Array,
    ) -> None:
        # The phase in which real and imaginary part are orthogonal.
        pseudo_power = (signals * signals).sum(axis=0)
        self._turn = np.exp(-0.5j * np.angle(pseudo_power))
        turned = signals * self._turn
        self._axes = turned.real, turned.imag
        # One of them may vanish: the signal is a real one then, and what is divided by that length is zero.
        least = np.maximum(VANISHED * np.linalg.norm(turned, axis=0), _TINY**0.25)
        self._lengths = tuple(np.maximum(np.linalg.norm(axis, axis=0), least) for axis in self._axes)
        self._axes = tuple(axis / length for axis, length in zip(self._axes, self._lengths, strict=True))
        first, outer = _span_moments(moments, self._turn, self._lengths)
        self.level = first
        curvature = 2 * outer
        if profiled:
            mass = np.maximum(moments.mass, _TINY)[:, np.newaxis, np.newaxis]
            curvature = curvature - 2 * first[:, :, np.newaxis] * first[:, np.newaxis, :] / mass
        values, self._basis = np.linalg.eigh(curvature)
        self._values = np.maximum(values, np.maximum(least_along, _TINY)[:, np.newaxis])
        pseudo = kurtosis * moments.pseudo * self._turn**2
        size = np.maximum(np.abs(pseudo), _TINY)
        # The smaller curvature across, σ − |π|, has a floor.
        least = np.maximum(least_across, _TINY)
        self._sigma = np.maximum(kurtosis * moments.second, least)
        self._pi = pseudo * np.minimum(1.0, np.maximum(self._sigma - least, 0.0) / size)

    def solve(self, vectors: Array, shifts: Array | float = 0.0) -> Array:
        """``H⁻¹ (v − shift · Σ w s a)`` for every column, with the population's value of the sum."""
        turned = vectors * self._turn
        u, v = self._axes
        inner = [np.vecdot(axis.T, turned.T) for axis in (u, v)]
        across = turned - u * inner[0] - v * inner[1]
        determinant = np.maximum(self._sigma**2 - np.abs(self._pi) ** 2, _TINY)
        solved = (self._sigma * across - self._pi * across.conj()) / determinant
        given = np.stack((inner[0].real, inner[1].real, inner[0].imag, inner[1].imag), axis=1)
        given = given - np.broadcast_to(shifts, self._sigma.shape)[:, np.newaxis] * self.level
        along = np.einsum("kde,kd->ke", self._basis, given) / self._values
        a, b, c, d = np.einsum("kde,ke->dk", self._basis, along)
        result: Array = (solved + u * (a + 1j * c) + v * (b + 1j * d)) * self._turn.conj()
        return result


def _span_moments(moments: JointMoments, turn: Array, lengths: tuple[Array, ...]) -> tuple[Array, Array]:
    """``Σ w φ`` (k, 4) and ``Σ w φφᵀ`` (k, 4, 4), φ half the change of a prediction along u, v, iu and iv of unit length."""
    pseudo, mixed, quartic = moments.pseudo * turn**2, moments.mixed * turn**2, moments.quartic * turn**4
    # Second moments of (s_r, s_i): rr, ri, ii; and all products of two of these.
    plain = np.stack((moments.second + pseudo.real, pseudo.imag, moments.second - pseudo.real), axis=-1) / 2
    squares = (moments.fourth + quartic.real) / 2, (moments.fourth - quartic.real) / 2
    four, cross = moments.fourth, quartic.imag / 2
    rr_rr, ii_ii = (four + 2 * mixed.real + squares[0]) / 4, (four - 2 * mixed.real + squares[0]) / 4
    rr_ii, ri_ri = (four - squares[0]) / 4, squares[1] / 4
    rr_ri, ri_ii = (mixed.imag + cross) / 4, (mixed.imag - cross) / 4
    fourth = np.stack(
        (
            np.stack((rr_rr, rr_ri, rr_ii), axis=-1),
            np.stack((rr_ri, ri_ri, ri_ii), axis=-1),
            np.stack((rr_ii, ri_ii, ii_ii), axis=-1),
        ),
        axis=-1,
    )
    u, v = lengths
    # φ = (s_r²/|u|, s_r s_i/|v|, s_r s_i/|u|, s_i²/|v|).
    which, scale = np.array([0, 1, 1, 2]), np.stack((1 / u, 1 / v, 1 / u, 1 / v), axis=-1)
    first = plain[:, which] * scale
    outer = fourth[:, which][:, :, which] * scale[:, :, np.newaxis] * scale[:, np.newaxis, :]
    return first, outer


def normal_moments(signals: Array) -> JointMoments:
    """The moments that standard normal rows of mass one have."""
    power = (signals.real**2 + signals.imag**2).sum(axis=0)
    pseudo = (signals * signals).sum(axis=0)
    return JointMoments(
        np.ones_like(power),
        power,
        2 * power**2 + np.abs(pseudo) ** 2,
        pseudo,
        3 * power * pseudo,
        3 * pseudo**2,
    )


def least_curvature(signals: Array) -> Array:
    """Smallest curvature of the risk behind standard normal rows over that of complex rows, shape (k,): ``2‖v‖²/‖x‖²``."""
    power = np.maximum((signals.real**2 + signals.imag**2).sum(axis=0), _TINY)
    least: Array = 1 - np.abs((signals * signals).sum(axis=0)) / power
    return np.maximum(least, 0.0)
