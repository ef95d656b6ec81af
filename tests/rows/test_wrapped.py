"""Views and sources seen through a change equal the same change made to the array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from robustphase.rows import MaskedRows, MemoryRows, Parts, ScaledRows, ShiftedRows, TransformedRows, project, rows_at

REAL_AND_COMPLEX = pytest.mark.parametrize("field", ["real", "complex"])


def draw(rng, field, *shape):
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if field == "complex" else values


@REAL_AND_COMPLEX
@pytest.mark.parametrize("threads", [1, 3])
def test_transformed_rows_are_the_rows_times_the_matrix(field, threads, rng):
    rows, matrix = draw(rng, field, 101, 6), draw(rng, field, 6, 6)
    source = TransformedRows(MemoryRows(rows, block_rows=13, threads=threads), matrix)
    vectors = draw(rng, field, 6, 2)
    assert_allclose(project(source, vectors), rows @ matrix @ vectors)
    assert_allclose(ScaledRows(source).columns(slice(None)), (rows @ matrix).conj())


def test_transformed_rows_work_in_pairs(rng):
    rows, matrix = rng.standard_normal((41, 3)), rng.standard_normal((3, 3))
    source = TransformedRows(MemoryRows(rows, block_rows=4), matrix)
    turned = rows @ matrix
    points = ScaledRows(source, np.arange(41.0), paired=True).columns(slice(None))
    assert_allclose(points, np.arange(20)[:, None] * turned[:20] - np.arange(20, 40)[:, None] * turned[20:40])


def test_wrappers_can_be_put_around_each_other(rng):
    rows, matrix, origin = rng.standard_normal((30, 4)), rng.standard_normal((4, 4)), rng.standard_normal(4)
    hidden = np.arange(30) == 7
    source = TransformedRows(MaskedRows(ShiftedRows(MemoryRows(rows, block_rows=8), origin), hidden), matrix)
    expected = np.where(hidden[:, None], 0, rows - origin) @ matrix
    assert_allclose(project(source, np.eye(4)), expected)


def test_a_transformation_of_the_wrong_shape_is_refused(rng):
    with pytest.raises(ValueError, match=r"matrix must have shape \(4, 4\), got \(4, 3\)"):
        TransformedRows(MemoryRows(rng.standard_normal((10, 4))), np.ones((4, 3)))


def test_single_precision_rows_stay_in_single_precision_when_transformed(rng):
    source = TransformedRows(MemoryRows(rng.standard_normal((10, 3)).astype(np.float32)), np.eye(3))
    assert source.dtype == np.float32
    assert source.reduce(lambda block: Parts(rows=(block,))).rows[0].dtype == np.float32


@REAL_AND_COMPLEX
@given(count=st.integers(2, 40), paired=st.booleans(), seed=st.integers(0, 1000))
def test_scaling_a_view_scales_its_points(field, count, paired, seed):
    rng = np.random.default_rng(seed)
    rows, scale = draw(rng, field, count, 3), draw(rng, field, count)
    view = ScaledRows(MemoryRows(rows, block_rows=5), scale, paired=paired)
    factor = rng.standard_normal(view.shape[0])
    points = view.columns(slice(None))
    scaled = view.scaled(factor)
    assert_allclose(scaled.columns(slice(None)), factor[:, None] * points, atol=1e-12)
    assert_allclose(scaled.squared_distances(), factor**2 * (np.abs(points) ** 2).sum(axis=1), atol=1e-12)
    assert_allclose(scaled.scaled(factor).mean(), (factor[:, None] ** 2 * points).mean(axis=0), atol=1e-12)


@REAL_AND_COMPLEX
def test_rows_at_returns_the_rows_asked_for_in_their_order(field, rng):
    rows = draw(rng, field, 60, 4)
    chosen = np.array([59, 0, 17, 3])
    assert_allclose(rows_at(MemoryRows(rows, block_rows=7, threads=3), chosen), rows[chosen])


def test_rows_at_reads_through_wrappers(rng):
    rows, matrix = rng.standard_normal((60, 4)), rng.standard_normal((4, 4))
    assert_allclose(
        rows_at(TransformedRows(MemoryRows(rows, block_rows=7), matrix), np.array([5, 40])), rows[[5, 40]] @ matrix
    )
