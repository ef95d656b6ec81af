"""What the papers claim of noiseless samples: exact recovery from a number of them proportional to n.

Every claim is tried on five draws, and all must succeed: if the method failed on 45% of the draws or more, that would
happen with a probability of 5%. Where there is time it is tried on eight, and the same holds for failures on 31%.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.effort import seeds

from robustphase import distance
from robustphase.baselines import METHODS
from robustphase.population import PairedSignal
from robustphase.simulate import make_counts

SEEDS = seeds(5, 8)
#: Samples per unknown at which each method recovers reliably at n = 60; close to where its paper reports it.
ENOUGH = {
    "wirtinger_flow": 12,
    "poisson_wirtinger_flow": 12,
    "truncated_wirtinger_flow": 6,
    "median_truncated_wirtinger_flow": 8,
    "median_reshaped_wirtinger_flow": 8,
    "truncated_amplitude_flow": 4,
    "reweighted_amplitude_flow": 4,
    "prox_linear": 5,
    "polyak_subgradient": 5,
    "geometric_subgradient": 5,
    "smoothed_l1": 5,
    "cauchy_least_squares": 4,
}
#: Where the default tolerance is for comparisons of time.
FINER = {"wirtinger_flow": {"tol": 1e-8}, "poisson_wirtinger_flow": {"tol": 1e-8}}
COMPLEX = [name for name in METHODS if name not in ("prox_linear", "cauchy_least_squares")]


@pytest.mark.parametrize("name", METHODS)
def test_exact_samples_give_the_exact_signal(noiseless, name):
    for seed in SEEDS:
        samples = noiseless(60, ENOUGH[name], seed)
        found = METHODS[name](samples.A, samples.y, **FINER.get(name, {}))
        assert found.converged
        assert distance(found.signal, samples.truth, relative=True) < 1e-5


@pytest.mark.parametrize("name", COMPLEX)
def test_exact_complex_samples_give_the_exact_signal(noiseless, name):
    for seed in SEEDS:
        samples = noiseless(30, 14, seed, field="complex")
        found = METHODS[name](samples.A, samples.y, **FINER.get(name, {}))
        assert found.converged
        assert distance(found.signal, samples.truth, relative=True) < 1e-5


def test_a_complex_signal_behind_real_rows_is_found_where_asked_for(noiseless, case):
    samples = noiseless(6, 50, 0)
    truth = (samples.truth + 1j * np.roll(samples.truth, 1)).view(PairedSignal)
    for name in COMPLEX:
        with case(name):
            found = METHODS[name](samples.A, np.abs(samples.A @ truth) ** 2, field="complex").signal
            assert distance(found, truth, relative=True) < 1e-3


def test_single_precision_is_enough_for_its_own_digits(noiseless, case):
    for seed in seeds(1, 3):
        samples = noiseless(30, 12, seed)
        A = samples.A.astype(np.float32)
        for name, method in METHODS.items():
            with case(name, seed):
                found = method(A, (A @ samples.truth) ** 2)
                assert found.signal.dtype == np.float64
                assert distance(found.signal, samples.truth, relative=True) < 1e-3


@pytest.fixture(scope="module")
def least_squares(noisy):
    """Noisy samples of three draws, or of eight, and their least squares started at the truth."""
    pairs = []
    for seed in seeds(3, 8):
        samples = noisy(30, 600, seed)
        best = samples.truth
        for _ in range(20):
            s = samples.A @ best
            best = best + np.linalg.lstsq(2 * s[:, None] * samples.A, samples.y - s**2, rcond=None)[0]
        pairs.append((samples, best))
    return pairs


@pytest.mark.parametrize("name", METHODS)
def test_under_gaussian_noise_the_error_is_of_the_order_of_least_squares(least_squares, name):
    """Medians over all draws of the ratio to least squares started at the truth.

    Amplitude-based methods lose the information in negative responses and the l1 methods efficiency: at most a factor of
    two, except for the three that were never meant for such noise: two for none at all, and one for counts.
    """
    most = {"reweighted_amplitude_flow": 10.0, "polyak_subgradient": 4.0, "poisson_wirtinger_flow": 4.0}.get(name, 2.2)
    ratios = []
    for samples, best in least_squares:
        found = METHODS[name](samples.A, samples.y).signal
        ratios.append(distance(found, samples.truth) / distance(best, samples.truth))
    assert np.median(ratios) < most


def test_plain_least_squares_is_what_wirtinger_flow_minimises(noisy):
    samples = noisy(20, 600, 1)
    found = METHODS["wirtinger_flow"](samples.A, samples.y, tol=1e-12, max_iter=3000).signal
    s = samples.A @ found
    gradient = samples.A.T @ ((s**2 - samples.y) * s) / s.size
    assert np.linalg.norm(gradient) < 1e-9
    slow = METHODS["wirtinger_flow"](samples.A, samples.y, tol=1e-12, max_iter=3000, warm_up=330).signal
    assert distance(slow, found) < 1e-8


def test_counts_are_fitted_at_the_bound_where_the_background_is_known():
    """Three or six draws, median of the ratio to what the information of the counts allows."""
    ratios = []
    for seed in seeds(3, 6):
        world = make_counts(20, 2000, mean_count=3.0, contamination=0.0, attack="none", seed=seed)
        found = METHODS["poisson_wirtinger_flow"](world.A, world.y, background=world.noise_mean)
        s = world.A @ world.truth
        slopes = 2 * s[:, None] * world.A
        information = (slopes / (s**2 + world.noise_mean)[:, None]).T @ slopes
        ratios.append(distance(found.signal, world.truth) / np.sqrt(np.trace(np.linalg.inv(information))))
    assert 0.7 < np.median(ratios) < 1.4
