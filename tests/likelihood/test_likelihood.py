"""The robust likelihood scores what is surprising and bounds what a sample can count."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from robustphase.likelihood import density_floor, fit_noise, mixture_weights, residual_scales, response_density, score
from robustphase.likelihood.noise import first_guess


def test_the_response_density_is_close_to_the_true_one_and_never_below_its_floor(rng):
    y = rng.standard_normal(20000)
    density = response_density(y, 0.05)
    inner = np.abs(y) < 1
    # 2 % of the samples on either side: a local mean over 800 spacings, good to about 4 %.
    assert_allclose(density[inner], stats.norm.pdf(y[inner]), rtol=0.25)
    assert density.min() == 0.05


def test_responses_that_many_share_are_not_surprising(rng):
    y = np.concatenate((rng.standard_normal(4000), np.zeros(1000)))
    density = response_density(y, 0.01)
    assert density[4000:].min() > 2 * density[:4000].mean()


def test_the_floor_sinks_beyond_a_fifth_of_bad_samples():
    assert density_floor(0.05) == density_floor(0.2) == pytest.approx(0.3)
    assert density_floor(0.3) < 0.1


def test_weights_are_minus_the_slope_of_the_log_likelihood_over_the_residual(rng):
    residuals, density = rng.standard_normal((50, 2)) * 3, rng.random(50) + 0.1
    scales = np.array([0.7, 1.5])
    weights, _ = mixture_weights(residuals, density, scales, 0.1)
    step = 1e-6
    up = np.log(mixture_weights(residuals + step, density, scales, 0.1)[1])
    down = np.log(mixture_weights(residuals - step, density, scales, 0.1)[1])
    assert_allclose(-(up - down) / (2 * step), weights * residuals / scales**2, rtol=1e-6, atol=1e-8)


def test_one_absurd_residual_changes_a_score_by_no_more_than_its_share(rng):
    residuals, density, weights = rng.standard_normal((100, 1)), np.full(100, 0.3), np.ones(100)
    worse = residuals.copy()
    worse[0] = 1e9
    scores = [score(mixture_weights(r, density, np.ones(1), 0.1)[1], weights)[0] for r in (residuals, worse)]
    assert 0 < scores[0] - scores[1] < (np.log(0.9 * 0.4 / 0.3 + 0.1) - np.log(0.1)) / 100


def test_the_residual_scale_ignores_the_stated_share_of_outliers(rng):
    clean = rng.standard_t(3, (20000, 1))
    dirty = clean.copy()
    dirty[:2000] = 1e6
    active = np.ones(20000, bool)
    # Quantiles of 20000 values: about 2 % at this level.
    assert_allclose(residual_scales(dirty, active, 0.1), 1.0, rtol=0.15)
    assert_allclose(residual_scales(clean, active, 0.0), 1.0, rtol=0.06)


@pytest.mark.parametrize(
    ("noise", "degrees", "skewed"),
    [("gaussian", (8.0, 40.0), False), ("heavy", (2.5, 4.0), False), ("skewed", (2.5, 4.0, 8.0, 40.0), True)],
)
def test_the_noise_law_finds_tails_skew_and_bad_samples(rng, noise, degrees, skewed):
    m = 20000
    draw = {
        "gaussian": lambda: rng.standard_normal(m),
        "heavy": lambda: rng.standard_t(3, m),
        "skewed": lambda: rng.exponential(size=m) - np.log(2),
    }[noise]
    residuals = draw()
    residuals[: m // 10] = rng.uniform(20, 30, m // 10)
    density, shares = np.full(m, 0.005), np.full(m, 1 / m)
    fit = first_guess(2.0, 0.2)
    for _ in range(12):
        fit = fit_noise(residuals, density, shares, fit, 0.2)
    assert fit.degrees in degrees
    assert (fit.skew > 1.5) == skewed
    assert fit.contamination == pytest.approx(0.1, abs=0.02)
    assert fit.clean[: m // 10].max() < 0.5 < np.median(fit.clean[m // 10 :])
