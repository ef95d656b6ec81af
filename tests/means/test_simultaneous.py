"""Many clouds at once have the robust means that they have one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.means import simultaneous
from robustphase.means.filter import filter_mean
from robustphase.means.simultaneous import ColumnClouds, column_means
from robustphase.rows import MemoryRows, ScaledRows


def rows_of(rng, m, n, kind):
    rows = rng.standard_normal((m, n))
    return rows + 1j * rng.standard_normal((m, n)) if kind == "complex" else rows


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
    found = column_means(source, y, level)
    for i in range(9):
        alone = filter_mean(ScaledRows(source, y * rows[:, i]), level, strict=True)
        assert_allclose(found.matrix[:, i], alone.location, atol=1e-10)
        assert found.removed[i] == pytest.approx(alone.removed)
        assert found.top_variance[i] == pytest.approx(alone.top_variance, rel=1e-7)
    assert found.weights.shape == (1500,)
    assert found.weights[:75].mean() < 0.2
    assert found.weights[75:].mean() > 0.8


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_paired_column_means_are_those_of_explicit_b_and_c(kind, rng):
    rows, y = samples(rng, 1001, 6, kind)
    top, bottom = rows[:500], rows[500:1000]
    b, c, upsilon = (top + bottom) / np.sqrt(2), (top - bottom) / np.sqrt(2), (y[:500] - y[500:1000]) / 2
    found = column_means(MemoryRows(rows, block_rows=64), y, 0.1, paired=True)
    for i in range(6):
        alone = filter_mean(ScaledRows(MemoryRows(b), upsilon * c[:, i]), 0.1, strict=True)
        assert_allclose(found.matrix[:, i], alone.location, atol=1e-10)


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
