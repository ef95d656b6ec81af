"""Robust gradients: the cloud averages to the loss gradient, its robust mean points home, steps lead there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.effort import seeds

from robustphase import distance
from robustphase.descend.robust_gradient import DescentRule, gradient_points, robust_descent, robust_gradient
from robustphase.means.estimate import confident_level
from robustphase.paper import pair_samples
from robustphase.population import paper_step
from robustphase.rows import MemoryRows, paired_loss_gradient, squared_loss_gradient
from robustphase.simulate import make_world
from robustphase.validation import check_samples


@pytest.mark.parametrize("field", ["real", "complex"])
def test_the_cloud_of_gradients_averages_to_the_loss_gradient(rng, field):
    A = rng.standard_normal((200, 5)) + (1j * rng.standard_normal((200, 5)) if field == "complex" else 0)
    y, x = rng.random(200), A[0]
    view = gradient_points(MemoryRows(A), y, x)
    assert view.shape == (200, 5)
    assert_allclose(view.mean(), squared_loss_gradient(MemoryRows(A), y, x).total, rtol=1e-10)
    shifted = gradient_points(MemoryRows(A), y, x, background=0.7)
    assert_allclose(shifted.mean(), squared_loss_gradient(MemoryRows(A), y - 0.7, x).total, rtol=1e-10)


def test_the_paired_cloud_is_the_papers(rng):
    A, y, x = rng.standard_normal((201, 5)), rng.random(201), rng.standard_normal(5)
    view = gradient_points(MemoryRows(A), y, x, paired=True)
    b, c, upsilon = pair_samples(A, y)
    points = (b @ x * (c @ x) - upsilon)[:, None] * ((c @ x)[:, None] * b + (b @ x)[:, None] * c)
    assert_allclose(view.columns(slice(None)), points, atol=1e-12)
    assert_allclose(view.mean(), points.mean(axis=0), rtol=1e-10)
    assert_allclose(view.mean(), paired_loss_gradient(MemoryRows(A), y, x).total, rtol=1e-10)


def test_a_robust_gradient_points_home_under_attack():
    for seed in (3, 4):
        world = make_world(30, 3000, contamination=0.1, attack="gradient_push", seed=seed)
        x = 1.2 * world.truth
        robust = robust_gradient(gradient_points(MemoryRows(world.A), world.y, x), 0.1).location
        away = x - world.truth
        assert robust @ away > 0.3 * np.linalg.norm(robust) * np.linalg.norm(away), f"seed {seed}"


def test_without_contamination_the_mean_is_plain(rng):
    view = gradient_points(MemoryRows(rng.standard_normal((100, 4))), rng.random(100), rng.standard_normal(4))
    for mean_estimator in ("filter", "mmw"):
        result = robust_gradient(view, 0.0, mean_estimator=mean_estimator)
        assert_allclose(result.location, view.mean(), err_msg=mean_estimator)


def test_pairing_doubles_the_contamination_and_stays_below_a_half():
    for contamination, expected in ((0.1, 0.2), (0.3, 0.49)):
        assert DescentRule(contamination, 0.05, paired=True).level(500) == confident_level(expected, 0.05, 500)
        assert DescentRule(contamination, 0.05).level(500) == confident_level(contamination, 0.05, 500)


def test_a_descent_comes_home_under_attack():
    cases = (("paper", False, False), ("paper", True, True), ("newton", False, False), ("newton", False, True))
    for seed, (step, paired, unknown) in ((seed, case) for seed in seeds(1, 2) for case in cases):
        case = f"{step}, {'paired' if paired else 'single'}, {'unknown' if unknown else 'zero'} mean, seed {seed}"
        world = make_world(15, 1600, contamination=0.05, attack="huge", noise_std=0.2, seed=seed)
        start, samples = 1.15 * world.truth, check_samples(world.A, world.y)
        eta = paper_step(start, noise_mean="unknown" if paired else "zero") if step == "paper" else None
        rule = DescentRule(0.05, 0.05, paired=paired, step_size=eta, unknown_mean=unknown)
        steps = list(robust_descent(start, [samples] * 25, rule))
        assert len(steps) == 25
        assert distance(steps[-1].signal, world.truth) < 0.1, case
        moves = np.array([one.move for one in steps])
        assert_allclose(start - moves.sum(axis=0), steps[-1].signal, err_msg=case)
        weights = steps[-1].sample_weights(rule)
        assert weights.shape == (1600,), case
        assert weights[world.touched].mean() < 0.5 * weights[world.clean].mean(), case


def test_both_samples_of_a_pair_get_its_weight():
    world = make_world(5, 101, contamination=0.0, attack="none", seed=0)
    rule = DescentRule(0.05, 0.05, paired=True, step_size=0.1)
    step = next(robust_descent(world.truth, [check_samples(world.A, world.y)], rule))
    weights = step.sample_weights(rule)
    assert_allclose(weights[:50], weights[50:])
