"""Attacks on the responses alone: every sensing vector stays as it was drawn."""

from __future__ import annotations

import numpy as np

from robustphase.simulate.adversaries.base import (
    Adversary,
    CleanSample,
    Rewrite,
    orthogonal_unit,
    random_rows,
    top_rows,
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
