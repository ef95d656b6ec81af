"""The order of values is that of a stable sort, whatever their signs, sizes and ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from robustphase.ordering import stable_order


def numbers(width):
    return arrays(
        np.dtype(f"f{width // 8}"),
        st.integers(0, 60),
        elements=st.floats(allow_nan=False, allow_infinity=False, width=width),
    )


@given(st.sampled_from([32, 64]).flatmap(numbers))
def test_any_values_are_ordered_as_by_a_stable_sort(values):
    assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_stay_in_the_order_in_which_they_came(rng, dtype):
    values = rng.integers(-20, 20, 3000).astype(dtype) / 7
    values[::11] = -0.0
    assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


def test_a_column_of_a_matrix_is_ordered_too(rng):
    values = rng.standard_normal((500, 3))
    assert_array_equal(stable_order(values[:, 1]), np.argsort(values[:, 1], kind="stable"))
