"""Counts that an adversary has rewritten where they move the signal most along one direction."""

from __future__ import annotations

import numpy as np
import pytest
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.constants import varied
from robustphase.descend.law_fit import fit_law
from robustphase.likelihood.bad_responses import marginal_law
from robustphase.likelihood.dependent_noise import PoissonLaw
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem
from robustphase.recover.law.grips import (
    DIRECTION,
    GRIPS,
    doubtful_direction,
    moved_beyond_chance,
    without_the_largest,
)
from robustphase.rows import as_source
from robustphase.simulate import make_counts


def fitted(A, y, start, level=0.1):
    weights = np.ones((y.size, 1))
    law = marginal_law(y[:, None], weights, counts=True)
    readings = Readings(y[:, None], weights, None, np.zeros((y.size, 1)), law)
    problem = Problem(as_source(A), y[:, None], weights, law, np.array([level]), np.ones(1), True)
    fit = fit_law(problem, readings, PoissonLaw(np.array([level / 2])), start[:, None], np.array([0.1]))
    return problem, readings, fit


def pulled_along(unit, A, x, y, share, field):
    """The counts of largest grip on a direction answer for a signal further along it."""
    grips = 2 * ((A @ x).conj() * (A @ unit)).real
    rows = np.argsort(-np.abs(grips))[: int(share * y.size)]
    y = y.copy()
    y[rows] = np.rint(np.abs(A[rows] @ (x + 0.6 * unit)) ** 2 + 0.1)
    return y


@pytest.mark.parametrize("field", ["real", "complex"])
def test_the_direction_of_a_pull_is_found_and_chance_has_none(field):
    for seed in seeds(2, 3):
        world = make_counts(16, 2500, mean_count=1.0, contamination=0.0, attack="none", field=field, seed=seed)
        A, x = world.A, world.truth
        unit = np.random.default_rng(seed).standard_normal(16) + (0 if field == "real" else 0j)
        unit = unit - x * np.vdot(x, unit) / np.vdot(x, x)
        unit /= np.linalg.norm(unit)
        problem, readings, fit = fitted(A, pulled_along(unit, A, x, world.y, 0.1, field), x)
        grip = doubtful_direction(problem, fit, 0)
        gap = fit.signals[:, 0] - x
        assert abs(np.vdot(grip.direction, gap)) > 0.6 * np.linalg.norm(gap), seed
        fewer = without_the_largest(readings, grip.grips, 0.1)
        assert moved_beyond_chance(
            grip, fit, fit_law(problem, fewer, PoissonLaw(problem.levels), fit.signals, fit.backgrounds)
        ), seed

        problem, readings, fit = fitted(A, world.y, x)
        grip = doubtful_direction(problem, fit, 0)
        fewer = without_the_largest(readings, grip.grips, 0.1)
        assert not moved_beyond_chance(
            grip, fit, fit_law(problem, fewer, PoissonLaw(problem.levels), fit.signals, fit.backgrounds)
        ), seed


@pytest.mark.filterwarnings("ignore::robustphase.recover.model.ModelWarning")
def test_an_attack_on_gradients_loses_by_the_second_look():
    with_look, without = [], []
    for seed in seeds(2, 3):
        world = make_counts(30, 2500, mean_count=1.0, contamination=0.1, attack="gradient_push", seed=seed)
        # What the doubts show by themselves finds this attack too, and has tests of its own.
        with varied(GRIPS, rounds=0):
            model = RobustPhaseRetrieval(0.1, noise="poisson").fit(world.A, world.y)
            with_look.append(distance(model.signal_, world.truth))
            with varied(DIRECTION, deviations=np.inf):
                model = RobustPhaseRetrieval(0.1, noise="poisson").fit(world.A, world.y)
            without.append(distance(model.signal_, world.truth))
    assert np.median(with_look) < 0.8 * np.median(without)
