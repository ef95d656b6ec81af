"""The classical estimators equal their textbook definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import optimize, stats

from robustphase.means import robust_mean
from robustphase.means.classical import Buckets, bucket_count, column_groups, gudermannian
from robustphase.means.excess import NORMAL_IQR
from robustphase.rows import MemoryRows, ScaledRows


@pytest.fixture
def points(rng):
    return rng.standard_t(3, (300, 45)) + np.linspace(-2, 2, 45)


def test_median_and_trimmed_mean_are_those_of_numpy_and_scipy(points):
    assert_allclose(robust_mean(points, 0.1, "median").location, np.median(points, axis=0))
    trimmed = robust_mean(points, 0.1, "trimmed")
    assert_allclose(trimmed.location, stats.trim_mean(points, 0.1, axis=0))
    assert trimmed.removed == pytest.approx(0.2)


def test_the_geometric_median_minimises_the_sum_of_distances(points):
    found = robust_mean(points, 0.1, "geometric_median").location
    units = (points - found) / np.linalg.norm(points - found, axis=1)[:, None]
    assert np.linalg.norm(units.mean(axis=0)) < 1e-5


def test_catoni_solves_its_equation(points):
    found = robust_mean(points, 0.1, "catoni").location
    for column, theta in zip(points.T[:5], found[:5], strict=True):
        low, high = np.quantile(column, (0.25, 0.75))
        scale = (high - low) / NORMAL_IQR / np.sqrt(0.2)
        root = optimize.brentq(lambda t, c=column, s=scale: gudermannian((c - t) / s).sum(), -20, 20, xtol=1e-12)
        assert theta == pytest.approx(root, abs=1e-8)


def test_median_of_means_is_the_median_of_its_bucket_means(points):
    view, keep = ScaledRows(MemoryRows(points)), np.ones(300, bool)
    buckets = Buckets(view, keep, bucket_count(0.05, 300), random_state=5)
    assert buckets.shape == (45, 45)
    means = np.stack([points[buckets.labels == k].mean(axis=0) for k in range(45)])
    assert_allclose(robust_mean(points, 0.05, "median_of_means", random_state=5).location, np.median(means, axis=0))
    centre = points[0]
    assert_allclose(buckets.squared_distances(centre), ((means - centre) ** 2).sum(axis=1), rtol=1e-9)
    assert_allclose(buckets.mean(np.arange(1.0, 46)), np.arange(1.0, 46) @ means / np.arange(1.0, 46).sum())
    geometric = robust_mean(points, 0.05, "geometric_median_of_means", random_state=5).location
    units = (means - geometric) / np.linalg.norm(means - geometric, axis=1)[:, None]
    assert np.linalg.norm(units.mean(axis=0)) < 1e-4


@given(count=st.integers(1, 500), contamination=st.floats(0, 0.49), seed=st.integers(0, 99))
def test_buckets_are_of_nearly_equal_size(count, contamination, seed):
    number = bucket_count(contamination, count)
    assert 1 <= number <= count
    view = ScaledRows(MemoryRows(np.zeros((count, 1))))
    sizes = Buckets(view, np.ones(count, bool), number, seed).sizes
    assert sizes.sum() == count
    assert sizes.max() - sizes.min() <= 1


def test_dimension_halving_beats_every_coordinate_wise_estimator_on_a_cluster(rng):
    points = rng.standard_normal((2000, 64))
    points[:200] = 1.0 + 0.1 * rng.standard_normal((200, 64))
    error = {m: np.linalg.norm(robust_mean(points, 0.1, m).location) for m in ("lrv", "median", "trimmed", "catoni")}
    assert error["lrv"] < 0.5 * min(error["median"], error["trimmed"], error["catoni"])


def test_every_classical_estimator_is_the_mean_of_one_point():
    for method in ("median", "trimmed", "catoni", "geometric_median", "median_of_means", "lrv"):
        assert_allclose(robust_mean([[1.0, 2.0, 3.0]], 0.1, method).location, [1, 2, 3], atol=1e-9)


@given(st.integers(1, 2000))
def test_column_groups_cover_all_columns_once_in_few_groups(count):
    groups = list(column_groups(count))
    assert len(groups) <= 32
    assert [g.start for g in groups] == [0, *(g.stop for g in groups[:-1])]
    assert groups[-1].stop == count
