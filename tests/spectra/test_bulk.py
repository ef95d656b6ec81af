"""Covariances where nearly a third of the points are bad, together and on one side."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.poison import clean_error, operator_error, poisoned
from numpy.testing import assert_allclose
from tests.effort import seeds

import robustphase as rp
from robustphase.spectra.bulk import shortest_half, take_groups, too_many_for_quartiles


def test_the_shortest_half_of_normal_points_is_amid_them(rng):
    # The middle is known to about N^(-1/3), the variance to about 4/√N.
    middle, variance = shortest_half(3 + 2 * rng.standard_normal(20000))
    assert_allclose([middle, variance], [3, 4], atol=0.5)


def test_a_third_on_one_side_does_not_move_the_shortest_half(rng):
    values = np.concatenate((rng.standard_normal(7000), 50 + rng.standard_normal(3000)))
    middle, variance = shortest_half(values)
    assert abs(middle) < 0.3
    assert variance < 3  # half of all is 0.71 of the good ones, which would have 2.5


def test_groups_are_taken_within_the_stated_share(rng):
    along = np.concatenate((rng.standard_normal(700), 20 + rng.standard_normal(300)))[:, np.newaxis]
    keep = np.ones(1000, bool)
    assert take_groups(along, keep, 1.0, 0.3, 0.3)
    assert not keep[700:].any()
    assert keep[:700].mean() > 0.97
    fewer = np.ones(1000, bool)
    take_groups(along, fewer, 1.0, 0.3, 0.1)
    assert fewer.sum() >= 900


def test_small_shares_and_auto_are_left_to_quartiles():
    assert not too_many_for_quartiles(0.1)
    assert not too_many_for_quartiles("auto")
    assert too_many_for_quartiles(0.3)


@pytest.mark.parametrize("kind", ["cluster", "leverage", "mirrored", "copies"])
def test_three_tenths_of_the_rows_on_one_side_are_survived(kind):
    # Seeds 0 to 2 of each: the largest ratio is 1.31 (copies). With quartiles alone the smallest is 15.
    for seed in seeds(1, 3):
        world = poisoned(kind, 2000, 60, 0.3, "geometric", seed=seed)
        model = rp.RobustCovariance(contamination=0.3).fit(world.points)
        assert operator_error(model.covariance_, world.truth) < 1.4 * clean_error(world)
        assert model.weights_[world.bad].mean() < 0.1


def test_the_mean_of_the_rest_may_be_known(rng):
    world = poisoned("leverage", 1000, 20, 0.3, "geometric")
    model = rp.RobustCovariance(contamination=0.3, assume_centered=True).fit(world.points)
    assert_allclose(model.location_, 0)
    assert operator_error(model.covariance_, world.truth) < 1.2 * clean_error(world)


def test_clean_points_keep_their_covariance_at_a_large_share(rng):
    points = rng.standard_normal((3000, 20))
    model = rp.RobustCovariance(contamination=0.3).fit(points)
    assert model.contamination_ == 0
