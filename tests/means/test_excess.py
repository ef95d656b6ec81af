"""What is an excess: quartiles that do not depend on signs and copies, and far ends that are taken until it is gone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustphase.means.excess import (
    OPTIONS,
    Excess,
    distinct_count,
    excess_of,
    far_end,
    limits_for,
    one_sided,
    quartile_spread,
    take_excess,
)


@given(seed=st.integers(0, 999), count=st.integers(1, 60))
def test_quartiles_do_not_depend_on_the_sign_and_not_on_copies(seed, count):
    values = np.random.default_rng(seed).standard_normal(count)
    spread, mirrored = quartile_spread(values), quartile_spread(-values)
    assert mirrored.variance == pytest.approx(spread.variance)
    assert mirrored.median == pytest.approx(-spread.median)
    assert quartile_spread(np.repeat(values, 2)) == spread
    assert distinct_count(np.repeat(np.abs(values), 3)) == count


def test_the_ratio_of_normal_values_is_one_and_outliers_raise_it(rng):
    values = rng.standard_normal(20_000)
    # The ratio of variance to quartile variance of 20000 normal values is known to about 0.02.
    assert excess_of(values, 1.0).ratio == pytest.approx(1.0, abs=0.1)
    assert excess_of(values, 2.0).ratio == pytest.approx(0.5, abs=0.05)
    values[:1000] = 6.0
    assert excess_of(values, 1.0).ratio > 2
    coinciding = np.r_[np.zeros(90), np.ones(10)]
    assert excess_of(coinciding, 1.0).ratio == np.inf
    assert excess_of(np.zeros(50), 1.0).ratio == 1.0


def brute_far_end(values, excess, room):
    """Take the farthest value again and again, until the variance is explained or there is no room."""
    order = np.argsort(-np.abs(values - excess.median), kind="stable")
    for count in range(1, room + 1):
        if np.delete(values, order[:count]).var() <= excess.explained:
            break
    return order[:count]


@given(seed=st.integers(0, 999), room=st.integers(1, 30))
def test_the_far_end_is_what_has_to_go_and_no_more(seed, room):
    rng = np.random.default_rng(seed)
    values = np.r_[rng.standard_normal(80), 5 + rng.standard_normal(20)]
    excess = excess_of(values, 0.9)
    assert set(far_end(values, excess, room)) == set(brute_far_end(values, excess, room))


def test_values_at_equal_distance_go_together_and_those_at_the_median_stay():
    values = np.r_[np.zeros(90), np.full(10, 3.0)]
    assert set(far_end(values, Excess(np.inf, 0.0, 0.0), 4)) == set(range(90, 100))
    assert far_end(np.zeros(50), Excess(np.inf, 0.0, 0.0), 20).size == 0
    assert far_end(values, Excess(np.inf, 0.0, 0.0), 0).size == 0


def test_a_group_is_one_sided_by_its_sum_or_by_its_count(rng):
    everyone = rng.standard_normal((1000, 2))
    pairs = np.vstack((np.full((20, 2), 4.0), np.full((20, 2), -4.0)))
    assert not one_sided(pairs, everyone)
    assert one_sided(np.full((40, 2), 4.0), everyone)
    # 40 to 4, of which the 4 lie ten times as far: balanced by sum, not by count.
    assert one_sided(np.vstack((np.full((40, 1), 4.0), np.full((4, 1), -40.0))), everyone[:, :1])
    # Copies are no evidence: 16 of each point leave two and a half points that lean.
    assert not one_sided(np.full((40, 2), 4.0), everyone, copies=16.0)


def test_the_stated_contamination_is_the_limit_unless_the_excess_is_blatant(rng):
    values = rng.standard_normal((1000, 1))
    values[:100] = 4.0
    distances = np.abs(values[:, 0])
    usual = 0.5  # with it the excess is blatant
    assert excess_of(values[:, 0], usual).ratio > OPTIONS.blatant
    outcomes = {}
    for strict in (True, False):
        keep = np.ones(1000, bool)
        taken, explained = take_excess(values, keep, distances, usual, limits_for(distances, 0.1, strict=strict))
        assert taken == 1000 - keep.sum()
        outcomes[strict] = taken, explained
    # The hundred copies share their fate, and use up the budget of a hundred.
    assert outcomes[True] == (100, False)
    assert outcomes[False][0] > 100
    assert outcomes[False][1]
