"""Acceleration: linear maps come to rest in as many steps as unknowns, columns do not mind each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.descend.acceleration import ACCELERATION, Aitken, Anderson


def contraction(rng, n):
    """A symmetric map with eigenvalues in [0, 0.95] and its fixed point."""
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = basis @ np.diag(np.linspace(0.0, 0.95, n)) @ basis.T
    fixed = rng.standard_normal(n)
    return matrix, fixed


def run(matrix, fixed, points, metric, steps, memory=None):
    memory = Anderson() if memory is None else memory
    for _ in range(steps):
        points = memory.extrapolate(points, (matrix @ (points - fixed) + fixed) - points, metric)
    return points


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_a_linear_map_comes_to_rest_after_about_as_many_steps_as_unknowns(rng, kind):
    matrix, fixed = contraction(rng, 6)
    fixed = fixed + (1j * rng.standard_normal(6) if kind == "complex" else 0)
    # Real and imaginary part are unknowns of their own.
    steps = 14 if kind == "complex" else 8
    reached = run(matrix, fixed[:, None], np.zeros((6, 1), fixed.dtype), np.ones((6, 1)), steps)
    assert np.linalg.norm(reached[:, 0] - fixed) < 1e-5
    plain = np.linalg.matrix_power(matrix, steps) @ -fixed
    assert np.linalg.norm(plain) > 0.05


def test_columns_are_accelerated_independently(rng):
    matrix, fixed = contraction(rng, 5)
    starts = rng.standard_normal((5, 3))
    together = run(matrix, fixed[:, None], starts, np.ones((5, 1)), 4)
    for k in range(3):
        alone = run(matrix, fixed[:, None], starts[:, [k]], np.ones((5, 1)), 4)
        assert_allclose(together[:, [k]], alone, rtol=1e-7, atol=1e-9, err_msg=f"column {k}")


def test_columns_that_stay_go_on_as_before(rng):
    matrix, fixed = contraction(rng, 5)
    starts, staying = rng.standard_normal((5, 3)), np.array([True, False, True])
    memory = Anderson()
    half = run(matrix, fixed[:, None], starts, np.ones((5, 1)), 3, memory)
    memory.only(staying)
    after = run(matrix, fixed[:, None], half[:, staying], np.ones((5, 1)), 2, memory)
    whole = run(matrix, fixed[:, None], starts, np.ones((5, 1)), 5)
    assert_allclose(after, whole[:, staying], rtol=1e-7, atol=1e-9)


def test_a_forgotten_column_takes_the_plain_step(rng):
    memory = Anderson()
    points, steps = rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    memory.extrapolate(points, steps, np.ones((4, 1)))
    memory.forget(np.array([True, False]))
    later = memory.extrapolate(points + steps, 0.5 * steps, np.ones((4, 1)))
    assert_allclose(later[:, 0], (points + 1.5 * steps)[:, 0])
    assert_allclose(later[:, 1], (points + 2.0 * steps)[:, 1])


def test_entries_without_weight_follow_the_others(rng):
    matrix, fixed = contraction(rng, 4)
    metric = np.ones((5, 1))
    metric[4] = 0

    def last_entry(follower):
        memory, points = Anderson(), np.vstack((np.zeros((4, 1)), [[follower]]))
        for _ in range(3):
            steps = np.vstack((matrix @ (points[:4] - fixed[:, None]) + fixed[:, None] - points[:4], [[0.1]]))
            points = memory.extrapolate(points, steps, metric)
        return points

    # Where the follower is has no say in the mixture of the steps.
    assert_allclose(last_entry(0.0)[:4], last_entry(7.0)[:4])
    assert last_entry(7.0)[4] - last_entry(0.0)[4] == pytest.approx(7.0)


def test_the_memory_does_not_grow(rng):
    memory = Anderson()
    for _ in range(3 * ACCELERATION.depth):
        points = rng.standard_normal((3, 2))
        assert np.isfinite(memory.extrapolate(points, rng.standard_normal((3, 2)), np.ones((3, 1)))).all()
    assert len(memory._points) == len(memory._steps) == len(memory._trusted) == ACCELERATION.depth + 1


def test_a_map_that_has_come_to_rest_is_left_there():
    memory, points = Anderson(), np.ones((3, 1))
    for _ in range(4):
        points = memory.extrapolate(points, np.zeros((3, 1)), np.ones((3, 1)))
    assert_allclose(points, 1)


def test_aitken_finds_the_length_that_a_linear_map_needs():
    # Steps D = −c x of a linear problem: the right factor is 1/c, whatever c is.
    aitken, x, rates = Aitken(1.0), np.ones((5, 2)), np.array([0.3, 1.6])
    aitken = aitken.after(-rates * x)
    x = x + aitken.factors * (-rates * x)
    aitken = aitken.after(-rates * x)
    assert_allclose(aitken.factors, 1 / rates, rtol=1e-6)
    assert_allclose(aitken.only(np.array([1])).factors, [1 / 1.6], rtol=1e-6)


def test_aitkens_factors_stay_within_their_bounds_and_survive_equal_steps(rng):
    step = rng.standard_normal((4, 1))
    for case, later in (("nearly the same", 0.999 * step), ("opposite", -100 * step)):
        factors = Aitken(1.0, least=0.5).after(step).after(later).factors
        assert 0.5 <= factors[0] <= ACCELERATION.most, case
    assert Aitken(0.7).after(step).after(step).factors[0] == pytest.approx(0.7)
