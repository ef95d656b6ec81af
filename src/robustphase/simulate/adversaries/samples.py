"""Attacks on single samples, whatever method will look at them.

``RESPONSES`` leave every sensing vector as it was drawn, ``COVARIATES`` leave the responses as they are or give them an
unremarkable value. ``JOINT`` attacks rewrite both, most of them in the name of a second signal. ``INFORMATION`` is destroyed by
hitting the samples with the largest (a·x*)², which tell most about the signal.
"""

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


def constant(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Set random responses to one high value."""
    return Rewrite(random_rows(sample, budget, rng), y=sample.response(20.0))


def huge(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Set random responses to values spread over three decades, so that no single cut-off is the obvious one."""
    rows = random_rows(sample, budget, rng)
    return Rewrite(rows, y=sample.response(10.0 ** rng.uniform(3, 6, budget)))


def negative(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Set random responses far below the background."""
    return Rewrite(random_rows(sample, budget, rng), y=sample.response(-20.0))


def moderate(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Raise responses to a high but ordinary value where it misleads most: on samples along a wrong direction."""
    rows = top_rows(np.abs(sample.A @ orthogonal_unit(sample, rng)), budget)
    return Rewrite(rows, y=np.quantile(sample.y, 0.995))


def scaled(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Multiply what lies above the background by ten, as a detector with a wrong gain does."""
    rows = random_rows(sample, budget, rng)
    return Rewrite(rows, y=sample.noise_mean + 10.0 * (sample.y[rows] - sample.noise_mean))


def inverted(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Mirror the largest responses at the background."""
    rows = top_rows(sample.y, budget)
    return Rewrite(rows, y=2 * sample.noise_mean - sample.y[rows])


def saturated(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Cut the largest responses off at the median, as an over-exposed detector does."""
    return Rewrite(top_rows(sample.y, budget), y=np.median(sample.y))


RESPONSES = tuple(
    Adversary(attack.__name__, "responses", description, attack)
    for attack, description in (
        (constant, "Random responses become 20‖x*‖² above the background."),
        (huge, "Random responses become 10³ to 10⁶ times ‖x*‖²."),
        (negative, "Random responses become 20‖x*‖² below the background."),
        (moderate, "Samples aligned with a wrong direction get a response just inside the clean range."),
        (scaled, "Random responses are multiplied by ten."),
        (inverted, "The largest responses are mirrored at the background."),
        (saturated, "The largest responses are cut off at the median."),
    )
)


def leverage(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Put all of a clean row's length √n into one wrong direction, with an ordinary response."""
    rows = random_rows(sample, budget, rng)
    components = np.sqrt(sample.n) * random_signs(sample, budget, rng)
    return Rewrite(rows, along(orthogonal_unit(sample, rng), components), sample.response(4.0))


def leverage_truth(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Point long rows at the truth itself and answer nothing: they deny the signal."""
    rows = random_rows(sample, budget, rng)
    return Rewrite(rows, along(sample.unit, 10.0 * random_signs(sample, budget, rng)), sample.response(0.0))


def cloud(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Turn ordinary rows half-way into one wrong direction, keep each one's length, answer an ordinary response."""
    rows, unit = random_rows(sample, budget, rng), orthogonal_unit(sample, rng)
    lengths = np.linalg.norm(sample.A[rows], axis=1)
    turned = with_component(sample.A[rows], unit, 0.7 * lengths * random_signs(sample, budget, rng))
    # A dark on/off pattern has no length to keep.
    turned_lengths = np.maximum(np.linalg.norm(turned, axis=1), np.finfo(np.float64).tiny)
    return Rewrite(rows, turned * (lengths / turned_lengths)[:, None], sample.response(5.0))


def zero_rows(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Erase the sensing vectors of the largest responses: what answered most seems never to have been asked."""
    rows = top_rows(sample.y, budget)
    return Rewrite(rows, np.zeros((budget, sample.n)))


def shrunk_rows(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Halve the sensing vectors of the largest responses, so that the responses seem four times too large."""
    rows = top_rows(sample.y, budget)
    return Rewrite(rows, 0.5 * sample.A[rows])


def inflated_rows(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Stretch random sensing vectors fivefold and keep the responses, which then seem far too small."""
    rows = random_rows(sample, budget, rng)
    return Rewrite(rows, 5.0 * sample.A[rows])


def blinded_rows(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Take the truth's direction out of the rows with the largest responses; their lengths hardly change."""
    rows = top_rows(sample.y, budget)
    return Rewrite(rows, with_component(sample.A[rows], sample.unit, 0.0))


def replicated(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Copy one genuine sample over and over: the one of ordinary response that owes most of it to noise."""
    low, high = np.quantile(sample.y, [0.75, 0.95])
    ordinary = (sample.y >= low) & (sample.y <= high)
    chosen = top_rows(np.where(ordinary, sample.noise, -np.inf), 1)
    others = np.setdiff1d(np.arange(sample.m), chosen)
    rows = rng.choice(others, min(budget, len(others)), replace=False)
    copies = np.repeat(chosen, len(rows))
    return Rewrite(rows, sample.A[copies], sample.y[copies])


def huge_covariates(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Stretch rows thirtyfold and answer as a nearby wrong signal would: large in A, large in y, and consistent."""
    rows, unit = random_rows(sample, budget, rng), orthogonal_unit(sample, rng)
    stretched = 30.0 * sample.A[rows]
    return Rewrite(
        rows, stretched, responses_to(stretched, sample.truth + 0.5 * sample.norm * unit, sample.noise[rows])
    )


COVARIATES = tuple(
    Adversary(attack.__name__, "covariates", description, attack)
    for attack, description in (
        (leverage, "Rows √n·u in one wrong direction u, response 4‖x*‖²."),
        (leverage_truth, "Rows ten times the truth's direction that answer nothing."),
        (cloud, "Rows of unchanged length turned half-way into one wrong direction, response 5‖x*‖²."),
        (zero_rows, "The sensing vectors of the largest responses become zero."),
        (shrunk_rows, "The sensing vectors of the largest responses are halved."),
        (inflated_rows, "Random sensing vectors are stretched fivefold, responses kept."),
        (blinded_rows, "The rows of the largest responses lose their component along the truth."),
        (replicated, "One genuine, noisy sample of ordinary response is copied over and over."),
        (huge_covariates, "Rows thirty times longer, consistent with a nearby wrong signal."),
    )
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


def erase(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Set the responses of the most informative samples to the background."""
    return Rewrite(top_rows(sample.energy, budget), y=sample.response(0.0))


def swap(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Exchange the responses of the most and the least informative samples: the set of responses does not change."""
    loud, quiet = top_rows(sample.energy, budget // 2), top_rows(-sample.energy, budget // 2)
    return Rewrite(np.concatenate([loud, quiet]), y=sample.y[np.concatenate([quiet, loud])])


def permute(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Deal the responses of half informative, half random samples out again among them."""
    loud = top_rows(sample.energy, -(-budget // 2))
    others = np.setdiff1d(np.arange(sample.m), loud)
    rows = np.concatenate([loud, rng.choice(others, budget - len(loud), replace=False)])
    return Rewrite(rows, y=sample.y[rng.permutation(rows)])


def replace(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Replace the most informative samples by fresh ones that contain only noise."""
    rows = top_rows(sample.energy, budget)
    return Rewrite(rows, fresh_rows(sample, budget, rng), resampled_noise(sample, budget, rng))


def duplicate(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Delete the most informative samples and write copies of the least informative in their place."""
    copies = top_rows(-sample.energy, budget)
    return Rewrite(top_rows(sample.energy, budget), sample.A[copies], sample.y[copies])


INFORMATION = tuple(
    Adversary(attack.__name__, "information", description, attack)
    for attack, description in (
        (erase, "The responses of the largest (a·x*)² become zero (the background)."),
        (swap, "The largest and the smallest responses change places."),
        (permute, "Responses are shuffled, half of them the most informative."),
        (replace, "The most informative samples are replaced by fresh samples of pure noise."),
        (duplicate, "The most informative samples are overwritten with copies of the least informative."),
    )
)
