"""Laws of readings whose noise depends on the signal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from robustphase.likelihood.bad_responses import censored_law, marginal_law
from robustphase.likelihood.dependent_noise import PoissonLaw, VarianceLaw, fitted_curve, survival
from robustphase.likelihood.laws import CurvedNoise, Readings
from robustphase.likelihood.noise_model import NoiseModel, law_mean, law_variance


def readings(y, censored=None, bad=1e-30):
    y = np.asarray(y, float)[:, None]
    censored = None if censored is None else np.asarray(censored)[:, None]
    return Readings(y, np.ones_like(y), censored, np.zeros_like(y), np.full_like(y, bad))


def skewed(scale=1.0, degrees=5.0, skew=1.5, mixing=0.002):
    return NoiseModel(np.array([scale]), np.array([1 / degrees]), np.log([skew]), np.array([mixing]))


def variance_law(m, **noise):
    return VarianceLaw(skewed(**noise), np.array([[1.0], [0.5], [0.1]]), np.ones((m, 1)))


def test_clean_counts_have_poisson_probabilities():
    y, mu = np.array([0.0, 1, 7, 40]), np.array([0.3, 0.3, 5.0, 52.0])
    judged = PoissonLaw(np.array([1e-12])).judge(readings(y), mu[:, None])
    assert_allclose(judged.log_likelihood[0], stats.poisson(mu).logpmf(y).sum(), rtol=1e-10)
    assert_allclose(judged.clean, 1.0)


def test_censored_counts_have_the_probability_of_at_least_that():
    y, mu = np.array([1.0, 3, 20, 5]), np.array([0.3, 5.0, 12.0, 4.0])
    censored = np.array([True, True, True, False])
    law = PoissonLaw(np.array([1e-12]))
    judged = law.judge(readings(y, censored), mu[:, None])
    expected = stats.poisson(mu).sf(y - 1)
    expected[3] = stats.poisson(4.0).pmf(5)
    assert_allclose(judged.log_likelihood[0], np.log(expected).sum(), rtol=1e-8)


def test_weights_times_residuals_are_the_derivative_by_the_mean(case):
    for censored in [False, True]:
        for kind in ["poisson", "variance"]:
            with case(censored, kind):
                y, mu = np.array([0.0, 2, 7, 40, 12]), np.array([0.4, 3.0, 5.0, 52.0, 11.0])[:, None]
                read = readings(y, np.array([False, False, True, True, False]) if censored else None, bad=0.01)
                law = PoissonLaw(np.array([0.1])) if kind == "poisson" else variance_law(y.size, mixing=0.1).held(mu)
                judged, step = law.judge(read, mu), 1e-6
                for row in range(y.size):
                    moved = np.where(np.arange(y.size)[:, None] == row, step, 0.0)
                    up, down = (law.judge(read, mu + sign * moved).log_likelihood[0] for sign in (1, -1))
                    assert_allclose(
                        (judged.weights * judged.residuals)[row, 0],
                        (up - down) / (2 * step),
                        rtol=2e-4,
                        atol=1e-7,
                        err_msg=str(row),
                    )


@pytest.mark.parametrize("kind", ["poisson", "variance"])
def test_slopes_are_minus_the_derivative_of_the_scores(kind):
    """Of the law of counts the expected derivative is taken, so there only the share of doubts is checked, at y = μ."""
    y = np.array([3.0, 9.0, 30.0])
    mu = y[:, None] if kind == "poisson" else np.array([2.2, 11.0, 24.0])[:, None]
    read = readings(y, bad=0.02)
    law = PoissonLaw(np.array([0.1])) if kind == "poisson" else variance_law(3, mixing=0.1).held(mu)
    judged, step = law.judge(read, mu), 1e-5
    up, down = (law.judge(read, mu + sign * step) for sign in (1, -1))
    derivative = (up.weights * up.residuals - down.weights * down.residuals) / (2 * step)
    assert_allclose(law.slopes(judged, read, mu), -derivative, rtol=1e-4)


def test_what_is_no_count_is_bad():
    judged = PoissonLaw(np.array([0.1])).judge(readings([-1.0, 2.5, 2.0], bad=1e-3), np.full((3, 1), 2.0))
    assert_allclose(judged.clean[:2], 0.0)
    assert judged.clean[2, 0] > 0.99


def test_the_probability_of_at_least_that_integrates_the_density():
    noise = skewed(scale=1.3)
    grid = np.linspace(-60, 60, 240_001)[:, None]
    density = noise.density(grid)[:, 0]
    tails = np.cumsum(density[::-1])[::-1] * (grid[1, 0] - grid[0, 0])
    places = [90_000, 119_000, 120_000, 124_000, 140_000]
    assert_allclose(survival(grid[places], noise)[:, 0], tails[places], atol=2e-4)


def test_the_variance_curve_is_found_again():
    rng = np.random.default_rng(0)
    mu = rng.exponential(20.0, (40_000, 1))
    squares = (4.0 + 2.0 * mu + 0.01 * mu**2) * rng.standard_normal(mu.shape) ** 2
    curve = np.array([[10.0], [0.5], [0.025]])
    for _ in range(40):
        curve = fitted_curve(curve, squares, np.ones_like(mu), mu)
    for mean in (0.0, 5.0, 20.0, 60.0):
        found = float(curve[0, 0] + curve[1, 0] * mean + curve[2, 0] * mean**2)
        assert_allclose(found, 4.0 + 2.0 * mean + 0.01 * mean**2, rtol=0.12)


def test_the_marginal_law_of_counts_adds_up_to_one_and_keeps_ties():
    rng = np.random.default_rng(1)
    y = rng.poisson(rng.exponential(0.7, 5000)).astype(float)[:, None]
    law = marginal_law(y, np.ones_like(y), counts=True)
    values, places = np.unique(y, return_index=True)
    assert_allclose(law[places[0], 0], np.mean(y == 0), rtol=1e-12)
    assert 0.8 < law[places, 0].sum() < 1.2
    assert (law > 0).all()
    assert (np.diff(law[places, 0]) <= 1e-12).all(), values


def test_bad_censored_readings_have_the_share_of_at_least_that():
    y = np.array([1.0, 2, 3, 4, 5])[:, None]
    censored = y >= 4
    law = censored_law(np.full((5, 1), 0.123), y, np.ones_like(y), censored)
    assert_allclose(law[:, 0], [0.123, 0.123, 0.123, 0.4, 0.2])


def test_a_model_tells_its_kind_and_its_variance():
    one = np.ones(1)
    counts = CurvedNoise(one, one / 60, 0 * one, 0 * one, 0 * one, one, 0 * one, one == 1)
    camera = counts._replace(read=16 * one, shot=2.3 * one, counts=one == 0)
    assert (counts.kind, camera.kind) == ("poisson", "variance")
    assert_allclose(camera.variance(np.array([0.0, 10.0])), [16.0, 39.0])


def test_readings_have_their_mean_whatever_the_skew():
    noise = skewed(degrees=6.0, skew=1.8)
    grid = np.linspace(-400, 400, 800_001)[:, None]
    density = noise.density(grid)[:, 0]
    step = grid[1, 0] - grid[0, 0]
    mean = np.sum(grid[:, 0] * density) * step
    assert_allclose(law_mean(noise)[0], mean, rtol=1e-3)
    assert_allclose(law_variance(noise)[0], np.sum((grid[:, 0] - mean) ** 2 * density) * step, rtol=1e-3)
