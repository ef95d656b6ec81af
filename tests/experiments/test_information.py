"""The error that no method avoids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import robustphase as rp
from robustphase.experiments import indistinguishable_distance, total_variation, unavoidable_error
from robustphase.experiments.information import variation_of_shifts
from robustphase.experiments.theory import FARTHEST, floor
from robustphase.simulate import NOISES, Noise

LAWS = [name for name, law in NOISES.items() if law.cdf is not None]


def test_a_step_beside_the_signal_hides_as_far_as_was_computed_by_simulation(case):
    for level, half in [(0.05, 0.05), (0.1, 0.107), (0.2, 0.27)]:
        with case(level, half):
            # From a million simulated rows: 0.0504, 0.1074 and 0.2700.
            assert_allclose(indistinguishable_distance(level) / 2, half, rtol=0.02)


def test_for_real_signals_and_gaussian_noise_it_is_the_closed_form(case):
    for noise_std in [0.1, 0.5, 1.0]:
        for level in [0.02, 0.05, 0.1, 0.2]:
            with case(noise_std, level):
                assert_allclose(unavoidable_error(level, noise_std=noise_std), floor(noise_std, level), rtol=0.01)


def test_it_is_at_least_that_of_every_pair_it_could_have_chosen():
    for angle in (0.1, 0.3, 0.6, 1.0):
        for norm in (1.0, 1.05, 1.2):
            second = (norm * math.cos(angle), norm * math.sin(angle))
            level = total_variation(second) / 2
            relative = math.dist((1.0, 0.0), second) / (1 + norm)
            assert unavoidable_error(level) >= 0.995 * relative


@pytest.mark.parametrize("name", LAWS)
def test_total_variation_is_half_the_integral_of_the_difference_of_the_densities(name):
    law = NOISES[name]
    shift = 0.7
    values = np.concatenate([-np.geomspace(1e-6, 200, 10000)[::-1], np.geomspace(1e-6, 200, 10000)])
    middle, lengths = (values[1:] + values[:-1]) / 2, np.diff(values)
    densities = [np.exp(law.log_density(middle - by)) for by in (0.0, shift)]
    expected = np.sum(np.abs(densities[0] - densities[1]) * lengths) / 2
    assert_allclose(np.interp(shift, *variation_of_shifts(law)), expected, rtol=0.01)


def test_density_and_distribution_are_those_of_the_draws(case):
    for name in LAWS:
        with case(name):
            law = NOISES[name]
            draws = np.sort(law.standard(np.random.default_rng(0), 20000))
            places = np.array([500, 5000, 10000, 15000, 19500])
            # 99.9% of the largest deviations of 20000 draws are below 1.95/√20000 = 0.014.
            assert np.max(np.abs(law.cdf(draws[places]) - places / 20000)) < 0.014
            step = 1e-4
            at = draws[places[1:4]]
            slope = (law.cdf(at + step) - law.cdf(at - step)) / (2 * step)
            assert_allclose(np.exp(law.log_density(at)), slope, rtol=1e-4)


def test_complex_signals_and_other_noises_have_limits_of_their_own():
    assert unavoidable_error(0.1, field="complex") > unavoidable_error(0.1)
    # A law with a sharp peak tells small shifts apart.
    assert unavoidable_error(0.1, "lognormal") < 0.5 * unavoidable_error(0.1)


def test_an_unknown_background_never_helps_the_method():
    for name in ("gaussian", "pareto"):
        known, unknown = (unavoidable_error(0.1, name, noise_mean=mean) for mean in ("zero", "unknown"))
        assert unknown >= known * (1 - 1e-6)
    longer = (1.3, 0.0)
    assert total_variation(longer, unknown=True) < total_variation(longer)


def test_nothing_is_unavoidable_without_noise_or_contamination_and_a_right_angle_is_the_most_of_equal_norms():
    assert unavoidable_error(0.0) == unavoidable_error(0.1, noise_std=0.0) == unavoidable_error(0.1, "none") == 0.0
    # Signals of different norm at a right angle are a little farther apart than those of equal norm, relative to their norms.
    assert FARTHEST / 2 <= unavoidable_error(0.45) < 0.75


def test_a_noise_without_a_distribution_function_is_refused():
    with pytest.raises(ValueError, match="no distribution function"):
        unavoidable_error(0.1, Noise("own", "Mine.", rp.simulate.NOISES["gaussian"].standard))
    with pytest.raises(ValueError, match=r"Did you mean 0\.1"):
        unavoidable_error(10)
