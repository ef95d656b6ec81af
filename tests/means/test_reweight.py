"""Weights on the capped simplex; points of unusual norm count less where that makes the mean more precise."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from robustphase.means import robust_mean
from robustphase.means.filter import filter_mean
from robustphase.means.reweight import OPTIONS, capped_simplex_projection, gain_of, held_back, norm_weights
from robustphase.rows import MemoryRows, ScaledRows


def spherical(rng, count, d):
    """Student-t with 3 degrees of freedom and spherical contours."""
    return rng.standard_normal((count, d)) / np.sqrt(rng.chisquare(3, (count, 1)) / 3)


def is_plain(weights):
    """Whether every point counts fully or not at all."""
    return bool(np.isin(weights, (0.0, 1.0)).all())


@pytest.mark.parametrize("coordinates", ["independent", "spherical"])
def test_heavy_tails_are_averaged_more_precisely(coordinates):
    # 20 seeds; the standard error of the mean difference is below a quarter of it.
    differences, before = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = spherical(rng, 1000, 50) if coordinates == "spherical" else rng.standard_t(3, (1000, 50))
        found = robust_mean(points, 0.05)
        plain = np.linalg.norm(points[found.weights > 0].mean(axis=0)) ** 2
        before.append(plain)
        differences.append(np.linalg.norm(found.location) ** 2 - plain)
        assert not is_plain(found.weights)
        assert "points of unusual norm count less" in found.message
    assert np.mean(differences) < -0.03 * np.mean(before)
    assert np.std(differences, ddof=1) / np.sqrt(20) < -np.mean(differences) / 4


def test_with_a_cluster_among_heavy_tails_it_beats_the_mean_of_the_inliers():
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        points = rng.standard_t(3, (2000, 100)) / np.sqrt(3)
        points[:200] = 0.1 * rng.standard_normal((200, 100)) + 1.0
        found = robust_mean(points, 0.1)
        assert found.weights[:200].mean() < 0.05
        ratios.append(np.linalg.norm(found.location) / np.linalg.norm(points[200:].mean(axis=0)))
    assert np.median(ratios) < 0.98


@pytest.mark.parametrize("spread", [1.0, 10.0], ids=["round", "elongated"])
def test_normal_points_that_are_kept_count_alike(spread):
    for seed, shape in product(range(5), [(200, 20), (500, 5), (500, 200), (2000, 50)]):
        points = np.random.default_rng(seed).standard_normal(shape) * np.geomspace(1.0, spread, shape[1])
        assert is_plain(robust_mean(points, 0.1).weights)


SKEWED = {
    "numbers": lambda rng: rng.standard_t(3, (2000, 1)),
    "responses": lambda rng: rng.standard_normal((2000, 1)) ** 2 + 0.3 * rng.standard_t(3, (2000, 1)),
    "lognormal": lambda rng: np.exp(rng.standard_normal((2000, 5))),
    "lognormal, many": lambda rng: np.exp(rng.standard_normal((2000, 50))),
    "exponential": lambda rng: rng.exponential(size=(2000, 20)),
    "one direction": lambda rng: rng.standard_normal((2000, 1)) ** 3 * np.eye(20)[0] + rng.standard_normal((2000, 20)),
}


def test_where_far_points_may_lean_those_that_are_kept_count_alike():
    for (name, make), seed in product(SKEWED.items(), range(5)):
        assert is_plain(robust_mean(make(np.random.default_rng(seed)), 0.05).weights), name


def test_the_strict_filter_and_the_automatic_one_weigh_nothing(rng):
    view = ScaledRows(MemoryRows(spherical(rng, 1000, 30)))
    assert not is_plain(filter_mean(view, 0.05).weights)
    assert is_plain(filter_mean(view, 0.05, strict=True).weights)
    assert is_plain(filter_mean(view, "auto").weights)


def test_no_more_than_the_stated_share_is_taken_from_the_kept_points_and_the_farthest_lose_most(rng):
    points = spherical(rng, 1500, 40)
    for level in (0.01, 0.1, 0.4):
        found = robust_mean(points, level)
        kept = found.weights > 0
        assert not is_plain(found.weights)
        assert 1 - found.weights[kept].mean() <= level + 1e-9
        # Distances to the mean of the kept points decide.
        distances = np.linalg.norm(points[kept] - points[kept].mean(axis=0), axis=1)
        assert (np.diff(found.weights[kept][np.argsort(distances)]) <= 1e-12).all()


def test_the_certificate_is_that_of_the_weights_returned():
    for seed in range(5):
        points = spherical(np.random.default_rng(seed), 2000, 60)
        found = robust_mean(points, 0.1)
        deviations = points - found.location
        covariance = (deviations.T * (found.weights / found.weights.sum())) @ deviations
        exact = np.linalg.eigvalsh(covariance)[-1]
        assert 0.93 * exact <= found.top_variance <= (1 + 1e-9) * exact


def test_a_warm_start_changes_the_answer_by_less_than_its_noise(rng):
    view = ScaledRows(MemoryRows(spherical(rng, 1500, 40)))
    cold = filter_mean(view, 0.05)
    warm = filter_mean(view, 0.05, start=cold)
    assert not is_plain(warm.weights)
    # The mean of 40 coordinates is known to sqrt(40) standard errors.
    assert np.linalg.norm(warm.location - cold.location) < 0.25 * np.sqrt(40 * cold.top_variance / 1500)


def test_a_shift_of_the_centre_is_repeated_by_the_part_held_back(rng):
    half = spherical(rng, 400, 6)
    points = np.vstack((half, -half))  # symmetric, so that only the deviations matter
    direction = np.eye(6)[0]

    def shares(centre):
        pulled = np.minimum(1.0, 3.0 / np.sum((points - centre) ** 2, axis=1))
        return pulled / pulled.sum()

    step = 1e-5
    moved = (shares(step * direction) - shares(-step * direction)) @ points @ direction / (2 * step)
    held = held_back(shares(np.zeros(6)), np.sum(points**2, axis=1), (points @ direction)[:, np.newaxis])
    assert held == pytest.approx(moved, rel=1e-6)


def test_normal_points_have_nothing_to_gain(case):
    for d in [4, 10, 50]:
        with case(d):
            # Mean over 20 seeds; by symmetry any direction will do.
            gains = []
            for seed in range(20):
                points = np.random.default_rng(seed).standard_normal((2000, d))
                squares = np.sum(points**2, axis=1) / d
                shares = (1 / squares) / np.sum(1 / squares)
                gains.append(
                    gain_of(shares, squares / squares.mean(), held_back(shares, squares, points[:, :1] / np.sqrt(d)))
                )
            assert abs(np.mean(gains)) < OPTIONS.worth


def test_clouds_without_extent_have_no_weights_to_find():
    view = ScaledRows(MemoryRows(np.full((20, 3), 2.0)))
    assert norm_weights(view, np.ones(20, bool), np.full(3, 2.0), np.zeros((20, 1)), 0.1) is None
    corners = ScaledRows(MemoryRows(np.vstack((np.eye(3), -np.eye(3), 9 * np.eye(3), -9 * np.eye(3)))))
    assert norm_weights(corners, np.ones(12, bool), np.zeros(3), np.zeros((12, 1)), 0.3) is None


@st.composite
def weights_and_cap(draw):
    size = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    # Over many orders of magnitude, as multiplicative updates leave them.
    weights = np.exp(draw(st.floats(0.0, 200.0)) * -rng.random(size))
    return weights, (1.0 + draw(st.sampled_from([0.0, 1e-9, 0.05, 0.5, 10.0]))) / size


def test_the_published_example_is_reproduced():
    projected = capped_simplex_projection(np.array([0.56495992, 0.31297521, 0.12206487]), 0.5)
    assert_allclose(projected, [0.5, 0.35970848, 0.14029152], atol=1e-8)


@given(weights_and_cap())
def test_the_projection_sums_to_one_and_respects_the_cap_and_the_order(case):
    weights, cap = case
    projected = capped_simplex_projection(weights, cap)
    assert_allclose(projected.sum(), 1.0, rtol=1e-9)
    assert projected.max() <= cap * (1 + 1e-12)
    assert projected.min() >= 0
    assert (np.diff(projected[np.argsort(weights)]) >= -1e-15).all()


@given(weights_and_cap(), st.floats(1e-3, 1e3))
def test_only_relative_weights_matter_and_projecting_twice_changes_nothing(case, factor):
    weights, cap = case
    once = capped_simplex_projection(weights, cap)
    assert_allclose(capped_simplex_projection(factor * weights, cap), once, rtol=1e-9, atol=1e-15)
    assert_allclose(capped_simplex_projection(once, cap), once, rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 2**16), size=st.integers(2, 5))
def test_no_other_member_is_closer_in_relative_entropy(seed, size):
    rng = np.random.default_rng(seed)
    weights, cap = rng.random(size) + 0.05, 1.3 / size

    def entropy(w):
        return float((w * np.log(np.maximum(w, 1e-300) / weights)).sum())

    found = minimize(
        entropy,
        np.full(size, 1 / size),
        method="SLSQP",
        bounds=[(0, cap)] * size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert entropy(capped_simplex_projection(weights, cap)) <= found.fun + 1e-7


def test_zero_weights_stay_zero_and_a_cap_that_is_too_low_is_refused():
    assert_allclose(capped_simplex_projection(np.array([0.0, 1.0, 1.0, 2.0]), 0.4), [0, 0.3, 0.3, 0.4])
    with pytest.raises(ValueError, match="cannot sum to one"):
        capped_simplex_projection(np.array([0.0, 1.0, 1.0]), 0.4)


def test_points_without_weight_get_none_even_where_the_rest_exactly_fills_the_cap():
    weights = np.concatenate((np.ones(90), np.full(10, 1e-250)))
    assert capped_simplex_projection(weights, 1 / 90)[90:].max() < 1e-9
