"""Certificates from the influence of the fitted law: as sharp as the answer under heavy tails, and not fooled by what hides."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.effort import THOROUGH, seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.experiments.red_team import KNOWN
from robustphase.likelihood.noise_model import NoiseModel
from robustphase.recover.certificate import Answers, Bounded, certify
from robustphase.recover.influence import lost_and_hidden, pseudo_responses
from robustphase.rows import MemoryRows
from robustphase.simulate import make_world


def law(scale=0.5, tail=0.2, skew=1.0, k=1):
    return NoiseModel(*(np.full(k, value) for value in (scale, tail, np.log(skew), 0.1)))


@pytest.mark.parametrize("skew", [0.5, 1.0, 3.0])
def test_influences_are_the_derivative_of_the_log_density_and_slopes_theirs(skew):
    noise, step = law(skew=skew), 1e-5
    r = np.array([-3.0, -0.4, -0.01, 0.02, 0.7, 5.0])[:, np.newaxis]
    influences, slopes = noise.influences(r)
    numerical = -(np.log(noise.density(r + step)) - np.log(noise.density(r - step))) / (2 * step)
    assert_allclose(influences, numerical, rtol=1e-5)
    assert_allclose(slopes, (noise.influences(r + step)[0] - noise.influences(r - step)[0]) / (2 * step), rtol=1e-5)
    assert (slopes <= noise.steepest).all()
    assert_allclose(noise.influences(np.array([[-1e-12], [1e-12]]))[1].max(), noise.steepest)


def test_flagged_samples_no_longer_hide_and_clean_ones_among_them_are_lost():
    weights = np.ones((100, 3))
    weights[:10, 1] = 0.0
    weights[:10, 2] = 0.2
    shares = lost_and_hidden(np.full(3, 0.1), weights)
    assert_allclose(shares.lost, [0.1, 0.1, 0.12])
    assert_allclose(shares.hidden, [0.1, 0.0, 0.02], atol=1e-12)


def test_pseudo_responses_of_normal_noise_are_the_responses_and_bounded_for_heavy_tails():
    rng = np.random.default_rng(0)
    predictions = rng.chisquare(1, (4000, 1))
    residuals = 0.5 * rng.standard_normal((4000, 1))
    residuals[0] = 1e6
    keep = np.ones((4000, 1), bool)
    keep[1] = False
    normal, heavy = (
        pseudo_responses(predictions + residuals, predictions, keep, law(tail=tail), np.zeros(1)) - predictions
        for tail in (1e-6, 0.3)
    )
    assert_allclose(normal[2:], residuals[2:], rtol=0.01)
    assert np.abs(heavy[keep]).max() < 3
    assert_array_equal((normal + predictions)[1], 0)


def test_hidden_samples_may_have_made_the_influence_steep():
    rng = np.random.default_rng(1)
    predictions, noise = rng.chisquare(1, (4000, 1)), rng.standard_t(5, (4000, 1))
    keep = np.ones((4000, 1), bool)
    sizes = [
        np.abs(
            pseudo_responses(predictions + 0.5 * noise, predictions, keep, law(), np.array([h])) - predictions
        ).mean()
        for h in (0.0, 0.1, 0.3)
    ]
    assert sizes[0] < sizes[1] < sizes[2]
    # A sample that stands where the noise is thickest has the slope of the peak: with it all of them, nothing is bounded.
    nothing = pseudo_responses(predictions + 0.5 * noise, predictions, keep, law(), np.ones(1))
    assert np.abs(nothing - predictions).mean() > 1e4 * sizes[0]


def test_pseudo_responses_are_looked_at_in_the_passes_of_the_responses():
    world = make_world(15, 1200, contamination=0.1, attack="huge", seed=3)
    weights = np.where(world.touched, 0.0, 1.0)[:, np.newaxis]
    source = MemoryRows(world.A)
    answers = Answers(
        source, world.y[:, np.newaxis], weights, world.truth[:, np.newaxis], np.zeros(1), np.array([0.1]), False
    )
    plain = certify(answers)
    before = source.passes
    certify(answers)
    needed = source.passes - before
    both = certify(answers, Bounded(world.y[:, np.newaxis], np.array([0.1]), np.array([0.0])))
    assert source.passes - before == 2 * needed
    assert_allclose(both.radii, plain.radii)
    assert plain.pulls is None
    assert both.pulls is not None
    # The tails of the same gradients, but for the curvature along the signal where the background is free.
    assert_allclose(both.pulls.bad, plain.gradients.tails, rtol=0.5)


@pytest.mark.parametrize("noise", ["pareto", "lognormal"])
def test_under_heavy_tails_the_certificate_is_a_few_errors_wide(noise):
    """Squared residuals made it more than ten errors wide."""
    for seed in seeds(2, 8):
        world = make_world(60, 3000, contamination=0.1, attack="leverage", noise=noise, seed=seed)
        model = RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        error = distance(model.signal_, world.truth, relative=True)
        assert error < model.certificate_ < 8 * error, f"seed {seed}"


NOISES, LEVELS = ("gaussian", "student", "lognormal"), (0.05, 0.1)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("level", LEVELS)
def test_no_attack_that_is_known_errs_by_more_than_the_certificate(noise, level):
    turn = NOISES.index(noise) + LEVELS.index(level)
    for seed in seeds(1, 6):
        for place, attack in enumerate(KNOWN):
            # Each with every noise, at one of the levels by turns, unless there is time.
            if not THOROUGH and (place + turn) % 2:
                continue
            world = make_world(
                50, 2500, contamination=level, attack=attack.adversary, noise=noise, seed=100 * seed + place
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # A warning would be as good.
                model = RobustPhaseRetrieval(level).fit(world.A, world.y)
            reached = distance(model.signal_, world.truth, relative=True)
            assert reached < model.certificate_, f"attack {place}, seed {seed}"


def test_what_is_not_flagged_may_hide_and_widens_the_certificate():
    world = make_world(40, 3000, contamination=0.1, attack="huge", seed=0)
    told, more = (RobustPhaseRetrieval(level).fit(world.A, world.y).certificate_ for level in (0.1, 0.2))
    assert more > 1.5 * told
