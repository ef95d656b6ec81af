"""The default start: what it hands on survives every adversary, any background and any scale."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import distance, spectral_init
from robustphase.initialise.screening import match_normal, ordinary_lengths, screen_covariates
from robustphase.rows import MemoryRows
from robustphase.simulate import ADVERSARIES, make_world


def best_error(start, world):
    return min(distance(candidate, world.truth, relative=True) for candidate in start.candidates)


@pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
@pytest.mark.parametrize("attack", ["none", *ADVERSARIES])
def test_some_candidate_is_near_the_signal_under_every_attack(attack, noise_mean):
    # One world each, but 82 of them: a start that fails one in twenty would fail here with 98 % probability.
    mean = 3.0 if noise_mean == "unknown" else 0.0
    world = make_world(60, 3000, contamination=0.1, attack=attack, noise_mean=mean, seed=7)
    start = spectral_init(world.A, world.y, 0.1, noise_mean, nonfinite="drop")
    assert best_error(start, world) <= 0.5
    assert len(start.candidates) <= 16


def test_the_start_carries_its_evidence():
    world = make_world(30, 1500, contamination=0.1, attack="leverage", seed=1)
    start = spectral_init(world.A, world.y, 0.1)
    k = len(start.scores)
    assert start.candidates.shape == (k, 30)
    assert start.backgrounds.shape == (k,)
    assert start.weights.shape == (1500,)
    assert (np.diff(start.scores) <= 1e-12).all()
    assert_allclose(start.signal, start.candidates[0])
    assert start.weights[world.touched].mean() < 0.2 < 0.95 < start.weights[world.clean].mean()


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_start_scales_with_the_signal(factor):
    world = make_world(30, 1500, contamination=0.1, attack="decoy", seed=2)
    here = spectral_init(world.A, world.y, 0.1).signal
    there = spectral_init(world.A, world.y * factor**2, 0.1).signal
    assert distance(there / factor, here, relative=True) < 1e-8


def test_a_background_does_not_move_the_directions():
    world = make_world(30, 1500, contamination=0.1, attack="constant", seed=3)
    here = spectral_init(world.A, world.y, 0.1, "unknown")
    there = spectral_init(world.A, world.y + 100.0, 0.1, "unknown")
    assert distance(there.signal, here.signal, relative=True) < 1e-6
    assert_allclose(there.backgrounds, here.backgrounds + 100.0, rtol=1e-6)


def test_clean_data_is_started_as_well_as_by_the_best_plain_spectral_start():
    ratios = []
    for seed in range(8):
        world = make_world(60, 3000, contamination=0.0, attack="none", seed=seed)
        robust = distance(spectral_init(world.A, world.y, 0.1).signal, world.truth)
        ratios.append(robust / best_plain_start(world))
    # Median of eight paired ratios; their spread is about 5 %.
    assert np.median(ratios) < 1.1


def best_plain_start(world):
    """The best, in hindsight, of several non-robust preprocessings with the true norm."""
    y = np.maximum(world.y, 0)
    errors = []
    for weighting in (y, np.minimum(y, 3.0), np.minimum(y, np.quantile(y, 0.9)), y > np.quantile(y, 0.8)):
        matrix = (world.A * np.asarray(weighting, float)[:, None]).T @ world.A
        errors.append(distance(np.linalg.eigh(matrix)[1][:, -1], world.truth))
    return min(errors)


def test_whitening_helps_when_the_design_is_not_isotropic(rng):
    world = make_world(20, 3000, contamination=0.05, attack="constant", seed=4)
    mixing = np.eye(20) + 0.5 * rng.standard_normal((20, 20)) / np.sqrt(20)
    A = world.A @ mixing * 3
    truth = np.linalg.solve(mixing, world.truth) / 3
    start = spectral_init(A, world.y, 0.05, whiten=True)
    assert min(distance(c, truth, relative=True) for c in start.candidates) < 0.4


def test_a_design_that_is_not_standard_normal_is_used_with_a_warning():
    world = make_world(20, 1000, contamination=0.0, attack="none", seed=5)
    with pytest.warns(UserWarning, match="whiten=True"):
        spectral_init(world.A * 10, world.y, 0.1)


def test_screening_leaves_clean_covariates_alone_and_catches_a_cloud(rng):
    A = rng.standard_normal((4000, 50))
    assert screen_covariates(MemoryRows(A), np.ones(4000, bool)).mean() > 0.999
    A[:400, 0] = 4.0 * rng.choice([-1, 1], 400)
    weights = screen_covariates(MemoryRows(A), np.ones(4000, bool))
    assert weights[:400].mean() < 0.15
    assert weights[400:].mean() > 0.99


def test_complex_covariates_are_screened_too(rng):
    A = (rng.standard_normal((4000, 30)) + 1j * rng.standard_normal((4000, 30))) / np.sqrt(2)
    assert screen_covariates(MemoryRows(A), np.ones(4000, bool)).mean() > 0.999
    A[:400, 0] = 3.0
    assert screen_covariates(MemoryRows(A), np.ones(4000, bool))[:400].mean() < 0.3


def test_matching_moves_weights_only_where_there_is_too_much():
    values = np.concatenate((np.random.default_rng(0).standard_normal(10000), np.full(500, 3.0)))
    weights = match_normal(values, np.ones(10500))
    assert weights[10000:].max() < 0.2
    assert (weights[np.abs(values) < 1] == 1).all()


def test_ordinary_lengths_are_those_of_chi_square_variables(rng):
    assert ordinary_lengths((rng.standard_normal((5000, 8)) ** 2).sum(axis=1), 8, False).mean() > 0.999
    assert not ordinary_lengths(np.array([8 * 9.0, 1e-3]), 8, False).any()


@pytest.mark.parametrize("method", ["mean", "covariance", "spectral"])
def test_the_other_starts_are_there_too(method):
    world = make_world(8, 4000, contamination=0.005, attack="none", noise_std=0.2, seed=6)
    start = spectral_init(world.A, world.y, 0.005, method=method)
    assert start.candidates.shape == (1, 8)
    assert distance(start.signal, world.truth, relative=True) < 0.3


def test_bad_arguments_are_named():
    world = make_world(5, 50, contamination=0.0, attack="none", seed=0)
    with pytest.raises(ValueError, match="method must be one of"):
        spectral_init(world.A, world.y, method="magic")
    with pytest.raises(ValueError, match="noise_mean must be one of"):
        spectral_init(world.A, world.y, noise_mean="maybe")
