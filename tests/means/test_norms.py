"""Points of unusual norm count less where that makes the mean more precise, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from robustphase.means import robust_mean
from robustphase.means.filter import filter_mean
from robustphase.means.reweight import OPTIONS, gain_of, held_back, norm_weights
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


@pytest.mark.parametrize("shape", [(200, 20), (500, 5), (500, 200), (2000, 50)])
@pytest.mark.parametrize("spread", [1.0, 10.0], ids=["round", "elongated"])
def test_normal_points_that_are_kept_count_alike(shape, spread):
    for seed in range(5):
        points = np.random.default_rng(seed).standard_normal(shape) * np.geomspace(1.0, spread, shape[1])
        assert is_plain(robust_mean(points, 0.1).weights)


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.standard_t(3, (2000, 1)),
        lambda rng: rng.standard_normal((2000, 1)) ** 2 + 0.3 * rng.standard_t(3, (2000, 1)),
        lambda rng: np.exp(rng.standard_normal((2000, 5))),
        lambda rng: np.exp(rng.standard_normal((2000, 50))),
        lambda rng: rng.exponential(size=(2000, 20)),
        lambda rng: rng.standard_normal((2000, 1)) ** 3 * np.eye(20)[0] + rng.standard_normal((2000, 20)),
    ],
    ids=["numbers", "responses", "lognormal", "lognormal, many", "exponential", "one direction"],
)
def test_where_far_points_may_lean_those_that_are_kept_count_alike(make):
    for seed in range(5):
        assert is_plain(robust_mean(make(np.random.default_rng(seed)), 0.05).weights)


def test_the_strict_filter_and_the_automatic_one_weigh_nothing(rng):
    view = ScaledRows(MemoryRows(spherical(rng, 1000, 30)))
    assert not is_plain(filter_mean(view, 0.05).weights)
    assert is_plain(filter_mean(view, 0.05, strict=True).weights)
    assert is_plain(filter_mean(view, "auto").weights)


@pytest.mark.parametrize("level", [0.01, 0.1, 0.4])
def test_no_more_than_the_stated_share_is_taken_from_the_kept_points_and_the_farthest_lose_most(level, rng):
    points = spherical(rng, 1500, 40)
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


@pytest.mark.parametrize("d", [4, 10, 50])
def test_normal_points_have_nothing_to_gain(d):
    # Mean over 20 seeds; by symmetry any direction will do.
    gains = []
    for seed in range(20):
        points = np.random.default_rng(seed).standard_normal((2000, d))
        squares = np.sum(points**2, axis=1) / d
        shares = (1 / squares) / np.sum(1 / squares)
        gains.append(gain_of(shares, squares / squares.mean(), held_back(shares, squares, points[:, :1] / np.sqrt(d))))
    assert abs(np.mean(gains)) < OPTIONS.worth


def test_clouds_without_extent_have_no_weights_to_find():
    view = ScaledRows(MemoryRows(np.full((20, 3), 2.0)))
    assert norm_weights(view, np.ones(20, bool), np.full(3, 2.0), np.zeros((20, 1)), 0.1) is None
    corners = ScaledRows(MemoryRows(np.vstack((np.eye(3), -np.eye(3), 9 * np.eye(3), -9 * np.eye(3)))))
    assert norm_weights(corners, np.ones(12, bool), np.zeros(3), np.zeros((12, 1)), 0.3) is None
