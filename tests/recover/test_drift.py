"""Drift of gain and background over the rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase import RobustPhaseRetrieval, distance
from robustphase.recover.drift import broken_lines, find_drift, find_jumps, segments
from robustphase.simulate import make_camera, make_world


def test_broken_lines_add_up_to_one():
    for pieces in (0, 1, 5):
        assert_allclose(broken_lines(101, pieces).sum(axis=1), 1.0)
    assert broken_lines(101, 5).shape == (101, 6)


def test_steady_readings_show_no_drift():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        energies = rng.chisquare(1, (800, 1))
        y = energies + 0.3 * rng.standard_normal((800, 1))
        assert not find_drift(y, energies, np.ones((800, 1))).any, seed


def test_curves_are_found_again_whatever_their_units():
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 3000)[:, None]
    gains, backgrounds = 1 + 0.2 * (t - 0.5), np.sin(2 * np.pi * t)
    energies = rng.chisquare(1, (3000, 1))
    y = gains * energies + backgrounds + 5.0 + 0.3 * rng.standard_normal((3000, 1))
    for unit in (1.0, 1e-9):
        drift = find_drift(unit * y, unit * energies, np.ones((3000, 1)))
        assert_allclose(drift.gains, gains / gains.mean(), atol=0.04)
        assert_allclose(drift.backgrounds / unit, backgrounds - backgrounds.mean(), atol=0.1)


def test_jumps_are_found_where_they_are_and_nowhere_else():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        energies, weights = rng.chisquare(1, 1200), np.full(1200, 1 / 1200)
        steady = energies + 0.3 * rng.standard_normal(1200)
        assert find_jumps(steady, energies, weights, fewest=30, most=32).size == 0, seed
        gains = np.repeat([1.0, 1.6, 0.9], [500, 300, 400])
        found = find_jumps(steady + (gains - 1) * energies, energies, weights, fewest=30, most=32)
        assert_allclose(found, [500, 800], atol=25)
    assert segments(5, np.array([2, 3])).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_a_gain_that_jumps_is_corrected_without_touching_the_background():
    rng = np.random.default_rng(1)
    gains = np.repeat([0.8, 1.2, 0.8, 1.2], 500)[:, None]
    energies = rng.chisquare(1, (2000, 1))
    y = gains * energies + 50.0 + 0.1 * rng.standard_normal((2000, 1))
    # Rows of small gain are noisier once they are corrected, and weigh less: the average is that of the rows all the same.
    drift = find_drift(y, energies, gains)
    assert_allclose(drift.gains, gains, atol=0.03)
    assert not drift.backgrounds.any()
    assert_allclose(drift.corrected(y), energies + 50.0, atol=0.8)


@pytest.mark.parametrize("kind", ["additive", "camera"])
def test_a_fit_that_allows_for_drift_is_as_good_as_without_any(kind):
    t = np.linspace(0, 1, 2000)
    if kind == "additive":
        world = make_world(20, 2000, noise="gaussian", noise_std=0.2, noise_mean=1.0, attack="moderate", seed=1)
        curve, told = 0.8 * np.sin(2 * np.pi * t), {}
    else:
        world = make_camera(20, 2000, saturated=0.001, seed=1)
        curve, told = 300 * np.sin(2 * np.pi * t), {}
    y = world.y + curve + 0.15 * (t - 0.5) * np.abs(world.A @ world.truth) ** 2
    without = RobustPhaseRetrieval(0.1, noise_mean="unknown", **told).fit(world.A, world.y)
    model = RobustPhaseRetrieval(0.1, noise_mean="unknown", drift="auto", **told).fit(world.A, y)
    here, there = (distance(fit.signal_, world.truth, relative=True) for fit in (model, without))
    assert here < 1.4 * there
    assert model.drift_.any
    middle = model.drift_.backgrounds[:, 0]
    assert np.corrcoef(middle, curve)[0, 1] > 0.98


def test_without_drift_the_answer_is_that_of_a_fit_that_knows_of_none():
    world = make_world(15, 900, seed=2)
    plain, careful = (RobustPhaseRetrieval(0.1, drift=drift).fit(world.A, world.y) for drift in (None, "auto"))
    assert_array_equal(plain.signal_, careful.signal_)
    assert not careful.drift_.any
    with pytest.raises(ValueError, match="drift"):
        RobustPhaseRetrieval(0.1, drift="linear").fit(world.A, world.y)
