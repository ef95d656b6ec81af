"""The engine recovers the signal under every adversary, and says what it found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import distance
from robustphase.recover import recover
from robustphase.recover.certificate import certify
from robustphase.rows import MemoryRows
from robustphase.simulate import ADVERSARIES, make_world
from robustphase.validation import check_samples


def recovered(world, contamination, **options):
    samples = check_samples(world.A, world.y, nonfinite="drop")
    return recover(samples, contamination, unknown_mean=options.pop("unknown_mean", False), **options)


@pytest.mark.parametrize("attack", ["none", *ADVERSARIES])
@pytest.mark.parametrize(("contamination", "mean"), [(0.1, 0.0), (0.2, 0.0), (0.1, 3.0)])
def test_every_attack_is_survived(attack, contamination, mean):
    world = make_world(60, 3000, contamination=contamination, attack=attack, noise_mean=mean, seed=11)
    result = recovered(world, contamination, unknown_mean=mean > 0)
    assert distance(result.signal, world.truth, relative=True) < 0.12


@pytest.mark.parametrize("attack", sorted(ADVERSARIES))
def test_without_noise_the_signal_is_exact_under_every_attack(attack):
    world = make_world(40, 800, contamination=0.1, attack=attack, noise="none", noise_std=0.0, seed=12)
    assert distance(recovered(world, 0.1).signal, world.truth, relative=True) < 1e-8


def test_without_noise_or_contamination_four_samples_per_unknown_are_enough():
    exact = [
        distance(recovered(make_world(40, 160, contamination=0, attack="none", noise="none", noise_std=0, seed=s), 0.0).signal,
                 make_world(40, 160, contamination=0, attack="none", noise="none", noise_std=0, seed=s).truth) < 1e-8
        for s in range(10)
    ]  # fmt: skip
    # The issue asks for nine in ten; all ten succeed.
    assert np.mean(exact) >= 0.9


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_answer_scales_with_the_signal(factor):
    world = make_world(30, 1500, contamination=0.1, attack="decoy", seed=13)
    here = recovered(world, 0.1).signal
    scaled = recover(check_samples(world.A, world.y * factor**2), 0.1, unknown_mean=False).signal
    assert distance(scaled / factor, here, relative=True) < 1e-6


def test_reordering_the_samples_changes_nothing_that_matters(rng):
    world = make_world(30, 1500, contamination=0.1, attack="leverage", seed=14)
    order = rng.permutation(1500)
    here = recovered(world, 0.1)
    there = recover(check_samples(world.A[order], world.y[order]), 0.1, unknown_mean=False)
    assert distance(there.signal, here.signal, relative=True) < 5e-3
    assert_allclose(there.weights, here.weights[order], atol=0.1)


def test_rotating_the_covariates_rotates_the_answer(rng):
    world = make_world(30, 1500, contamination=0.1, attack="constant", seed=15)
    rotation = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    here = recovered(world, 0.1).signal
    there = recover(check_samples(world.A @ rotation, world.y), 0.1, unknown_mean=False).signal
    assert distance(rotation @ there, here, relative=True) < 5e-3


def test_the_contamination_is_found_where_it_shows():
    found = []
    for attack in ("huge", "constant", "leverage", "decoy_loud", "cloud", "negative"):
        world = make_world(60, 3000, contamination=0.08, attack=attack, seed=16)
        found.append(recovered(world, "auto").contamination)
    assert abs(np.median(found) - 0.08) < 0.03


def test_clean_data_loses_little_when_the_contamination_is_unknown():
    ratios = []
    for seed in range(5):
        world = make_world(40, 2000, contamination=0.0, attack="none", noise="gaussian", seed=seed)
        ratios.append(
            distance(recovered(world, "auto").signal, world.truth) / distance(recovered(world, 0.0).signal, world.truth)
        )
    assert np.median(ratios) < 1.05


def test_the_history_tells_the_stages_and_counts_passes():
    result = recovered(make_world(30, 1500, contamination=0.1, attack="decoy", seed=17), 0.1)
    stages = [record.stage for record in result.history]
    assert stages[0] == "start"
    assert stages[-1] == "polish"
    assert all(a.passes <= b.passes for a, b in zip(result.history, result.history[1:], strict=False))
    assert result.converged
    assert result.weights.min() >= 0
    assert result.weights.max() <= 1


def test_a_start_of_ones_own_is_used():
    world = make_world(30, 1500, contamination=0.1, attack="decoy", seed=18)
    result = recovered(world, 0.1, start=1.1 * world.truth)
    assert_allclose(result.initial_signal, 1.1 * world.truth)
    assert distance(result.signal, world.truth, relative=True) < 0.1


def test_the_certificate_covers_the_signal_and_leaves_good_answers_alone():
    for attack in ("none", "gradient_push", "leverage", "decoy_loud", "erase"):
        world = make_world(40, 3000, contamination=0.1, attack=attack, seed=19)
        answer = recovered(world, 0.1).signal
        certificate = certify(MemoryRows(world.A), world.y, answer, 0.0, 0.1, unknown_mean=False)
        assert certificate.moved == 0
        assert distance(answer, world.truth, relative=True) < certificate.radius


def test_the_certificate_brings_back_an_answer_that_left_its_ball():
    world = make_world(40, 4000, contamination=0.02, attack="none", noise_std=0.1, seed=20)
    wrong = 1.3 * world.truth
    certificate = certify(MemoryRows(world.A), world.y, wrong, 0.0, 0.0005, unknown_mean=False)
    assert certificate.moved > 0
    assert distance(certificate.signal, world.truth) < distance(wrong, world.truth)
