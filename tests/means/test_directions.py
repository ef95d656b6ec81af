"""The worst directions are those of the covariance; the guesses move with the points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.means.directions import (
    KrylovSpace,
    moment_directions,
    ordinary_directions,
    ritz_directions,
    worst_directions,
)
from robustphase.rows import MemoryRows, ScaledRows


def test_directions_without_stored_projections_are_the_same(rng):
    view = ScaledRows(MemoryRows(rng.standard_normal((500, 20)) * np.linspace(1, 3, 20)))
    weights = rng.random(500)
    mean, start = view.mean(weights), rng.standard_normal((20, 3))
    first, second = (find(view, weights, mean, start, 4) for find in (worst_directions, ritz_directions))
    assert_allclose(second.variances, first.variances, rtol=1e-10)
    assert_allclose(np.abs(second.projections), np.abs(first.projections), atol=1e-8)


@pytest.mark.parametrize("imaginary", [0.0, 1j], ids=["real", "complex"])
def test_a_krylov_space_that_is_whole_gives_the_eigenpairs(imaginary, rng):
    points = (rng.standard_normal((400, 9)) + imaginary * rng.standard_normal((400, 9))) * np.linspace(1, 2, 9)
    covariance = np.cov(points.conj().T, bias=True)
    space = KrylovSpace(rng.standard_normal((9, 2)) + imaginary * rng.standard_normal((9, 2)))
    while not space.closed:
        space.grow(covariance @ space.block)
    found = space.ritz()
    values, vectors = np.linalg.eigh(covariance)
    assert_allclose(found.variances, values[::-1][:2], rtol=1e-9)
    assert_allclose(np.abs(found.vectors.conj().T @ vectors[:, ::-1][:, :2]), np.eye(2), atol=1e-6)
    assert np.vstack(found.rotations).shape == (9, 2)


def test_guesses_turn_with_the_points_and_do_not_depend_on_their_order(rng):
    points = rng.standard_normal((300, 5)) + np.eye(5)[0] * rng.exponential(size=(300, 1))
    rotation, order = np.linalg.qr(rng.standard_normal((5, 5)))[0], rng.permutation(300)
    keep, centre = rng.random(300) < 0.9, points.mean(axis=0)
    distances = np.linalg.norm(points - centre, axis=1)
    here, turned, shuffled = (ScaledRows(MemoryRows(p)) for p in (points, points @ rotation, points[order]))
    guess = moment_directions(here, keep, centre, distances)
    assert_allclose(moment_directions(turned, keep, centre @ rotation, distances), rotation.T @ guess, atol=1e-9)
    assert_allclose(moment_directions(shuffled, keep[order], centre, distances[order]), guess, atol=1e-9)
    ordinary = ordinary_directions(here, keep, distances)
    assert_allclose(ordinary_directions(turned, keep, distances), rotation.T @ ordinary, atol=1e-9)
    assert_allclose(ordinary_directions(shuffled, keep[order], distances[order]), ordinary, atol=1e-9)
