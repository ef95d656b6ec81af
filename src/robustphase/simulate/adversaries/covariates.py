"""Attacks on the sensing vectors; responses stay as they are or take an unremarkable value."""

from __future__ import annotations

import numpy as np

from robustphase.simulate.adversaries.base import (
    Adversary,
    CleanSample,
    Rewrite,
    along,
    orthogonal_unit,
    random_rows,
    random_signs,
    responses_to,
    top_rows,
    with_component,
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
