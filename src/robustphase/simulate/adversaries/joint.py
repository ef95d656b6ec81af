"""Attacks that rewrite covariates and responses together, most of them in the name of a second signal."""

from __future__ import annotations

from functools import partial

import numpy as np

from robustphase.simulate.adversaries.base import (
    Adversary,
    Array,
    CleanSample,
    Rewrite,
    along,
    fresh_rows,
    orthogonal_unit,
    random_rows,
    random_signs,
    resampled_noise,
    responses_to,
    top_rows,
    with_component,
)


def decoy(
    sample: CleanSample, budget: int, rng: np.random.Generator, *, norm: float, towards_truth: float = 0.0
) -> Rewrite:
    """Draw fresh samples of a second signal of relative ``norm`` whose cosine with the truth is ``towards_truth``."""
    second = _second_signal(sample, norm, towards_truth, rng)
    A = fresh_rows(sample, budget, rng)
    noise = resampled_noise(sample, budget, rng)
    return Rewrite(random_rows(sample, budget, rng), A, responses_to(A, second, noise))


def decoy_in_place(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Answer for a second signal on the sensing vectors that are there, with the noise that is there."""
    rows = random_rows(sample, budget, rng)
    second = _second_signal(sample, 3.0, 0.0, rng)
    return Rewrite(rows, y=responses_to(sample.A[rows], second, sample.noise[rows]))


def decoy_reflected(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Exchange the components along the truth and along u on the loudest samples; responses stay.

    A reflected row is as Gaussian as the row was, so each rewritten sample is a genuine one of the signal ‖x*‖u.
    """
    rows, unit = top_rows(sample.energy, budget), orthogonal_unit(sample, rng)
    A = sample.A[rows]
    on_truth, on_unit = A @ sample.unit, A @ unit
    return Rewrite(rows, with_component(with_component(A, sample.unit, on_unit), unit, on_truth))


def subspace_cloud(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Draw rows 3u + N(0, I) whose responses grow with their component along u."""
    unit = orthogonal_unit(sample, rng)
    A = fresh_rows(sample, budget, rng) + along(unit, 3.0 * random_signs(sample, budget, rng))
    level = 3.0 * np.abs(A @ unit / 3.0) ** 2 + 6.0
    return Rewrite(random_rows(sample, budget, rng), A, sample.response(level))


def hidden_leverage(sample: CleanSample, budget: int, rng: np.random.Generator, *, length: float) -> Rewrite:
    """Lay long rows across the truth so that their residual at the truth is only three noise deviations."""
    unit = orthogonal_unit(sample, rng)
    A = along(length * unit + sample.unit, random_signs(sample, budget, rng))
    return Rewrite(random_rows(sample, budget, rng), A, responses_to(A, sample.truth, _hidden_residual(sample)))


def loud_leverage(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Put rows 10u with a little jitter beside loud, steady responses."""
    A = along(orthogonal_unit(sample, rng), 10.0 * random_signs(sample, budget, rng))
    return Rewrite(random_rows(sample, budget, rng), A + 0.1 * fresh_rows(sample, budget, rng), sample.response(100.0))


def median_breaker(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Use rows √(n − 1/25) u + x̂/5 with a response just below the cut-off of median truncation.

    The published counter-example to median-truncated Wirtinger flow keeps the correct response ‖x*‖²/25 and needs
    thousands of dimensions; the response just under the cut-off, 9·median(y)/0.455, does it in tens.
    """
    A = along(np.sqrt(max(sample.n - 0.04, 0.0)) * orthogonal_unit(sample, rng) + 0.2 * sample.unit, np.ones(budget))
    above = max(float(np.median(sample.y)) - sample.noise_mean, 0.1 * sample.scale)
    share = np.log(2) if sample.field == "complex" else 0.455  # median of (a·x*)² over its mean
    return Rewrite(random_rows(sample, budget, rng), A, sample.noise_mean + 0.95 * 9.0 * above / share)


def sign_aligned(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Add or subtract 8‖x*‖², always in the sense that turns the truth towards u."""
    rows = random_rows(sample, budget, rng)
    overlap = (sample.A[rows] @ orthogonal_unit(sample, rng)).conj() * sample.inner[rows]
    return Rewrite(rows, y=sample.y[rows] + 8.0 * sample.scale * np.sign(overlap.real))


def nonfinite(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Write NaN or ±∞ into one entry of a row, or into its response, by turns."""
    rows = random_rows(sample, budget, rng)
    A, y, turn = sample.A[rows], sample.y[rows], np.arange(budget) % 4
    column = rng.integers(sample.n, size=budget)
    A[turn == 0, column[turn == 0]] = np.nan
    A[turn == 1, column[turn == 1]] = np.inf
    y[turn == 2] = np.nan
    y[turn == 3] = -np.inf
    return Rewrite(rows, A, y)


def overflow(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Write finite entries (1e150 in double precision) whose cube, or product with a square, overflows."""
    rows = random_rows(sample, budget, rng)
    A = along(orthogonal_unit(sample, rng), random_signs(sample, budget, rng)) * _overflow_size(sample.A)
    return Rewrite(rows, A, sample.response(_overflow_size(sample.y)))


def _second_signal(sample: CleanSample, norm: float, towards_truth: float, rng: np.random.Generator) -> Array:
    sideways = np.sqrt(1.0 - towards_truth**2) * orthogonal_unit(sample, rng)
    return np.asarray(norm * sample.norm * (towards_truth * sample.unit + sideways))


def _hidden_residual(sample: CleanSample) -> float:
    # Without noise there is nothing to hide in; half the signal's energy keeps the attack meaningful.
    return 3.0 * max(sample.noise_std, 0.5 * sample.scale) + sample.noise_mean


def _overflow_size(array: Array) -> float:
    return float(np.power(float(np.finfo(array.dtype).max), 150 / 308.25))


JOINT = tuple(
    Adversary(name, "joint", description, attack)
    for name, attack, description in (
        ("decoy", partial(decoy, norm=2.0), "Fresh samples of an orthogonal signal twice as large."),
        ("decoy_equal", partial(decoy, norm=1.0), "Fresh samples of an orthogonal signal of the same norm."),
        ("decoy_loud", partial(decoy, norm=5.0), "Fresh samples of an orthogonal signal five times as large."),
        (
            "decoy_partial",
            partial(decoy, norm=2.0, towards_truth=0.5),
            "Fresh samples of a signal twice as large at 60° from the truth.",
        ),
        ("decoy_in_place", decoy_in_place, "Responses of an orthogonal signal of norm 3 on the original rows."),
        ("decoy_reflected", decoy_reflected, "Loud rows reflected so that a wrong signal explains them exactly."),
        ("subspace_cloud", subspace_cloud, "Rows 3u + N(0, I) whose responses grow along u."),
        ("hidden_leverage", partial(hidden_leverage, length=10.0), "Rows 10u + x̂ with a residual of three sigmas."),
        ("hidden_leverage_far", partial(hidden_leverage, length=100.0), "Rows 100u + x̂, the same small residual."),
        ("loud_leverage", loud_leverage, "Rows 10u with a little jitter, response 100‖x*‖²."),
        ("median_breaker", median_breaker, "Leverage with a response just below the cut-off of median truncation."),
        ("sign_aligned", sign_aligned, "Responses moved by ±8‖x*‖², always turning the truth towards u."),
        ("nonfinite", nonfinite, "NaN and infinities in sensing vectors and responses."),
        ("overflow", overflow, "Finite entries of size 1e150 that overflow when multiplied."),
    )
)
