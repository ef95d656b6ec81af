"""The oracle: fresh independent batches, the same sequence from the same seed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.simulate import SampleOracle, random_signal


def oracle(**settings):
    return SampleOracle(random_signal(6, norm=2.0, seed=0), **({"contamination": 0.2, "seed": 1} | settings))


def test_a_batch_is_contaminated_and_iterates_as_covariates_and_responses():
    batch = oracle().draw(50)
    A, y = batch
    assert A.shape == (50, 6)
    assert y.shape == (50,)
    assert batch.touched.sum() == 10


def test_every_draw_is_fresh():
    source = oracle()
    first, second = source.draw(40), source.draw(40)
    assert not np.isin(second.A, first.A).any()
    assert not np.isin(second.y, first.y).any()
    assert not np.array_equal(first.touched, second.touched)


def test_the_same_seed_draws_the_same_sequence():
    for first, again in zip(oracle().batches(3, 30), oracle().batches(3, 30), strict=True):
        assert_array_equal(first.A, again.A)
        assert_array_equal(first.y, again.y)
    assert not np.array_equal(oracle().draw(30).A, oracle(seed=2).draw(30).A)


def test_batches_are_the_draws_one_after_the_other():
    one_by_one = oracle()
    expected = [one_by_one.draw(30).y for _ in range(4)]
    assert_array_equal([batch.y for batch in oracle().batches(4, 30)], expected)


def test_batches_are_drawn_only_when_asked_for():
    source = oracle()
    next(iter(source.batches(1000, 20)))
    untouched = oracle()
    untouched.draw(20)
    assert_array_equal(source.draw(20).y, untouched.draw(20).y)


def test_the_signal_decides_field_and_precision(case):
    for dtype in ["float32", "float64", "complex64", "complex128"]:
        with case(dtype):
            truth = random_signal(6, field="complex" if "complex" in dtype else "real", seed=0).astype(dtype)
            batch = SampleOracle(truth, seed=0).draw(20)
            assert batch.A.dtype == dtype
            assert batch.y.dtype == truth.real.dtype


def test_moments_are_given_relative_to_the_signal_and_kept_in_units_of_the_responses():
    source = oracle(noise="none", noise_std=0.5, noise_mean=1.5)
    assert_allclose((source.noise_std, source.noise_mean), (0.0, 6.0))
    batch = source.draw(30)
    assert_allclose(batch.y[batch.clean], ((batch.A @ source.truth) ** 2 + 6.0)[batch.clean])
    assert_allclose(oracle(noise_std=0.5).noise_std, 2.0)


def test_the_caller_may_change_its_signal_afterwards():
    truth = random_signal(4, seed=0)
    source = SampleOracle(truth, seed=0)
    truth[:] = 0.0
    assert source.truth.any()


def test_integers_make_a_signal_too():
    assert SampleOracle([1, 0, 2], attack="none", seed=0).draw(5).A.shape == (5, 3)


def test_a_wrong_argument_is_named_with_its_value_and_a_remedy(case):
    for call, message in [
        (lambda: SampleOracle(np.zeros(3)), r"truth must be a finite non-zero vector, got an array of shape \(3,\)"),
        (
            lambda: SampleOracle(np.ones((2, 2))),
            r"truth must be a finite non-zero vector, got an array of shape \(2, 2\)",
        ),
        (lambda: oracle(contamination=0.7), "contamination must be a number in .* got 0.7"),
        (lambda: oracle(attack="cloudy"), "Did you mean 'cloud'?"),
        (lambda: oracle(noise="gauss"), "noise must be one of"),
        (lambda: oracle().draw(0), "m must be a positive integer, got 0"),
        (lambda: oracle().batches(0, 5), "count must be a positive integer, got 0"),
        (lambda: oracle().batches(2, 0), "m must be a positive integer, got 0"),
    ]:
        with case(message), pytest.raises(ValueError, match=message):
            call()
