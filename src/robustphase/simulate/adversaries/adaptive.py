"""Attacks built against the methods themselves: gradients just inside the clean tail, ties in spectra, false minima.

At a point x the gradient of a sample is (|s|² + b − y) s a, with s = aᴴx and b the background. Its component along a
unit vector u is the residual times Re(s·conj(aᴴu)), the *grip* of the sample along u. A response that lies q/grip above
the prediction at x therefore pushes the descent by exactly q along u; with a large grip a small residual is enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robustphase.simulate.adversaries.base import (
    Adversary,
    Array,
    CleanSample,
    Rewrite,
    fresh_rows,
    leaning_unit,
    orthogonal_frame,
    orthogonal_unit,
    random_rows,
    random_signs,
    responses_to,
    top_rows,
    with_component,
)

#: How far from the truth, relative to ‖x*‖, the false solutions lie.
OFFSET = 0.3


def gradient_push(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Push the mean gradient the way the noise already leans, with no gradient beyond the clean 99% quantile."""

    def inside_the_tail(clean: Array, share: float) -> float:
        return float(np.quantile(np.abs(clean), 0.99))

    return _push(sample, leaning_unit(sample, rng)[:, None], budget, inside_the_tail)


def gradient_spread(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Push in up to eight directions at once, in each adding only half of the variance that is there already."""

    def half_the_variance(clean: Array, share: float) -> float:
        return float(min(np.sqrt(0.5 * clean.var() / share), np.quantile(np.abs(clean), 0.999)))

    return _push(sample, orthogonal_frame(sample, min(8, budget), rng), budget, half_the_variance)


def spectral_tie(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Lengthen fresh rows along u until u and the truth have the same weight in Σ y a aᴴ; responses stay ordinary."""
    rows, unit = random_rows(sample, budget, rng), orthogonal_unit(sample, rng)
    # Above the background, so that u ties when a method subtracts it and leads when a method forgets to.
    above = sample.y - sample.noise_mean
    lead = (_without(sample, rows) * above) @ (sample.energy / sample.scale - np.abs(sample.A @ unit) ** 2)
    level = max(float(np.quantile(above, 0.9)), sample.scale)
    reach = np.sqrt(max(float(lead), 0.0) / (budget * level))
    A = with_component(fresh_rows(sample, budget, rng), sample.unit, 0.0)
    A = with_component(A, unit, reach * random_signs(sample, budget, rng))
    return Rewrite(rows, A, sample.noise_mean + level)


def mimic(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Answer for a second signal of the same norm, −x*/2 plus a wrong direction, where the two differ most."""
    second = -0.5 * sample.truth + np.sqrt(0.75) * sample.norm * orthogonal_unit(sample, rng)
    rows = top_rows(np.abs(responses_to(sample.A, second, 0.0) - sample.energy), budget)
    return Rewrite(rows, y=responses_to(sample.A[rows], second, sample.noise[rows]))


def fixed_point(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Make x* + h, ‖h‖ = 0.3‖x*‖, a stationary point of the mean gradient with bad samples that fit it closely.

    The bad rows share the component ``reach`` along the clean gradient G there, so one small residual serves them all:
    budget · residual · reach² · (ĝᴴ point) = −‖G‖. The rest of a row is fresh noise, orthogonal to the point (so that
    it does not change the response) and centred (so that it adds nothing to the mean gradient).
    """
    rows = random_rows(sample, budget, rng)
    point = sample.truth + OFFSET * sample.norm * orthogonal_unit(sample, rng)
    inner, residual = _residual_at(sample, point)
    gradient = sample.A.conj().T @ (_without(sample, rows) * residual * inner)
    size = np.linalg.norm(gradient)
    if size == 0:  # nothing pulls back: the point is stationary as it is
        return Rewrite(rows[:0])
    overlap = float(np.vdot(gradient, point).real / size)
    gap = np.copysign(sample.noise_std + 0.1 * sample.scale, overlap)
    reach = np.sqrt(size / (budget * gap * overlap))
    rest = with_component(fresh_rows(sample, budget, rng), point / np.linalg.norm(point), 0.0)
    A = rest - rest.mean(axis=0) + reach * gradient.conj() / size
    # A row may be multiplied by any phase: neither its response nor its gradient changes.
    A = A * random_signs(sample, budget, rng)[:, None]
    return Rewrite(rows, A, responses_to(A, point, sample.noise_mean + gap))


def _push(sample: CleanSample, frame: Array, budget: int, strength: Callable[[Array, float], float]) -> Rewrite:
    """Rewrite responses so that the descent is pushed along every column of ``frame``, by the samples of largest grip.

    ``strength(clean, share)`` says how hard, given the clean gradients along the column and the share of rows it gets.
    """
    free = np.ones(sample.m, bool)
    y = sample.y.copy()
    for place, unit in enumerate(frame.T):
        count = (budget + place) // frame.shape[1]
        inner, residual = _residual_at(sample, sample.truth + OFFSET * sample.norm * unit)
        grip = (inner * (sample.A @ unit).conj()).real
        rows = top_rows(np.where(free, np.abs(grip), -1.0), count)
        push = strength(residual * grip, count / sample.m)
        y[rows] = sample.noise_mean + np.abs(inner[rows]) ** 2 + push / grip[rows]
        free[rows] = False
    taken = np.flatnonzero(~free)
    return Rewrite(taken, y=y[taken])


def _residual_at(sample: CleanSample, point: Array) -> tuple[Array, Array]:
    inner = sample.A @ point
    return inner, np.abs(inner) ** 2 + sample.noise_mean - sample.y


def _without(sample: CleanSample, rows: Array) -> Array:
    kept = np.ones(sample.m)
    kept[rows] = 0.0
    return kept


ADAPTIVE = tuple(
    Adversary(attack.__name__, "adaptive", description, attack)
    for attack, description in (
        (gradient_push, "The mean gradient is pushed along one direction from just inside the clean tail."),
        (gradient_spread, "Gradients are pushed in eight directions, each below what a spectral filter sees."),
        (spectral_tie, "Rows along u make u tie with the truth in the y-weighted spectrum."),
        (mimic, "A second signal, −x*/2 plus a wrong direction, explains the bad samples exactly."),
        (fixed_point, "x* + h becomes a stationary point which every bad sample fits closely."),
    )
)
