"""Attacks that destroy information: they hit the samples with the largest (a·x*)², which tell most about the signal."""

from __future__ import annotations

import numpy as np

from robustphase.simulate.adversaries.base import Adversary, CleanSample, Rewrite, fresh_rows, resampled_noise, top_rows


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
