"""What the papers claim of outliers in the responses: exact recovery from the robust ones, none from the others.

Each claim is tried on three draws per magnitude of the outliers (seeds 0 to 2), and all must succeed: a method that failed
on 40% of the draws would pass the six of them together with a probability below 5%. Where there is time it is tried on six
draws, and the same holds for failures on a quarter.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.effort import THOROUGH, seeds

from robustphase import distance
from robustphase.baselines import METHODS, polyak_subgradient

SEEDS = seeds(3, 6)
#: Share of outliers that each method survives with 12 n samples.
TOLERATED = {
    "median_truncated_wirtinger_flow": 0.1,
    "median_reshaped_wirtinger_flow": 0.1,
    "prox_linear": 0.2,
    "geometric_subgradient": 0.2,
    "smoothed_l1": 0.2,
    "cauchy_least_squares": 0.15,
}
DEFENCELESS = [name for name in METHODS if name not in TOLERATED]


def errors(noiseless, method, share, magnitude):
    found = []
    for seed in SEEDS:
        samples = noiseless(30, 12, seed, outliers=share, magnitude=magnitude)
        found.append(distance(method(samples.A, samples.y).signal, samples.truth, relative=True))
    return np.array(found)


@pytest.mark.parametrize("magnitude", [1.0, 100.0])
@pytest.mark.parametrize("name", TOLERATED)
def test_robust_methods_are_exact_whatever_the_size_of_the_outliers(noiseless, name, magnitude):
    assert errors(noiseless, METHODS[name], TOLERATED[name], magnitude).max() < 1e-5


@pytest.mark.parametrize("name", DEFENCELESS)
def test_the_others_are_not(noiseless, name):
    # Ten percent of moderate outliers, on which all six robust methods above are exact.
    assert np.median(errors(noiseless, METHODS[name], 0.1, 10.0)) > 0.01


def test_the_mean_breaks_truncated_wirtinger_flow_where_the_median_does_not(noiseless):
    assert np.median(errors(noiseless, METHODS["truncated_wirtinger_flow"], 0.1, 100.0)) > 0.5
    assert np.median(errors(noiseless, METHODS["median_truncated_wirtinger_flow"], 0.1, 100.0)) < 1e-5


def test_polyak_steps_are_exact_under_outliers_if_told_the_optimal_loss(noiseless):
    for seed in SEEDS:
        samples = noiseless(30, 12, seed, outliers=0.1)
        optimal = np.abs((samples.A @ samples.truth) ** 2 - samples.y).mean()
        found = polyak_subgradient(samples.A, samples.y, optimal_loss=optimal, max_iter=2000)
        assert distance(found.signal, samples.truth, relative=True) < 1e-5
        blind = polyak_subgradient(samples.A, samples.y)
        assert not blind.converged


def test_leveraged_rows_break_every_l1_method_but_not_the_redescending_ones(noiseless):
    """Bad covariates of the peers' comparison: 5% of the rows are ten times the signal, with response zero."""
    broken = {"prox_linear": 0, "geometric_subgradient": 0, "smoothed_l1": 0}
    for seed in SEEDS:
        samples = noiseless(30, 16, seed)
        A, y, unit = samples.A.copy(), samples.y.copy(), samples.truth / np.linalg.norm(samples.truth)
        A[:24], y[:24] = 10 * unit, 0.0
        for name in broken:
            # Ten convex models decide; the other methods are content with their own limits.
            limit = {"max_iter": 10} if name == "prox_linear" else {}
            broken[name] += distance(METHODS[name](A, y, **limit).signal, samples.truth, relative=True) > 0.5
        for name in ("cauchy_least_squares", "median_reshaped_wirtinger_flow"):
            assert distance(METHODS[name](A, y).signal, samples.truth, relative=True) < 1e-5
    assert min(broken.values()) >= (5 if THOROUGH else len(SEEDS))
