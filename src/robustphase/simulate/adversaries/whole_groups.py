"""Attacks on whole groups of samples: frames, patterns, pixels, stretches of time that go wrong together.

The budget counts samples, and a group is rewritten whole or not at all. Most rewritten samples look plausible one by one, as
those of a misplaced frame do; it is the group that does not.
"""

from __future__ import annotations

import numpy as np

from robustphase.simulate.adversaries.base import (
    Adversary,
    Array,
    CleanSample,
    Rewrite,
    Rows,
    fresh_rows,
    orthogonal_unit,
    responses_to,
)
from robustphase.simulate.designs import GAUSSIAN

#: Correlation of the rows of a rotated group with those that were measured.
CORRELATION = 0.7
#: What a detector with a wrong gain multiplies responses by.
GAIN = 1.5
#: Standard deviation of what a burst adds, in units of the responses.
BURST = 2.0


def group_rotated(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Put rows on file that are only correlated with those which were measured, as for a misplaced frame."""
    rows = _joined(random_groups(sample, budget, rng))
    # Rows of other designs have a mean, which they keep; what is not a row of that kind is matched to one later.
    middle = 0.0 if sample.design is GAUSSIAN else sample.A.mean(axis=0)
    turned = CORRELATION * (sample.A[rows] - middle)
    turned += np.sqrt(1 - CORRELATION**2) * (_fresh(sample, len(rows), rng) - middle)
    return Rewrite(rows, A=turned + middle)


def group_swapped(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Exchange the responses of groups, as when frames were stored in the wrong order; those of a single one are reversed."""
    groups = random_groups(sample, budget, rng)
    rows = _joined(groups)
    read = sample.y[rows]
    return Rewrite(rows, y=np.roll(read, len(groups[0])) if len(groups) > 1 else read[::-1])


def group_decoy(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Answer for one other signal of the norm of the truth, as when the object was exchanged for a while."""
    rows = _joined(random_groups(sample, budget, rng))
    other = sample.norm * orthogonal_unit(sample, rng)
    return Rewrite(rows, y=responses_to(sample.A[rows], other, sample.noise[rows]))


def group_dead(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Read nothing but the background, as a dead pixel does."""
    return Rewrite(_joined(random_groups(sample, budget, rng)), y=sample.response(0.0))


def group_gain(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Multiply what lies above the background by one and a half, as an exposure of the wrong length does."""
    rows = _joined(random_groups(sample, budget, rng))
    return Rewrite(rows, y=sample.noise_mean + GAIN * (sample.y[rows] - sample.noise_mean))


def group_burst(sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
    """Add strong noise to groups that follow one another, as a disturbance of some duration does."""
    rows = _joined(consecutive_groups(sample, budget, rng))
    return Rewrite(rows, y=sample.y[rows] + BURST * sample.scale * rng.standard_normal(len(rows)))


def random_groups(sample: CleanSample, budget: int, rng: np.random.Generator) -> list[Rows]:
    """Rows of groups taken at random, each whole; those that no longer fit in the budget are passed over."""
    chosen: list[Rows] = []
    members = _members(sample)
    for index in rng.permutation(len(members)):
        if len(members[index]) <= budget:
            chosen.append(members[index])
            budget -= len(members[index])
    return chosen


def consecutive_groups(sample: CleanSample, budget: int, rng: np.random.Generator) -> list[Rows]:
    """Rows of groups that follow one another from a random one on, around the end, until the budget is used up."""
    chosen: list[Rows] = []
    members = _members(sample)
    first = int(rng.integers(len(members)))
    for group in members[first:] + members[:first]:
        if len(group) > budget:
            break
        chosen.append(group)
        budget -= len(group)
    return chosen


def _members(sample: CleanSample) -> list[Rows]:
    """Rows of every group, in the order of the labels."""
    if sample.groups is None:
        raise ValueError("this attack rewrites whole groups: pass groups, their number or one label per row of A.")
    order = np.argsort(sample.groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(sample.groups[order])) + 1)


def _fresh(sample: CleanSample, count: int, rng: np.random.Generator) -> Array:
    return fresh_rows(sample, count, rng) if count else np.zeros((0, sample.n))


def _joined(groups: list[Rows]) -> Rows:
    return np.concatenate([*groups, np.zeros(0, np.intp)])


WHOLE_GROUPS = tuple(
    Adversary(attack.__name__, "groups", description, attack)
    for attack, description in (
        (group_rotated, "The rows of random groups are only correlated with those that were measured."),
        (group_swapped, "Random groups exchange their responses."),
        (group_decoy, "Random groups answer for one other signal of the same norm."),
        (group_dead, "Random groups read nothing but the background."),
        (group_gain, "The responses of random groups are multiplied by one and a half."),
        (group_burst, "Groups that follow one another get strong noise."),
    )
)
