"""Counts that an adversary has rewritten where they move the signal most, along one direction or along several."""

from __future__ import annotations

import numpy as np
import pytest
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.constants import varied
from robustphase.descend.law_fit import Effort, fit_law
from robustphase.likelihood.bad_responses import marginal_law
from robustphase.likelihood.dependent_noise import PoissonLaw
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem
from robustphase.recover.law.grips import GRIPS, doubted_grips, worth_learning
from robustphase.rows import as_source
from robustphase.simulate import make_counts


def judged_at_the_truth(world, level=0.1):
    y = world.y[:, np.newaxis]
    weights = np.ones(y.shape)
    law = marginal_law(y, weights, counts=True)
    readings = Readings(y, weights, None, np.zeros(y.shape), law)
    problem = Problem(as_source(world.A), y, weights, law, np.array([level]), np.ones(1), True)
    truth, dark = world.truth[:, np.newaxis], np.array([world.noise_mean])
    return problem, readings, fit_law(problem, readings, PoissonLaw(np.array([level])), truth, dark, Effort(0))


def place_among_all(sizes, chosen):
    """Mean rank of the chosen ones, as a share of all: a half where sizes know nothing of the choice."""
    return float(np.argsort(np.argsort(sizes[:, 0]))[chosen].mean() / sizes.size)


@pytest.mark.parametrize("field", ["real", "complex"])
@pytest.mark.parametrize(("attack", "count"), [("gradient_push", 1), ("gradient_spread", 4)])
def test_rewritten_samples_have_the_largest_learned_grips(field, attack, count):
    for seed in seeds(2, 3):
        world = make_counts(16, 2500, mean_count=1.0, contamination=0.1, attack=attack, field=field, seed=seed)
        problem, readings, fit = judged_at_the_truth(world)
        sizes = doubted_grips(problem, fit, readings, count)
        assert sizes.shape == (2500, 1)
        assert place_among_all(sizes, world.touched) > 0.8, seed
        energies = np.abs(fit.projections) ** 2
        assert place_among_all(sizes, world.touched) > place_among_all(energies, world.touched), seed


def test_nothing_is_learned_where_next_to_nothing_is_doubted():
    world = make_counts(16, 2500, mean_count=1.0, contamination=0.1, attack="gradient_push", seed=0)
    _, readings, fit = judged_at_the_truth(world)
    assert worth_learning(fit, readings)
    clean = make_counts(16, 2500, mean_count=1.0, contamination=0.0, attack="none", seed=0)
    _, readings, fit = judged_at_the_truth(clean, level=0.001)
    assert not worth_learning(fit, readings)


@pytest.mark.filterwarnings("ignore::robustphase.recover.model.ModelWarning")
def test_an_attack_on_gradients_loses_by_what_the_doubts_show():
    learned, without = [], []
    for seed in seeds(2, 3):
        world = make_counts(20, 1600, mean_count=1.0, contamination=0.1, attack="gradient_spread", seed=seed)
        model = RobustPhaseRetrieval(0.1, noise="poisson")
        learned.append(distance(model.fit(world.A, world.y).signal_, world.truth))
        with varied(GRIPS, rounds=0):
            without.append(distance(model.fit(world.A, world.y).signal_, world.truth))
    assert np.median(learned) < 0.9 * np.median(without)


@pytest.mark.parametrize("attack", ["gradient_push", "mimic"])
def test_samples_chosen_by_their_grip_elsewhere_are_told_by_it(attack):
    """Both look at a signal far from the truth, at 0.3 of it or at its opposite, which the doubts alone do not show."""
    found = []
    for seed in seeds(3, 4):
        world = make_counts(20, 2500, mean_count=1.0, contamination=0.1, attack=attack, seed=seed)
        problem, readings, fit = judged_at_the_truth(world)
        odds = [doubted_grips(problem, fit, readings, 1, sharp=sharp)[:, 0] for sharp in (True, False)]
        found.append([world.touched[np.argsort(-one)[: world.touched.sum()]].mean() for one in odds])
    sharp, soft = np.median(found, axis=0)
    assert sharp > 0.8
    assert sharp > soft + 0.1


def test_no_more_directions_are_sought_than_there_are_unknowns():
    for n in (1, 2):
        world = make_counts(n, 400, contamination=0.1, attack="huge", seed=n)
        problem, readings, fit = judged_at_the_truth(world)
        sizes = doubted_grips(problem, fit, readings, 4)
        assert sizes.shape == (400, 1)
        assert np.isfinite(sizes).all(), f"n = {n}"
