"""Fewer marks, the same on every run."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robustphase.plot.axes import budgets, chosen_points, chosen_vertices


@given(count=st.integers(0, 5000), most=st.integers(1, 3000))
def test_points_are_chosen_in_order_without_repetition_and_reproducibly(count, most):
    chosen = chosen_points(count, most)
    assert chosen.size == min(count, most)
    assert (np.diff(chosen) > 0).all()
    assert np.array_equal(chosen, chosen_points(count, most))


@given(seed=st.integers(0, 100), count=st.integers(1, 5000), most=st.integers(4, 500))
def test_a_downsampled_line_keeps_its_ends_and_its_peaks(seed, count, most):
    y = np.random.default_rng(seed).standard_normal(count)
    kept = chosen_vertices(y, most)
    assert kept.size <= most
    assert (kept[0], kept[-1]) == (0, count - 1)
    assert (y[kept].min(), y[kept].max()) == (y.min(), y.max())


def test_gaps_of_a_line_survive_downsampling():
    y = np.sin(np.linspace(0, 9, 9000))
    y[3000:6000] = np.nan
    kept = chosen_vertices(y, 600)
    inside = (kept > 3100) & (kept < 5900)
    assert inside.any()
    assert np.isnan(y[kept[inside]]).all()


@given(counts=st.lists(st.integers(0, 4000), min_size=1, max_size=6), most=st.integers(6, 3000))
def test_budgets_keep_small_sets_whole_and_spend_everything(counts, most):
    shares = budgets(counts, most)
    assert all(0 <= share <= count for share, count in zip(shares, counts, strict=True))
    assert sum(shares) == min(sum(counts), most)
    cut = [share for share, count in zip(shares, counts, strict=True) if share < count]
    # Whoever was cut got at least as much as whoever was not.
    assert all(share <= min(cut) + 1 for share in shares) if cut else True
