"""Directions of unusual energy, sought in one growing space."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.initialise.directions import (
    BINS,
    Space,
    bin_products,
    candidate_directions,
    group_weightings,
    learn_weightings,
    rank_bins,
    unusual_energy,
)
from robustphase.initialise.norms import NATURAL_SQUARED_NORM, SQUARED_NORMS, profile_norms
from robustphase.likelihood import response_density
from robustphase.rows import MemoryRows
from robustphase.rows.data import Data
from robustphase.simulate import make_world


def second_moments(A, bins, weights):
    return np.stack([(A * (weights * (bins == b))[:, None]).T @ A.conj() for b in range(BINS)])


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("block_rows", [7, None])
def test_one_pass_multiplies_with_the_second_moment_of_every_bin(rng, kind, block_rows):
    A = rng.standard_normal((300, 6)) + (1j * rng.standard_normal((300, 6)) if kind == "complex" else 0)
    weights, y = rng.random(300), rng.random(300)
    bins = rank_bins(y, weights).bins
    V = rng.standard_normal((6, 4)).astype(A.dtype)
    # Rows are the aᴴ, so a aᴴ has the conjugated row as its first factor.
    expected = second_moments(A.conj(), bins, weights) @ V
    source = MemoryRows(A, block_rows=block_rows)
    assert_allclose(bin_products(source, V, bins, weights), expected, rtol=1e-4, atol=1e-4)
    assert source.passes == 1


def test_bins_have_equal_weight(rng):
    weights = rng.random(4000)
    binned = rank_bins(rng.standard_normal(4000), weights)
    assert_allclose(binned.mass, weights.sum() / BINS, rtol=0.01)


def test_a_full_space_knows_the_eigenvectors_of_every_group(rng):
    A, y, weights = rng.standard_normal((900, 8)), rng.random(900), np.ones(900)
    binned = rank_bins(y, weights)
    space = Space(MemoryRows(A), binned, weights)
    space.grow(rng.standard_normal((8, 5)))
    space.grow(rng.standard_normal((8, 5)))
    assert space.basis.shape == (8, 8)
    weightings = group_weightings(binned)
    found = unusual_energy(space, weightings, 1)
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
    world = make_world(200, 10000, contamination=0.2, attack="swap", seed=0)
    source = MemoryRows(world.A)
    directions, _ = candidate_directions(source, world.y, np.ones(10000))
    # A faint direction is followed for longer than the four to eight passes of an ordinary one.
    assert source.passes <= 14
    assert np.abs(directions.T @ world.truth).max() > 0.8


def test_every_direction_is_handed_on_with_a_full_norm(rng):
    world = make_world(10, 1000, contamination=0.2, attack="erase", seed=0)
    unit = np.subtract(*np.quantile(world.y, (0.75, 0.25)))
    directions = np.linalg.qr(rng.standard_normal((10, 6)))[0]
    density = response_density(world.y / unit, 0.3)
    data = Data(MemoryRows(world.A), world.y / unit, np.ones(1000), density, 0.2, False)
    full, shrunken = profile_norms(data, directions)
    norms = np.linalg.norm(full.signals, axis=0) ** 2
    assert full.signals.shape == (10, 6)
    assert (norms > NATURAL_SQUARED_NORM - 1e-9).all()
    # Random directions explain nothing, so the likelihood would rather have them small.
    assert shrunken.scores.size > 0
    assert (np.linalg.norm(shrunken.signals, axis=0) ** 2 < NATURAL_SQUARED_NORM - 1e-9).all()
    assert SQUARED_NORMS[0] - 1e-9 <= (np.linalg.norm(shrunken.signals, axis=0) ** 2).min()


def test_screening_is_asked_for_only_where_it_is_needed(rng):
    A, y = rng.standard_normal((4000, 40)), rng.random(4000)
    asked = []

    def screen(weights):
        asked.append(weights)
        return np.where(np.arange(4000) < 400, 0.0, weights)

    _, weights = candidate_directions(MemoryRows(A), y, np.ones(4000), screen=screen)
    assert not asked
    assert (weights == 1).all()
    A[:400] += 3 * np.sign(rng.standard_normal((400, 1))) * np.eye(40)[7]
    _, weights = candidate_directions(MemoryRows(A), y, np.ones(4000), screen=screen)
    assert len(asked) == 1
    assert weights.sum() == 3600
