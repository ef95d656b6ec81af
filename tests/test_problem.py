"""The standardised problem: natural units that bad responses cannot carry away, columns that stay apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.descend.objective import State
from robustphase.likelihood import initial_model
from robustphase.problem import (
    Candidates,
    assumed_level,
    build_problem,
    kept,
    put_columns,
    real_unknowns,
    response_unit,
    select_columns,
)
from robustphase.rows import MemoryRows


def built(y, weights=None, levels=0.1):
    weights = np.ones((len(y), 1)) if weights is None else weights
    source = MemoryRows(np.ones((len(y), 2)))
    return build_problem(source, y, weights, np.full(y.shape[1], levels), unknown_mean=False)


def test_the_unit_scales_with_the_responses_and_ignores_a_background():
    for seed in range(3):
        y = np.random.default_rng(seed).standard_normal(999) ** 2
        unit = response_unit(y)
        assert response_unit(1e12 * y) == pytest.approx(1e12 * unit), f"seed {seed}"
        assert response_unit(y + 50) == pytest.approx(unit), f"seed {seed}"


def test_the_unit_stays_that_of_the_majority_under_two_fifths_of_bad_responses():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        clean = rng.standard_normal(5000) ** 2
        for value in (1e6, -1e6, 40.0):
            bad = np.where(np.arange(5000) < 2000, value, clean)
            # Half of all is then five sixths of the clean ones, which spread over three times the half of them: 4.6 units.
            assert 0.3 < response_unit(bad) / response_unit(clean) < 6, f"seed {seed}, bad responses at {value}"


def test_responses_that_coincide_have_a_unit_all_the_same():
    assert response_unit(np.full(9, 7.0)) == 7.0
    assert response_unit(np.zeros(9)) == 1.0
    assert response_unit(np.empty(0)) == 1.0
    assert response_unit(np.array([3.0])) == 3.0


def test_a_problem_is_the_same_in_all_units(rng):
    y = rng.standard_normal((300, 2)) ** 2
    here, there = built(y), built(y * np.array([1e-9, 1e9]))
    assert_allclose(there.responses, here.responses)
    assert_allclose(there.density, here.density)
    assert_allclose(there.units, here.units * np.array([1e-9, 1e9]))
    assert_allclose(here.responses * here.units, y)


def test_samples_that_cannot_be_used_have_no_part_in_unit_and_density(rng):
    y = rng.standard_normal((300, 1)) ** 2
    spoilt, weights = y.copy(), np.ones((300, 1))
    spoilt[:40], weights[:40] = 1e9, 0.0
    assert_allclose(built(spoilt, weights).units, built(y[40:]).units)
    assert_allclose(built(spoilt, weights).units, built(np.where(weights > 0, y, -5.0), weights).units)


def test_a_floor_is_a_lower_bound_of_the_density(rng):
    problem = built(rng.standard_normal((500, 2)) ** 2)
    for floor in (0.3, np.array([0.05, 0.4])):
        floored = problem.floored(floor)
        assert_array_equal(floored.density, np.maximum(problem.density, floor))
        assert (problem.density < floor).any()


def test_columns_of_a_problem_are_problems(rng):
    y, weights = rng.standard_normal((200, 3)) ** 2, rng.random((200, 3))
    problem = built(y, weights)
    for mask in (np.array([False, True, True]), np.array([1, 2])):
        some = problem.only(mask)
        assert_allclose(some.responses, problem.responses[:, 1:])
        assert_allclose(some.weights, weights[:, 1:])
        assert_allclose(some.density, problem.density[:, 1:])
        assert some.levels.shape == some.units.shape == (2,)
    # One column of responses serves every candidate.
    assert built(y[:, :1]).only(np.array([0, 0, 0])).responses.shape == (200, 1)


def test_a_stated_level_is_believed_unless_it_leaves_no_doubt():
    assert assumed_level(0.3) == 0.3
    assert 0 < assumed_level(0.0) == assumed_level(0.001) < 0.05
    assert assumed_level(0.05) < assumed_level("auto") < 0.5


def test_a_sample_is_kept_when_it_is_at_least_as_likely_clean_as_bad():
    assert_array_equal(kept(np.array([0.0, 0.4999, 0.5, 1.0])), [False, False, True, True])


def test_a_complex_number_is_two_unknowns():
    assert real_unknowns(np.ones((7, 3))) == 7
    assert real_unknowns(np.ones((7, 3), complex)) == 14


def test_candidates_are_joined_and_chosen(rng):
    def some(count):
        return Candidates(rng.standard_normal((4, count)), *rng.standard_normal((3, count)))

    first, second = some(2), some(3)
    joined = first.joined(second)
    assert joined.signals.shape == (4, 5)
    for name in joined._fields:
        assert_array_equal(getattr(joined.only(np.array([3, 0])), name)[..., 1], getattr(first, name)[..., 0])
        assert_array_equal(getattr(joined.only(np.array([3, 0])), name)[..., 0], getattr(second, name)[..., 1])


def test_columns_of_nested_tuples_are_taken_and_put_back(rng):
    state = State(
        rng.standard_normal((5, 3)), rng.standard_normal(3), initial_model(np.ones(3), np.full(3, 0.1)), np.ones(3)
    )
    columns = np.array([True, False, True])
    some = select_columns(state, columns)
    assert some.signals.shape == (5, 2)
    assert some.noise.scales.shape == (2,)
    louder = some._replace(signals=10 * some.signals, noise=some.noise._replace(scales=np.array([7.0, 8.0])))
    whole = put_columns(state, louder, columns)
    assert_array_equal(whole.signals[:, columns], 10 * state.signals[:, columns])
    assert_array_equal(whole.signals[:, 1], state.signals[:, 1])
    assert_array_equal(whole.noise.scales, [7.0, 1.0, 8.0])
    # What was there before is left alone.
    assert_array_equal(state.noise.scales, 1)
