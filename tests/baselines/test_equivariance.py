"""Other units and other signs change the answer in the obvious way and in no other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from robustphase import distance
from robustphase.baselines import METHODS


def few(name):
    """Few iterations, so that roundings have no time to grow and equality can be asked for; or few convex problems."""
    return {"max_iter": 2 if name == "prox_linear" else 6}


@given(seed=st.integers(0, 10**6), power=st.integers(-30, 30))
@settings(max_examples=5)
def test_responses_in_other_units_scale_the_signal_by_their_root(noisy, case, seed, power):
    samples = noisy(5, 60, seed)
    for name, method in METHODS.items():
        here, there = (method(samples.A, factor * samples.y, **few(name)) for factor in (1.0, 4.0**power))
        # Powers of four change exponents only, so nothing may differ.
        with case(name):
            assert_array_equal(there.signal, 2.0**power * here.signal)
            assert_array_equal(there.initial_signal, 2.0**power * here.initial_signal)
            assert (there.n_iter, there.converged) == (here.n_iter, here.converged)


@given(seed=st.integers(0, 10**6), factor=st.floats(1e-3, 1e3))
@settings(max_examples=4)
def test_any_positive_factor_does_the_same_up_to_roundings(noiseless, case, seed, factor):
    samples = noiseless(5, 16, seed)
    # A start of our own: that of Duchi and Ruan lies on a kink of the l1 loss, where roundings decide about a sign.
    start = samples.truth + 0.1 * np.linalg.norm(samples.truth)
    for name, method in METHODS.items():
        here = method(samples.A, samples.y, start=start, **few(name))
        there = method(samples.A, factor * samples.y, start=np.sqrt(factor) * start, **few(name))
        expected = np.sqrt(factor) * here.signal
        with case(name):
            assert_allclose(there.signal, expected, rtol=0, atol=1e-6 * np.linalg.norm(expected))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_the_signs_of_the_rows_do_not_matter(noisy, case, seed):
    samples = noisy(5, 60, seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], 60)
    for name, method in METHODS.items():
        here = method(samples.A, samples.y, **few(name))
        there = method(signs[:, np.newaxis] * samples.A, samples.y, **few(name))
        with case(name):
            assert_array_equal(there.signal, here.signal)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_the_opposite_start_leads_to_the_opposite_signal(noisy, case, seed):
    samples = noisy(5, 60, seed)
    start = np.random.default_rng(seed).standard_normal(5)
    for name, method in METHODS.items():
        here, there = (method(samples.A, samples.y, start=sign * start, **few(name)) for sign in (1.0, -1.0))
        with case(name):
            assert_array_equal(there.signal, -here.signal)


def test_neither_the_order_of_the_samples_nor_a_turn_of_the_design_matters(noiseless, case, rng):
    samples = noiseless(10, 14, 3)
    order = rng.permutation(samples.y.size)
    turn = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    for name, method in METHODS.items():
        here = method(samples.A, samples.y).signal
        shuffled = method(samples.A[order], samples.y[order]).signal
        turned = method(samples.A @ turn, samples.y).signal
        with case(name):
            assert distance(shuffled, here, relative=True) < 1e-5
            assert distance(turn @ turned, here, relative=True) < 1e-5


def test_the_same_seed_repeats_exactly_and_the_default_is_one(noisy, case):
    samples = noisy(10, 200, 0)
    for name, method in METHODS.items():

        def run(random_state, method=method, limit=2 if name == "prox_linear" else 30):
            return method(samples.A, samples.y, random_state=random_state, max_iter=limit)

        first, second = run(5), run(5)
        with case(name):
            assert_array_equal(first.signal, second.signal)
            assert (first.n_iter, first.converged) == (second.n_iter, second.converged)
            assert_array_equal(run(None).signal, run(0).signal)
            assert_array_equal(*(run(np.random.default_rng(3)).signal for _ in range(2)))
