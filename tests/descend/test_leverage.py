"""Leverages: those of least squares on average, and a law of the noise that does not depend on the number of unknowns."""

from __future__ import annotations

import numpy as np
import pytest

from robustphase.descend.leverage import MOST, leverage_rates
from robustphase.descend.polish import polish
from robustphase.likelihood import cautious_law, response_density
from robustphase.rows import MemoryRows
from robustphase.rows.data import Data
from robustphase.simulate import make_world


def data_of(world):
    y = world.y
    return Data(MemoryRows(world.A), y, np.ones(y.size), response_density(y, 0.1), 0.02, False)


@pytest.mark.parametrize("field", ["real", "complex"])
def test_leverages_are_those_of_least_squares(field):
    world = make_world(40, 800, field=field, seed=3)
    s = world.A @ world.truth
    slopes = 2 * s.conj()[:, None] * world.A
    design = slopes if field == "real" else np.hstack((slopes.real, -slopes.imag))
    exact = np.sum((design @ np.linalg.pinv(design.T @ design)) * design, axis=1)
    law = cautious_law(np.array([1.0]), np.array([0.0]))
    found = leverage_rates(data_of(world), world.truth[:, None], law) * np.abs(s) ** 2
    assert found.sum() == pytest.approx(exact.sum(), rel=0.1)
    assert np.median(np.abs(found - exact)) < 0.2 * exact.mean()


def test_the_mean_leverage_is_bounded_where_samples_are_few():
    world = make_world(40, 50, seed=0)
    law = cautious_law(np.array([1.0]), np.array([0.1]))
    rates = leverage_rates(data_of(world), world.truth[:, None], law)
    assert rates[0] * np.linalg.norm(world.truth) ** 2 == pytest.approx(MOST)


@pytest.mark.parametrize(("field", "m"), [("real", 400), ("complex", 400), ("complex", 3000)])
def test_the_fitted_scale_is_that_of_the_noise_however_few_the_samples(field, m):
    scales, tails = [], []
    for seed in range(8):
        world = make_world(40, m, noise="gaussian", field=field, seed=seed)
        power = np.linalg.norm(world.truth) ** 2
        law = cautious_law(np.array([0.5 * power]), np.array([0.02]))
        done = polish(data_of(world), world.truth[:, None], np.zeros(1), law)
        scales.append(float(done.law.scales[0] * (1 + done.law.skews[0]) / 2 / power))
        tails.append(float(done.law.tails[0]))
    # Without the leverages 400 complex samples give a scale of 0.34, and less than three degrees of freedom.
    assert np.median(scales) == pytest.approx(0.5, rel=0.08)
    assert np.median(tails) < 1 / 6
