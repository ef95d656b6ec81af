"""Fits with a noise that is held, and answers that turn where no sample pulls more than a typical one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.constants import varied
from robustphase.problem import build_problem
from robustphase.recover.contradiction import CONTRADICTION
from robustphase.recover.held_noise import HELD, bounded_influence, fit_bounded, pull_factors
from robustphase.rows import MemoryRows
from robustphase.simulate import ParametricAttack, make_world

#: Found by a search: samples at which a second signal is less likely are made to fit it, as exactly as no noise does.
FOUND = ParametricAttack(
    angle=0.26, norm=0.91, leaning=0.53, by_difference=0.08, by_sign=-0.16, by_truth=-0.07, by_second=-0.11, by_response=-0.14,
    by_likelihood=-1.0, randomness=0.25, move=0.93, noise_factor=0.24, shift=0.1, redrawn=0.12, tilt=-0.03,
)  # fmt: skip


def stages(model):
    return [record.stage for record in model.history_]


@given(st.floats(-1e6, 1e6), st.floats(0, 1e3))
def test_no_pull_is_longer_than_a_typical_one(u, size):
    factor = float(pull_factors(np.array(u), np.array(size)))
    assert 0 < factor <= 1
    assert abs(u) * size * factor <= HELD.pull * (1 + 1e-12)
    if abs(u) * size <= HELD.pull:
        assert factor == 1


def test_influences_of_bounded_pulls_are_odd_and_return_to_nothing():
    rng = np.random.default_rng(0)
    residuals = np.linspace(-8, 8, 401)[:, np.newaxis]
    problem = build_problem(
        MemoryRows(rng.standard_normal((401, 2))), residuals, np.ones((401, 1)), np.full(1, 0.1), unknown_mean=False
    )
    flat = problem._replace(density=np.ones((401, 1)))
    asked = bounded_influence(flat, residuals, np.ones(1), np.full((401, 1), 2.0))[:, 0]
    assert_allclose(asked, -asked[::-1], atol=1e-12)
    assert asked.max() <= HELD.pull / 2
    assert asked[-1] < 1e-6


@pytest.mark.parametrize("held_back", [False, True])
@pytest.mark.parametrize("field", ["real", "complex"])
def test_bounded_pulls_find_a_clean_signal_almost_as_accurately(field, held_back):
    seen = []
    for seed in seeds(5, 8):
        world = make_world(20, 2000, contamination=0.0, attack="none", noise="gaussian", field=field, seed=seed)
        problem = build_problem(
            MemoryRows(world.A), world.y[:, np.newaxis], np.ones((2000, 1)), np.full(1, 0.1), unknown_mean=False
        )
        start = (world.truth / np.sqrt(problem.units[0]))[:, np.newaxis]
        fit = fit_bounded(problem, start, np.zeros(1), np.array([held_back])).fit
        assert fit.converged.all(), f"seed {seed}"
        found = np.sqrt(problem.units[0]) * fit.state.signals[:, 0]
        model = RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        seen.append((distance(found, world.truth), distance(model.signal_, world.truth)))
    bounded, efficient = np.sqrt(np.mean(np.square(seen), axis=0))
    assert 0.9 * efficient < bounded < 1.6 * efficient


def test_an_answer_that_strong_pulls_hold_away_turns_back():
    errors = []
    for seed in [2 + more for more in seeds(3, 4)]:
        world = make_world(
            150, 7500, contamination=0.05, attack=FOUND.adversary, noise="gaussian", noise_std=0.5, seed=seed
        )
        model = RobustPhaseRetrieval(0.05).fit(world.A, world.y)
        with varied(CONTRADICTION, dear=0.0):
            held = RobustPhaseRetrieval(0.05).fit(world.A, world.y)
        if "bounded pulls" in stages(model):
            errors.append([distance(one.signal_, world.truth, relative=True) for one in (model, held)])
            # It has turned; its length is that of the likelihood.
            assert_allclose(np.linalg.norm(model.signal_), np.linalg.norm(held.signal_), rtol=1e-9)
    assert len(errors) >= 2
    turned, held = np.mean(errors, axis=0)
    assert turned < 0.95 * held


def test_bounded_pulls_are_not_asked_where_they_cost_too_much():
    # Noise with a sharp edge: the likelihood is far more accurate than any fit that does not know its law.
    for seed in seeds(2, 3):
        world = make_world(30, 3000, contamination=0.0, attack="none", noise="lognormal", noise_std=0.5, seed=seed)
        with varied(CONTRADICTION, once=1.001):
            model = RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        assert "bounded pulls" not in stages(model), f"seed {seed}"
        world = make_world(30, 1500, contamination=0.0, attack="none", noise="gaussian", seed=seed)
        with varied(CONTRADICTION, once=1.001):
            model = RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        assert "bounded pulls" in stages(model), f"seed {seed}"
