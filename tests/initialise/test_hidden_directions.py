"""Directions that are hidden from the usual weightings of the ranks show in one of all smooth ones."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from robustphase.initialise.block_davidson import candidate_directions, rank_bins
from robustphase.initialise.rank_spectra import HIDDEN, best_weightings, hidden_directions, smooth_weightings
from robustphase.rows import MemoryRows
from robustphase.simulate import ParametricAttack, make_world

#: Found by a search: samples with the strongest evidence answer like a second signal.
ATTACK = ParametricAttack(
    angle=1.34, norm=0.58, by_sign=-0.2, by_second=-0.27, by_response=0.36, by_likelihood=-0.64, randomness=0.08, move=1.02,
    noise_factor=0.93, own_noise=0.98, shift=-0.3, choices=1.5, length=-0.37, unused=0.04,
)  # fmt: skip


def closest(directions, x):
    return float(np.abs(directions.conj().T @ x).max() / np.linalg.norm(x))


def test_directions_that_the_usual_search_misses_are_found():
    usual, hidden = [], []
    for seed in range(8):
        world = make_world(
            50, 2500, contamination=0.2, noise="gaussian", noise_std=0.5, attack=ATTACK.adversary, seed=seed
        )
        rows, weights = MemoryRows(world.A), np.ones(2500)
        usual.append(closest(candidate_directions(rows, world.y, weights, screen=False)[0], world.truth))
        hidden.append(closest(hidden_directions(rows, world.y, weights), world.truth))
    assert np.mean(hidden) > np.mean(usual) + 0.08
    assert np.median(hidden) > 0.7


def test_complex_directions_are_found_too():
    world = make_world(
        30, 3000, contamination=0.2, noise="gaussian", noise_std=0.5, attack="erase", field="complex", seed=0
    )
    found = hidden_directions(MemoryRows(world.A), world.y, np.ones(3000))
    assert closest(found, world.truth) > 0.8
    assert_allclose(np.linalg.norm(found, axis=0), 1, rtol=1e-6)


def test_complex_signals_behind_real_rows_get_complex_directions():
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((4000, 20)), rng.standard_normal(20) + 1j * rng.standard_normal(20)
    y = np.abs(A @ x) ** 2
    found = hidden_directions(MemoryRows(A), y, np.ones(y.size), paired=True)
    x /= np.linalg.norm(x)
    assert max(closest(found, x), closest(found.conj(), x)) > 0.9


def test_every_smooth_weighting_is_close_to_one_that_is_tried():
    binned = rank_bins(np.arange(1000.0), np.ones(1000))
    tried = smooth_weightings(binned)
    assert tried.shape == (24, binned.mass.size)
    assert_allclose(tried.sum(axis=1), 0, atol=1e-12)
    middles = (np.arange(binned.mass.size) + 0.5) / binned.mass.size
    waves = np.cos(np.pi * middles * np.arange(1, 5)[:, np.newaxis])
    wanted = np.random.default_rng(0).standard_normal((500, 4)) @ waves
    cosines = (wanted @ tried.T) / np.linalg.norm(wanted, axis=1)[:, np.newaxis] / np.linalg.norm(tried, axis=1)
    assert cosines.max(axis=1).min() > 0.69


def test_the_best_weighting_knows_no_pole():
    shares = np.full(4, 0.25)
    learned = best_weightings(np.array([[0.5, 1.0, 1.5, 1.0], [0.0, 2.0, 2.0, 0.0]]), shares)
    assert_allclose(learned[0], shares * [-1, 0, 1 / 3, 0])
    assert_allclose(learned[1], shares * [1 - 1 / HIDDEN.least, 0.5, 0.5, 1 - 1 / HIDDEN.least])


def test_one_unknown_has_one_direction():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 1))
    assert_allclose(np.abs(hidden_directions(MemoryRows(A), A[:, 0] ** 2, np.ones(100))), 1, rtol=1e-6)
