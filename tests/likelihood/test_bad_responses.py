"""The density of bad responses: that of all responses at first, that of the doubted ones later."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from robustphase.likelihood import response_density


def everybody(y):
    return np.ones((y.size, 1))


def test_the_density_is_close_to_the_true_one():
    for seed in range(3):
        y = np.random.default_rng(seed).standard_normal(20000)
        density = response_density(y[:, None], everybody(y))[:, 0]
        inner = np.abs(y) < 1
        # 2 % of the samples on either side: a local mean over 800 spacings, good to about 4 %.
        assert_allclose(density[inner], stats.norm.pdf(y[inner]), rtol=0.25, err_msg=f"seed {seed}")


def test_responses_that_many_share_are_not_surprising(rng):
    y = np.concatenate((rng.standard_normal(4000), np.zeros(1000)))
    density = response_density(y[:, None], everybody(y))[:, 0]
    assert np.isfinite(density).all()
    assert density[4000:].min() > 2 * density[:4000].mean()


def test_the_density_of_doubted_responses_lies_where_they_are():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        clean, bad = rng.standard_normal(18000), rng.uniform(4, 6, 2000)
        doubts = np.concatenate((np.zeros(18000), np.ones(2000)))[:, None]
        density = response_density(np.concatenate((clean, bad))[:, None], doubts)[:, 0]
        # Clean responses next to the bad ones have neighbours among them.
        assert density[:18000][np.abs(clean) < 1.5].max() == 0, f"seed {seed}"
        inner = (bad > 4.5) & (bad < 5.5)
        assert_allclose(density[18000:][inner], 0.5, rtol=0.25, err_msg=f"seed {seed}")


def test_columns_have_densities_of_their_own(rng):
    y, mass = rng.standard_normal((300, 3)) * [1.0, 5.0, 0.2], rng.random((300, 3))
    together = response_density(y, mass)
    for k in range(3):
        assert_allclose(together[:, [k]], response_density(y[:, [k]], mass[:, [k]]))


def test_the_density_does_not_depend_on_the_order_or_on_a_shift_of_the_responses(rng):
    y, mass = rng.standard_normal((500, 1)), rng.random((500, 1))
    density, order = response_density(y, mass), rng.permutation(500)
    assert_allclose(response_density(y[order], mass[order]), density[order])
    assert_allclose(response_density(y + 3.0, mass), density, rtol=1e-9)


def test_nobody_to_be_doubted_is_no_density():
    density = response_density(np.arange(50.0)[:, None], np.zeros((50, 1)))
    assert_allclose(density, 0)
