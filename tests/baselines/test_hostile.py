"""Bad data ends in a finite signal, without a warning and without an error; only data that vanish are refused.

Warnings are errors in these tests.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.effort import THOROUGH, seeds

from robustphase import distance
from robustphase.baselines import METHODS

N, M = 6, 60
#: Close to the largest entries that are not refused, for double and single precision.
HUGE = {"float64": 3e36, "complex128": 3e36, "float32": 1e17, "complex64": 1e17}


def clean(dtype):
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((M, N)), rng.standard_normal(N)
    if "complex" in dtype:
        A, x = A + 1j * rng.standard_normal((M, N)), x + 1j * rng.standard_normal(N)
    return A.astype(dtype), np.abs(A @ x) ** 2


def with_rows(A, y, rows, values):
    A = A.copy()
    A[rows] = values
    return A, y


ATTACKS = {
    "one huge row": lambda A, y, huge: with_rows(A, y, 3, huge),
    "a third of the rows huge": lambda A, y, huge: with_rows(A, y, slice(20), A[:20] * A.dtype.type(huge / 10)),
    "one huge response": lambda A, y, huge: (A, np.where(np.arange(M) == 3, 3e36, y)),
    "huge row and response": lambda A, y, huge: with_rows(A, np.where(np.arange(M) == 3, 3e36, y), 3, huge),
    "all responses huge": lambda A, y, huge: (A, np.full(M, 1e36)),
    "huge and tiny responses": lambda A, y, huge: (A, np.where(np.arange(M) % 2, 1e36, 1e-300)),
    "responses zero": lambda A, y, huge: (A, 0 * y),
    "responses negative": lambda A, y, huge: (A, -y),
    "every second response negative": lambda A, y, huge: (A, np.where(np.arange(M) % 2, y, -y)),
    "one response not zero": lambda A, y, huge: (A, np.eye(M)[0]),
    "responses constant": lambda A, y, huge: (A, np.ones(M)),
    "half of the rows zero": lambda A, y, huge: with_rows(A, y, slice(M // 2), 0),
    "rows tiny": lambda A, y, huge: (A * A.dtype.type(1e-30 if huge > 1e20 else 1e-16), y),
    "rows in other units": lambda A, y, huge: (A * A.dtype.type(1e3), y),
    "all rows the same": lambda A, y, huge: (np.repeat(A[:1], M, axis=0), y),
    "a column of zeros": lambda A, y, huge: (A * (np.arange(N) > 0), y),
    "as many samples as unknowns": lambda A, y, huge: (A[:N], y[:N]),
    "one unknown": lambda A, y, huge: (A[:, :1], y),
    "one sample": lambda A, y, huge: (A[:1, :1], y[:1]),
}
#: What is too small to compute with, and what the error says of it.
VANISHING = {
    "responses subnormal": (lambda A, y: (A, np.full(M, 5e-324)), "a typical response of y is .* too small"),
    "rows zero": (lambda A, y: (0 * A, y), "all entries of A are zero"),
    "rows tiny": (
        lambda A, y: (A * A.dtype.type(1e-150 if A.dtype in ("float64", "complex128") else 1e-30), y),
        "entries of A are of the order of .* too small",
    ),
}
REAL_ONLY = ("prox_linear", "cauchy_least_squares")
#: Every iteration of the first solves a convex problem, the hardest of them to its own limit.
ITERATIONS = {"prox_linear": 10}
USUALLY = 40 if THOROUGH else 20
#: Each is of both precisions and of both fields.
TURNS = (("float64", "complex64"), ("float32", "complex128"))


def dtypes_for(name, place):
    """All of them where there is time; otherwise those of one turn, others for the next attack and for the next method."""
    tried = HUGE if THOROUGH else TURNS[([*METHODS].index(name) + place) % 2]
    return [dtype for dtype in tried if name not in REAL_ONLY or "complex" not in dtype]


@pytest.mark.parametrize("name", METHODS)
def test_the_signal_is_finite_whatever_the_data(name, case):
    for place, (attack, spoil) in enumerate(ATTACKS.items()):
        for dtype in dtypes_for(name, place):
            with case(dtype, attack):
                A, y = spoil(*clean(dtype), HUGE[dtype])
                found = METHODS[name](A.astype(dtype, copy=False), y, max_iter=ITERATIONS.get(name, USUALLY))
                assert found.signal.shape == (A.shape[1],)
                assert np.isfinite(found.signal).all()
                assert np.isfinite(found.initial_signal).all()


def test_data_too_small_to_compute_with_are_refused(case):
    for name, method in METHODS.items():
        for dtype in HUGE:
            for attack, (spoil, message) in VANISHING.items():
                with case(name, dtype, attack), pytest.raises(ValueError, match=message):
                    method(*spoil(*clean(dtype)))


def test_divergence_is_reported(case):
    """Rows a thousand times too long for every step size: no method of fixed step converges, and none claims to.

    The methods that adapt their steps find the signal.
    """
    adaptive = (
        "prox_linear",
        "polyak_subgradient",
        "geometric_subgradient",
        "smoothed_l1",
        "cauchy_least_squares",
        "poisson_wirtinger_flow",
    )
    A, truth = 1e3 * clean("float64")[0], np.ones(N)
    for name, method in METHODS.items():
        with case(name):
            found = method(A, (A @ truth) ** 2)
            assert np.isfinite(found.signal).all()
            assert found.converged == (name in adaptive)
            if name in adaptive:
                assert distance(found.signal, truth, relative=True) < 1e-6


def test_a_flow_that_runs_away_stops_unconverged(noiseless, case):
    for name in ("truncated_amplitude_flow", "reweighted_amplitude_flow"):
        for seed in range(4):
            samples = noiseless(30, 20, seed)
            A, y = samples.A.copy(), samples.y.copy()
            A[:30], y[:30] = 10 * samples.truth / np.linalg.norm(samples.truth), 0.0
            with case(name, seed):
                found = METHODS[name](A, y)
                assert not found.converged
                assert np.isfinite(found.signal).all()


def test_negative_responses_under_noise_are_no_trouble(noisy, case):
    for seed in seeds(1, 2):
        samples = noisy(20, 600, seed)
        assert (samples.y < 0).mean() > 0.1
        for name, method in METHODS.items():
            with case(name, seed):
                limit = {"max_iter": ITERATIONS[name]} if name in ITERATIONS else {}
                assert distance(method(samples.A, samples.y, **limit).signal, samples.truth, relative=True) < 0.5


def test_a_start_of_zero_norm_is_returned_as_not_converged(case):
    A, y = clean("float64")
    for name, method in METHODS.items():
        with case(name):
            found = method(A, -y)
            assert not found.converged
            assert not found.signal.any()
