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
from robustphase.rows.products import abs2
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
        0.05,
        "and scales of the noise, as far as the line carries them outwards: by as much may inner samples be off, of which a "
        "twentieth can be bad without being noticed one by one",
    )
    fewest: int = derived(20, "fewer samples than this have no standard error to speak of (it is known to a sixth)")
    rounding: float = derived(
        1e-9, "scales below it belong to data without noise, in which any residual is a contradiction"
    )


CONSISTENCY = ConsistencyOptions()


def contradicting_ranges(problem: Problem, fit: LikelihoodFit) -> Array:
    """Which ranges contradict the inner ones (boolean, shape (ranges, k)); the inner one, first, never does."""
    energies = relative_energies(fit.projections, fit.state.signals)
    weights = fit.weights * problem.weights
    noise = fit.state.noise
    columns = [
        _contradicting(energies[:, k], fit.residuals[:, k], weights[:, k], noise.scales[k])
        if noise.scales[k] > CONSISTENCY.rounding
        else np.zeros(len(CONSISTENCY.edges) + 1, bool)
        for k in range(noise.scales.size)
    ]
    return np.stack(columns, axis=1)


def in_ranges(energies: Array, ranges: Array) -> Array:
    """Which samples of these relative energies (m, k) lie in the marked ranges (ranges, k)."""
    found = np.searchsorted(CONSISTENCY.edges, np.sqrt(energies), side="right")
    inside: Array = np.take_along_axis(ranges, found, axis=0)
    return inside


def relative_energies(projections: Array, signals: Array) -> Array:
    """``|aᴴx|²/‖x‖²``, shape (m, k)."""
    powers = np.maximum(abs2(signals).sum(axis=0), np.finfo(np.float64).tiny)
    energies: Array = abs2(projections) / powers
    return energies


def _contradicting(energy: Array, residuals: Array, weights: Array, scale: float) -> Array:
    place = np.searchsorted(CONSISTENCY.edges, np.sqrt(energy), side="right")
    contradicting = np.zeros(len(CONSISTENCY.edges) + 1, bool)
    used = weights > 0
    for outer_range in range(1, contradicting.size):
        inner = np.flatnonzero((place < outer_range) & ~contradicting[place] & used)
        outer = np.flatnonzero((place == outer_range) & used)
        few = min(inner.size, outer.size) < CONSISTENCY.fewest
        contradicting[outer_range] = not few and _contradicts(energy, residuals, weights, inner, outer, scale)
    return contradicting


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
    # Inner samples may be off by as much without being noticed, and the line carries that outwards, where it grows.
    carried = float(w @ np.abs(1 / mass + far * inverse * e))
    return abs(mean) > max(CONSISTENCY.errors * error, CONSISTENCY.shift * carried * scale)
