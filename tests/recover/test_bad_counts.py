"""Shares and laws of bad counts: one for all, or class by class where the counts ask for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.effort import seeds

from robustphase.descend.law_fit import fit_law
from robustphase.likelihood.bad_responses import marginal_law
from robustphase.likelihood.dependent_noise import PoissonLaw
from robustphase.likelihood.laws import Judged, Readings
from robustphase.problem import Problem
from robustphase.recover.law.bad_counts import BAD_COUNTS, described_share, fit_counts_from, gained_by_chance
from robustphase.rows import as_source
from robustphase.simulate import make_counts


def problem_of(world):
    y = world.y[:, np.newaxis]
    ones = np.ones_like(y)
    bad = marginal_law(y, ones, counts=True)
    problem = Problem(as_source(world.A), y, ones, bad, np.array([0.1]), np.ones(1), True)
    return problem, Readings(y, ones, None, np.zeros_like(y), bad)


def start_of(world):
    return PoissonLaw(np.array([0.05])), world.truth[:, np.newaxis], np.array([world.noise_mean])


def swapped_by_chance(seed, share=0.1):
    """Counts of which some were swapped with others and doubled, whatever their energies."""
    world = make_counts(20, 2000, mean_count=2.0, contamination=0.0, attack="none", seed=seed)
    rng = np.random.default_rng(seed)
    y, bad = world.y.copy(), rng.choice(2000, int(share * 2000), replace=False)
    y[bad] = 2 * rng.permutation(y)[: bad.size]
    return replace(world, y=y)


def chosen_by_energy(seed):
    return make_counts(20, 2000, mean_count=2.0, contamination=0.1, attack="erase", seed=seed)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_bad_counts_have_classes_where_they_were_chosen_by_energy_and_none_where_by_chance(seed):
    for world, classes in ((swapped_by_chance(seed), False), (chosen_by_energy(seed), True)):
        problem, readings = problem_of(world)
        _, known = fit_counts_from(problem, readings, *start_of(world), seed=0)
        assert (np.unique(known.prone).size > 1) == classes


def test_the_choice_is_made_for_each_column_by_itself():
    worlds = [chosen_by_energy(1), swapped_by_chance(1)]
    A = worlds[0].A
    # Both signals behind the rows of the first world: the second one's counts are drawn anew, and every tenth is doubled.
    rng = np.random.default_rng(0)
    second = rng.poisson((A @ worlds[1].truth) ** 2 + 0.2).astype(float)
    second[::10] = 2 * rng.permutation(second)[: second[::10].size]
    y = np.column_stack((worlds[0].y, second))
    ones = np.ones_like(y)
    bad = marginal_law(y, ones, counts=True)
    problem = Problem(as_source(A), y, ones, bad, np.full(2, 0.1), np.ones(2), True)
    readings = Readings(y, ones, None, np.zeros((2000, 1)), bad)
    truths = np.column_stack([world.truth for world in worlds])
    fit, known = fit_counts_from(problem, readings, PoissonLaw(np.full(2, 0.05)), truths, np.full(2, 0.2), seed=0)
    assert [np.unique(column).size > 1 for column in known.prone.T] == [True, False]
    assert fit.signals.shape == truths.shape


def test_classes_by_chance_gain_more_where_more_is_doubted():
    gains = []
    for share in (0.0, 0.1):
        world = swapped_by_chance(2, share)
        problem, readings = problem_of(world)
        gains.append(float(gained_by_chance(problem, readings, fit_law(problem, readings, *start_of(world)), 0)[0]))
    assert 0 <= gains[0] < gains[1]


def test_the_share_of_bad_counts_pays_for_what_their_law_has_learned():
    y = np.repeat([0.0, 1.0, 2.0, 3.0], 250)[:, np.newaxis]
    ones = np.ones_like(y)
    readings = Readings(y, ones, None, np.zeros_like(y), 0.25 * ones)
    judged = Judged(0.96 * ones, ones, ones, np.zeros(1))
    # Forty doubts and a law of four equal numbers.
    assert_allclose(described_share(judged, readings, 0.25 * ones, np.array([0.1])), (40 - 2) / 1000)
    assert_allclose(described_share(judged, readings, 0.25 * ones, np.array([0.01])), 0.01)
    # However many counts there are, no more than the neighbourhoods that a law is smoothed over.
    assert_allclose(
        described_share(judged, readings, 1e-6 * ones, np.array([0.1])), (40 - BAD_COUNTS.numbers / 2) / 1000
    )
