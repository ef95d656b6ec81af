"""Residuals that depend on the prediction give their range away; chance, few samples and a hair do not."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from robustphase.descend.consistency import CONSISTENCY, contradicting_ranges, in_ranges, relative_energies
from robustphase.descend.likelihood_fit import LikelihoodFit
from robustphase.descend.objective import State
from robustphase.likelihood import initial_model
from robustphase.problem import Problem
from robustphase.rows import MemoryRows


def consistent(projections, residuals, weights=None, scale=0.3):
    """The verdict on columns of projections on signals of norm one, and of residuals at this scale of the noise."""
    s, r = projections.reshape(len(projections), -1), residuals.reshape(len(residuals), -1)
    k, ones = s.shape[1], np.ones_like(r)
    noise = initial_model(np.broadcast_to(np.asarray(scale, float), k), np.full(k, 0.1))
    state = State(np.ones((1, k)), np.zeros(k), noise, np.zeros(k))
    fit = LikelihoodFit(state, s, r, ones, ones, 0 * ones, (), ones[:1], [], np.ones(k, bool))
    w = np.ones((len(r), 1)) if weights is None else weights[:, None]
    problem = Problem(MemoryRows(np.ones((len(r), 1))), r, w, ones, np.full(k, 0.1), np.ones(k), False)
    return ~in_ranges(relative_energies(s, state.signals), contradicting_ranges(problem, fit))


def draw(seed, m=5000):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(m), 0.3 * rng.standard_normal(m)


def test_samples_whose_residuals_depend_on_the_prediction_are_given_up():
    for seed in range(3):
        s, noise = draw(seed)
        assert consistent(s, noise).all(), f"seed {seed}"
        kept = consistent(s, np.where(np.abs(s) > 2, noise - 1.5, noise))[:, 0]
        assert not kept[np.abs(s) > 2].any(), f"seed {seed}"
        assert kept[np.abs(s) < 1.6].all(), f"seed {seed}"


def test_ranges_with_few_samples_prove_nothing():
    for seed in range(3):
        s, noise = draw(seed, 300)
        assert consistent(s, noise / 0.6).all(), f"seed {seed}"
        crowded = 1.1 + 0.05 * np.random.default_rng(seed).random(100)
        assert consistent(crowded, noise[:100]).all(), f"seed {seed}"


def test_with_very_many_samples_a_hair_is_not_a_contradiction_and_a_lie_still_is():
    s, noise = draw(0, 10**6)
    outside = np.abs(s) > 2
    # A shift of a thirtieth of the noise is 7 standard errors for 45000 samples, and of a fifteenth 14.
    for shift in (0.01, 0.02):
        assert consistent(s, noise - shift * outside).all(), f"shift {shift}"
    kept = consistent(s, noise - 0.3 * outside)[:, 0]
    assert_array_equal(kept, ~outside)


def test_a_slope_that_all_ranges_share_is_no_contradiction():
    for seed in range(3):
        s, noise = draw(seed)
        # A signal that is a little too short leaves residuals in proportion to the prediction.
        assert consistent(s, noise + 0.1 * s**2).all(), f"seed {seed}"


def test_samples_without_weight_have_no_say():
    s, noise = draw(1)
    spoilt = (np.abs(s) > 2) & (np.arange(s.size) % 2 == 0)
    weights = np.where(spoilt, 0.0, 1.0)
    assert consistent(s, np.where(spoilt, 1e6, noise), weights).all()


def test_every_column_has_a_verdict_of_its_own():
    s, noise = draw(2)
    shifted = np.where(np.abs(s) > 2, noise - 1.5, noise)
    both = consistent(np.stack((s, s), axis=1), np.stack((noise, shifted), axis=1))
    assert both[:, 0].all()
    assert_array_equal(both[:, [1]], consistent(s, shifted))


def test_data_without_noise_is_not_tested():
    s, _ = draw(0)
    tiny = 0.1 * CONSISTENCY.rounding
    assert consistent(s, np.where(np.abs(s) > 2, tiny, 0.0), scale=tiny).all()
