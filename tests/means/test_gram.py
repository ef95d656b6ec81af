"""Few, long points: the filter on their inner products."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.means import estimate, robust_mean
from robustphase.means.gram import coordinates, few_and_long, products_amid
from robustphase.rows import DaskRows, MaskedRows, MemoryRows, as_source
from robustphase.rows.gram import gram_about


def updates(seed, dtype, count=40, length=400):
    """Points a fifth of which are in one other place."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((count, length))
    if np.dtype(dtype).kind == "c":
        points = points + 1j * rng.standard_normal((count, length))
    points[: count // 5] = 2.0 + 0.1 * points[: count // 5]
    return points.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("contamination", [0.2, "auto"])
def test_inner_products_tell_what_passes_would(monkeypatch, dtype, contamination):
    points = updates(0, dtype)
    short = robust_mean(points, contamination)
    monkeypatch.setattr(estimate, "few_and_long", lambda shape: False)
    long = robust_mean(points, contamination)
    assert short.weights[:8].max() == 0
    tolerance = 1e-5 if np.dtype(dtype).itemsize <= 8 and dtype != np.float64 else 1e-11
    assert_allclose(short.location, long.location, atol=tolerance)
    assert_allclose(short.weights, long.weights, atol=tolerance)
    assert short.top_variance == pytest.approx(long.top_variance, rel=0.01)
    # The group is gone before the filter begins, and what is left varies as clean points do.
    assert short.converged
    assert short.directions is None


def test_the_data_is_read_three_times():
    source = MemoryRows(updates(1, np.float64))
    robust_mean(source, 0.2)
    # For numbers that cannot be computed with, for the inner products, and for the mean.
    assert source.passes == 3


@pytest.mark.parametrize("kind", ["mapped", "masked", "masked map", "dask"])
def test_inner_products_do_not_depend_on_where_the_rows_live(tmp_path, kind):
    points = updates(2, np.float64)
    expected = points.copy()
    path = tmp_path / "points.npy"
    np.save(path, points)
    source = as_source(np.load(path, mmap_mode="r") if kind == "mapped" else path if kind == "masked map" else points)
    if kind == "dask":
        array = pytest.importorskip("dask.array")
        source = DaskRows(array.from_array(points, chunks=(10, -1)))
    if kind.startswith("masked"):
        hidden = np.arange(40) % 7 == 3
        source, expected = MaskedRows(source, hidden), np.where(hidden[:, np.newaxis], 0, points)
    centred = expected - expected[5]
    assert_allclose(gram_about(source, 5), centred @ centred.T, atol=1e-10)


def test_a_first_point_that_is_far_away_costs_no_digits():
    points = updates(3, np.float64)
    points[0] = 1e9
    gram = products_amid(lambda j: (points - points[j]) @ (points - points[j]).T, np.ones(40, bool))
    near = coordinates(gram, np.arange(40) > 0)
    expected = np.linalg.norm(points[1:, np.newaxis] - points[1:], axis=2)
    assert_allclose(np.linalg.norm(near[1:, np.newaxis] - near[1:], axis=2), expected, atol=1e-6)
    result = robust_mean(points, 0.2)
    assert_allclose(result.location, points[8:].mean(axis=0), atol=1e-12)


def test_rows_that_are_not_finite_play_no_part():
    points = updates(4, np.float64)
    points[10] = np.nan
    result = robust_mean(points, 0.25, nonfinite="drop")
    kept = np.delete(np.arange(8, 40), 2)
    assert result.weights[10] == 0
    assert_allclose(result.location, points[kept].mean(axis=0), atol=1e-12)


def test_points_that_are_all_the_same_are_their_mean():
    result = robust_mean(np.full((10, 100), 3.0), 0.2)
    assert_allclose(result.location, 3.0)
    assert result.converged


def test_many_points_or_short_ones_are_left_to_passes():
    assert few_and_long((20, 10**6))
    assert not few_and_long((5000, 10**6))
    assert not few_and_long((100, 200))
