"""Standard errors: intervals that hold as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval
from robustphase.estimator.standard_errors import influence_slopes
from robustphase.likelihood import NoiseModel, e_step
from robustphase.rows import as_source
from robustphase.simulate import make_world

NOISES = ("gaussian", "student", "pareto", "lognormal")
ATTACKS = ("none", "huge", "decoy", "leverage", "erase")


def covered(noise, attack, seed, noise_mean="zero"):
    background = 3.0 if noise_mean == "unknown" else 0.0
    level = 0.0 if attack == "none" else 0.1
    world = make_world(20, 1000, contamination=level, attack=attack, noise=noise, noise_mean=background, seed=seed)
    model = RobustPhaseRetrieval(0.1, noise_mean=noise_mean).fit(*world)
    signal = model.signal_ * np.sign(model.signal_ @ world.truth)
    return np.abs(signal - world.truth) < 1.96 * model.standard_errors(*world)


def test_nominal_95_percent_intervals_hold_95_times_in_a_hundred():
    hits = {
        noise: np.concatenate([covered(noise, attack, seed) for attack in ATTACKS for seed in seeds(2, 4)])
        for noise in NOISES
    }
    # 800 nearly independent entries at true coverage 0.95 have a standard deviation of 0.0077: a quarter of the bounds.
    pooled = np.mean(list(hits.values()))
    assert 0.92 <= pooled <= 0.98
    # 200 entries each, standard deviation 0.015; the same worlds are shared between attacks, so allow for three of them.
    for noise, hit in hits.items():
        assert 0.90 <= hit.mean() <= 0.995, noise


def test_a_fitted_background_does_not_spoil_them():
    hits = np.concatenate([covered(noise, "decoy", seed, "unknown") for noise in NOISES for seed in seeds(2, 4)])
    # 160 entries, standard deviation 0.017.
    assert 0.90 <= hits.mean() <= 0.995


def test_they_scale_with_the_signal_and_shrink_with_the_sample():
    small, large = (make_world(15, 600, attack="leverage", norm=norm, seed=0) for norm in (1e-6, 1e6))
    errors = [RobustPhaseRetrieval().fit(*world).standard_errors(*world) for world in (small, large)]
    assert_allclose(errors[1], 1e12 * errors[0], rtol=1e-6)
    many = make_world(15, 5400, attack="leverage", norm=1e6, seed=0)
    ratio = RobustPhaseRetrieval().fit(*many).standard_errors(*many).mean() / errors[1].mean()
    # Nine times the samples: a third, up to the error of the estimates themselves.
    assert 0.2 < ratio < 0.5


@pytest.mark.parametrize(("degrees", "skew"), [(2.5, 1.0), (4.0, 3.0), (40.0, 0.5)])
def test_slopes_are_the_derivative_of_the_influence(rng, degrees, skew):
    noise = NoiseModel(*(np.array([value]) for value in (0.7, 1 / degrees, np.log(skew), 0.1)))
    residuals = (0.7 * rng.standard_t(3, 500))[:, None]

    def judged(r, spreads):
        return e_step(r, spreads, np.full((500, 1), 0.05), np.ones((500, 1)), noise)

    h, one = 1e-6, NoiseModel(*(part[0] for part in noise))
    # With and without variances of the predictions, which are held while a residual moves.
    for spreads in (np.zeros((500, 1)), 0.1 * rng.random((500, 1))):
        up, down = (judged(residuals + d, spreads).weights * (residuals + d) for d in (h, -h))
        seen, numeric = judged(residuals, spreads), (up - down)[:, 0] / (2 * h)
        found = influence_slopes(residuals[:, 0], seen.clean[:, 0], seen.weights[:, 0], one)
        inside = np.abs(residuals[:, 0]) > 2 * h
        assert_allclose(found[inside], numeric[inside], atol=1e-5)


def test_they_need_the_data_of_a_polished_fit(world):
    rough = RobustPhaseRetrieval(polish=False).fit(*world)
    with pytest.raises(ValueError, match="polish=True"):
        rough.standard_errors(*world)
    model = RobustPhaseRetrieval().fit(*world)
    with pytest.raises(ValueError, match=r"the data of the fit, 1000 samples, got 999"):
        model.standard_errors(world.A[:-1], world.y[:-1])
    with pytest.raises(ValueError, match="not followed by partial_fit"):
        model.partial_fit(*world).standard_errors(*world)


@pytest.mark.parametrize("kind", ["proportional", "root", "counts"])
def test_they_hold_for_noise_that_grows_with_the_signal(kind):
    hits = []
    for seed in seeds(4, 12):
        rng = np.random.default_rng(seed)
        A, x = rng.standard_normal((1000, 20)), rng.standard_normal(20)
        x /= np.linalg.norm(x)
        expected, z = (A @ x) ** 2, rng.standard_normal(1000)
        y = {
            "proportional": expected * (1 + 0.2 * z) + 0.05 * rng.standard_normal(1000),
            "root": expected + 0.2 * np.sqrt(expected) * z + 0.02 * rng.standard_normal(1000),
            "counts": rng.poisson(200 * expected) / 200,
        }[kind]
        model = RobustPhaseRetrieval(0.1).fit(A, y)
        hits.append(np.abs(model.signal_ * np.sign(model.signal_ @ x) - x) < 1.96 * model.standard_errors(A, y))
    # 80 entries, standard deviation 0.024: room for two of them, since the sandwich is right for large m only.
    assert 0.90 <= np.mean(hits) <= 0.995


def test_they_are_refused_where_the_model_does_not_hold(rng):
    A, x = rng.standard_normal((1000, 20)), np.ones(20) / np.sqrt(20)
    with pytest.warns(UserWarning, match="power of the responses"):
        model = RobustPhaseRetrieval().fit(A, 10 * np.abs(A @ x))
    with pytest.raises(ValueError, match=r"need a model that holds, and \"power of the responses\" failed"):
        model.standard_errors(A, 10 * np.abs(A @ x))


def test_they_read_the_data_three_times(world):
    model, source = RobustPhaseRetrieval().fit(*world), as_source(world.A)
    model.standard_errors(source, world.y)
    # One pass looks for numbers that cannot be computed with.
    assert source.passes == 3
