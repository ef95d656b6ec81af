"""Signals and sensing vectors: right norm, right law, right dtype, and only the seed decides."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.simulate import gaussian_design, image_signal, random_signal, sparse_signal


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_random_signal_has_the_norm_and_field_asked_for(field):
    signal = random_signal(7, norm=3.0, field=field, seed=0)
    assert signal.shape == (7,)
    assert_allclose(np.linalg.norm(signal), 3.0)
    assert np.iscomplexobj(signal) == (field == "complex")


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_sparse_signal_has_exactly_its_support(field):
    signal = sparse_signal(50, 5, norm=2.0, field=field, seed=0)
    assert np.count_nonzero(signal) == 5
    assert_allclose(np.linalg.norm(signal), 2.0)


def test_the_picture_has_light_grey_and_black_and_the_norm_asked_for():
    picture = image_signal(10, norm=2.0)
    assert picture.shape == (100,)
    assert_allclose(np.linalg.norm(picture), 2.0)
    assert picture.min() == 0.0
    assert len(np.unique(picture)) > 10
    eyes = picture.reshape(10, 10)[3, [2, 3, 6, 7]]
    assert_array_equal(eyes, 0.0)


def test_the_picture_can_be_drawn_at_any_size(case):
    for side in [1, 2, 3, 17]:
        with case(side):
            assert_allclose(np.linalg.norm(image_signal(side)), 1.0)


def test_a_design_has_the_dtype_asked_for(case):
    for field, dtype, expected in [
        ("real", None, "float64"),
        ("real", np.float32, "float32"),
        ("complex", None, "complex128"),
        ("complex", "complex64", "complex64"),
    ]:
        with case(field, dtype, expected):
            A = gaussian_design(4, 3, field=field, dtype=dtype, seed=0)
            assert A.shape == (4, 3)
            assert A.dtype == expected


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_design_has_unit_second_moment_in_every_direction(field):
    m, n = 40_000, 5
    A = gaussian_design(m, n, field=field, seed=0)
    # Each entry of AᴴA/m has a standard deviation of at most √(2/m); 6 of them over 25 entries: confidence 1 − 1e-7.
    assert_allclose(A.conj().T @ A / m, np.eye(n), atol=6 * np.sqrt(2 / m))
    if field == "complex":
        assert_allclose(A.T @ A / m, np.zeros((n, n)), atol=6 * np.sqrt(2 / m))


def test_only_the_seed_decides(case):
    for draw in [
        lambda seed: random_signal(9, seed=seed),
        lambda seed: sparse_signal(9, 3, seed=seed),
        lambda seed: gaussian_design(5, 4, field="complex", seed=seed),
    ]:
        with case(draw):
            assert_array_equal(draw(3), draw(3))
            assert not np.array_equal(draw(3), draw(4))
            assert_array_equal(draw(np.random.default_rng(3)), draw(3))
            stream = np.random.default_rng(3)
            assert not np.array_equal(draw(stream), draw(stream))


def test_a_wrong_argument_is_named_with_its_value_and_a_remedy(case):
    for call, message in [
        (lambda: random_signal(0), "n must be a positive integer, got 0"),
        (lambda: random_signal(2.5), "n must be a positive integer, got 2.5"),
        (lambda: random_signal(3, norm=0.0), "norm must be a finite number larger than 0, got 0.0"),
        (lambda: random_signal(3, field="comples"), "field must be one of 'complex', 'real'.*Did you mean 'complex'"),
        (lambda: random_signal(3, seed=-1), "seed must be a non-negative integer.*got -1"),
        (lambda: sparse_signal(3, 4), "support must be at most n=3, got 4. Pass support=3"),
        (lambda: image_signal(-1), "side must be a positive integer, got -1"),
        (lambda: gaussian_design(True, 2), "m must be a positive integer, got True"),
        (lambda: gaussian_design(2, 2, dtype="complex64"), "dtype must be 'float64' or 'float32' when field='real'"),
        (lambda: gaussian_design(2, 2, dtype="flat32"), "dtype must be 'float64' or 'float32'.*got 'flat32'"),
    ]:
        with case(message), pytest.raises(ValueError, match=message):
            call()
