"""Moving, turning, scaling, shuffling or copying the points does the same to the estimate and leaves the weights alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from robustphase.means import robust_mean

METHODS = st.sampled_from(["filter", "mmw"])
SEEDS = st.integers(0, 2**16)


@st.composite
def contaminated_points(draw):
    """Points of several shapes, a tenth of them bad in one of several ways."""
    rng = np.random.default_rng(draw(SEEDS))
    count, dimension = draw(st.sampled_from([(200, 1), (300, 8), (400, 30), (80, 120)]))
    points = rng.standard_normal((count, dimension)) if draw(st.booleans()) else rng.standard_t(3, (count, dimension))
    bad = count // 10
    attack = draw(st.sampled_from(["none", "far", "subtle", "edge"]))
    if attack == "far":
        points[:bad] = 50 + 0.1 * rng.standard_normal((bad, dimension))
    elif attack == "subtle":
        points[:bad] = np.sqrt(dimension) * rng.standard_normal(dimension) / np.sqrt(dimension) + 0.1 * points[:bad]
    elif attack == "edge":
        points[:bad, 0] = 3.0
    return points


def typical_distance(points):
    return float(np.median(np.linalg.norm(points - np.median(points, axis=0), axis=1)))


def estimate(points, method, told=0.1):
    return robust_mean(points, told, method, random_state=0)


@given(points=contaminated_points(), method=METHODS, seed=SEEDS, size=st.sampled_from([1.0, 1e3, 1e6]))
def test_translation_moves_the_mean_and_nothing_else(points, method, seed, size):
    shift = size * np.random.default_rng(seed).standard_normal(points.shape[1])
    here, there = estimate(points, method), estimate(points + shift, method)
    # Adding 1e6 costs six digits of the points themselves.
    atol = 1e-9 * max(size, 1.0) * max(typical_distance(points), 1.0)
    assert_allclose(there.location - shift, here.location, atol=atol)
    assert_allclose(there.weights, here.weights, atol=1e-4)


@given(points=contaminated_points(), method=METHODS, scale=st.sampled_from([1e-12, 0.2, -3.0, 1e12]))
def test_scaling_scales_the_mean_and_nothing_else(points, method, scale):
    here, there = estimate(points, method), estimate(scale * points, method)
    assert_allclose(there.location / scale, here.location, atol=1e-9 * typical_distance(points))
    assert_allclose(there.weights, here.weights, atol=1e-6)
    assert there.top_variance == pytest.approx(scale**2 * here.top_variance, rel=1e-6)


@given(points=contaminated_points(), method=METHODS, seed=SEEDS)
def test_rotation_turns_the_mean_and_nothing_else(points, method, seed):
    d = points.shape[1]
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    here, there = estimate(points, method), estimate(points @ rotation, method)
    assert_allclose(there.location @ rotation.T, here.location, atol=1e-7 * typical_distance(points))
    assert_allclose(there.weights, here.weights, atol=1e-5)


@given(points=contaminated_points(), method=METHODS, seed=SEEDS)
def test_the_order_of_the_points_does_not_matter(points, method, seed):
    order = np.random.default_rng(seed).permutation(len(points))
    here, there = estimate(points, method), estimate(points[order], method)
    assert_allclose(there.location, here.location, atol=1e-9 * typical_distance(points))
    assert_allclose(there.weights, here.weights[order], atol=1e-6)


@given(points=contaminated_points(), method=METHODS)
def test_copies_of_the_data_set_add_no_evidence(points, method):
    here, there = estimate(points, method), estimate(np.vstack((points, points)), method)
    assert_allclose(there.location, here.location, atol=1e-7 * typical_distance(points))
    assert_allclose(there.weights[: len(points)], here.weights, atol=1e-5)
    assert_allclose(there.weights[len(points) :], here.weights, atol=1e-5)


@given(points=contaminated_points(), method=METHODS)
def test_no_contamination_gives_the_empirical_mean(points, method):
    found = estimate(points, method, told=0.0)
    assert_allclose(found.location, points.mean(axis=0), rtol=1e-12, atol=1e-13 * typical_distance(points))
    assert (found.weights == 1).all()


@given(points=contaminated_points(), method=METHODS, told=st.sampled_from([0.01, 0.1, 0.4, "auto"]))
def test_the_result_is_consistent_in_itself(points, method, told):
    found = estimate(points, method, told)
    assert np.isfinite(found.location).all()
    assert found.weights.min() >= 0
    assert found.weights.max() <= 1
    assert found.removed == pytest.approx(1 - found.weights.mean())
    assert_allclose(found.location, found.weights @ points / found.weights.sum(), atol=1e-9 * np.abs(points).max())
    assert found.message


def test_the_same_seed_gives_the_same_answer_and_the_filter_needs_none():
    points = np.random.default_rng(0).standard_normal((300, 10))
    points[:30] += 3
    for method in ("filter", "mmw", "median_of_means", "geometric_median_of_means"):
        first, second = (robust_mean(points, 0.1, method, random_state=7).location for _ in range(2))
        assert (first == second).all()
    assert (robust_mean(points, 0.1).location == robust_mean(points, 0.1).location).all()
