"""Two signals that share the samples part, and one of them is the truth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.constants import varied
from robustphase.problem import build_problem
from robustphase.recover.contradiction import CONTRADICTION
from robustphase.recover.held_noise import fit_tightly
from robustphase.recover.pairs import fit_pairs
from robustphase.rows import MemoryRows
from robustphase.simulate import ParametricAttack, make_world

N, M = 40, 4000


#: Found by a search: the samples that tell most clearly of the truth speak for a signal close to it, and overshoot.
NEAR = ParametricAttack(angle=0.31, norm=0.95, by_likelihood=-1.0, move=1.1, noise_factor=0.23, noise="lognormal")
FAR = ParametricAttack(angle=0.8, norm=0.92, by_likelihood=-0.86, by_sign=-0.51, by_difference=0.39, noise_factor=0.1)


def problem_of(world, level):
    m = len(world.y)
    return build_problem(
        MemoryRows(world.A), world.y[:, np.newaxis], np.ones((m, 1)), np.array([level]), unknown_mean=False
    )


def found(problem, start):
    """Tight fits and pairs from a start, in the units of the responses."""
    unit = np.sqrt(problem.units[0])
    starts, zero = np.column_stack([start / unit] * 2), np.zeros(2)
    twice = problem._replace(
        responses=np.repeat(problem.responses, 2, axis=1),
        density=np.repeat(problem.density, 2, axis=1),
        weights=np.repeat(problem.weights, 2, axis=1),
        levels=np.repeat(problem.levels, 2),
        units=np.repeat(problem.units, 2),
    )
    held_back = np.array([False, True])
    return (unit * fit(twice, starts, zero, held_back).fit.state.signals for fit in (fit_tightly, fit_pairs))


def nearest(signals, truth):
    return min(distance(signal, truth) for signal in signals.T)


@pytest.mark.filterwarnings(
    "ignore::robustphase.recover.model.ModelWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
def test_the_truth_parts_from_who_bad_samples_speak_for_where_tight_fits_stay_between():
    for attack, field in ((NEAR, "real"), (NEAR, "complex"), (FAR, "real")):
        for seed in seeds(2, 4):
            world = make_world(
                N,
                M,
                contamination=0.2,
                noise=attack.noise,
                noise_std=0.5,
                attack=attack.adversary,
                field=field,
                seed=seed,
            )
            with varied(CONTRADICTION, slack=np.inf):
                fooled = RobustPhaseRetrieval(0.2).fit(world.A, world.y).signal_
            tight, pairs = (nearest(signals, world.truth) for signals in found(problem_of(world, 0.2), fooled))
            assert pairs < 0.9 * min(tight, distance(fooled, world.truth)), f"{attack.angle}, {field}, seed {seed}"


def test_where_nobody_speaks_for_another_signal_one_of_a_pair_is_the_signal():
    for seed in seeds(2, 4):
        world = make_world(N, M, contamination=0.0, attack="none", noise="gaussian", noise_std=0.5, seed=seed)
        _, pairs = found(problem_of(world, 0.1), world.truth)
        assert nearest(pairs, world.truth) < 0.15, f"seed {seed}"
