"""Bad data ends in a finite signal, without a warning and without an error; warnings are errors in these tests."""

from __future__ import annotations

import numpy as np
import pytest

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
    "responses subnormal": lambda A, y, huge: (A, np.full(M, 5e-324)),
    "responses constant": lambda A, y, huge: (A, np.ones(M)),
    "rows zero": lambda A, y, huge: (0 * A, y),
    "half of the rows zero": lambda A, y, huge: with_rows(A, y, slice(M // 2), 0),
    "rows tiny": lambda A, y, huge: (A * A.dtype.type(1e-30), y),
    "rows in other units": lambda A, y, huge: (A * A.dtype.type(1e3), y),
    "all rows the same": lambda A, y, huge: (np.repeat(A[:1], M, axis=0), y),
    "a column of zeros": lambda A, y, huge: (A * (np.arange(N) > 0), y),
    "as many samples as unknowns": lambda A, y, huge: (A[:N], y[:N]),
    "one unknown": lambda A, y, huge: (A[:, :1], y),
    "one sample": lambda A, y, huge: (A[:1, :1], y[:1]),
}
REAL_ONLY = ("prox_linear", "cauchy_least_squares")
CASES = [(name, dtype) for name in METHODS for dtype in HUGE if not (name in REAL_ONLY and "complex" in dtype)]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_signal_is_finite_whatever_the_data(name, dtype, attack):
    A, y = clean(dtype)
    A, y = ATTACKS[attack](A, y, HUGE[dtype])
    found = METHODS[name](A.astype(dtype, copy=False), y, max_iter=40)
    assert found.signal.shape == (A.shape[1],)
    assert np.isfinite(found.signal).all()
    assert np.isfinite(found.initial_signal).all()


@pytest.mark.parametrize("name", METHODS)
def test_divergence_is_reported(name):
    """Rows a thousand times too long for every step size: no method of fixed step can converge, and none claims to.

    The methods that adapt their steps may.
    """
    A, y = clean("float64")
    A, truth = 1e3 * A, np.ones(N)
    y = (A @ truth) ** 2
    found = METHODS[name](A, y)
    if found.converged:
        s = A @ found.signal
        assert np.median(np.abs(s**2 - y)) < 0.5 * np.median(y)
    else:
        assert np.isfinite(found.signal).all()


@pytest.mark.parametrize("name", ["truncated_amplitude_flow", "reweighted_amplitude_flow"])
def test_a_flow_that_runs_away_stops_unconverged(noiseless, name):
    samples = noiseless(30, 20, 0)
    A = samples.A.copy()
    A[:30] = 10 * samples.truth / np.linalg.norm(samples.truth)
    y = samples.y.copy()
    y[:30] = 0.0
    found = METHODS[name](A, y)
    assert not found.converged
    assert np.isfinite(found.signal).all()


@pytest.mark.parametrize("name", METHODS)
def test_negative_responses_under_noise_are_no_trouble(noisy, name):
    samples = noisy(20, 600, 0)
    assert (samples.y < 0).mean() > 0.1
    found = METHODS[name](samples.A, samples.y)
    assert np.isfinite(found.signal).all()
    assert distance(found.signal, samples.truth, relative=True) < 0.5


@pytest.mark.parametrize("name", METHODS)
def test_a_start_of_zero_norm_is_returned_as_not_converged(name):
    A, y = clean("float64")
    found = METHODS[name](A, -y)
    assert not found.converged
    assert not found.signal.any()
