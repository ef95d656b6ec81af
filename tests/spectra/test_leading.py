"""The leading eigenvector survives outliers and heavy tails, and clean data is left alone.

Statistical tests compare medians over five fixed seeds; how often a fresh set of seeds would pass is stated in each.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from robustphase import leading_eigenvector
from robustphase.rows import MemoryRows, ScaledRows
from robustphase.spectra.leading import leading_direction

D, N, SHARE = 100, 3000, 0.1
SEEDS = range(5)


def unit(vector):
    return vector / np.linalg.norm(vector)


def sine(u, v):
    return float(np.sqrt(max(0.0, 1.0 - abs(np.vdot(u, v)) ** 2)))


def top(points):
    return np.linalg.eigh(points.T @ points)[1][:, -1]


def tyler(points, iterations=50):
    """Leading eigenvector of Tyler's shape matrix: the best that can be done on elliptical data of unknown tails."""
    shape = np.eye(points.shape[1])
    for _ in range(iterations):
        squares = np.einsum("ij,ij->i", points @ np.linalg.inv(shape), points)
        shape = (points.T / squares) @ points
        shape *= points.shape[1] / np.trace(shape)
    return np.linalg.eigh(shape)[1][:, -1]


def spiked(seed, *, heavy=False, count=N, d=D):
    """Points with covariance I + 4vvᵀ (times an elliptical t(3) radius), v, and a direction u across v."""
    rng = np.random.default_rng(seed)
    v = unit(rng.standard_normal(d))
    points = rng.standard_normal((count, d))
    points += (np.sqrt(5) - 1) * np.outer(points @ v, v)
    if heavy:
        points /= np.sqrt(rng.chisquare(3, count) / 3)[:, None]
    u = rng.standard_normal(d)
    return rng, points, v, unit(u - (u @ v) * v)


def spoil(rng, points, u, attack):
    """Replace a share of the points by outliers along u; returns the points and which are bad."""
    count = round(SHARE * len(points))
    bad = np.zeros(len(points), bool)
    bad[rng.choice(len(points), count, replace=False)] = True
    spoilt = points.copy()
    if attack == "far":
        spoilt[bad] = 100 * u + 0.1 * rng.standard_normal((count, len(u)))
    else:
        length = np.sqrt(len(u) + 4)  # that of a clean point
        spoilt[bad] = np.outer(rng.choice([-1, 1], count) * length, u) + 0.3 * rng.standard_normal((count, len(u)))
    return spoilt, bad


@pytest.mark.parametrize("heavy", [False, True], ids=["normal", "t3"])
@pytest.mark.parametrize("attack", ["far", "symmetric"])
def test_outliers_cost_less_than_a_third_of_the_accuracy_on_clean_data(attack, heavy):
    # Over 12 other seeds the ratios have median 1.06 and deviation 0.04 at most, none above 1.13: a median of five above
    # 1.3 has probability below 1e-6. With heavy tails the comparison is with Tyler's estimator on the clean points, since
    # the plain one fails by itself.
    ratios = []
    for seed in SEEDS:
        rng, points, v, u = spiked(seed, heavy=heavy)
        spoilt, bad = spoil(rng, points, u, attack)
        clean = (tyler if heavy else top)(points[~bad])
        ratios.append(sine(leading_eigenvector(spoilt, SHARE).vector, v) / sine(clean, v))
    assert np.median(ratios) <= 1.3


def test_heavy_tails_cost_at_most_a_tenth_compared_with_tyler():
    # Over 30 other seeds the ratio has median 1.04 and deviation 0.04, one in twenty is above 1.1: the median of five is
    # with probability 0.001.
    ratios = []
    for seed in SEEDS:
        _, points, v, _ = spiked(seed, heavy=True)
        ratios.append(sine(leading_eigenvector(points, SHARE).vector, v) / sine(tyler(points), v))
    assert np.median(ratios) <= 1.1


def test_clean_normal_data_is_left_alone():
    # Not one point was taken on 30 other seeds: by the rule of three a false alarm has probability below 0.1 per seed.
    for seed in SEEDS:
        _, points, v, _ = spiked(seed)
        result = leading_eigenvector(points, SHARE)
        assert result.removed == 0
        assert result.converged
        assert sine(result.vector, v) <= 1.1 * sine(top(points), v)


def test_the_outliers_are_the_ones_taken():
    rng, points, _, u = spiked(0)
    spoilt, bad = spoil(rng, points, u, "symmetric")
    weights = leading_eigenvector(spoilt, SHARE).weights
    assert weights[bad].mean() < 0.1
    assert weights[~bad].mean() > 0.98


def test_the_level_may_be_left_open():
    rng, points, v, u = spiked(1)
    spoilt, bad = spoil(rng, points, u, "far")
    result = leading_eigenvector(spoilt, "auto")
    assert sine(result.vector, v) <= 1.3 * sine(top(points[~bad]), v)
    assert 0.05 < result.removed < 0.15


def small_world(seed, attack="symmetric"):
    rng, points, _, u = spiked(seed, count=400, d=6)
    return rng, spoil(rng, points, 1.5 * u, attack)[0]


@given(seed=st.integers(0, 200))
@settings(max_examples=15)
def test_rotations_turn_the_vector_and_nothing_else(seed):
    rng, points = small_world(seed)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    here, there = leading_eigenvector(points), leading_eigenvector(points @ rotation.T)
    assert abs(there.vector @ rotation @ here.vector) == pytest.approx(1, abs=1e-9)
    assert_allclose(there.weights, here.weights)


@given(seed=st.integers(0, 200))
@settings(max_examples=15)
def test_the_order_of_the_points_does_not_matter(seed):
    rng, points = small_world(seed)
    order = rng.permutation(len(points))
    here, there = leading_eigenvector(points), leading_eigenvector(points[order])
    assert abs(there.vector @ here.vector) == pytest.approx(1, abs=1e-9)
    assert_allclose(there.weights, here.weights[order])


@given(seed=st.integers(0, 200), scale=st.sampled_from([1e-8, 0.3, -1.0, 1e8]))
@settings(max_examples=15)
def test_units_and_signs_do_not_matter(seed, scale):
    _, points = small_world(seed)
    here, there = leading_eigenvector(points), leading_eigenvector(scale * points)
    assert abs(there.vector @ here.vector) == pytest.approx(1, abs=1e-9)
    assert there.value == pytest.approx(scale**2 * here.value, rel=1e-9)
    assert_allclose(there.weights, here.weights)


def test_a_mean_far_from_zero_is_subtracted_first():
    _, points, v, _ = spiked(2, d=20)
    here = leading_eigenvector(points + 1000.0)
    assert sine(here.vector, v) < 0.1
    assert_allclose(here.location, 1000.0, atol=0.5)


def test_centred_data_may_be_declared_so():
    _, points, v, _ = spiked(3, d=20)
    result = leading_eigenvector(points, assume_centered=True)
    assert sine(result.vector, v) < 0.1
    assert_allclose(result.location, 0)


def test_complex_points_have_a_complex_eigenvector():
    rng = np.random.default_rng(4)
    v = unit(rng.standard_normal(20) + 1j * rng.standard_normal(20))
    points = (rng.standard_normal((3000, 20)) + 1j * rng.standard_normal((3000, 20))) / np.sqrt(2)
    points += np.outer(np.sqrt(5) * rng.standard_normal(3000), v)
    points[:200] = 4.5 * np.exp(1j)  # one direction, one phase
    result = leading_eigenvector(points, 0.1)
    # The sine on clean data is 0.03: twice of it is far outside its scatter.
    assert sine(result.vector, v) < 0.06


def test_rows_that_are_not_finite_are_refused_or_dropped():
    _, points, v, _ = spiked(5, d=20)
    points[3, 1], points[7, 0], points[11, 5] = np.nan, np.inf, 1e200
    with pytest.raises(ValueError, match=r"2 rows of X hold NaN or infinite entries \(first: row 3\)"):
        leading_eigenvector(points)
    result = leading_eigenvector(points, nonfinite="drop")
    assert_allclose(result.weights[[3, 7, 11]], 0)
    assert sine(result.vector, v) < 0.1


def test_points_that_nearly_all_coincide_are_not_all_taken():
    points = np.full((100, 3), 2.0)
    points[:5] = 50.0
    for level in (0.0, 0.05, "auto"):
        result = leading_eigenvector(points, level)
        assert result.weights[5:].all()
        assert np.linalg.norm(result.vector) == pytest.approx(1)


def test_most_points_may_be_zero():
    # As the points y a are where most responses are counts of nothing.
    _, points, v, _ = spiked(8, d=6)
    points[:1800] = 0
    result = leading_direction(ScaledRows(MemoryRows(points)), 0.1, strict=True)
    assert sine(result.vector, v) < 0.1


def test_the_evidence_is_ordered_and_orthonormal():
    _, points, _, _ = spiked(6, d=20)
    result = leading_eigenvector(points)
    assert (np.diff(result.values) <= 1e-12).all()
    assert_allclose(result.vectors.T @ result.vectors, np.eye(result.vectors.shape[1]), atol=1e-9)
    assert_allclose(result.vectors[:, 0], result.vector)
    assert result.value == pytest.approx(5, rel=0.15)
