"""The distance up to global sign or phase."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from robustphase.population import distance

real = arrays(np.float64, (3,), elements=st.floats(-10, 10, allow_subnormal=False))
imaginary = arrays(np.float64, (3,), elements=st.floats(-10, 10, allow_subnormal=False))
angles = st.floats(0, 2 * np.pi)


@given(x=real, truth=real)
def test_the_real_distance_is_the_smaller_of_the_two_signs(x, truth):
    expected = min(np.linalg.norm(x - truth), np.linalg.norm(x + truth))
    assert_allclose(distance(x, truth), expected, rtol=1e-12, atol=1e-12)
    assert distance(-x, truth) == distance(x, truth) == distance(x, -truth)


@given(x=real, y=imaginary, truth=real, phase=angles)
def test_the_complex_distance_ignores_the_global_phase(x, y, truth, phase):
    z, target = x + 1j * y, truth + 1j * x
    assert_allclose(distance(np.exp(1j * phase) * z, target), distance(z, target), atol=1e-12)
    assert_allclose(distance(np.exp(1j * phase) * target, target), 0.0, atol=1e-12)


@given(x=real, y=imaginary, truth=real, phase=angles)
def test_no_phase_does_better_than_the_complex_distance(x, y, truth, phase):
    z, target = x + 1j * y, truth + 1j * x
    assert distance(z, target) <= np.linalg.norm(z - np.exp(1j * phase) * target) + 1e-12
    # ‖z‖² + ‖t‖² − 2|⟨t, z⟩|, the closed form (less accurate, hence not the implementation)
    squared = np.vdot(z, z).real + np.vdot(target, target).real - 2 * abs(np.vdot(target, z))
    assert_allclose(distance(z, target) ** 2, max(squared, 0.0), atol=1e-10)


@given(x=real, truth=real, other=real)
def test_it_is_symmetric_and_obeys_the_triangle_inequality(x, truth, other):
    assert_allclose(distance(x, truth), distance(truth, x), atol=1e-12)
    assert distance(x, truth) <= distance(x, other) + distance(other, truth) + 1e-12


def test_a_complex_dtype_asks_for_the_phase_even_if_the_values_are_real():
    assert distance([1.0, 0.0], [0.0, 1.0]) == distance([1.0 + 0j, 0.0], [0.0, 1.0])
    assert_allclose(distance([1.0, 1.0], [1j, 1j]), 0.0, atol=1e-15)


def test_the_relative_distance_is_in_units_of_the_truth():
    assert_allclose(distance([3.0, 0.0], [4.0, 0.0], relative=True), 0.25)
    assert_allclose(distance([3j, 0.0], [4.0, 0.0], relative=True), 0.25)


def test_zero_vectors_are_fine():
    zero, one = np.zeros(2), np.array([1.0, 0.0])
    assert distance(zero, zero) == distance(zero, zero, relative=True) == 0.0
    assert distance(one, zero) == distance(zero, one) == 1.0
    assert distance(zero, 1j * one) == 1.0
    assert distance(zero, one, relative=True) == 1.0
    assert distance(one, zero, relative=True) == np.inf
    assert distance(np.zeros(0), np.zeros(0)) == 0.0


def test_huge_and_tiny_entries_neither_overflow_nor_vanish(case):
    for scale in [1e-320, 1e-200, 1e200, 1e300]:
        with case(scale):
            x, truth = scale * np.array([3.0, 0.0]), scale * np.array([0.0, 4.0])
            assert_allclose(distance(x, truth) / scale, 5.0, rtol=1e-3)
            assert_allclose(distance(x, truth, relative=True), 1.25, rtol=1e-3)
            assert_allclose(distance(1j * x, truth, relative=True), 1.25, rtol=1e-3)


def test_undefined_and_infinite_entries_stay_visible():
    assert np.isnan(distance([np.nan, 1.0], [1.0, 1.0]))
    assert distance([np.inf, 1.0], [1.0, 1.0]) == np.inf


def test_single_precision_is_compared_in_double():
    x = np.array([1.0, 2.0], dtype=np.float32)
    assert distance(x, x.astype(np.float64)) == 0.0
    assert distance(x.astype(np.complex64), x) < 1e-12


def test_different_shapes_are_refused():
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        distance(np.ones(2), np.ones(3))
