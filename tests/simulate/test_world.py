"""Worlds: the model holds on clean rows, units are as stated, and only the seed decides."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.simulate import ADVERSARIES, NOISES, make_world, student


@pytest.mark.parametrize("field", ["real", "complex"])
def test_clean_rows_follow_the_model_exactly_when_there_is_no_noise(field):
    world = make_world(8, 300, noise="none", noise_mean=2.0, norm=3.0, field=field, seed=0)
    model = np.abs(world.A @ world.truth) ** 2 + 2.0 * 9.0
    assert_allclose(world.y[world.clean], model[world.clean])
    assert (world.noise_std, world.noise_mean) == (0.0, 18.0)


def test_the_noise_is_relative_to_the_squared_norm():
    world = make_world(3, 20_000, attack="none", noise="gaussian", noise_std=0.5, noise_mean=1.0, norm=2.0, seed=0)
    noise = world.y - (world.A @ world.truth) ** 2
    assert (world.noise_std, world.noise_mean) == (2.0, 4.0)
    # Five standard errors of the mean and of the deviation: confidence 1 − 2e-6.
    assert abs(noise.mean() - 4.0) < 5 * 2.0 / np.sqrt(20_000)
    assert abs(noise.std() - 2.0) < 5 * 2.0 / np.sqrt(2 * 20_000)


def test_a_world_records_its_settings_and_iterates_as_covariates_and_responses():
    world = make_world(16, 100, contamination=0.2, attack="leverage", noise=student(5), signal="image", seed=4)
    A, y = world
    assert A is world.A
    assert y is world.y
    assert world.touched.sum() == 20
    assert_array_equal(world.clean, ~world.touched)
    found = (world.contamination, world.attack, world.noise, world.norm, world.signal, world.field, world.seed)
    assert found == (0.2, "leverage", "student", 1.0, "image", "real", 4)
    assert make_world(2, 5, seed=np.random.default_rng(0)).seed is None


def test_an_adversary_object_works_like_its_name():
    by_name = make_world(5, 50, attack="erase", seed=1)
    by_object = make_world(5, 50, attack=ADVERSARIES["erase"], seed=1)
    assert by_object.attack == "erase"
    assert_array_equal(by_name.y, by_object.y)


def test_every_signal_comes_in_every_dtype(case):
    for signal in ["random", "sparse", "image"]:
        for field, dtype, responses in [("real", "float32", "float32"), ("complex", "complex64", "float32")]:
            with case(signal, field, dtype, responses):
                world = make_world(25, 60, signal=signal, field=field, dtype=dtype, norm=2.0, seed=0)
                assert (world.A.dtype, world.truth.dtype, world.y.dtype) == (dtype, dtype, responses)
                assert_allclose(np.linalg.norm(world.truth), 2.0, rtol=1e-6)


def test_worlds_that_differ_only_in_the_attack_share_their_clean_sample(case):
    for noise in NOISES:
        quiet = make_world(6, 80, attack="none", noise=noise, seed=2)
        loud = make_world(6, 80, attack="huge", noise=noise, seed=2)
        with case(noise):
            assert_array_equal(quiet.truth, loud.truth)
            assert_array_equal(quiet.A[loud.clean], loud.A[loud.clean])
            assert_array_equal(quiet.y[loud.clean], loud.y[loud.clean])


def test_only_the_seed_decides():
    first, again, other = (make_world(6, 80, seed=seed) for seed in (1, 1, 2))
    for part in ("A", "y", "truth", "touched"):
        assert_array_equal(getattr(first, part), getattr(again, part))
        assert not np.array_equal(getattr(first, part), getattr(other, part))


def test_nothing_global_is_read_or_changed():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = make_world(6, 80, seed=1)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert_array_equal(make_world(6, 80, seed=1).A, first.A)


def test_a_wrong_argument_is_named_with_its_value_and_a_remedy(case):
    for settings, message in [
        ({"n": 0}, "n must be a positive integer, got 0"),
        ({"m": -5}, "m must be a positive integer, got -5"),
        ({"contamination": 10}, r"contamination must be .* got 10. Did you mean 0.1 \(10 percent\)?"),
        ({"attack": "leverge"}, "Did you mean 'leverage'?"),
        ({"noise": "gausian"}, "Did you mean 'gaussian'?"),
        ({"noise_std": -0.5}, "noise_std must be a finite number at least 0, got -0.5"),
        ({"noise_mean": np.nan}, "noise_mean must be a finite number, got nan"),
        ({"norm": -1.0}, "norm must be a finite number larger than 0, got -1.0"),
        ({"signal": "picture"}, "signal must be one of 'image', 'random', 'sparse'; got 'picture'"),
        ({"signal": "image", "n": 50}, 'n must be a square when signal="image", got 50. Pass n=49 or n=64'),
        ({"field": "quaternion"}, "field must be one of 'complex', 'real'; got 'quaternion'"),
        ({"dtype": "float16"}, "dtype must be 'float64' or 'float32' when field='real', got 'float16'"),
        ({"seed": "x"}, "seed must be a non-negative integer, a numpy Generator or None, got 'x'"),
    ]:
        with case(message), pytest.raises(ValueError, match=message):
            make_world(**({"n": 4, "m": 10} | settings))
