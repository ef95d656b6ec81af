"""Does the residual depend on the prediction? For clean samples it cannot.

Noise is independent of the covariates. Attacks on the norm sit on the samples that know most of it, those with the largest
``|aᴴx|``; there the residuals then contradict what the others say. So the dependence of the residual on ``|aᴴx|²`` is fitted
on small values and extended outwards range by range; ranges that contradict all inner ones are given up.
"""

from __future__ import annotations

import numpy as np

from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Ranges of |aᴴx|/‖x‖ beyond the inner one.
RANGES = ((1.0, 1.3), (1.3, 1.645), (1.645, 2.0), (2.0, np.inf))
#: A range contradicts the inner ones when its mean residual is this many standard errors off.
CONTRADICTION = 8.0
#: Fewer samples than this prove nothing.
FEWEST = 20


def consistent_samples(projections: Array, residuals: Array, weights: Array, power: float) -> Array:
    """Which samples lie in ranges that do not contradict the inner ones (boolean, shape (m,)).

    Parameters
    ----------
    projections, residuals, weights : ndarray of shape (m,)
        At the estimate.
    power : float
        ‖x‖².
    """
    energy = abs2(projections) / max(power, np.finfo(np.float64).tiny)
    level = np.sqrt(energy)
    kept: Array = level < 1.0
    used = weights > 0
    for low, high in RANGES:
        inside = (level >= low) & (level < high)
        inner, outer = np.flatnonzero(kept & used), np.flatnonzero(inside & used)
        few = min(inner.size, outer.size) < FEWEST
        if few or abs(_contradiction(energy, residuals, weights, inner, outer)) < CONTRADICTION:
            kept |= inside
    return kept


def _contradiction(energy: Array, residuals: Array, weights: Array, inner: Array, outer: Array) -> float:
    """Mean residual of the outer samples against a line in the energy fitted to the inner ones, in standard errors."""
    e, w, r = energy[inner], weights[inner], residuals[inner]
    mass = w.sum()
    middle = (w @ e) / mass
    e = e - middle
    level, spread = (w @ r) / mass, w @ (e * e)
    # Where all inner samples have the same prediction the slope is not determined; none will do.
    determined = spread > 1e-12 * mass * max(middle * middle, 1e-300)
    slope = (w * e) @ r / spread if determined else 0.0
    scores = w * (r - level - slope * e)
    # Covariance of level and slope, which the centred energies make a diagonal bread of the sandwich.
    filling = np.array([scores @ scores, scores**2 @ e, scores**2 @ (e * e)])
    inverse = 1 / spread if determined else 0.0
    shares = weights[outer] / weights[outer].sum()
    reach = energy[outer] - middle
    left = residuals[outer] - level - slope * reach
    mean, far = float(shares @ left), float(shares @ reach)
    fitted = filling[0] / mass**2 + 2 * far * filling[1] * inverse / mass + far**2 * filling[2] * inverse**2
    variance = float(shares**2 @ (left - mean) ** 2 + fitted)
    return mean / max(float(np.sqrt(variance)), 1e-300)
