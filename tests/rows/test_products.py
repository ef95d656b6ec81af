"""What a block is multiplied with."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.constants import varied
from robustphase.rows.products import PRODUCTS, adjoint_block, multiply_block


@pytest.mark.parametrize("in_cache", [0, PRODUCTS.in_cache])
def test_a_product_with_one_vector_is_that_with_many(case, rng, in_cache):
    for dtype in [np.float32, np.float64, np.complex64, np.complex128]:
        for order in ["C", "F"]:
            with case(dtype, order):
                n = PRODUCTS.long_rows
                A, v = (rng.standard_normal((*shape, n, 2)).view(np.complex128)[..., 0] for shape in ((40,), ()))
                A, v = (values if np.dtype(dtype).kind == "c" else values.real for values in (A, v))
                A, v = A.astype(dtype, order=order), v.astype(dtype)
                together = multiply_block(A, np.column_stack((v, v)))
                with varied(PRODUCTS, in_cache=in_cache):
                    alone = multiply_block(A, v)
                assert_allclose(alone, together[:, 0], atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [PRODUCTS.fewest_rows - 1, PRODUCTS.fewest_rows, 50])
def test_products_a_few_rows_at_a_time_are_those_of_all(rng, dtype, rows):
    A, V, C = (rng.standard_normal(shape) for shape in ((101, 7), (7, 3), (101, 3)))
    near = 100 * np.finfo(dtype).eps
    for vectors, sums in ((V, C), (V + 1j * V[::-1], C + 1j * C[::-1])):
        kind = np.result_type(dtype, vectors.dtype.type(0))
        for order in ("C", "F"):
            with varied(PRODUCTS, as_they_are=rows * V.size):
                product = multiply_block(A.astype(dtype), vectors.astype(kind, order=order))
                total = adjoint_block(A.astype(dtype), sums.astype(kind, order=order))
            assert_allclose(product, A @ vectors, atol=near)
            assert_allclose(total, A.T @ sums, rtol=near, atol=near)


@pytest.mark.parametrize("in_cache", [0, PRODUCTS.in_cache])
def test_a_product_with_one_vector_does_not_warn_of_what_rows_hold(in_cache):
    A = np.full((3, PRODUCTS.long_rows), 1e300)
    A[1, 0], A[2, :2] = np.nan, (np.inf, -np.inf)
    with varied(PRODUCTS, in_cache=in_cache):
        products = multiply_block(A, np.full(PRODUCTS.long_rows, 1e10))
    assert not np.isfinite(products).any()
