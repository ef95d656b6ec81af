"""Shares and laws of bad readings that know the covariates."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.likelihood.bad_responses import CLASSES, bad_classes, classes_of, marginal_law
from robustphase.likelihood.dependent_noise import PoissonLaw
from robustphase.likelihood.laws import Readings


def test_classes_hold_equally_many_usable_samples_the_largest_first():
    order = np.random.default_rng(0).permutation(2000).astype(float)
    weights = np.ones(2000)
    weights[order > 1900] = 0.0
    classes = classes_of(order, weights)
    sizes = np.bincount(classes[weights > 0])
    assert sizes.size == CLASSES.most
    assert np.ptp(sizes) <= 1
    used = weights > 0
    for one in range(CLASSES.most - 1):
        assert order[used & (classes == one)].min() > order[used & (classes == one + 1)].max()


def test_few_samples_are_one_class():
    assert_array_equal(classes_of(np.arange(50.0), np.ones(50)), 0)
    assert_array_equal(classes_of(np.arange(500.0), np.zeros(500)), 0)


def test_the_law_of_bad_counts_follows_the_doubted_ones():
    y = np.concatenate((np.zeros(900), np.full(100, 30.0)))[:, None]
    doubts = (y == 30).astype(float)
    marginal = marginal_law(y, np.ones_like(y), counts=True)
    found = bad_classes(y, marginal, doubts, np.ones_like(y), np.ones_like(y))
    assert found.law[-1, 0] > 5 * marginal[-1, 0]
    assert_allclose((found.prone * np.ones_like(y)).mean(), 1.0)


def test_classes_with_doubted_counts_are_prone_to_be_bad_and_others_are_not():
    rng = np.random.default_rng(1)
    y = rng.poisson(2.0, (3000, 2)).astype(float)
    orders = rng.exponential(1.0, (3000, 2))
    doubts = np.zeros((3000, 2))
    doubts[orders[:, 0] > np.quantile(orders[:, 0], 0.9), 0] = 0.8
    marginal = marginal_law(y, np.ones_like(y), counts=True)
    found = bad_classes(y, marginal, doubts, np.ones((3000, 1)), orders)
    assert_allclose(found.prone[doubts[:, 0] > 0, 0], 10.0)
    assert_allclose(found.prone[doubts[:, 0] == 0, 0], 0.0)
    # Nothing is doubted in the other column, and its law is that of all counts.
    assert_allclose(found.law[:, 1], marginal[:, 1])


def test_a_reading_prone_to_be_bad_needs_less_to_be_doubted():
    y = np.full((2, 1), 4.0)
    prone = np.array([[0.1], [9.0]])
    plain = Readings(y, np.ones_like(y), None, np.zeros_like(y), np.full_like(y, 0.05))
    means = np.full((2, 1), 1.0)
    law = PoissonLaw(np.array([0.1]))
    before = law.judge(plain, means).clean[:, 0]
    after = law.judge(plain._replace(prone=prone), means).clean[:, 0]
    assert after[0] > before[0] > after[1] > 0
    # The odds of being bad are π ρ/(1 − π ρ) times those of the laws.
    odds = (1 - after) / after
    assert_allclose(odds[1] / odds[0], (0.9 / 0.1) / (0.01 / 0.99))
