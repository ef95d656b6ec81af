"""Does the residual depend on the prediction? For clean samples it cannot.

Noise is independent of the covariates. Attacks on the norm sit on the samples that know most of it, those with the largest
``|aᴴx|``; there the residuals then contradict what the others say. So the dependence of the residual on ``|aᴴx|²`` is fitted
on small values and extended outwards range by range; ranges that contradict all inner ones are given up.

A contradiction must be beyond chance, and beyond what a model that is a hair off explains: with a million samples everything
contradicts everything by many standard errors, and giving up samples for that costs far more than the hair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import derived, empirical
from robustphase.descend.likelihood_fit import LikelihoodFit
from robustphase.problem import Problem
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class ConsistencyOptions:
    """Constants of the test of consistency."""

    edges: tuple[float, ...] = derived(
        (1.0, 1.3, 1.645, 2.0),
        "ranges of |aᴴx|/‖x‖ beyond the inner one: normal variables exceed them in 32, 19, 10, 5%",
    )
    errors: float = empirical(8.0, "standard errors by which the mean residual of a range contradicts the inner ones")
    shift: float = empirical(
        0.1,
        "and scales of the noise: less, and at most a tenth of the range can be bad without being noticed one by one",
    )
    fewest: int = derived(20, "fewer samples than this have no standard error to speak of (it is known to a sixth)")
    rounding: float = derived(
        1e-9, "scales below it belong to data without noise, in which any residual is a contradiction"
    )


CONSISTENCY = ConsistencyOptions()


def consistent_samples(problem: Problem, fit: LikelihoodFit) -> Array:
    """Which samples lie in ranges that do not contradict the inner ones (boolean, shape (m, k))."""
    powers = np.maximum(abs2(fit.state.signals).sum(axis=0), np.finfo(np.float64).tiny)
    weights = fit.weights * problem.weights
    noise = fit.state.noise
    columns = [
        _consistent(abs2(fit.projections[:, k]) / powers[k], fit.residuals[:, k], weights[:, k], noise.scales[k])
        if noise.scales[k] > CONSISTENCY.rounding
        else np.ones(weights.shape[0], bool)
        for k in range(powers.size)
    ]
    return np.stack(columns, axis=1)


def _consistent(energy: Array, residuals: Array, weights: Array, scale: float) -> Array:
    level = np.sqrt(energy)
    consistent: Array = level < CONSISTENCY.edges[0]
    used = weights > 0
    for low, high in zip(CONSISTENCY.edges, (*CONSISTENCY.edges[1:], np.inf), strict=True):
        inside = (level >= low) & (level < high)
        inner, outer = np.flatnonzero(consistent & used), np.flatnonzero(inside & used)
        few = min(inner.size, outer.size) < CONSISTENCY.fewest
        if few or not _contradicts(energy, residuals, weights, inner, outer, scale):
            consistent |= inside
    return consistent


def _contradicts(energy: Array, residuals: Array, weights: Array, inner: Array, outer: Array, scale: float) -> bool:
    """Whether the mean residual of the outer samples is off a line in the energy that is fitted to the inner ones."""
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
    error = float(np.sqrt(shares**2 @ (left - mean) ** 2 + fitted))
    return abs(mean) > max(CONSISTENCY.errors * error, CONSISTENCY.shift * scale)
