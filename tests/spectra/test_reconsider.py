"""All points reconsidered in the light of the bad ones."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.poison import KINDS, clean_error, operator_error, poisoned
from numpy.testing import assert_allclose

from robustphase import robust_covariance
from robustphase.rows import MemoryRows
from robustphase.spectra.bulk import leaning_direction
from robustphase.spectra.outlyingness import scores_by, yardstick_of
from robustphase.spectra.reconsider import good_shares, reconsider


@pytest.mark.parametrize("spectrum", ["identity", "geometric"])
@pytest.mark.parametrize("kind", KINDS)
def test_poison_costs_hardly_any_accuracy(kind, spectrum):
    # On 12 other seeds of every kind and spectrum the median ratio was at most 1.03, the largest 1.5 (shift) and 1.3 (clusters),
    # both on the geometric spectrum.
    world = poisoned(kind, 3000, 60, 0.1, spectrum, seed=0)
    result = robust_covariance(world.points, 0.1)
    assert operator_error(result.covariance, world.truth) < 1.3 * clean_error(world)
    assert result.weights[~world.bad].mean() > 0.97
    if kind not in ("shift", "tails"):
        assert result.weights[world.bad].mean() < 0.02


def test_scores_of_good_points_are_standard_normal(rng):
    # Of 4000 scores: quantiles are known to about 0.03, and the tail at 3.1 holds 4 of them, give or take 2.
    points = rng.standard_normal((4000, 100)) @ rng.standard_normal((100, 100))
    every = np.ones(4000, bool)
    _, scores, _ = yardstick_of(MemoryRows(points), every.astype(float), every, centred=False)
    assert scores.shape == (4000, 1)
    assert_allclose(np.quantile(scores, [0.1, 0.5, 0.9]), [-1.28, 0, 1.28], atol=0.12)
    assert np.count_nonzero(scores > 3.1) < 16


def test_scores_of_fresh_points_agree_with_those_of_points_that_took_part(rng):
    points, fresh = rng.standard_normal((600, 100)), rng.standard_normal((600, 100))
    every = np.ones(600, bool)
    yardstick, scores, _ = yardstick_of(MemoryRows(points), every.astype(float), every, centred=False)
    # Without the share that each point has in its own covariance the difference would be about two.
    assert abs(np.median(scores_by(MemoryRows(fresh), yardstick)) - np.median(scores)) < 0.3


def test_taken_good_points_come_back_and_kept_bad_ones_go():
    world = poisoned("cluster", 3000, 60, 0.1, seed=1)
    keep = ~world.bad
    keep[np.flatnonzero(~world.bad)[:90]] = False  # good points that were taken
    keep[np.flatnonzero(world.bad)[:100]] = True  # bad points that were kept
    found = reconsider(MemoryRows(world.points), keep, np.ones(3000, bool), 0.15, centred=False)
    assert found.weights[world.bad].max() == 0
    assert found.weights[~world.bad].mean() > 0.98


def test_shares_follow_the_density_of_good_points(rng):
    # A tenth of the points at 4: at 2 hardly any is bad, between most are neither, at 4 nearly all are.
    scores = np.concatenate((rng.standard_normal(9000), 4 + rng.standard_normal(1000)))
    shares = good_shares(scores, np.ones(10000), 0.2)
    truth = 0.9 * np.exp(-(scores**2) / 2) / (0.9 * np.exp(-(scores**2) / 2) + 0.1 * np.exp(-((scores - 4) ** 2) / 2))
    for score in (0.0, 1.5, 4.0, 5.0):
        near = np.abs(scores - score) < 0.1
        assert_allclose(shares[near].mean(), truth[near].mean(), atol=0.1)
    # The weighted variance is that of the good points, which no hard limit gives.
    assert np.average(scores**2, weights=shares) == pytest.approx(1.0, abs=0.12)


def test_no_more_points_lose_weight_than_allowed(rng):
    scores = np.concatenate((rng.standard_normal(900), 9 + rng.standard_normal(100)))
    assert np.count_nonzero(good_shares(scores, np.ones(1000), 0.05) < 1) == 50


def test_normal_scores_lose_next_to_nothing():
    # On 20 seeds the mean share was at least 0.979.
    for seed in range(3):
        scores = np.random.default_rng(seed).standard_normal(5000)
        assert good_shares(scores, np.ones(5000), 0.45).mean() > 0.97


def test_the_lean_of_a_hidden_group_is_found_and_that_of_chance_is_not(rng):
    points = rng.standard_normal((3000, 60))
    every = np.ones(3000, bool)
    lengths = np.linalg.norm(points, axis=1)
    assert leaning_direction(MemoryRows(points), np.eye(60), every, lengths).shape == (60, 0)
    points[:300, 0] += 5.0
    points[:, 0] = (points[:, 0] - points[:, 0].mean()) / points[:, 0].std()
    lengths = np.linalg.norm(points, axis=1)
    found = leaning_direction(MemoryRows(points), np.eye(60), every, lengths)
    assert found.shape == (60, 1)
    assert abs(found[0, 0]) > 0.9


def test_few_points_are_not_reconsidered_and_nothing_breaks(rng):
    points = rng.standard_normal((60, 50))
    points[:6] = 30.0
    result = robust_covariance(points, 0.1)
    assert_allclose(result.weights[:6], 0)
