"""One signature for all, and errors that say what to do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase import baselines, distance
from robustphase.baselines import METHODS, BaselineResult
from robustphase.rows import MemoryRows


@pytest.fixture
def samples(noiseless):
    return noiseless(6, 12, 0)


def test_the_catalogue_holds_every_public_function_under_its_name():
    functions = {name for name in baselines.__all__ if inspect.isfunction(getattr(baselines, name))}
    assert functions == set(METHODS)
    assert all(METHODS[name] is getattr(baselines, name) for name in METHODS)


def test_all_have_the_same_signature(case):
    for name, method in METHODS.items():
        parameters = inspect.signature(method).parameters
        with case(name):
            *named, options = parameters.values()
            assert list(parameters)[:4] == ["A", "y", "max_iter", "tol"]
            assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in named[2:])
            assert all(parameter.default is not parameter.empty for parameter in named[2:])
            assert (options.kind, options.annotation) == (options.VAR_KEYWORD, "Unpack[BaselineOptions]")


def test_the_result_says_where_it_started_and_how_it_ended(samples, case):
    for name, method in METHODS.items():
        with case(name):
            found = method(samples.A, samples.y)
            assert isinstance(found, BaselineResult)
            assert found.signal.shape == found.initial_signal.shape == (6,)
            assert type(found.n_iter) is int
            assert found.converged is True
            given = method(samples.A, samples.y, start=samples.truth)
            assert_allclose(given.initial_signal, samples.truth)


def test_no_iterations_leave_the_start(samples, case):
    for name, method in METHODS.items():
        with case(name):
            found = method(samples.A, samples.y, start=samples.truth, max_iter=0)
            assert_allclose(found.signal, samples.truth)
            assert (found.n_iter, found.converged) == (0, False)


def test_the_limit_on_iterations_is_kept(noisy, case):
    samples = noisy(10, 200, 0)
    for name, method in METHODS.items():
        with case(name):
            assert method(samples.A, samples.y, max_iter=3, tol=0.0).n_iter <= 3


def test_bad_arguments_are_explained_by_every_method(samples, case):
    for keywords, message in [
        ({"start": np.ones(5)}, r"start must be None or an array of 6 numbers.*shape \(5,\)"),
        ({"start": np.zeros(6)}, r"start must be finite and not zero"),
        ({"start": np.full(6, np.nan)}, r"start must be finite"),
        ({"start": np.full(6, 1j)}, r"start is complex but A is real"),
        ({"start": ["a"] * 6}, r"start must be None or an array of 6 numbers"),
        ({"max_iter": -1}, r"max_iter must be a whole number.*-1"),
        ({"max_iter": 2.5}, r"max_iter must be a whole number.*2\.5"),
        ({"max_iter": True}, r"max_iter must be a whole number"),
        ({"tol": -1e-3}, r"tol must be a number that is zero or positive"),
        ({"tol": np.nan}, r"tol must be a number"),
        ({"random_state": "seed"}, r"random_state must be None, a whole number"),
        ({"random_state": -1}, r"random_state must be None, a whole number"),
        ({"nonfinite": "keep"}, r"nonfinite must be one of"),
    ]:
        with case(keywords, message):
            for name, method in METHODS.items():
                with case(name), pytest.raises(ValueError, match=message):
                    method(samples.A, samples.y, **keywords)


def test_bad_data_is_explained_by_every_method(samples, case):
    for name, method in METHODS.items():
        with case(name):
            with pytest.raises(ValueError, match="fewer samples than unknowns"):
                method(samples.A[:3], samples.y[:3])
            with pytest.raises(ValueError, match="A has 72 rows but y has 71 responses"):
                method(samples.A, samples.y[:-1])
            with pytest.raises(ValueError, match="Complex data not supported as responses"):
                method(samples.A, samples.y + 1j)
            with pytest.raises(TypeError, match="A must hold numbers"):
                method(samples.A.astype(str), samples.y)


def test_unusable_samples_are_refused_or_left_out(samples, case):
    kept = np.setdiff1d(np.arange(samples.y.size), [3, 7])
    for name, method in METHODS.items():
        without = method(samples.A[kept], samples.y[kept]).signal
        for value in (np.nan, np.inf, 1e200):
            A, y = samples.A.copy(), samples.y.copy()
            A[7, 2], y[3] = value, value
            with case(name, value):
                if np.isfinite(value):
                    assert_array_equal(method(A, y).signal, without)
                else:
                    with pytest.raises(ValueError, match=r"1 rows of A.*first: row 7"):
                        method(A, y)
                assert_array_equal(method(A, y, nonfinite="drop").signal, without)


@pytest.mark.parametrize("name", ["prox_linear", "cauchy_least_squares"])
def test_real_methods_refuse_complex_rows_by_name(noiseless, name):
    samples = noiseless(6, 12, 0, field="complex")
    with pytest.raises(ValueError, match=rf"{name} supports real data only.*[Cc]omplex data is not supported"):
        METHODS[name](samples.A, samples.y)


def test_bad_constants_are_explained(case, samples):
    for name, keywords, message in [
        ("polyak_subgradient", {"optimal_loss": -1.0}, "optimal_loss must be"),
        ("geometric_subgradient", {"first_step": 0.0}, "first_step must be a positive number"),
        ("geometric_subgradient", {"decay": 1.0}, "decay must lie strictly between 0 and 1"),
        ("smoothed_l1", {"delta": 0.0}, "delta must be a positive number"),
        ("cauchy_least_squares", {"f_scale": -1.0}, "f_scale must be a positive number"),
        ("median_reshaped_wirtinger_flow", {"most_residual": 0.5}, "most_residual must be a number of at least 1"),
        ("wirtinger_flow", {"warm_up": -1.0}, "warm_up must be"),
        ("prox_linear", {"max_inner": 0}, "max_inner must be"),
    ]:
        with case(name, keywords), pytest.raises(ValueError, match=message):
            METHODS[name](samples.A, samples.y, **keywords)


@pytest.mark.parametrize(("name", "keyword"), [("smoothed_l1", "delta"), ("cauchy_least_squares", "f_scale")])
def test_a_scale_that_is_given_is_used(noiseless, name, keyword):
    for seed in range(4):
        samples = noiseless(20, 20, seed, outliers=0.1)
        # Far above all residuals both losses are squares, and squares give in to outliers.
        square = METHODS[name](samples.A, samples.y, **{keyword: 1e6}).signal
        plain = METHODS["wirtinger_flow"](samples.A, samples.y, tol=1e-10).signal
        assert distance(square, plain, relative=True) < 1e-3
        assert distance(square, samples.truth, relative=True) > 0.05


def test_any_row_source_will_do(samples, case):
    source = MemoryRows(samples.A, block_rows=7, threads=2)
    for name, method in METHODS.items():
        with case(name):
            assert distance(method(source, samples.y).signal, samples.truth, relative=True) < 1e-5
