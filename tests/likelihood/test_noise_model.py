"""The fitted noise model: its e-step says what its density says, its m-step raises the likelihood, its law is found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import t as student

from robustphase.likelihood import NoiseModel, classify, e_step, initial_model, m_step
from robustphase.likelihood.noise_model import NOISE

MODEL = NoiseModel(
    scales=np.array([0.5, 1.0, 2.0]),
    tails=np.array([0.05, 0.2, 0.4]),
    log_skews=np.array([0.0, 0.5, -1.0]),
    mixing=np.array([0.1, 0.2, 0.01]),
)


def clean_density(residuals, model):
    """Two halves of Student densities, joined at zero."""
    sides = np.where(residuals > 0, model.skews * model.scales, model.scales)
    return student.pdf(residuals / sides, model.degrees) * 2 / (1 + model.skews) / model.scales


def _integral(model, low, high):
    return quad(lambda r: model.density(np.array([[r]])).item(), low, high)[0]


def test_the_density_of_a_model_is_two_halves_of_student_densities_and_integrates_to_one(rng):
    residuals = 3 * rng.standard_normal((200, 3))
    assert_allclose(MODEL.density(residuals), clean_density(residuals, MODEL))
    for k in range(3):
        one = MODEL.only(np.array([k]))
        halves = [_integral(one, low, high) for low, high in ((-np.inf, 0.0), (0.0, np.inf))]
        assert sum(halves) == pytest.approx(1)
        assert halves[1] / halves[0] == pytest.approx(one.skews[0])


@pytest.mark.parametrize(("degrees", "skew"), [(50.0, 1.0), (4.0, 1.0), (3.0, 3.0), (50.0, 0.4)])
def test_normal_noise_of_the_efficient_scale_tells_as_much_of_a_location(degrees, skew):
    model = NoiseModel(*(np.array([value]) for value in (0.7, 1 / degrees, np.log(skew), 0.1)))

    def information(r):
        step = 1e-5
        low, here, high = (float(model.density(np.array([[at]]))[0, 0]) for at in (r - step, r, r + step))
        return ((high - low) / (2 * step)) ** 2 / here

    total = sum(quad(information, *side, limit=200)[0] for side in ((-np.inf, 0.0), (0.0, np.inf)))
    assert_allclose(model.efficient_scales, 1 / np.sqrt(total), rtol=1e-3)


def test_an_e_step_says_what_the_density_says(rng):
    residuals, density = rng.standard_normal((300, 3)), rng.uniform(0.1, 0.5, (300, 1))
    weights = rng.uniform(0, 1, (300, 1))
    mixture = (1 - MODEL.mixing) * clean_density(residuals, MODEL) + MODEL.mixing * density
    clean = 1 - MODEL.mixing * density / mixture
    # The weight is minus the slope of the log density over the residual, in units of the scale below zero.
    scales, step = np.where(residuals > 0, MODEL.skews * MODEL.scales, MODEL.scales), 1e-6
    logs = [student.logpdf((residuals + d) / scales, MODEL.degrees) for d in (-step, step)]
    slope = -(logs[1] - logs[0]) / (2 * step) / residuals * MODEL.scales**2
    seen = e_step(residuals, np.zeros_like(residuals), density, weights, MODEL)
    assert_allclose(seen.clean, clean, rtol=1e-9)
    assert_allclose(seen.weights, clean * slope, rtol=1e-4)
    assert_allclose(seen.statistics.mass, weights.sum())
    assert_allclose(seen.statistics.clean, (weights * clean).sum(axis=0))
    assert_allclose(seen.statistics.log_likelihood, (weights * np.log(mixture)).sum(axis=0))
    squares = weights * seen.weights * (scales / MODEL.scales) ** 2 * residuals**2
    assert_allclose(seen.statistics.below, (squares * (residuals <= 0)).sum(axis=0))
    assert_allclose(seen.statistics.above, (squares * (residuals > 0)).sum(axis=0))


def test_a_variance_of_the_prediction_counts_as_a_larger_residual(rng):
    residuals, leverages = rng.standard_normal((300, 3)), rng.uniform(0, 1, (300, 3))
    density, weights = np.full((300, 1), 0.2), np.ones((300, 1))
    spreads = leverages * MODEL.scales**2 * MODEL.skews
    stretch = np.where(residuals > 0, MODEL.skews, 1.0) ** 2
    larger = np.copysign(np.sqrt(residuals**2 + MODEL.scales**2 * stretch * leverages), residuals)
    found = e_step(residuals, spreads, density, weights, MODEL)
    expected = e_step(larger, np.zeros_like(spreads), density, weights, MODEL)
    assert_allclose(found.clean, expected.clean)
    assert_allclose(found.weights, expected.weights)
    for name in ("mass", "clean", "logarithms", "ratios", "log_likelihood"):
        assert_allclose(getattr(found.statistics, name), getattr(expected.statistics, name), err_msg=name)
    # Half of the variances count below zero and half above, whatever the sign of the residual.
    squares, parts = found.weights * stretch * residuals**2, found.weights * stretch * leverages
    half = MODEL.scales**2 * parts.sum(axis=0) / 2
    assert_allclose(found.statistics.below, (squares * (residuals <= 0)).sum(axis=0) + half)
    assert_allclose(found.statistics.above, (squares * (residuals > 0)).sum(axis=0) + MODEL.skews**2 * half)


def test_the_weight_of_a_variance_is_the_slope_of_the_log_likelihood_along_it(rng):
    residuals, spreads = rng.standard_normal((60, 3)), rng.uniform(0.1, 1, (60, 3))
    density, step = np.full((60, 1), 0.2), 1e-6

    def log_mixture(v):
        return np.stack(
            [e_step(residuals[[j]], v[[j]], density[[j]], np.ones((1, 1)), MODEL).statistics.log_likelihood for j in range(60)]
        )  # fmt: skip

    slopes = (log_mixture(spreads + step) - log_mixture(spreads - step)) / (2 * step)
    seen = e_step(residuals, spreads, density, np.ones((60, 1)), MODEL)
    assert_allclose(-0.5 * seen.spread_weights / MODEL.scales**2, slopes, rtol=1e-5, atol=1e-8)


def test_residuals_and_variances_beyond_all_bounds_are_bad_samples():
    residuals, spreads = np.array([[-1e30, -1e30], [0.0, 0.0]]), np.array([[np.inf, 1e39], [0.0, 0.0]])
    model = initial_model(np.ones(2), np.full(2, 0.1))
    seen = e_step(residuals, spreads, np.full((2, 1), 0.1, np.float32), np.ones((2, 1)), model)
    assert_allclose(seen.clean[0], 0.0)
    assert all(np.isfinite(sums).all() for sums in seen.statistics)


def test_renewing_a_model_never_lowers_its_likelihood():
    # Expectation-maximisation for scale, skew and share; the tails are held, since scoring gives no such promise.
    for seed in range(3):
        residuals = (np.random.default_rng(seed).lognormal(0.0, 0.8, 2000) - 0.7)[:, None]
        density, weights, nothing = np.full((2000, 1), 0.05), np.ones((2000, 1)), np.zeros((2000, 1))
        model, last = initial_model(np.array([3.0]), np.array([0.1])), -np.inf
        for count in range(30):
            mixture = (1 - model.mixing) * clean_density(residuals, model) + model.mixing * density
            now = float(np.log(mixture).sum())
            assert now > last - 1e-9 * abs(now), f"seed {seed}, step {count}"
            last, tails = now, model.tails
            seen = e_step(residuals, nothing, density, weights, model)
            model = m_step(model, seen.statistics, np.array([0.3]))._replace(tails=tails)


@pytest.mark.parametrize(
    ("noise", "degrees", "skew"),
    [
        ("gaussian", (12.0, 60.0), (0.85, 1.15)),
        ("heavy", (2.5, 4.0), (0.85, 1.15)),
        ("skewed", (2.5, 60.0), (2.0, 4.0)),
    ],
)
def test_tails_skew_and_bad_samples_are_found(noise, degrees, skew):
    m = 20000
    for seed in range(2):
        rng = np.random.default_rng(seed)
        draw = {
            "gaussian": lambda rng=rng: rng.standard_normal(m),
            "heavy": lambda rng=rng: rng.standard_t(3, m),
            # Its mode, where the two halves of the law meet.
            "skewed": lambda rng=rng: rng.lognormal(0.0, 0.6, m) - np.exp(-0.36),
        }[noise]
        residuals = draw()[:, None]
        residuals[: m // 10, 0] = rng.uniform(20, 30, m // 10)
        density, weights, nothing = np.full((m, 1), 0.005), np.ones((m, 1)), np.zeros((m, 1))
        model, most = initial_model(np.array([2.0]), np.array([0.2])), np.array([0.2])
        for _ in range(100):
            seen = e_step(residuals, nothing, density, weights, model)
            model = m_step(model, seen.statistics, most)
        assert degrees[0] <= model.degrees[0] <= degrees[1] + 1e-9, f"seed {seed}"
        assert skew[0] <= model.skews[0] <= skew[1] + 1e-9, f"seed {seed}"
        assert model.mixing[0] == pytest.approx(0.1, abs=0.02), f"seed {seed}"
        assert seen.clean[: m // 10].max() < 0.5 < np.median(seen.clean[m // 10 :]), f"seed {seed}"
        counted, _ = classify(residuals, nothing, density, weights, model, most)
        assert np.mean(counted < 0.5) == pytest.approx(0.1, abs=0.01), f"seed {seed}"


def test_a_share_of_bad_samples_stays_between_the_least_and_the_stated_one():
    residuals = np.concatenate((np.random.default_rng(0).standard_normal(800), np.full(200, 50.0)))[:, None]
    model, nothing, weights = initial_model(np.ones(1), np.array([0.1])), np.zeros((1000, 1)), np.ones((1000, 1))
    for which, most, expected in (("bad", 0.05, 0.05), ("all", 0.3, 0.2)):
        seen = e_step(residuals, nothing, np.full((1000, 1), 0.01), weights, model)
        renewed = m_step(model, seen.statistics, np.array([most]))
        assert renewed.mixing[0] == pytest.approx(expected, abs=0.02), which
    trusted = e_step(residuals[:800], nothing[:800], np.full((800, 1), 1e-9), weights[:800], model)
    assert m_step(model, trusted.statistics, np.array([0.3])).mixing[0] == NOISE.least_share


def test_bad_samples_are_counted_in_company_as_alone(rng):
    residuals = rng.standard_t(3, (500, 4)) * [1.0, 2.0, 0.5, 4.0]
    residuals[:40, 1:] += rng.uniform(2, 30, (40, 3))
    density, weights, spreads = np.full((500, 1), 0.02), np.ones((500, 1)), np.full((500, 4), 0.1)
    model, most = initial_model(np.full(4, 1.5), np.full(4, 0.1)), np.full(4, 0.2)
    together, _ = classify(residuals, spreads, density, weights, model, most)
    for k in range(4):
        # Twice the same: a single column is counted in double precision.
        pair = np.array([k, k])
        alone, _ = classify(residuals[:, pair], spreads[:, pair], density, weights, model.only(pair), most[pair])
        assert_allclose(together[:, k], alone[:, 0], rtol=1e-4, err_msg=f"column {k}")


def test_the_unit_of_the_residuals_does_not_matter(rng):
    residuals, spreads = rng.standard_t(3, (300, 3)), rng.uniform(0, 1, (300, 3))
    density, weights, most = rng.uniform(0.1, 0.5, (300, 1)), np.ones((300, 1)), np.full(3, 0.3)
    here, _ = classify(residuals, spreads, density, weights, MODEL, most)
    for unit in (1e-8, 1e8):
        model = MODEL._replace(scales=unit * MODEL.scales)
        there, _ = classify(unit * residuals, unit**2 * spreads, density / unit, weights, model, most)
        assert_allclose(there, here, atol=1e-5, err_msg=f"unit {unit}")
