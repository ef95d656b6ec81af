"""The default start: what it hands on survives every adversary, any background and any scale."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.linalg import aslinearoperator

from robustphase import distance, spectral_init
from robustphase.initialise.start import broad_start, normalised, operator_start, plain_spectral_start, shared_start
from robustphase.problem import build_problem
from robustphase.rows import MemoryRows, as_source
from robustphase.simulate import ADVERSARIES, make_world
from robustphase.validation import check_samples


def best_error(start, world):
    return min(distance(candidate, world.truth, relative=True) for candidate in start.candidates)


@pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
def test_some_candidate_is_near_the_signal_under_every_attack(noise_mean):
    # One world each, but 42 of them: a start that fails one in twenty would fail here with 88 % probability.
    mean, errors = 3.0 if noise_mean == "unknown" else 0.0, {}
    for seed, attack in enumerate(("none", *ADVERSARIES)):
        world = make_world(50, 2500, contamination=0.1, attack=attack, noise_mean=mean, seed=7 + seed)
        start = spectral_init(world.A, world.y, 0.1, noise_mean, nonfinite="drop")
        errors[attack] = best_error(start, world)
        assert len(start.candidates) <= 16, attack
    assert {attack: error for attack, error in errors.items() if error > 0.5} == {}


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


def test_the_start_scales_with_the_signal():
    world = make_world(30, 1500, contamination=0.1, attack="decoy", seed=2)
    here = spectral_init(world.A, world.y, 0.1).signal
    for factor in (1e-6, 1e6):
        there = spectral_init(world.A, world.y * factor**2, 0.1).signal
        assert distance(there / factor, here, relative=True) < 1e-8, factor


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
        spectral_init(world.A * 10, world.y, 0.1, whiten=False)
    # Told nothing it looks for itself, and the start behind the longer rows is that much shorter.
    assert distance(10 * spectral_init(world.A * 10, world.y, 0.1).signal, world.truth, relative=True) < 0.5


def test_the_other_starts_are_there_too():
    for seed in (6, 7):
        world = make_world(8, 4000, contamination=0.005, attack="none", noise_std=0.2, seed=seed)
        for method in ("mean", "covariance", "spectral"):
            start = spectral_init(world.A, world.y, 0.005, method=method)
            assert start.candidates.shape == (1, 8), method
            assert distance(start.signal, world.truth, relative=True) < 0.3, f"{method}, seed {seed}"


def test_the_plain_spectral_start_is_the_leading_eigenvector_with_the_norm_of_the_mean_response():
    world = make_world(8, 1000, contamination=0.0, attack="none", field="complex", seed=0)
    start = plain_spectral_start(MemoryRows(world.A), world.y, tol=1e-9, max_iter=1000)
    vector = np.linalg.eigh((world.A.conj().T * world.y) @ world.A)[1][:, -1]
    assert distance(start, np.sqrt(world.y.mean()) * vector, relative=True) < 1e-6
    assert not plain_spectral_start(MemoryRows(world.A), 0 * world.y).any()


def test_many_signals_get_one_candidate_each_from_common_passes(problem_of):
    worlds = [
        make_world(20, 2000, contamination=0.05, attack=attack, seed=3) for attack in ("none", "huge", "constant")
    ]
    problem = problem_of(*worlds)
    candidates, found = shared_start(problem)
    assert candidates.signals.shape == (20, 3)
    assert (found.strengths > found.chance).all()
    for k, world in enumerate(worlds):
        signal = np.sqrt(problem.units[k]) * candidates.signals[:, k]
        assert distance(signal, world.truth, relative=True) < 0.6, world.attack
        one, broad = broad_start(problem_of(world), screen=False)
        assert broad.scores.max() >= candidates.scores[k] - 0.05, world.attack
        assert one.responses.shape == (2000, 1)


def test_an_operator_is_started_without_a_look_at_its_rows():
    for seed in range(2):
        world = make_world(20, 1200, contamination=0.05, attack="scaled", field="complex", seed=seed)
        samples, size, energies = normalised(check_samples(as_source(aslinearoperator(100 * world.A)), world.y))
        assert size == pytest.approx(100, rel=0.05)
        assert energies.mean() == pytest.approx(1200)
        problem = build_problem(
            samples.source, world.y[:, None], np.ones((1200, 1)), np.array([0.1]), unknown_mean=False
        )
        candidates = operator_start(problem)
        signals = np.sqrt(problem.units) * candidates.signals
        best = min(distance(signals[:, k], world.truth, relative=True) for k in range(signals.shape[1]))
        assert best < 0.5, f"seed {seed}"


def test_bad_arguments_are_named():
    world = make_world(5, 50, contamination=0.0, attack="none", seed=0)
    with pytest.raises(ValueError, match="method must be one of"):
        spectral_init(world.A, world.y, method="magic")
    with pytest.raises(ValueError, match="noise_mean must be one of"):
        spectral_init(world.A, world.y, noise_mean="maybe")
