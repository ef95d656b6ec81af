"""The likelihood that candidates are compared by scores what is surprising and bounds what a sample can count."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import t as student

from robustphase.likelihood import compare, residual_scales, score
from robustphase.likelihood.comparison import comparison_floor


def test_the_floor_sinks_where_an_adversary_may_own_the_majority_of_ordinary_samples():
    floors = comparison_floor(np.array([0.02, 0.05, 0.2, 0.25, 0.3, 0.45]))
    assert floors[0] == floors[1] == floors[2]
    assert (np.diff(floors[2:]) < 0).all()
    assert 0 < floors[-1] < floors[0] / 10


def test_the_ratio_is_that_of_the_mixture_to_the_density_of_bad_responses(rng):
    residuals, density = 3 * rng.standard_normal((50, 2)), rng.random((50, 1)) + 0.1
    scales, levels = np.array([0.7, 1.5]), np.array([0.1, 0.3])
    clean = student.pdf(residuals / scales, 3) / scales
    assert_allclose(compare(residuals, density, scales, levels)[1], (1 - levels) * clean / density + levels)


def test_weights_are_minus_the_slope_of_the_log_likelihood_over_the_residual(rng):
    residuals, density = 3 * rng.standard_normal((50, 2)), rng.random((50, 1)) + 0.1
    scales, levels, step = np.array([0.7, 1.5]), np.array([0.1]), 1e-6
    weights, _ = compare(residuals, density, scales, levels)
    up, down = (np.log(compare(residuals + d, density, scales, levels)[1]) for d in (step, -step))
    assert_allclose(-(up - down) / (2 * step), weights * residuals / scales**2, rtol=1e-6, atol=1e-8)


def test_one_absurd_residual_changes_a_score_by_no_more_than_its_share(rng):
    residuals, density, weights = rng.standard_normal((100, 1)), np.full((100, 1), 0.3), np.ones((100, 1))
    worse = residuals.copy()
    worse[0] = 1e9
    levels = np.array([0.1])
    scores = [score(compare(r, density, np.ones(1), levels)[1], weights)[0] for r in (residuals, worse)]
    assert 0 < scores[0] - scores[1] < (np.log(0.9 * 0.4 / 0.3 + 0.1) - np.log(0.1)) / 100


def test_a_score_is_a_weighted_mean(rng):
    ratio, weights = rng.random((40, 2)) + 0.1, rng.random((40, 1))
    assert_allclose(score(ratio, weights), np.average(np.log(ratio), axis=0, weights=weights[:, 0]))
    assert_allclose(score(ratio, np.zeros((40, 1))), 0)


def test_the_residual_scale_ignores_the_stated_share_of_outliers():
    for seed in range(3):
        clean = np.random.default_rng(seed).standard_t(3, (20000, 1))
        dirty = clean.copy()
        dirty[:2000] = 1e6
        active = np.ones((20000, 1), bool)
        # Quantiles of 20000 values: about 2 % at this level.
        assert_allclose(residual_scales(dirty, active, np.array([0.1])), 1.0, rtol=0.15, err_msg=f"seed {seed}")
        assert_allclose(residual_scales(clean, active, np.array([0.0])), 1.0, rtol=0.06, err_msg=f"seed {seed}")
        # Told which they are, it need not guess.
        told = active & (np.arange(20000) >= 2000)[:, None]
        assert_allclose(residual_scales(dirty, told, np.array([0.0])), 1.0, rtol=0.06, err_msg=f"seed {seed}")


def test_columns_are_compared_as_if_each_were_alone(rng):
    residuals, density = rng.standard_t(3, (200, 3)), rng.random((200, 3)) + 0.1
    active, levels = rng.random((200, 3)) > 0.2, np.array([0.05, 0.2, 0.33])
    scales = residual_scales(residuals, active, levels)
    weights, ratio = compare(residuals, density, scales, levels)
    for k in range(3):
        one = [k]
        assert_allclose(residual_scales(residuals[:, one], active[:, one], levels[one]), scales[one])
        alone = compare(residuals[:, one], density[:, one], scales[one], levels[one])
        assert_allclose(alone[0], weights[:, one])
        assert_allclose(alone[1], ratio[:, one])


def test_residuals_without_noise_have_a_scale_above_zero():
    assert residual_scales(np.zeros((20, 1)), np.ones((20, 1), bool), np.array([0.1]))[0] > 0
