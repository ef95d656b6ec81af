"""Second moments weighted by ranks: leading eigenvectors from products, functions of ranks, operators."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.linalg import aslinearoperator

from robustphase.initialise.block_davidson import rank_bins
from robustphase.initialise.rank_spectra import (
    leading_directions,
    learned_functions,
    monotone_weightings,
    operator_directions,
    random_guesses,
    rank_functions,
)
from robustphase.problem import build_problem
from robustphase.rows import MemoryRows, as_source
from robustphase.simulate import make_world

FIELDS = pytest.mark.parametrize("field", ["real", "complex"])


@FIELDS
def test_leading_directions_are_eigenvectors_of_the_weighted_second_moments(field):
    for seed in range(2):
        world = make_world(12, 1500, contamination=0.0, attack="none", field=field, seed=seed)
        weightings = monotone_weightings(
            np.stack((world.y, world.y**2, world.A[:, 0].real), axis=1), np.ones((1500, 1))
        )
        source = MemoryRows(world.A)
        found = leading_directions(source, weightings, random_guesses(source, 3, seed), most=60)
        assert_allclose(np.linalg.norm(found.vectors, axis=0), 1)
        for k in range(2):
            matrix = (world.A.conj().T * weightings[:, k]) @ world.A / 1500
            top = np.linalg.eigvalsh(matrix)[-1]
            # Rayleigh quotients are off by the square of the residual, which is at most a twentieth.
            assert found.strengths[k] == pytest.approx(top, rel=0.01), f"seed {seed}, column {k}"
            assert np.abs(np.vdot(found.vectors[:, k], world.truth)) > 0.9, f"seed {seed}, column {k}"


def test_what_does_not_depend_on_the_covariates_is_no_stronger_than_chance():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        source = MemoryRows(rng.standard_normal((2000, 20)))
        weightings = monotone_weightings(rng.standard_normal((2000, 2)), np.ones((2000, 1)))
        found = leading_directions(source, weightings, random_guesses(source, 2, seed))
        assert (found.strengths < 1.5 * found.chance).all(), f"seed {seed}"


def test_weightings_are_clipped_ranks_centred_where_there_is_weight(rng):
    values, weights = rng.standard_normal((400, 2)), rng.random((400, 1))
    weights[:20] = 0
    weightings = monotone_weightings(values, weights)
    assert_allclose(weightings.sum(axis=0), 0, atol=1e-4)
    assert not weightings[:20].any()
    assert_allclose(monotone_weightings(np.exp(values) + 7, weights), weightings)
    order = np.argsort(values[20:, 0])
    assert (np.diff((weightings[20:, 0] / weights[20:, 0])[order]) >= -1e-6).all()


@FIELDS
def test_functions_of_the_ranks_are_centred_of_unit_size_and_blind_to_the_scale(rng, field):
    responses, weights = rng.random(500), (np.arange(500) > 30).astype(float)
    functions = rank_functions(responses, weights, 20, field == "complex")
    used = weights > 0
    assert_allclose(functions[used].mean(axis=0), 0, atol=1e-12)
    assert_allclose((functions[used] ** 2).mean(axis=0), 1)
    assert not functions[~used].any()
    assert_allclose(rank_functions(1e9 * responses - 3, weights, 20, field == "complex"), functions)


def test_a_learned_function_sees_the_energy_along_its_direction(rng):
    world = make_world(10, 3000, contamination=0.0, attack="none", noise_std=0.1, seed=0)
    weights = rng.random(3000)
    binned = rank_bins(world.y, weights)
    learned = learned_functions(world.A @ world.truth[:, None], binned, weights)
    per_bin = np.array([(learned[:, 0] / weights)[binned.bins == b].mean() for b in range(binned.mass.size)])
    assert (np.diff(per_bin) > 0).all()
    assert (learned.sum(axis=0) / weights.sum()) == pytest.approx(0, abs=1e-9)


@FIELDS
def test_the_directions_of_an_operator_contain_the_signal(field):
    for seed, attack in enumerate(("scaled", "huge", "erase")):
        world = make_world(25, 1500, contamination=0.05, attack=attack, field=field, seed=seed)
        source = as_source(aslinearoperator(world.A))
        problem = build_problem(source, world.y[:, None], np.ones((1500, 1)), np.array([0.1]), unknown_mean=False)
        directions = operator_directions(problem)
        assert_allclose(np.linalg.norm(directions, axis=0), 1)
        assert np.abs(directions.conj().T @ world.truth).max() > 0.85, attack
