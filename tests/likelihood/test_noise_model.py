"""The robust likelihood scores what is surprising and bounds what a sample can count."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.stats import t as student

from robustphase.likelihood import (
    cautious_law,
    density_floor,
    mixture_weights,
    residual_scales,
    response_density,
    score,
)
from robustphase.likelihood.noise import NoiseLaw, count_bad, judge, renew


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
    ("noise", "degrees", "skew"),
    [
        ("gaussian", (12.0, 60.0), (0.85, 1.15)),
        ("heavy", (2.5, 4.0), (0.85, 1.15)),
        ("skewed", (2.5, 60.0), (2.0, 4.0)),
    ],
)
def test_the_noise_law_finds_tails_skew_and_bad_samples(rng, noise, degrees, skew):
    m = 20000
    draw = {
        "gaussian": lambda: rng.standard_normal(m),
        "heavy": lambda: rng.standard_t(3, m),
        # Its mode, where the two halves of the law meet.
        "skewed": lambda: rng.lognormal(0.0, 0.6, m) - np.exp(-0.36),
    }[noise]
    residuals = draw()[:, None]
    residuals[: m // 10, 0] = rng.uniform(20, 30, m // 10)
    density, weights = np.full((m, 1), 0.005), np.ones((m, 1))
    law = cautious_law(np.array([2.0]), np.array([0.2]))
    for _ in range(200):
        judged = judge(residuals, density, law, weights, np.zeros_like(residuals))
        law = renew(law, judged.tally, 0.2)
    assert degrees[0] <= law.degrees[0] <= degrees[1] + 1e-9
    assert skew[0] <= law.skews[0] <= skew[1] + 1e-9
    assert law.shares[0] == pytest.approx(0.1, abs=0.02)
    assert judged.clean[: m // 10].max() < 0.5 < np.median(judged.clean[m // 10 :])
    counted = count_bad(residuals, density, weights, np.zeros_like(residuals), law, 0.2)
    assert np.mean(counted < 0.5) == pytest.approx(0.1, abs=0.01)


def test_bad_samples_are_counted_in_company_as_alone(rng):
    residuals = rng.standard_t(3, (500, 4)) * [1.0, 2.0, 0.5, 4.0]
    residuals[:40, 1:] += rng.uniform(2, 30, (40, 3))
    density, weights, leverages = np.full((500, 1), 0.02), np.ones((500, 1)), np.full((500, 4), 0.05)
    law = cautious_law(np.full(4, 1.5), np.full(4, 0.1))
    together = count_bad(residuals, density, weights, leverages, law, 0.2)
    for k in range(4):
        pair = [k, k]
        alone = count_bad(residuals[:, pair], density, weights, leverages[:, pair], law.only(np.array(pair)), 0.2)
        assert_allclose(together[:, k], alone[:, 0], rtol=1e-4)


def test_a_law_says_what_its_density_says(rng):
    residuals, density = rng.standard_normal((300, 3)), rng.uniform(0.1, 0.5, (300, 1))
    weights = rng.uniform(0, 1, (300, 1))
    law = NoiseLaw(
        np.array([0.5, 1.0, 2.0]), np.array([0.05, 0.2, 0.4]), np.array([0.0, 0.5, -1.0]), np.array([0.1, 0.2, 0.01])
    )
    scales = np.where(residuals > 0, law.skews * law.scales, law.scales)
    likely = (1 - law.shares) * student.pdf(residuals / scales, law.degrees) * 2 / (1 + law.skews) / law.scales
    clean = likely / (likely + law.shares * density)
    # The weight is minus the slope of the log density over the residual, in units of the scale below zero.
    step = 1e-6
    logs = [student.logpdf((residuals + d) / scales, law.degrees) for d in (-step, step)]
    slope = -(logs[1] - logs[0]) / (2 * step) / residuals * law.scales**2
    judged = judge(residuals, density, law, weights, np.zeros_like(residuals))
    assert_allclose(judged.clean, clean, rtol=1e-5)
    assert_allclose(judged.weights, clean * slope, rtol=1e-4)
    assert_allclose(judged.tally.clean, (weights * clean).sum(axis=0), rtol=1e-5)
    stretch = (scales / law.scales) ** 2
    squares = weights * judged.weights * stretch * residuals**2
    assert_allclose(judged.tally.below, (squares * (residuals <= 0)).sum(axis=0), rtol=1e-4)
    assert_allclose(judged.tally.above, (squares * (residuals > 0)).sum(axis=0), rtol=1e-4)


def test_leverage_counts_as_a_larger_residual(rng):
    residuals, leverages = rng.standard_normal((300, 2)), rng.uniform(0, 1, (300, 2))
    density, weights = np.full((300, 1), 0.2), np.ones((300, 1))
    law = NoiseLaw(np.array([0.5, 2.0]), np.array([0.1, 0.3]), np.array([0.4, -0.4]), np.array([0.1, 0.02]))
    stretch = np.where(residuals > 0, law.skews, 1.0) ** 2
    larger = np.copysign(np.sqrt(residuals**2 + law.scales**2 * stretch * leverages), residuals)
    found = judge(residuals, density, law, weights, leverages)
    expected = judge(larger, density, law, weights, np.zeros_like(residuals))
    assert_allclose(found.clean, expected.clean)
    assert_allclose(found.weights, expected.weights)
    for name in ("mass", "clean", "logarithms", "ratios"):
        assert_allclose(getattr(found.tally, name), getattr(expected.tally, name))
    # Half of the leverages count below zero and half above, whatever the sign of the residual.
    squares, parts = found.weights * stretch * residuals**2, found.weights * stretch * leverages
    half = law.scales**2 * parts.sum(axis=0) / 2
    assert_allclose(found.tally.below, (squares * (residuals <= 0)).sum(axis=0) + half)
    assert_allclose(found.tally.above, (squares * (residuals > 0)).sum(axis=0) + law.skews**2 * half)


def test_a_leverage_beyond_all_bounds_is_a_bad_sample():
    residuals, leverages = np.array([[-1e30, -1e30], [0.0, 0.0]]), np.array([[np.inf, 1e39], [0.0, 0.0]])
    law = cautious_law(np.ones(2), np.full(2, 0.1))
    judged = judge(residuals, np.full((2, 1), 0.1, np.float32), law, np.ones((2, 1)), leverages)
    assert_allclose(judged.clean[0], 0.0)
    assert all(np.isfinite(sums).all() for sums in judged.tally)


def test_renewing_a_law_never_lowers_its_likelihood(rng):
    # Expectation-maximisation for scale and skew; the tails are held, since scoring gives no such promise.
    residuals = (rng.lognormal(0.0, 0.8, 2000) - 0.7)[:, None]
    density, weights = np.full((2000, 1), 0.05), np.ones((2000, 1))
    law, last = cautious_law(np.array([3.0]), np.array([0.1])), -np.inf
    for _ in range(30):
        scales = np.where(residuals > 0, law.skews * law.scales, law.scales)
        likely = (1 - law.shares) * student.pdf(residuals / scales, law.degrees) * 2 / (1 + law.skews) / law.scales
        now = float(np.log(likely + law.shares * density).sum())
        # Single precision inside: sums of 2000 terms to about six digits.
        assert now > last - 1e-3
        last, tails = now, law.tails
        law = renew(law, judge(residuals, density, law, weights, np.zeros_like(residuals)).tally, 0.3)._replace(
            tails=tails
        )
