"""Each pass equals its textbook formula, whatever the type, block size and number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from robustphase.rows import (
    MaskedRows,
    MemoryRows,
    Parts,
    RealRows,
    RescaledRows,
    ScaledRows,
    ShiftedRows,
    adjoint,
    paired_loss_gradient,
    project,
    row_peaks,
    squared_loss_gradient,
    sweep,
)
from robustphase.rows.passes import project_rows
from robustphase.rows.source import InBulk
from robustphase.testing import dot_test

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def rows_of(rng, m, n, dtype):
    rows = rng.standard_normal((m, n))
    if np.dtype(dtype).kind == "c":
        rows = (rows + 1j * rng.standard_normal((m, n))) / np.sqrt(2)
    return rows.astype(dtype)


def tolerance(dtype, m=200):
    return 20 * np.sqrt(m) * np.finfo(dtype).eps


@pytest.fixture(params=DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def rows(request, rng):
    return rows_of(rng, 203, 7, request.param)


@pytest.fixture
def source(rows):
    return MemoryRows(rows, block_rows=17, threads=2)


def vector_like(rng, rows, *shape):
    vector = rng.standard_normal(shape)
    return vector + 1j * rng.standard_normal(shape) if np.iscomplexobj(rows) else vector


def test_products_match_numpy(rows, source, rng):
    vectors, coefficients = vector_like(rng, rows, 7, 3), vector_like(rng, rows, 203, 2)
    wide = rows.astype(np.result_type(rows, np.float64))
    atol = tolerance(rows.dtype)
    assert_allclose(project(source, vectors), wide @ vectors, atol=atol * 10)
    assert_allclose(project(source, vectors[:, 0]), wide @ vectors[:, 0], atol=atol * 10)
    assert_allclose(adjoint(source, coefficients), wide.conj().T @ coefficients, atol=atol * 100)
    assert_allclose(adjoint(source, coefficients[:, 0]), wide.conj().T @ coefficients[:, 0], atol=atol * 100)


def test_products_are_adjoint(source):
    dot_test(source)


def test_dot_test_notices_a_missing_conjugate(rng):
    class Careless(MemoryRows):
        def read(self, start, stop):
            # Flips on every read, so the two products see different matrices.
            self.flip = not getattr(self, "flip", False)
            block = super().read(start, stop)
            return block.conj() if self.flip else block

    with pytest.raises(AssertionError, match="differ"):
        dot_test(Careless(rows_of(rng, 50, 4, np.complex128)))


def test_sums_and_results_are_double_precision(source, rows, rng):
    out = sweep(source, vector_like(rng, rows, 7), lambda s: s)
    assert out.total.dtype == np.result_type(rows, np.float64)
    assert out.projections.dtype == np.result_type(rows, np.float64)


def test_squared_loss_gradient_matches_its_formula(rows, source, rng):
    signal, y, weights = vector_like(rng, rows, 7), rng.random(203), rng.random(203)
    wide = rows.astype(np.result_type(rows, np.float64))
    s = wide @ signal
    expected = wide.conj().T @ (weights * (np.abs(s) ** 2 - y) * s) / weights.sum()
    out = squared_loss_gradient(source, y, signal, weights)
    atol = tolerance(rows.dtype) * np.abs(expected).max()
    assert_allclose(out.total, expected, atol=10 * atol)
    assert_allclose(out.projections, s, atol=10 * atol)


def test_several_signals_share_one_gradient_pass(rows, source, rng):
    signals, y = vector_like(rng, rows, 7, 4), rng.random(203)
    together = squared_loss_gradient(source, y, signals).total
    before = source.passes
    for k in range(4):
        alone = squared_loss_gradient(source, y, signals[:, k]).total
        assert_allclose(together[:, k], alone, atol=100 * tolerance(rows.dtype))
    assert source.passes == before + 4


def test_paired_loss_gradient_matches_the_paper_with_explicit_b_and_c(rng):
    a, y, x = rng.standard_normal((41, 5)), rng.standard_normal(41), rng.standard_normal(5)
    top, bottom = a[:20], a[20:40]
    b, c, upsilon = (top + bottom) / np.sqrt(2), (top - bottom) / np.sqrt(2), (y[:20] - y[20:40]) / 2
    weights = rng.random(20)
    residual = (b @ x) * (c @ x) - upsilon
    per_pair = residual[:, None] * ((c @ x)[:, None] * b + (b @ x)[:, None] * c)
    expected = weights @ per_pair / weights.sum()
    out = paired_loss_gradient(MemoryRows(a, block_rows=3), y, x, weights)
    assert_allclose(out.total, expected, rtol=1e-12)
    assert_allclose(out.projections, np.stack((top @ x, bottom @ x), axis=1), rtol=1e-12)


@pytest.mark.parametrize("paired", [False, True], ids=["scaled", "paired"])
def test_views_match_the_points_they_stand_for(rows, source, rng, paired):
    scale = vector_like(rng, rows, 203)
    points = scale[:, None] * rows.conj().astype(np.result_type(rows, np.float64))
    if paired:
        points = points[:101] - points[101:202]
    view = ScaledRows(source, scale, paired=paired)
    weights, centre = rng.random(len(points)), vector_like(rng, rows, 7)
    vectors = vector_like(rng, rows, 7, 2)
    atol = 200 * tolerance(rows.dtype)

    assert view.shape == points.shape
    assert_allclose(view.mean(weights), weights @ points / weights.sum(), atol=atol)
    assert_allclose(view.mean(), points.mean(axis=0), atol=atol)
    assert_allclose(view.inner(vectors), points.conj() @ vectors, atol=atol)
    deviations = points - centre
    product, projections = view.covariance_times(weights, centre, vectors)
    expected = (weights[:, None] * deviations).T @ (deviations.conj() @ vectors) / weights.sum()
    assert_allclose(product, expected, atol=atol)
    assert_allclose(projections, deviations.conj() @ vectors, atol=atol)
    assert_allclose(view.squared_distances(centre), (np.abs(deviations) ** 2).sum(axis=1), atol=atol)
    assert_allclose(view.squared_distances(), (np.abs(points) ** 2).sum(axis=1), atol=atol)
    assert_allclose(view.columns(slice(1, 3)), points[:, 1:3], atol=atol)


@given(
    m=st.integers(1, 400),
    n=st.integers(1, 12),
    block=st.integers(1, 450),
    threads=st.integers(1, 5),
    kind=st.sampled_from([np.float64, np.complex128]),
    seed=st.integers(0, 2**16),
)
def test_block_size_and_threads_change_nothing(m, n, block, threads, kind, seed):
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, m, n, kind)
    y, signal, weights = rng.random(m), vector_like(rng, rows, n), rng.random(m) + 0.1
    one, many = MemoryRows(rows, block_rows=m, threads=1), MemoryRows(rows, block_rows=block, threads=threads)

    def agree(left, right, terms):
        # Sums may cancel: 1e-12 is relative to the sum of the absolute terms.
        assert_allclose(left, right, rtol=0, atol=1e-12 * max(terms, 1e-300))

    terms = float(np.abs(rows).max() * (np.abs(rows @ signal) ** 3 + y * np.abs(rows @ signal)).max()) * n
    for gradient in (squared_loss_gradient(many, y, signal, weights), squared_loss_gradient(one, y, signal, weights)):
        agree(gradient.total, squared_loss_gradient(one, y, signal, weights).total, terms)
    agree(project(one, signal), project(many, signal), float(np.abs(rows).max() * np.abs(signal).sum()))
    if m >= 2:
        agree(paired_loss_gradient(one, y, signal).total, paired_loss_gradient(many, y, signal).total, 4 * terms)
    scale = y + 0.5
    first, second = ScaledRows(one, scale), ScaledRows(many, scale)
    size = float((np.abs(rows) ** 2).sum(axis=1).max() * (scale**2).max()) * n + 1
    centre = first.mean(weights)
    vectors = vector_like(rng, rows, n, 2)
    agree(centre, second.mean(weights), size)
    big = size * float(np.abs(vectors).sum())
    agree(
        first.covariance_times(weights, centre, vectors)[0], second.covariance_times(weights, centre, vectors)[0], big
    )
    agree(first.squared_distances(centre), second.squared_distances(centre), size)


def test_single_precision_agrees_with_double_to_its_own_precision(rng):
    rows = rng.standard_normal((5000, 30))
    y, signal = rng.random(5000), rng.standard_normal(30)
    wide = squared_loss_gradient(MemoryRows(rows), y, signal).total
    narrow = squared_loss_gradient(MemoryRows(rows.astype(np.float32)), y, signal).total
    assert np.linalg.norm(narrow - wide) < 1e-6 * np.linalg.norm(wide) * 10


def test_masked_rows_read_as_zero_even_when_they_are_infinite(rng):
    rows = rng.standard_normal((60, 4))
    rows[[3, 40]] = [[np.inf] * 4, [np.nan] * 4]
    hidden = np.zeros(60, bool)
    hidden[[3, 40]] = True
    source = MaskedRows(MemoryRows(rows, block_rows=7), hidden)
    quiet = np.where(hidden[:, None], 0, rows)
    signal, y = rng.standard_normal(4), rng.random(60)
    assert_allclose(project(source, signal), quiet @ signal)
    assert_allclose(
        paired_loss_gradient(source, y, signal).total, paired_loss_gradient(MemoryRows(quiet), y, signal).total
    )


def test_shifted_rows_keep_the_digits_of_data_far_from_zero(rng):
    rows = rng.standard_normal((300, 5))
    far = rows + 1e6
    origin = np.full(5, 1e6)
    source = ShiftedRows(MemoryRows(far, block_rows=11, threads=3), origin)
    assert_allclose(ScaledRows(source).squared_distances(), ((far - origin) ** 2).sum(axis=1), rtol=1e-13)
    nested = ShiftedRows(MaskedRows(MemoryRows(far, block_rows=11), np.arange(300) == 5), origin)
    assert_allclose(project(nested, np.eye(5))[6], far[6] - origin)


def test_row_peaks_finds_huge_and_nonfinite_rows_without_warning(rng):
    rows = rng.standard_normal((50, 3))
    rows[4, 1], rows[9, 2], rows[20, 0] = 1e308, np.nan, -np.inf
    peaks = row_peaks(MemoryRows(rows, block_rows=8))
    assert peaks[4] == 1e308
    assert np.isnan(peaks[9])
    assert np.isinf(peaks[20])
    good = np.setdiff1d(np.arange(50), [4, 9, 20])
    assert_allclose(peaks[good], np.abs(rows[good]).max(axis=1))
    complex_peaks = row_peaks(MemoryRows(rows[good] * 1j))
    assert_allclose(complex_peaks, peaks[good])


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda a: a[:, ::-1], lambda a: a.astype(">f8")])
def test_any_memory_layout_gives_the_same_answer(convert, rng):
    rows = rng.standard_normal((90, 6))
    assert_allclose(project(MemoryRows(convert(rows)), np.arange(6.0)), convert(rows) @ np.arange(6.0))


def test_integer_and_boolean_rows_are_converted_block_by_block(rng):
    rows = rng.integers(-1, 2, (70, 5))
    assert_allclose(project(MemoryRows(rows), np.ones(5)), rows.sum(axis=1))
    assert_allclose(project(MemoryRows(rows > 0), np.ones(5)), (rows > 0).sum(axis=1))


def test_every_reduction_counts_as_one_pass(rng):
    source = MemoryRows(rng.standard_normal((30, 3)))
    project(source, np.ones(3))
    squared_loss_gradient(source, np.ones(30), np.ones(3))
    assert source.passes == 2


def test_an_error_in_a_kernel_reaches_the_caller_from_any_thread(rng):
    source = MemoryRows(rng.standard_normal((100, 3)), block_rows=10, threads=4)

    def fail_at_the_end(block, index):
        if index[-1] == 99:
            raise ZeroDivisionError("in the last block")
        return Parts()

    with pytest.raises(ZeroDivisionError, match="last block"):
        source.reduce(fail_at_the_end, (np.arange(100),))


def test_a_per_row_array_of_the_wrong_length_is_refused(rng):
    with pytest.raises(ValueError, match=r"per_row\[0\] has 9 entries, the source has 10"):
        MemoryRows(rng.standard_normal((10, 2))).reduce(lambda block, w: Parts(), (np.ones(9),))


@pytest.mark.parametrize("block_rows", [7, None])
def test_projections_of_a_few_rows_are_those_of_the_rows(rng, block_rows):
    A, V = rng.standard_normal((60, 5)), rng.standard_normal((5, 3))
    chosen = rng.permutation(60)[:17]
    source = MemoryRows(A, block_rows=block_rows)
    assert_allclose(project_rows(source, V, chosen), A[chosen] @ V, rtol=1e-12)
    assert source.passes == 1


@pytest.mark.parametrize(("dtype", "blocks"), [(np.float64, 2), (np.int32, 3)])
def test_a_kernel_in_bulk_sees_large_blocks_where_they_cost_no_memory(rng, dtype, blocks):
    rows = rng.integers(-9, 9, (2_000, 600)).astype(dtype)
    sizes = []

    def kernel(block, values):
        sizes.append(len(block))
        return Parts(sums=(block.T @ values,))

    values = rng.standard_normal(2_000)
    total = MemoryRows(rows, threads=1).reduce(InBulk(kernel), (values,)).sums[0]
    assert_allclose(total, rows.T @ values, rtol=1e-9)
    assert len(sizes) == blocks
    sizes.clear()
    MemoryRows(rows, threads=1, block_rows=500).reduce(InBulk(kernel), (values,))
    assert sizes == [500] * 4


@pytest.mark.parametrize("block_rows", [None, 7])
def test_single_rows_are_taken_as_a_pass_would_see_them(rng, block_rows):
    A, hidden = rng.standard_normal((100, 3)), np.arange(100) % 10 == 0
    chosen = np.sort(rng.choice(100, 20, replace=False))
    source = MemoryRows(A, block_rows=block_rows)
    np.testing.assert_array_equal(source.take(chosen), A[chosen])
    assert source.passes == 1
    seen = RescaledRows(MaskedRows(source, hidden), 2.0)
    np.testing.assert_array_equal(seen.take(chosen), np.where(hidden[:, None], 0.0, A / 2)[chosen])
    complex_rows = RealRows(MemoryRows(A + 0j, block_rows=block_rows))
    np.testing.assert_array_equal(complex_rows.take(chosen), A[chosen])
