"""An operator is a source like any other: its passes are those of the matrix it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import robustphase as rp
from robustphase.rows import (
    MemoryRows,
    OperatorRows,
    ScaledRows,
    adjoint,
    as_source,
    paired_loss_gradient,
    project,
    row_peaks,
    rows_at,
    squared_loss_gradient,
    sweep,
)
from robustphase.rows.passes import project_rows
from robustphase.testing import dot_test

M, N = 90, 12


def matrix_of(operator):
    return operator @ np.eye(operator.shape[1])


def gaussian(dtype, m=M, n=N, seed=3):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, n))
    return (rows + 1j * rng.standard_normal((m, n)) if np.dtype(dtype).kind == "c" else rows).astype(dtype)


class Bare:
    """What PyLops operators share with SciPy's, and no more: neither class, nor products with matrices."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def matvec(self, x):
        return self.matrix @ x

    def rmatvec(self, x):
        return self.matrix.conj().T @ x


class Stacked(Bare):
    """An operator that tells its blocks of rows, of unequal sizes."""

    @property
    def row_blocks(self):
        return tuple(Bare(part) for part in np.split(self.matrix, (7, 40)))


def operators():
    for dtype in (np.float64, np.complex128):
        rows = gaussian(dtype)
        yield pytest.param(aslinearoperator(rows), rows, id=f"scipy-{np.dtype(dtype)}")
        yield pytest.param(Bare(rows), rows, id=f"bare-{np.dtype(dtype)}")
        yield pytest.param(Stacked(rows), rows, id=f"stacked-{np.dtype(dtype)}")
        yield pytest.param(2.5 * aslinearoperator(rows[:, ::-1]), 2.5 * rows[:, ::-1], id=f"scaled-{np.dtype(dtype)}")
    for kind in ("octanary", "phases"):
        patterns = rp.simulate.CodedDiffraction((3, 4), 5, kind=kind, seed=2)
        yield pytest.param(patterns, matrix_of(patterns), id=f"diffraction-{kind}")
        yield pytest.param(patterns.row_blocks[1], matrix_of(patterns)[12:24], id=f"one mask-{kind}")


OPERATORS = list(operators())


@pytest.mark.parametrize(("operator", "rows"), OPERATORS)
def test_the_two_products_are_adjoint(operator, rows):
    dot_test(as_source(operator))
    dot_test(as_source(operator).rescaled(0.3))
    as_source(operator).examine()


@pytest.mark.parametrize(("operator", "rows"), OPERATORS)
def test_every_pass_is_that_of_the_matrix(operator, rows, case):
    for columns in ((), (1,), (3,)):
        with case(columns):
            assert_same_passes(operator, rows, columns)


def assert_same_passes(operator, rows, columns):
    source, dense = as_source(operator), MemoryRows(rows)
    m, n = rows.shape
    rng = np.random.default_rng(0)
    is_complex = rows.dtype.kind == "c"
    vectors = rng.standard_normal((n, *columns)) + (1j * rng.standard_normal((n, *columns)) if is_complex else 0)
    coefficients = rng.standard_normal((m, *columns)) + (1j * rng.standard_normal((m, *columns)) if is_complex else 0)
    y, weights = rng.random(m), rng.random(m)

    def same(run):
        here, there = run(source), run(dense)
        for left, right in zip(here, there, strict=True) if isinstance(here, tuple) else [(here, there)]:
            assert left.shape == right.shape
            assert_allclose(left, right, rtol=1e-10, atol=1e-10 * np.abs(right).max())

    same(lambda s: project(s, vectors))
    same(lambda s: adjoint(s, coefficients))
    same(lambda s: tuple(sweep(s, vectors, lambda p, c: p * c, (coefficients,))))
    same(lambda s: tuple(squared_loss_gradient(s, y, vectors, weights)))
    if not columns:
        same(lambda s: tuple(paired_loss_gradient(s, y, vectors)))
        same(lambda s: ScaledRows(s, coefficients).mean(weights))
    else:
        same(lambda s: project_rows(s, vectors, np.array([m - 1, 0, 5])))
        mean = ScaledRows(MemoryRows(rows), y).mean(weights)
        same(lambda s: ScaledRows(s, y).covariance_times(weights, mean, vectors))
    assert source.passes == dense.passes


def test_rescaled_rows_are_a_multiple_and_their_passes_count_for_both():
    rows = gaussian(np.complex128)
    source = as_source(aslinearoperator(rows))
    project(source, rows[0])
    third = source.rescaled(0.5).rescaled(2 / 3)
    v, c = rows[1], gaussian(np.complex128, M, 2)
    assert_allclose(project(third, v), rows @ v / 3, rtol=1e-12)
    assert_allclose(adjoint(third, c), rows.conj().T @ c / 3, rtol=1e-12, atol=1e-12)
    assert (source.passes, third.passes) == (3, 3)


def test_threads_over_blocks_change_nothing():
    rows = gaussian(np.complex128)
    rule, vectors = (lambda s: s * abs(s)), gaussian(np.complex128, N, 4)
    one, three = (sweep(OperatorRows(Stacked(rows), threads=t), vectors, rule) for t in (1, 3))
    assert_allclose(three.total, one.total, rtol=1e-12)
    assert_allclose(three.projections, one.projections, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_size_of_rows_is_estimated(dtype):
    rows = 0.02 * gaussian(dtype, 400, 150)
    exact = np.mean(np.abs(rows) ** 2)
    # Four vectors of signs: the relative standard deviation is about sqrt(2/(4·400)) = 0.035.
    assert as_source(aslinearoperator(rows)).mean_square() == pytest.approx(exact, rel=0.15)


def test_masks_of_diffraction_have_mean_square_one_and_the_fourth_moment_of_normal_variables():
    masks = rp.simulate.CodedDiffraction((64, 64), 10, seed=1).masks
    assert np.mean(np.abs(masks) ** 2) == pytest.approx(1, abs=0.03)
    assert np.mean(np.abs(masks) ** 4) == pytest.approx(2, abs=0.1)
    assert abs(masks.mean()) < 0.02


def test_diffraction_is_the_fourier_transform_of_the_masked_picture():
    patterns = rp.simulate.CodedDiffraction((4, 6), 3, seed=5)
    picture = np.random.default_rng(0).standard_normal((4, 6))
    expected = [np.fft.fft2(mask * picture).ravel() for mask in patterns.masks]
    assert_allclose(patterns @ picture.ravel(), np.concatenate(expected), rtol=1e-12)
    single = patterns.matvec(picture.ravel().astype(np.complex64))
    assert single.dtype == np.complex64
    assert_allclose(single, np.concatenate(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((0, 4), 3), "at least one pixel"),
        (((4, 4), 0), "at least one"),
        (((4, 4), np.ones((2, 3, 4))), r"shape \(L, 4, 4\)"),
    ],
)
def test_diffraction_refuses_what_it_cannot_be(arguments, words):
    with pytest.raises(ValueError, match=words):
        rp.simulate.CodedDiffraction(*arguments)
    with pytest.raises(ValueError, match="kind must be one of"):
        rp.simulate.CodedDiffraction((4, 4), kind="ternary")


def test_an_operator_without_adjoint_is_refused():
    rows = gaussian(np.float64)
    forward_only = LinearOperator(rows.shape, matvec=lambda x: rows @ x, dtype=float)
    with pytest.raises(TypeError, match="without an adjoint"):
        as_source(forward_only).examine()
    half = Bare(rows)
    half.rmatvec = None
    with pytest.raises(TypeError, match="rmatvec"):
        as_source(half)


def test_a_wrong_adjoint_is_found():
    rows = gaussian(np.complex128)
    forgot = LinearOperator(rows.shape, matvec=lambda x: rows @ x, rmatvec=lambda x: rows.T @ x, dtype=complex)
    with pytest.raises(ValueError, match="not adjoint"):
        as_source(forgot).examine()


def test_products_that_cannot_be_right_are_refused():
    rows = gaussian(np.float64)
    rows[4, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        as_source(aslinearoperator(rows)).examine()
    lying = Bare(gaussian(np.complex128))
    lying.dtype = np.dtype(np.float64)
    with pytest.raises(ValueError, match="complex dtype"):
        as_source(lying).examine()
    short = Bare(gaussian(np.float64))
    short.matvec = lambda x: (short.matrix @ x)[1:]
    with pytest.raises(ValueError, match="gives 89 numbers, expected 90"):
        as_source(short).examine()


def test_the_dtype_is_asked_for_where_it_is_not_declared():
    shy = Bare(gaussian(np.complex128))
    shy.dtype = None
    assert as_source(shy).dtype == np.complex128


@pytest.mark.parametrize("look", [row_peaks, lambda s: rows_at(s, np.array([1])), lambda s: ScaledRows(s).columns([0])])
def test_what_looks_at_rows_says_that_there_are_none(look):
    with pytest.raises(TypeError, match="single rows"):
        look(as_source(aslinearoperator(gaussian(np.complex128))))
