r"""Fits with a noise that is held, so that bad samples cannot pass for wider noise.

The likelihood fits the law of the noise too, which makes it as accurate as can be and lets bad samples bend that law. Here the
noise is nearly normal, as wide as the best half of the residuals suggests, or *tight*, narrower than that; a background and a
signal are all that is fitted. Such fits are less accurate and less biased.

What a sample asks of the fit grows with its residual, and with its projection. Two ways to bound it:

- strong samples lose weight, whatever their residuals are (Mallows' estimator);
- no sample *pulls* more than a typical one does: the pull of a residual of u deviations at a projection of s root mean squares
  is :math:`|u s|`, and counts as one where it is more (Krasker and Welsch, 1982). Or both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, empirical, numeric
from robustphase.descend.climb import Free, Stopping
from robustphase.descend.likelihood_fit import LikelihoodFit, fit_likelihood
from robustphase.descend.objective import State
from robustphase.likelihood import NoiseModel, e_step, initial_model
from robustphase.problem import Problem, join_columns
from robustphase.rows import project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

#: Variances of the predictions over that of the noise, so small that they change nothing.
_SMALL = 1e-3


@dataclass(frozen=True)
class HeldOptions:
    """Constants of fits with held noise."""

    normal: float = derived(
        0.6745, "half of normal numbers, residuals or projections, are shorter than this many standard deviations"
    )
    tight: float = empirical(
        0.6, "scale at which tight noise is held, over that which the best half of the residuals suggests"
    )
    strong: float = empirical(
        0.3, "projections beyond this fraction of their root mean square lose weight, so that all pull about alike"
    )
    pull: float = derived(
        1.0, "most that a sample pulls, in standard deviations and root mean squares: as much as a typical one"
    )
    floor: float = derived(
        1.0, "density floor of bad responses there: one over their unit, as dense as ordinary responses lie"
    )
    tol: tuple[float, ...] = numeric((1e-2, 1e-4), "relative steps at which the two rounds of a tight fit end")
    passes: int = budget(15, "most passes of each")
    bounded_tol: tuple[float, ...] = numeric((1e-2, 1e-3, 1e-3, 1e-3), "the same where pulls are bounded")
    bounded_passes: int = budget(3, "most passes of each")


HELD = HeldOptions()


class Fitted(NamedTuple):
    """Fits, and the samples as they were fitted."""

    problem: Problem
    fit: LikelihoodFit

    def only(self, columns: Array) -> Fitted:
        """Some of the columns, given as a mask or by their places."""
        return Fitted(self.problem.only(columns), self.fit.only(columns))

    def joined(self, other: Fitted) -> Fitted:
        """These fits, then those to the same rows."""
        names = ("responses", "weights", "density", "levels", "units")
        both = {name: join_columns(getattr(self.problem, name), getattr(other.problem, name)) for name in names}
        return Fitted(self.problem._replace(**both), self.fit.joined(other.fit))


def shortest_half(values: Array) -> tuple[float, float]:
    """Middle, and half the length, of the shortest interval that holds half of the values; zeros if there are none."""
    ordered = np.sort(values)
    half = ordered.size // 2
    if not half:
        return (float(ordered[0]), 0.0) if ordered.size else (0.0, 0.0)
    lengths = ordered[half:] - ordered[: ordered.size - half]
    low = int(lengths.argmin())
    return float(ordered[low] + ordered[low + half]) / 2, float(lengths[low]) / 2


def half_scales(problem: Problem, residuals: Array) -> Array:
    """Scales of the noise that the shortest halves of the residuals suggest, shape (k,)."""
    used = np.broadcast_to(problem.weights > 0, residuals.shape)
    halves = [shortest_half(column[use])[1] for column, use in zip(residuals.T, used.T, strict=True)]
    return np.array(halves) / HELD.normal


def fit_tightly(problem: Problem, signals: Array, backgrounds: Array, held_back: Array) -> Fitted:
    """The fit to all samples of signals and backgrounds alone, with noise that is held tight.

    ``held_back``, bool (k,), says for which of them strong samples lose weight.
    """
    found: Fitted | None = None
    problem = problem.floored(HELD.floor)
    for tol in HELD.tol:
        energy = abs2(project(problem.source, signals))
        scales = np.maximum(HELD.tight * half_scales(problem, problem.responses - energy - backgrounds), TINY)
        state = State(signals, backgrounds, *held(problem, scales))
        found = fit_held(problem, state, strong_factors(problem, energy, held_back), (tol, HELD.passes))
        signals, backgrounds = found.fit.state.signals, found.fit.state.backgrounds
    assert found is not None
    return found


def fit_bounded(problem: Problem, signals: Array, backgrounds: Array, held_back: Array) -> Fitted:
    """The fit to all samples of signals and backgrounds alone, with bounded pulls; parameters as in :func:`fit_tightly`."""
    found: Fitted | None = None
    problem = problem.floored(HELD.floor)
    for tol in HELD.bounded_tol:
        energy = abs2(project(problem.source, signals))
        residuals = problem.responses - energy - backgrounds
        scales = np.maximum(half_scales(problem, residuals), TINY)
        sizes = _sizes(problem, energy)
        factors = pull_factors(residuals / scales, sizes) * np.where(held_back, strength_factors(sizes), 1.0)
        state = State(signals, backgrounds, *held(problem, scales))
        found = fit_held(problem, state, factors, (tol, HELD.bounded_passes))
        signals, backgrounds = found.fit.state.signals, found.fit.state.backgrounds
    assert found is not None
    return found


def pull_factors(u: Array, sizes: Array) -> Array:
    """Weights that leave no sample more than a typical pull, from residuals in deviations and projections in mean sizes."""
    factors: Array = np.minimum(HELD.pull / np.maximum(np.abs(u) * sizes, TINY), 1.0)
    return factors


def strength_factors(sizes: Array) -> Array:
    """Weights that hold back every other sample, those with a projection beyond the middle of normal ones."""
    factors: Array = np.minimum(HELD.normal / np.maximum(sizes, TINY), 1.0)
    return factors


def bounded_influence(problem: Problem, residuals: Array, scales: Array, sizes: Array) -> Array:
    """What every sample asks of a fit with bounded pulls, shape (m, k), in deviations.

    Residuals are around their middles, scales (k,) standard deviations of the noise, sizes (m, k) those of the projections over
    their root mean squares.
    """
    noise, spreads = held(problem, scales)
    density = problem.floored(HELD.floor).density
    seen = e_step(residuals, np.broadcast_to(spreads, residuals.shape), density, problem.weights, noise)
    u = residuals / scales
    asked: Array = seen.weights * u * pull_factors(u, sizes)
    return asked


def held(problem: Problem, scales: Array) -> tuple[NoiseModel, Array]:
    """Noise of these scales, and spreads that change nothing."""
    return initial_model(scales, problem.levels), _SMALL * scales**2


def strong_factors(problem: Problem, energy: Array, held_back: Array) -> Array:
    """Weights with which all samples pull about alike in the columns that say so, and one in all others."""
    return np.where(held_back, HELD.strong / np.maximum(_sizes(problem, energy), TINY), 1.0)


def fit_held(problem: Problem, state: State, factors: Array, limits: tuple[float, int]) -> Fitted:
    """The fit of signals and backgrounds from a state, with factors at most one on the weights of the samples."""
    tol, passes = limits
    weighed = problem._replace(weights=problem.weights * np.minimum(factors, 1.0))
    return Fitted(weighed, fit_likelihood(weighed, state, Stopping(tol, np.inf, passes, 0), Free.NOTHING))


def _sizes(problem: Problem, energy: Array) -> Array:
    """Sizes of the projections over their root mean squares among the samples that are used."""
    used = problem.weights > 0
    mean = np.where(used, energy, 0.0).sum(axis=0) / np.maximum(used.sum(axis=0), 1)
    sizes: Array = np.sqrt(energy / np.maximum(mean, TINY))
    return sizes
