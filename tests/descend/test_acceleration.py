"""Acceleration: linear maps come to rest in as many steps as unknowns, columns do not mind each other."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from robustphase.descend.acceleration import Acceleration


def contraction(rng, n):
    """A symmetric map with eigenvalues in [0, 0.95] and its fixed point."""
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = basis @ np.diag(np.linspace(0.0, 0.95, n)) @ basis.T
    fixed = rng.standard_normal(n)
    return matrix, fixed


def run(matrix, fixed, points, metric, steps):
    memory = Acceleration()
    for _ in range(steps):
        proposals = (matrix @ (points - fixed) + fixed) - points
        points = memory.step(points, proposals, metric)
    return points


def test_a_linear_map_comes_to_rest_after_as_many_steps_as_unknowns(rng):
    matrix, fixed = contraction(rng, 6)
    reached = run(matrix, fixed[:, None], np.zeros((6, 1)), np.ones((6, 1)), 8)
    assert np.linalg.norm(reached[:, 0] - fixed) < 1e-6
    plain = np.linalg.matrix_power(matrix, 8) @ -fixed
    assert np.linalg.norm(plain) > 0.05


def test_columns_are_accelerated_independently(rng):
    matrix, fixed = contraction(rng, 5)
    starts = rng.standard_normal((5, 3))
    together = run(matrix, fixed[:, None], starts, np.ones((5, 1)), 4)
    for k in range(3):
        alone = run(matrix, fixed[:, None], starts[:, [k]], np.ones((5, 1)), 4)
        assert_allclose(together[:, [k]], alone, rtol=1e-7, atol=1e-9)


def test_complex_maps_are_accelerated_too(rng):
    matrix, fixed = contraction(rng, 5)
    fixed = fixed + 1j * rng.standard_normal(5)
    reached = run(matrix, fixed[:, None], np.zeros((5, 1), complex), np.ones((5, 1)), 12)
    assert np.linalg.norm(reached[:, 0] - fixed) < 1e-5


def test_a_forgotten_column_takes_the_plain_step(rng):
    memory = Acceleration()
    points, proposals = rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    memory.step(points, proposals, np.ones((4, 1)))
    memory.forget(np.array([True, False]))
    later = memory.step(points + proposals, 0.5 * proposals, np.ones((4, 1)))
    assert_allclose(later[:, 0], (points + 1.5 * proposals)[:, 0])
    assert_allclose(later[:, 1], (points + 2.0 * proposals)[:, 1])


def test_growing_proposals_clear_the_memory(rng):
    memory = Acceleration()
    points, proposals = rng.standard_normal((4, 1)), rng.standard_normal((4, 1))
    memory.step(points, proposals, np.ones((4, 1)))
    later = memory.step(points + proposals, 3 * proposals, np.ones((4, 1)))
    assert_allclose(later, points + 4 * proposals)
