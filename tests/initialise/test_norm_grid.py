"""Norms by likelihood: every direction gets a full one, wrong directions also a shrunken one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.initialise.start import NORMS, profile_full_norms, profile_norms, with_long_norms
from robustphase.simulate import make_world

FLOOR = 0.3


def squared_norms(candidates):
    return np.linalg.norm(candidates.signals, axis=0) ** 2


def test_every_direction_is_handed_on_with_a_full_norm(problem_of):
    for seed in range(2):
        world = make_world(10, 1000, contamination=0.2, attack="erase", seed=seed)
        directions = np.linalg.qr(np.random.default_rng(seed).standard_normal((10, 6)))[0]
        full, shrunken = profile_norms(problem_of(world, level=0.2, floor=FLOOR), directions)
        assert full.signals.shape == (10, 6)
        assert (squared_norms(full) > min(NORMS.full) - 1e-9).all(), f"seed {seed}"
        # Random directions explain nothing, so the likelihood would rather have them small.
        assert shrunken.scores.size > 0, f"seed {seed}"
        assert (squared_norms(shrunken) < min(NORMS.full) - 1e-9).all(), f"seed {seed}"
        assert squared_norms(shrunken).min() >= min(NORMS.shrunken) - 1e-9, f"seed {seed}"


def test_the_true_direction_gets_a_norm_next_to_the_true_one(problem_of):
    for seed in range(3):
        world = make_world(10, 3000, contamination=0.1, attack="huge", noise_std=0.2, seed=seed)
        problem = problem_of(world, floor=FLOOR)
        full, shrunken = profile_norms(problem, world.truth[:, None])
        # The grid has steps of a factor of one and a half.
        assert 0.6 < squared_norms(full)[0] * problem.units[0] < 1.6, f"seed {seed}"
        assert shrunken.scores.size == 0, f"seed {seed}"


def test_a_background_is_the_median_residual_where_the_mean_is_unknown(problem_of):
    world = make_world(10, 1500, contamination=0.05, attack="huge", noise_mean=3.0, noise_std=0.2, seed=0)
    problem = problem_of(world, unknown_mean=True, floor=FLOOR)
    full, _ = profile_norms(problem, world.truth[:, None])
    residuals = problem.responses[:, 0] - (world.A @ full.signals[:, 0]) ** 2
    assert full.backgrounds[0] == pytest.approx(np.median(residuals))
    known, _ = profile_norms(problem._replace(unknown_mean=False), world.truth[:, None])
    assert_allclose(known.backgrounds, 0)


def test_each_of_many_signals_is_judged_by_its_own_responses(problem_of):
    worlds = [make_world(10, 900, contamination=0.05, attack=attack, seed=0) for attack in ("none", "constant")]
    directions = np.stack([worlds[0].truth] * 2, axis=1)
    together = profile_full_norms(problem_of(*worlds, floor=FLOOR), directions)
    for k, world in enumerate(worlds):
        alone = profile_full_norms(problem_of(world, floor=FLOOR), directions[:, [k]])
        for name in together._fields:
            assert_allclose(getattr(together, name)[..., [k]], getattr(alone, name), err_msg=f"{name}, {world.attack}")


def test_samples_without_weight_have_no_say(problem_of):
    world = make_world(10, 800, contamination=0.0, attack="none", seed=1)
    problem = problem_of(world, floor=FLOOR)
    weights = np.where(np.arange(800) < 100, 0.0, 1.0)[:, None]
    absurd = np.where(weights > 0, problem.responses, 1e12)
    here, there = (
        profile_norms(problem._replace(weights=weights, responses=y), world.truth[:, None])[0]
        for y in (problem.responses, absurd)
    )
    for name in here._fields:
        assert_allclose(getattr(here, name), getattr(there, name), err_msg=name)


def test_long_norms_do_not_ask_the_likelihood(problem_of):
    world = make_world(10, 1000, contamination=0.2, attack="erase", seed=0)
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((10, 3)))[0]
    long = with_long_norms(problem_of(world, level=0.2, floor=FLOOR), directions)
    assert_allclose(squared_norms(long), np.repeat(NORMS.long, 3))
    assert_allclose(long.signals[:, 0] / np.sqrt(NORMS.long[0]), directions[:, 0])
