"""A second opinion overrules an answer that an attacker has learned to force, and leaves right answers alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase import RobustPhaseRetrieval, distance
from robustphase.constants import varied
from robustphase.likelihood import NoiseModel
from robustphase.problem import build_problem
from robustphase.recover.second_opinion import OPINION, best_half, chance_energy, pull
from robustphase.rows import MemoryRows
from robustphase.simulate import make_world

N, M, SIGMA = 50, 2500, 0.5


def learned_attack(seed, *, level, angle, norm, lean):
    """Samples on which a second signal differs from the truth, and the noise leans its way, are rewritten in its name."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((M, N)), rng.standard_normal(N)
    x /= np.linalg.norm(x)
    y = (A @ x) ** 2 + SIGMA * rng.standard_normal(M)
    beside = rng.standard_normal(N)
    beside -= x * (x @ beside)
    second = norm * (np.cos(angle) * x + np.sin(angle) * beside / np.linalg.norm(beside))
    own, other = (A @ x) ** 2, (A @ second) ** 2
    leaning = np.clip(((y - own) ** 2 - (y - other) ** 2) / (2 * SIGMA**2), -20, 20)
    bad = np.argsort(-(2 * np.log(np.abs(other - own) + 1e-9) + lean * leaning))[: int(level * M)]
    y[bad] = other[bad] + SIGMA * rng.standard_normal(bad.size)
    return A, y, x


ATTACKS = (
    {"level": 0.1, "angle": 0.5, "norm": 0.9, "lean": 0.03},
    {"level": 0.2, "angle": 0.7, "norm": 1.0, "lean": 0.09},
    {"level": 0.2, "angle": 1.0, "norm": 0.8, "lean": 0.09},
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_attack_that_was_learned_is_overruled():
    for attack in ATTACKS:
        for seed in range(2):
            A, y, x = learned_attack(seed, **attack)
            model = RobustPhaseRetrieval(attack["level"]).fit(A, y)
            assert distance(model.signal_, x) < 0.15, f"{attack}, seed {seed}"
            assert "second opinion" in [record.stage for record in model.history_], f"{attack}, seed {seed}"
            with varied(OPINION, slack=np.inf):
                alone = RobustPhaseRetrieval(attack["level"]).fit(A, y)
            assert distance(alone.signal_, x) > 0.25, f"{attack}, seed {seed}"


def test_right_answers_are_left_as_they_are():
    for attack, noise in (
        ("decoy_loud", "gaussian"),
        ("huge", "lognormal"),
        ("replace", "student"),
        ("none", "pareto"),
    ):
        level = 0.0 if attack == "none" else 0.2
        world = make_world(30, 1500, contamination=level, attack=attack, noise=noise, seed=1)
        model = RobustPhaseRetrieval(0.2).fit(world.A, world.y)
        with varied(OPINION, slack=np.inf):
            alone = RobustPhaseRetrieval(0.2).fit(world.A, world.y)
        assert_array_equal(model.signal_, alone.signal_, f"{attack}, {noise}")


def test_the_best_half_of_normal_residuals_tells_their_scale_wherever_they_lie():
    rng = np.random.default_rng(0)
    residuals = np.stack((3 * rng.standard_normal(20_000), 7 + 0.1 * rng.standard_normal(20_000)), axis=1)
    problem = build_problem(
        MemoryRows(np.ones((20_000, 1))), residuals, np.ones((20_000, 1)), np.full(2, 0.1), unknown_mean=False
    )
    assert_allclose(best_half(problem, residuals) / OPINION.normal, (3.0, 0.1), rtol=0.05)


def test_a_fitted_answer_leaves_its_worse_half_little_to_ask():
    noise = NoiseModel(np.array([0.5, 0.5]), np.array([1 / 60, 0.4]), np.array([0.0, 1.0]), np.array([0.1, 0.1]))
    energies = chance_energy(noise)
    assert ((energies > 0) & (energies < 1)).all()
    # Units do not matter where bad responses play no part.
    assert_allclose(
        chance_energy(noise._replace(mixing=np.full(2, 1e-9))),
        chance_energy(noise._replace(mixing=np.full(2, 1e-9), scales=5 * noise.scales)),
        rtol=1e-6,
    )


def test_the_better_half_pulls_nowhere_and_no_residual_pulls_without_bound():
    noise = NoiseModel(np.ones(1), np.full(1, 0.1), np.zeros(1), np.full(1, 0.1))
    pulls = pull(np.array([[-1e9], [-1.0], [0.5], [1.0], [1e9]]), noise, np.full(1, 0.7))
    assert_array_equal(pulls[2], 0.0)
    assert_allclose(pulls[:, 0][[0, 4]], (-OPINION.clip * 0.7, OPINION.clip * 0.7))
    assert_allclose(pulls[:, 0], -pulls[::-1, 0] + 2 * pulls[2, 0])
