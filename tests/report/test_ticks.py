"""Round ticks, labels that tell them apart, ranges that hold the data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from robustphase.report.ticks import Axis, domain, log_ticks, nice_ticks, tick_labels

numbers = st.floats(-1e12, 1e12, allow_nan=False)
most_ticks = st.integers(2, 12)


@st.composite
def ranges(draw):
    low, high = sorted((draw(numbers), draw(numbers)))
    assume(high - low > 1e-9 * max(abs(low), abs(high)) and high - low > 1e-250)
    return low, high


@st.composite
def positive_ranges(draw):
    start, length = draw(st.floats(-200, 200)), draw(st.floats(1e-3, 60))
    return 10**start, 10 ** (start + length)


@given(ends=ranges(), most=most_ticks)
def test_ticks_lie_inside_in_order_and_evenly(ends, most):
    ticks = nice_ticks(*ends, most)
    room = 1e-8 * (ends[1] - ends[0])
    assert 1 <= ticks.size <= most
    assert ends[0] - room <= ticks.min()
    assert ticks.max() <= ends[1] + room
    gaps = np.diff(ticks)
    assert (gaps > 0).all()
    assert_allclose(gaps, gaps[:1].repeat(gaps.size), rtol=1e-6, atol=1e-9 * max(abs(ends[0]), abs(ends[1])))


@given(ends=ranges())
def test_there_are_at_least_two_ticks_where_six_are_allowed(ends):
    # The next finer step, at most two and a half times smaller, gave seven, so the range holds at least 2.4 steps.
    assert nice_ticks(*ends, 6).size >= 2


@given(ends=ranges(), most=most_ticks)
def test_steps_are_one_two_or_five_times_a_power_of_ten(ends, most):
    ticks = nice_ticks(*ends, most)
    if ticks.size > 2:
        step = (ticks[-1] - ticks[0]) / (ticks.size - 1)
        mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
        tolerance = 1e-6 + 1e-9 * max(abs(ends[0]), abs(ends[1])) / step
        assert min(abs(mantissa - digit) for digit in (1, 2, 5, 10)) < 10 * tolerance


@given(ends=ranges(), most=most_ticks, power=st.integers(-20, 20))
def test_ticks_follow_a_change_of_units(ends, most, power):
    here, there = nice_ticks(*ends, most), nice_ticks(ends[0] * 10.0**power, ends[1] * 10.0**power, most)
    # Rounding may decide differently on a tick that coincides with an end.
    assert abs(here.size - there.size) <= 1
    if here.size == there.size:
        assert_allclose(there, here * 10.0**power, rtol=1e-6, atol=1e-6 * (ends[1] - ends[0]) * 10.0**power)


@given(ends=positive_ranges(), most=most_ticks)
def test_logarithmic_ticks_lie_inside_and_in_order(ends, most):
    ticks = log_ticks(*ends, most)
    assert 1 <= ticks.size <= max(most, 2)
    assert ends[0] * (1 - 1e-8) <= ticks.min()
    assert ticks.max() <= ends[1] * (1 + 1e-8)
    assert (np.diff(ticks) > 0).all()


@given(ends=ranges(), most=most_ticks)
def test_no_two_ticks_have_the_same_label(ends, most):
    ticks = nice_ticks(*ends, most)
    labels = tick_labels(ticks)
    assert len(set(labels)) == ticks.size


@given(ends=positive_ranges(), most=most_ticks)
def test_no_two_logarithmic_ticks_have_the_same_label(ends, most):
    ticks = log_ticks(*ends, most)
    assert len(set(tick_labels(ticks, log=True))) == ticks.size


@pytest.mark.parametrize(
    ("ticks", "log", "expected"),
    [
        ([0, 0.5, 1], False, ["0.0", "0.5", "1.0"]),
        ([-2, 0, 2], False, ["−2", "0", "2"]),
        ([2000, 4000], False, ["2000", "4000"]),
        ([1e-7, 2e-7], False, ["1×10⁻⁷", "2×10⁻⁷"]),
        ([1e-6, 1e-3, 1], True, ["10⁻⁶", "10⁻³", "1"]),
        ([0.05, 0.1, 0.2], True, ["0.05", "0.1", "0.2"]),
        ([], False, []),
        ([0.0], False, ["0"]),
    ],
    ids=str,
)
def test_labels_are_short(ticks, log, expected):
    assert tick_labels(np.array(ticks, float), log=log) == expected


@given(values=st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=20), log=st.booleans())
def test_a_range_holds_all_values_that_can_be_drawn(values, log):
    array = np.array(values, float)
    low, high = domain(array, log=log)
    assert low < high
    assert math.isfinite(high - low)
    seen = array[np.isfinite(array) & ((array > 0) | (not log))]
    assert ((seen >= low) & (seen <= high)).all()


def test_bars_begin_at_zero():
    assert domain(np.array([3.0, 7.0]), from_zero=True)[0] == 0
    assert domain(np.array([-3.0, -7.0]), from_zero=True)[1] == 0
    assert domain(np.array([0.0]), from_zero=True)[0] == 0


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0)])
def test_a_range_without_length_is_refused(ends):
    with pytest.raises(ValueError, match="two finite numbers in order"):
        nice_ticks(*ends)


def test_a_logarithmic_range_must_be_positive():
    with pytest.raises(ValueError, match="two positive numbers"):
        log_ticks(0.0, 1.0)


@given(ends=positive_ranges(), log=st.booleans())
def test_an_axis_maps_its_ends_to_its_pixels(ends, log):
    axis = Axis(*ends, 10.0, 300.0, log)
    assert_allclose(axis(ends), (10.0, 300.0), rtol=1e-9)
