"""The capped simplex: weights that sum to one, none above the cap, nearest in relative entropy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from robustphase.means.reweight import capped_simplex_projection


@st.composite
def weights_and_cap(draw):
    size = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    # Over many orders of magnitude, as multiplicative updates leave them.
    weights = np.exp(draw(st.floats(0.0, 200.0)) * -rng.random(size))
    return weights, (1.0 + draw(st.sampled_from([0.0, 1e-9, 0.05, 0.5, 10.0]))) / size


def test_the_published_example_is_reproduced():
    projected = capped_simplex_projection(np.array([0.56495992, 0.31297521, 0.12206487]), 0.5)
    assert_allclose(projected, [0.5, 0.35970848, 0.14029152], atol=1e-8)


@given(weights_and_cap())
def test_the_projection_sums_to_one_and_respects_the_cap_and_the_order(case):
    weights, cap = case
    projected = capped_simplex_projection(weights, cap)
    assert_allclose(projected.sum(), 1.0, rtol=1e-9)
    assert projected.max() <= cap * (1 + 1e-12)
    assert projected.min() >= 0
    assert (np.diff(projected[np.argsort(weights)]) >= -1e-15).all()


@given(weights_and_cap(), st.floats(1e-3, 1e3))
def test_only_relative_weights_matter_and_projecting_twice_changes_nothing(case, factor):
    weights, cap = case
    once = capped_simplex_projection(weights, cap)
    assert_allclose(capped_simplex_projection(factor * weights, cap), once, rtol=1e-9, atol=1e-15)
    assert_allclose(capped_simplex_projection(once, cap), once, rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 2**16), size=st.integers(2, 5))
def test_no_other_member_is_closer_in_relative_entropy(seed, size):
    rng = np.random.default_rng(seed)
    weights, cap = rng.random(size) + 0.05, 1.3 / size

    def entropy(w):
        return float((w * np.log(np.maximum(w, 1e-300) / weights)).sum())

    found = minimize(
        entropy,
        np.full(size, 1 / size),
        method="SLSQP",
        bounds=[(0, cap)] * size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert entropy(capped_simplex_projection(weights, cap)) <= found.fun + 1e-7


def test_zero_weights_stay_zero_and_a_cap_that_is_too_low_is_refused():
    assert_allclose(capped_simplex_projection(np.array([0.0, 1.0, 1.0, 2.0]), 0.4), [0, 0.3, 0.3, 0.4])
    with pytest.raises(ValueError, match="cannot sum to one"):
        capped_simplex_projection(np.array([0.0, 1.0, 1.0]), 0.4)


def test_points_without_weight_get_none_even_where_the_rest_exactly_fills_the_cap():
    weights = np.concatenate((np.ones(90), np.full(10, 1e-250)))
    assert capped_simplex_projection(weights, 1 / 90)[90:].max() < 1e-9
