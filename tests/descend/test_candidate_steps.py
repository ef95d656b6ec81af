"""Candidates: passes are what their sums say, rough candidates come to the signal, company does not matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import distance
from robustphase.descend.candidate_steps import (
    advance,
    at_rest,
    comparison_pass,
    distinct_signals,
    evaluate,
    placed,
)
from robustphase.likelihood import compare
from robustphase.simulate import make_world

FLOOR = 0.3


def rough(world, problem, count, seed=0):
    """Candidates around the truth, in the units of the problem, with errors of half its norm."""
    rng, n = np.random.default_rng(seed), world.truth.size
    noise = 0.5 * rng.standard_normal((n, count)) / np.sqrt(n)
    return (world.truth[:, None] + noise) / np.sqrt(problem.units[0])


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_comparison_pass_is_what_its_sums_say(rng, problem_of, field):
    world = make_world(7, 500, contamination=0.1, attack="decoy", field=field, seed=3)
    problem, b, scales = problem_of(world, floor=FLOOR), rng.standard_normal(3), np.array([0.5, 1.0, 2.0])
    problem = problem._replace(weights=rng.random((500, 1)))
    X = rng.standard_normal((7, 3)) + (1j * rng.standard_normal((7, 3)) if field == "complex" else 0)
    s = world.A @ X
    energy = np.abs(s) ** 2
    r = problem.responses - energy - b
    weights, ratio = compare(r, problem.density, scales, problem.levels)
    w = weights * problem.weights
    seen = comparison_pass(problem, X, b, scales)
    # Single precision: seven digits of the largest term.
    assert_allclose(seen.moments.gradient, world.A.conj().T @ (w * r * s), rtol=1e-4, atol=1e-3)
    assert_allclose(seen.residuals, r, rtol=1e-5, atol=1e-5)
    sums = {
        "mass": w.sum(axis=0),
        "residual_sum": (w * r).sum(axis=0),
        "second": (w * energy).sum(axis=0),
        "fourth": (w * energy**2).sum(axis=0),
    }
    for name, plain in sums.items():
        assert_allclose(getattr(seen.moments, name), plain, rtol=1e-4, atol=1e-3, err_msg=name)
    expected = np.average(np.log(ratio), axis=0, weights=problem.weights[:, 0])
    assert_allclose(seen.scores, expected, rtol=1e-4, atol=1e-5)


def test_an_evaluation_says_in_double_precision_what_a_comparison_pass_says(problem_of, rng):
    world = make_world(7, 500, contamination=0.1, attack="decoy", seed=4)
    problem, X, b = problem_of(world, floor=FLOOR), rng.standard_normal((7, 3)), rng.standard_normal(3)
    problem = problem._replace(weights=rng.random((500, 1)))
    seen = evaluate(problem, X, b)
    assert_allclose(seen.projections, world.A @ X)
    assert_allclose(seen.residuals, problem.responses - (world.A @ X) ** 2 - b)
    passed = comparison_pass(problem, X, b, seen.scales)
    assert_allclose(seen.scores, passed.scores, rtol=1e-4, atol=1e-5)
    assert_allclose(seen.weights.sum(axis=0), passed.moments.mass, rtol=1e-4)
    candidates = placed(problem, X, b)
    assert_allclose(candidates.scales, seen.scales)
    assert_allclose(candidates.scores, seen.scores)


def test_rows_without_weight_may_be_too_long_for_single_precision(rng, problem_of):
    world = make_world(6, 300, contamination=0.0, attack="none", seed=0)
    problem = problem_of(world, floor=FLOOR)
    weights = np.ones((300, 1))
    weights[:5] = 0
    world.A[:5] = 1e30
    seen = comparison_pass(problem._replace(weights=weights), rng.standard_normal((6, 2)), np.zeros(2), np.ones(2))
    assert np.isfinite(seen.moments.gradient).all()
    assert np.isfinite(seen.scores).all()


def test_steps_bring_rough_candidates_to_the_signal(problem_of):
    for seed in (1, 2):
        world = make_world(40, 2000, contamination=0.1, attack="decoy", seed=seed)
        problem = problem_of(world, floor=FLOOR)
        before = placed(problem, rough(world, problem, 3, seed), np.zeros(3))
        after, _, gains = advance(problem, at_rest(problem, before), 12)
        signals = np.sqrt(problem.units) * after.signals
        assert max(distance(signals[:, k], world.truth) for k in range(3)) < 0.12, f"seed {seed}"
        assert after.scores.min() > before.scores.max(), f"seed {seed}"
        assert_allclose(gains, after.scores - before.scores, atol=1e-4, err_msg=f"seed {seed}")


def test_a_candidate_moves_alike_alone_and_in_company(problem_of):
    world = make_world(20, 1000, contamination=0.1, attack="decoy", seed=1)
    problem, chosen = problem_of(world, floor=FLOOR), np.array([2])
    starts = rough(world, problem, 3)
    together = advance(problem, at_rest(problem, placed(problem, starts, np.zeros(3))), 4)
    alone = advance(problem, at_rest(problem, placed(problem, starts[:, chosen], np.zeros(1))), 4)
    assert_allclose(together.only(chosen).candidates.signals, alone.candidates.signals, atol=1e-4)
    # Steps go on after a stretch as if there had been no look at the candidates.
    on, off = advance(problem, together.only(chosen), 3), advance(problem, alone, 3)
    assert_allclose(on.candidates.signals, off.candidates.signals, atol=1e-4)


def test_columns_of_their_own_responses_move_as_alone(problem_of):
    worlds = [make_world(20, 1000, contamination=0.1, attack=attack, seed=1) for attack in ("huge", "constant")]
    both = problem_of(*worlds, floor=FLOOR)
    starts = np.hstack([rough(worlds[k], both.only(np.array([k])), 1) for k in range(2)])
    together = advance(both, at_rest(both, placed(both, starts, np.zeros(2))), 4).candidates
    for k, world in enumerate(worlds):
        one = problem_of(world, floor=FLOOR)
        alone = advance(one, at_rest(one, placed(one, starts[:, [k]], np.zeros(1))), 4).candidates
        assert_allclose(together.signals[:, [k]], alone.signals, atol=1e-4, err_msg=world.attack)


def test_a_background_is_fitted_when_asked(problem_of):
    for seed in (2, 3):
        world = make_world(30, 3000, contamination=0.05, attack="huge", noise_mean=3.0, seed=seed)
        problem = problem_of(world, unknown_mean=True, floor=FLOOR)
        start = placed(problem, 1.2 * world.truth[:, None] / np.sqrt(problem.units), np.zeros(1))
        done = advance(problem, at_rest(problem, start), 12).candidates
        assert distance(np.sqrt(problem.units) * done.signals[:, 0], world.truth) < 0.12, f"seed {seed}"
        assert problem.units[0] * done.backgrounds[0] == pytest.approx(3.0, abs=0.15), f"seed {seed}"


def test_distinct_signals_treats_opposite_signs_and_phases_as_one(rng):
    x, y = rng.standard_normal((2, 6)) + 1j * rng.standard_normal((2, 6))
    candidates = np.stack((x, -x, 1j * x, y), axis=1)
    chosen = distinct_signals(candidates, np.array([1.0, 2.0, 1.5, 0.5]), 5, 0.1)
    assert list(chosen) == [1, 3]
    assert list(distinct_signals(candidates, np.array([1.0, 2.0, 1.5, 0.5]), 1, 0.1)) == [1]
