"""A cloud that is never made gives the same means as the array it stands for; many clouds at once as one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.means import simultaneous
from robustphase.means.directions import ritz_directions, worst_directions
from robustphase.means.estimate import METHODS, RANDOMISED
from robustphase.means.filter import filter_mean
from robustphase.means.simultaneous import ColumnClouds, column_means
from robustphase.rows import MemoryRows, ScaledRows


def rows_of(rng, m, n, kind):
    rows = rng.standard_normal((m, n))
    return rows + 1j * rng.standard_normal((m, n)) if kind == "complex" else rows


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("paired", [False, True], ids=["scaled", "paired"])
def test_views_have_the_means_of_the_points_they_stand_for(method, kind, paired, rng):
    rows, scale = rows_of(rng, 601, 7, kind), rng.standard_normal(601)
    rows[:30] += 5.0
    points = scale[:, None] * rows.conj()
    if paired:
        points = points[:300] - points[300:600]
    dropped = np.zeros(len(points), bool)
    dropped[[4, 77]] = True
    options = {"random_state": 3} if method in RANDOMISED else {}
    view = ScaledRows(MemoryRows(rows, block_rows=50, threads=2), scale, paired=paired)
    dense = ScaledRows(MemoryRows(points.conj()))
    here = METHODS[method](view, 0.1, dropped=dropped, **options)
    there = METHODS[method](dense, 0.1, dropped=dropped, **options)
    assert_allclose(here.location, there.location, atol=1e-7)
    assert_allclose(here.weights, there.weights, atol=1e-5)
    assert (here.weights[dropped] == 0).all()


def test_no_method_holds_much_more_than_a_fraction_of_the_points(rng):
    import tracemalloc

    rows = rng.standard_normal((4000, 600))
    for method in ("filter", "mmw", "median", "trimmed", "geometric_median_of_means"):
        options = {"random_state": 0} if method in RANDOMISED else {}
        view = ScaledRows(MemoryRows(rows, block_rows=64, threads=1))
        METHODS[method](view, 0.05, **options)
        tracemalloc.start()
        METHODS[method](view, 0.05, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.2 * rows.nbytes, method


def test_directions_without_stored_projections_are_the_same(rng):
    view = ScaledRows(MemoryRows(rng.standard_normal((500, 20)) * np.linspace(1, 3, 20)))
    weights = rng.random(500)
    mean, start = view.mean(weights), rng.standard_normal((20, 3))
    first, second = (find(view, weights, mean, start, 4) for find in (worst_directions, ritz_directions))
    assert_allclose(second.variances, first.variances, rtol=1e-10)
    assert_allclose(np.abs(second.projections), np.abs(first.projections), atol=1e-8)


def samples(rng, m, n, kind):
    """Phaseless responses with a corrupted twentieth."""
    rows = rows_of(rng, m, n, kind)
    signal = rng.standard_normal(n) / np.sqrt(n)
    responses = np.abs(rows @ signal) ** 2 + 0.3 * rng.standard_t(3, m)
    rows[: m // 20] = 2 * rows[0]
    responses[: m // 20] = 8.0
    return rows, responses


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("level", [0.05, "auto"])
def test_column_means_are_those_of_the_filter_one_by_one(kind, level, rng):
    rows, y = samples(rng, 1500, 9, kind)
    source = MemoryRows(rows, block_rows=200, threads=2)
    together = column_means(source, y, level)
    for i in range(9):
        alone = filter_mean(ScaledRows(source, y * rows[:, i]), level, strict=True)
        assert_allclose(together.matrix[:, i], alone.location, atol=1e-10)
        assert together.removed[i] == pytest.approx(alone.removed)
        assert together.top_variance[i] == pytest.approx(alone.top_variance, rel=1e-7)
    assert together.weights.shape == (1500,)
    assert together.weights[:75].mean() < 0.2
    assert together.weights[75:].mean() > 0.8


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_paired_column_means_are_those_of_explicit_b_and_c(kind, rng):
    rows, y = samples(rng, 1001, 6, kind)
    top, bottom = rows[:500], rows[500:1000]
    b, c, upsilon = (top + bottom) / np.sqrt(2), (top - bottom) / np.sqrt(2), (y[:500] - y[500:1000]) / 2
    together = column_means(MemoryRows(rows, block_rows=64), y, 0.1, paired=True)
    for i in range(6):
        alone = filter_mean(ScaledRows(MemoryRows(b), upsilon * c[:, i]), 0.1, strict=True)
        assert_allclose(together.matrix[:, i], alone.location, atol=1e-10)


def test_chunks_of_clouds_and_dropped_samples_change_nothing_else(rng, monkeypatch):
    rows, y = samples(rng, 800, 7, "real")
    dropped = np.zeros(800, bool)
    dropped[[300, 500]] = True
    whole = column_means(MemoryRows(rows), y, 0.05, dropped=dropped)
    monkeypatch.setattr(simultaneous, "OPTIONS", replace(simultaneous.OPTIONS, size=800 * 8 * 12 * 3))
    parts = column_means(MemoryRows(rows), y, 0.05, dropped=dropped)
    assert_allclose(parts.matrix, whole.matrix, atol=1e-12)
    assert (whole.weights[dropped] == 0).all()
    # Three clouds at a time, so three times the passes at most: never seven.
    assert whole.passes < parts.passes <= 3 * whole.passes
    pairs = column_means(MemoryRows(rows), y, 0.05, dropped=dropped, paired=True)
    assert (pairs.weights[[100, 300]] == 0).all()


def test_column_means_of_clean_samples_without_contamination_are_the_second_moment(rng):
    rows, y = rng.standard_normal((400, 5)), rng.random(400)
    found = column_means(MemoryRows(rows), y, 0.0)
    assert_allclose(found.matrix, (rows.T * y) @ rows / 400, atol=1e-12)
    assert found.converged
    assert (found.weights > 1 - 1e-12).all()


def test_confidence_raises_the_level_of_every_cloud(rng):
    rows, y = samples(rng, 800, 5, "real")
    explicit = column_means(MemoryRows(rows), y, 0.05 + np.log(100) / 800)
    assert_allclose(column_means(MemoryRows(rows), y, 0.05, delta=0.01).matrix, explicit.matrix)


def test_cloud_passes_match_their_formulas(rng):
    rows, y = rows_of(rng, 90, 4, "complex"), rng.standard_normal(90)
    clouds = ColumnClouds(MemoryRows(rows, block_rows=13), y, np.array([2, 0]), paired=False)
    points = [(y * rows[:, i])[:, None] * rows.conj() for i in (2, 0)]
    weights, centres = rng.random((90, 2)), rng.standard_normal((4, 2)) + 0j
    vectors, owner = rows_of(rng, 4, 3, "complex"), np.array([0, 1, 1])
    means = np.stack([w @ p / w.sum() for w, p in zip(weights.T, points, strict=True)], axis=1)
    assert_allclose(clouds.mean(weights), means)
    distances = [np.sum(np.abs(p - c) ** 2, axis=1) for p, c in zip(points, centres.T, strict=True)]
    assert_allclose(clouds.squared_distances(centres), np.stack(distances, axis=1))
    inner = np.stack([points[i].conj() @ v for i, v in zip(owner, vectors.T, strict=True)], axis=1)
    assert_allclose(clouds.inner(vectors, owner), inner)
    product = clouds.covariance_times(weights, means, vectors, owner)
    for column, (i, v) in enumerate(zip(owner, vectors.T, strict=True)):
        deviations, w = points[i] - means[:, i], weights[:, i] / weights[:, i].sum()
        assert_allclose(product[:, column], (w[:, None] * deviations).T @ (deviations.conj() @ v))
