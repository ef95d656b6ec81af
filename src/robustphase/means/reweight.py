"""Weights between all and nothing, that no adversary can concentrate: the capped simplex, and reweighting by norm.

A fraction ε of the points may be bad, so an honest weighting is close to one that spreads evenly over the others:
weights that sum to one and none above ``1 / ((1 − ε) N)``. :func:`capped_simplex_projection` is the way back to that set.

The filter ends with points that count fully or not at all. If the norms of the kept points spread widely, far points carry
more noise than near ones, and the mean with the least variance has weights ``1/r²`` in their distances r. The weights of
:func:`norm_weights` are the nearest ones to these on the capped simplex, that is ``min(1, R²/r²)`` with R such that
they take away no more than a share ε' of what is left: any such weights have the guarantee of Proposition 2.1, up to its
constant.

Whether it pays is measured, on the data alone.

* *Is there a gain?* The variance of the mean falls with the mean square distance. That falls for any distribution when far
  points count less, also where nothing is gained: weights that fall with the distance to the old mean hold the new one
  back. The derivative of the weights tells by how much, see :func:`gain_of`. For normal points the two cancel, in any
  dimension, and nothing is done.
* *Is there a bias?* If the far points lean to one side, as those of skewed clouds do, the old mean and the new one differ by
  more than their noise. Of two estimates the second of which may be biased, James and Stein's rule takes the second to
  the share ``c/‖Δ‖²``, where Δ is their difference and ``c = tr P − 2 Δ̂ᵀPΔ̂`` with the covariance ``P`` that is to be
  gained (Green and Strawderman 1991; by Stein's lemma it is not worse than the first on average, whatever the bias).
  The share here is ``2c/‖Δ‖² − 1``, between 0 and 1: it vanishes sooner, because where far points lean, those that the
  filter took have leaned too, and the old mean is no longer without bias itself. In one dimension ``c`` is negative:
  there a lean cannot be told from noise, and nothing is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


@dataclass(frozen=True)
class ReweightOptions:
    """When reweighting by norm pays, and roundings of the capped simplex."""

    worth: float = 0.01  # budget: a share of the variance that is not worth the passes
    nearest: float = 1e-6  # numeric: smaller square distances, over their mean, count as this; they are capped anyway
    full: float = 1e-9  # numeric: ``1 / count`` is a legal cap, and must not fail by a rounding
    # numeric: a factor at the edge of rounding must not send a weight that just fits to the cap, and the last room with it
    edge: float = 1e-12


OPTIONS = ReweightOptions()


class Weighted(NamedTuple):
    """Weights in [0, 1] of all points, zero for those not kept, and the weighted mean."""

    weights: Array
    mean: Array


def norm_weights(
    view: ScaledRows, keep: Array, mean: Array, worst: Array, contamination: float, *, copies: float = 1.0
) -> Weighted | None:
    """Weights of the kept points that lower the variance of their mean, or None where that does not pay.

    ``worst`` (N, k) are the centred projections of all points on directions in which they vary most, real. ``contamination`` is
    the share of the total weight that may be taken away, ``copies`` how often each point is there, on average.
    """
    squares = view.squared_distances(mean)[keep]
    unit = float(np.sqrt(squares.mean()))
    if unit <= 0:
        return None
    relative = np.maximum(squares / unit**2, OPTIONS.nearest)
    count = relative.size
    shares = capped_simplex_projection(1.0 / relative, 1.0 / ((1.0 - contamination) * count))
    held = held_back(shares, relative, worst[keep] / unit)
    gain = gain_of(shares, relative, held)
    if gain <= OPTIONS.worth:
        return None
    every = np.zeros(keep.size)
    every[keep] = shares
    shift = (view.total(every) - mean) / unit
    size = float(np.linalg.norm(shift))
    if size <= 0:
        return None
    direction = shift / size
    along = (view.inner(direction).real - np.vdot(mean, direction).real)[keep] / unit
    noise = (gain - 2.0 * gain_of(shares, along**2, held)) * copies / count
    part = float(np.clip(2.0 * noise / size**2 - 1.0, 0.0, 1.0))
    if part * gain <= OPTIONS.worth:
        return None
    every[keep] = (1.0 - part) / count + part * shares
    return Weighted(every / every.max(), mean + part * unit * shift)


def held_back(shares: Array, squares: Array, worst: Array) -> float:
    """How much of a shift of the centre is repeated by the weighted mean, whose weights fall with the distance to it.

    Along a unit vector v this is ``−Σ w'(r) (v·x)²/r``, and ``w' = −2 w/r`` for the points that count less. It is taken
    along the worst direction: too much in the others, so that the gain is rather too small.
    """
    falling = np.where(shares < shares.max(), shares / squares, 0.0)
    return 2.0 * float((falling @ worst**2).max())


def gain_of(shares: Array, squares: Array, held: float) -> float:
    """Covariance of the plain mean with its difference to the weighted one, for N points with unit mean square: times N.

    The weighted mean is ``Σ s_j x_j + h x̄``, with h of what :func:`held_back` measures; so the covariance of the two means
    is that of ``Σ (s_j + h/N) x_j`` with ``Σ x_j / N``. For normal points in d dimensions and full weights ``1/r²`` the
    weighted mean square is ``(d − 2)/d`` of the plain one and h is ``2/d``: no gain.
    """
    return float(squares.mean() * (1.0 - held) - shares @ squares)


def capped_simplex_projection(weights: Array, cap: float) -> Array:
    """Weights in ``{w ≥ 0, Σ w = 1, w ≤ cap}`` closest to ``weights`` in relative entropy ``Σ w log(w / weights)``.

    Every weight is multiplied by the same factor, and those that would exceed the cap get the cap.

    Parameters
    ----------
    weights : ndarray of shape (N,)
        Non-negative weights, of any sum. Zeros stay zero.
    cap : float
        Largest weight allowed.

    Returns
    -------
    ndarray of shape (N,)

    Examples
    --------
    >>> import numpy as np
    >>> capped_simplex_projection(np.array([0.56495992, 0.31297521, 0.12206487]), 0.5)
    array([0.5       , 0.35970848, 0.14029152])
    """
    positive = int(np.count_nonzero(weights))
    if cap * positive < 1 - OPTIONS.full:
        raise ValueError(f"{positive} positive weights of at most {cap:g} cannot sum to one; use a larger cap.")
    capped = np.zeros(weights.shape, bool)
    # Capping some weights raises the factor for the rest, which may push more of them over: the set only grows.
    while True:
        room = max(1.0 - cap * float(capped.sum()), 0.0)
        rest = float(weights[~capped].sum())
        factor = room / rest if rest > 0 else 0.0
        over = ~capped & (weights * factor > cap * (1 + OPTIONS.edge))
        if not over.any():
            return np.where(capped, cap, np.minimum(weights * factor, cap))
        capped |= over
