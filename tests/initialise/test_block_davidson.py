"""Directions of unusual energy, sought in one growing space."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.initialise.block_davidson import (
    SEARCH,
    Space,
    bin_products,
    candidate_directions,
    distinct_directions,
    extreme_ritz_pairs,
    group_weightings,
    learn_weightings,
    rank_bins,
)
from robustphase.rows import MemoryRows
from robustphase.simulate import make_world


def second_moments(A, bins, weights):
    return np.stack([(A * (weights * (bins == b))[:, None]).T @ A.conj() for b in range(SEARCH.bins)])


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_one_pass_multiplies_with_the_second_moment_of_every_bin(rng, kind):
    A = rng.standard_normal((300, 6)) + (1j * rng.standard_normal((300, 6)) if kind == "complex" else 0)
    weights, y = rng.random(300), rng.random(300)
    bins = rank_bins(y, weights).bins
    V = rng.standard_normal((6, 4)).astype(A.dtype)
    # Rows are the aᴴ, so a aᴴ has the conjugated row as its first factor.
    expected = second_moments(A.conj(), bins, weights) @ V
    for block_rows in (7, None):
        source = MemoryRows(A, block_rows=block_rows)
        found = bin_products(source, V, bins, weights)
        assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=f"blocks of {block_rows}")
        assert source.passes == 1


def test_bins_have_equal_weight(rng):
    weights = rng.random(4000)
    binned = rank_bins(rng.standard_normal(4000), weights)
    assert_allclose(binned.mass, weights.sum() / SEARCH.bins, rtol=0.01)


def test_a_full_space_knows_the_eigenvectors_of_every_group(rng):
    A, y, weights = rng.standard_normal((900, 8)), rng.random(900), np.ones(900)
    binned = rank_bins(y, weights)
    space = Space(MemoryRows(A), binned, weights)
    space.grow(rng.standard_normal((8, 5)))
    space.grow(rng.standard_normal((8, 5)))
    assert space.basis.shape == (8, 8)
    weightings = group_weightings(binned)
    found = extreme_ritz_pairs(space, weightings, 1)
    assert np.abs(found.residuals).max() < 1e-4
    moments = second_moments(A, binned.bins, weights) / binned.mass[:, None, None]
    for weighting, strength in zip(weightings[:-1], found.strengths, strict=False):
        assert strength == pytest.approx(
            np.abs(np.linalg.eigvalsh(np.tensordot(weighting, moments, 1))).max(), rel=1e-4
        )


def test_learning_increases_the_differences_between_the_bins(rng):
    world = make_world(20, 2000, contamination=0.1, attack="decoy", seed=0)
    weights = np.ones(2000)
    binned = rank_bins(world.y, weights)
    space = Space(MemoryRows(world.A), binned, weights)
    space.grow(np.eye(20))

    def differences(coordinates):
        energies = np.einsum("pk,bpk->bk", coordinates, space.small @ coordinates)
        return (energies**2).mean(axis=0) - energies.mean(axis=0) ** 2

    rough = np.linalg.qr(rng.standard_normal((20, 4)))[0]
    learned, residuals = learn_weightings(space, rough)
    assert (differences(learned) > differences(rough)).all()
    assert np.abs(residuals).max() < 1e-4  # nothing lies outside a full space


def test_candidates_cost_few_passes_and_contain_the_signal():
    for seed in range(2):
        world = make_world(100, 5000, contamination=0.2, attack="swap", seed=seed)
        source = MemoryRows(world.A)
        directions, *_ = candidate_directions(source, world.y, np.ones(5000), screen=True)
        # A faint direction is followed for longer than the four to eight passes of an ordinary one.
        assert source.passes <= 14, f"seed {seed}"
        assert np.abs(directions.T @ world.truth).max() > 0.8, f"seed {seed}"


def test_screening_is_done_only_where_it_is_needed():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        A, y = rng.standard_normal((4000, 40)), rng.random(4000)
        _, weights, _ = candidate_directions(MemoryRows(A), y, np.ones(4000), screen=True)
        assert (weights == 1).all(), f"seed {seed}"
        A[:400] += 3 * np.sign(rng.standard_normal((400, 1))) * np.eye(40)[7]
        _, weights, _ = candidate_directions(MemoryRows(A), y, np.ones(4000), screen=True)
        assert weights[:400].mean() < 0.5 < 0.95 < weights[400:].mean(), f"seed {seed}"
        _, weights, _ = candidate_directions(MemoryRows(A), y, np.ones(4000), screen=False)
        assert (weights == 1).all(), f"seed {seed}"


def test_directions_are_unit_vectors_and_differ():
    world = make_world(30, 2000, contamination=0.1, attack="decoy", field="complex", seed=1)
    directions, *_ = candidate_directions(MemoryRows(world.A), world.y, np.ones(2000), screen=True)
    assert_allclose(np.linalg.norm(directions, axis=0), 1, rtol=1e-6)
    cosines = np.abs(directions.conj().T @ directions) - np.eye(directions.shape[1])
    assert cosines.max() < SEARCH.same_after + 1e-6
    assert np.abs(directions.conj().T @ world.truth).max() > 0.8


def test_only_the_ranks_of_the_responses_matter():
    world = make_world(20, 1500, contamination=0.1, attack="decoy", seed=2)
    here, there = (
        candidate_directions(MemoryRows(world.A), y, np.ones(1500), screen=False)[0]
        for y in (world.y, np.arctan(world.y) - 5)
    )
    assert_allclose(here, there)


def test_distinct_directions_treats_phases_as_one_and_keeps_the_first(rng):
    x, y = np.linalg.qr(rng.standard_normal((6, 2)) + 1j * rng.standard_normal((6, 2)))[0].T
    assert distinct_directions(np.stack((x, -x, 1j * x, y), axis=1), 0.9) == [0, 3]
