"""Choosing among candidates: the right one wins from far behind, and a vote settles what is about as good."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import distance
from robustphase.descend.candidate_steps import evaluate, placed
from robustphase.likelihood.comparison import comparison_floor
from robustphase.recover.selection import SELECTION, choose, select
from robustphase.simulate import make_world


def silent(before, after):
    pass


def candidates_of(problem, signals, backgrounds=None):
    floored = problem.floored(comparison_floor(problem.levels))
    zero = np.zeros(signals.shape[1])
    return placed(floored, signals / np.sqrt(problem.units), zero if backgrounds is None else backgrounds)


def selected_signal(problem, selected):
    return np.sqrt(problem.units[0]) * selected.winner.signals[:, 0]


def test_the_right_candidate_wins_from_far_behind(problem_of):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        world = make_world(30, 2000, contamination=0.2, attack="decoy", seed=seed)
        problem = problem_of(world, level=0.2)
        wrong = rng.standard_normal((30, 5)) / np.sqrt(30)
        rough = world.truth + 0.8 * rng.standard_normal(30) / np.sqrt(30)
        starts = candidates_of(problem, np.column_stack((wrong, rough)))
        selected = select(problem, starts, silent, refine_alone=True)
        assert distance(selected_signal(problem, selected), world.truth) < 0.2, f"seed {seed}"
        assert 1 <= selected.finalists <= SELECTION.finalists, f"seed {seed}"
        assert 0 <= selected.origin < 6
        assert selected.residuals.shape == (2000, 1)
        s = world.A @ selected.winner.signals
        assert_allclose(selected.residuals, problem.responses - s**2 - selected.winner.backgrounds, atol=1e-9)


def test_candidates_that_meet_are_one(problem_of):
    world = make_world(20, 1500, contamination=0.1, attack="huge", seed=0)
    problem = problem_of(world)
    starts = candidates_of(problem, world.truth[:, None] * np.array([0.9, -1.0, 1.1, 1.2]))
    counts = []
    selected = select(problem, starts, lambda before, after: counts.append(after.scores.size), refine_alone=True)
    assert counts[0] == 4
    assert selected.finalists == 1
    assert distance(selected_signal(problem, selected), world.truth) < 0.1


def test_a_single_finalist_is_left_to_the_likelihood_fit(problem_of):
    world = make_world(20, 1500, contamination=0.1, attack="huge", seed=0)
    problem = problem_of(world)
    starts = candidates_of(problem, world.truth[:, None])
    assert select(problem, starts, silent, refine_alone=False).residuals.shape == (0, 1)
    refined = select(problem, starts, silent, refine_alone=True)
    assert refined.residuals.shape == (1500, 1)
    assert refined.winner.scores[0] > starts.scores[0] - 1e-6


def test_a_start_that_was_given_is_followed_from_far_away(problem_of):
    for seed in range(2):
        world = make_world(20, 1500, contamination=0.1, attack="huge", seed=seed)
        problem = problem_of(world)
        looks = []
        selected = select(
            problem,
            candidates_of(problem, 2.5 * world.truth[:, None]),
            lambda *pair, looks=looks: looks.append(1),
            refine_alone=True,
        )
        assert len(looks) > 1, f"seed {seed}"
        assert distance(selected_signal(problem, selected), world.truth) < 0.1, f"seed {seed}"


def test_zero_takes_no_part_in_a_vote_on_signals_of_ordinary_size(problem_of):
    for seed in range(3):
        world = make_world(20, 2000, contamination=0.3, attack="huge", seed=seed)
        problem = problem_of(world, level=0.35)
        for factor in (1e-3, 0.1):
            signals = np.column_stack((factor * world.truth, world.truth)) / np.sqrt(problem.units)
            assert choose(problem, evaluate(problem, signals, np.zeros(2))) == 1, f"seed {seed}, factor {factor}"


def test_the_background_of_the_winner_goes_with_it(problem_of):
    world = make_world(20, 2000, contamination=0.05, attack="huge", noise_mean=3.0, seed=1)
    problem = problem_of(world, unknown_mean=True)
    signals = np.column_stack((world.truth, np.roll(world.truth, 7)))
    selected = select(problem, candidates_of(problem, signals), silent, refine_alone=True)
    assert problem.units[0] * selected.winner.backgrounds[0] == pytest.approx(3.0, abs=0.15)
    assert selected.origin == 0
