"""An attacker that learns: within its budget, the same for a seed, continued after an interruption, and able to hurt."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import robustphase as rp
from robustphase.experiments import MethodEstimator, RedTeamInterrupted, red_team
from robustphase.experiments.attack_report import Trial
from robustphase.experiments.evolution import EvolutionStrategy
from robustphase.experiments.red_team import KNOWN, most_distinct, openings
from robustphase.simulate.adversaries.parametric import FAMILY, ParametricAttack

SMALL = {"n": 5, "m": 150, "contamination": 0.1, "seeds_per_attack": 2, "confirm": 2, "top": 2, "workers": 1}


class Spectral:
    """A quick method without scikit-learn's conventions; counts the fits of all its copies."""

    fits = 0

    def fit(self, A, y):
        type(self).fits += 1
        _, vectors = np.linalg.eigh(A.conj().T @ (np.clip(y, 0, 10)[:, None] * A))
        self.signal_ = vectors[:, -1]
        return self


class Refusing:
    def fit(self, A, y):
        raise RuntimeError("no")


@pytest.fixture(autouse=True)
def _no_fits_so_far():
    Spectral.fits = 0


@pytest.mark.parametrize("budget", [4, 11, 60])
def test_the_search_keeps_within_its_budget_and_says_what_it_has_used(budget):
    found = red_team(Spectral(), budget=budget, **SMALL)
    searched = 2 * (budget // 2)
    assert len(found.history) == budget // 2 - 1
    assert Spectral.fits == found.fits == searched + 2 * len(found.attacks)
    assert len(found.attacks) == min(2, budget // 2 - 1)


def test_the_same_seed_finds_the_same_and_another_one_something_else(whole):
    same, other = (red_team(Spectral(), budget=60, seed=seed, **SMALL) for seed in (0, 1))
    assert whole == same
    assert whole.attacks != other.attacks


def test_processes_change_nothing():
    alone = red_team(MethodEstimator("wirtinger_flow"), budget=8, **SMALL)
    together = red_team(MethodEstimator("wirtinger_flow"), budget=8, **{**SMALL, "workers": 2})
    assert_allclose(together.history, alone.history, rtol=1e-6)


@pytest.fixture(scope="module")
def whole():
    """A search that nobody interrupts."""
    return red_team(Spectral(), budget=60, **SMALL)


@pytest.mark.parametrize("stop", [1, 9, 30, 31])
def test_an_interrupted_search_goes_on_to_the_same_result(tmp_path, stop, whole):
    told = []

    def interrupt(done, total, text):
        told.append((done, total))
        if len(told) == stop:
            raise KeyboardInterrupt

    Spectral.fits = 0
    store = tmp_path / "search.json"
    with pytest.raises(RedTeamInterrupted, match=r"search\.json; the same call goes on") as interrupted:
        red_team(Spectral(), budget=60, store=store, progress=interrupt, **SMALL)
    partial = interrupted.value.partial
    assert partial is None if stop == 1 else len(partial.history) == min(stop, 30) - 1
    assert Spectral.fits == 2 * stop
    assert red_team(Spectral(), budget=60, store=store, **SMALL) == whole
    assert Spectral.fits == whole.fits
    # Once more, and nothing is left to do.
    assert red_team(Spectral(), budget=60, store=store, **SMALL) == whole
    assert Spectral.fits == whole.fits


def test_a_store_of_another_search_or_of_something_else_is_refused_and_left_alone(tmp_path):
    store = tmp_path / "search.json"
    red_team(Spectral(), budget=8, store=store, **SMALL)
    before = store.read_text()
    with pytest.raises(ValueError, match="seed=0 there, seed=1 here"):
        red_team(Spectral(), budget=8, store=store, seed=1, **SMALL)
    with pytest.raises(ValueError, match="estimator='Spectral' there"):
        red_team(Refusing(), budget=8, store=store, **SMALL)
    assert store.read_text() == before
    other = json.loads(before)
    other["search"][2]["vector"][0] += 0.1
    store.write_text(json.dumps(other))
    with pytest.raises(ValueError, match="other attacks than this search asks for"):
        red_team(Spectral(), budget=8, store=store, **SMALL)
    store.write_text("my notes")
    with pytest.raises(ValueError, match="not the store of a search"):
        red_team(Spectral(), budget=8, store=store, **SMALL)
    assert store.read_text() == "my notes"
    with pytest.raises(ValueError, match=r"ends in \.json"):
        red_team(Spectral(), budget=8, store=tmp_path / "search.txt", **SMALL)


def test_a_fragile_method_is_broken_and_the_attack_can_be_made_again():
    fragile = MethodEstimator("wirtinger_flow", 0.1)
    found = red_team(fragile, n=10, m=500, budget=40, seeds_per_attack=2, confirm=3, top=2, workers=1)
    assert found.clean_error < 0.15
    assert found.error > 0.4
    assert found.error > 2 * found.unavoidable_error
    world = rp.simulate.make_world(10, 500, attack=found.adversary, contamination=0.1, noise="gaussian", seed=77)
    again = fragile.fit(world.A, world.y)
    assert rp.distance(again.signal_, world.truth, relative=True) > 0.3
    assert found.worst.attack == ParametricAttack.from_dict(json.loads(json.dumps(found.worst.attack.to_dict())))


def test_the_report_says_what_was_found_and_its_lines_run():
    found = red_team(Spectral(), budget=20, noise_mean=1.0, field="complex", **SMALL)
    text = found.report()
    for figure in (found.clean_error, found.error, found.unavoidable_error):
        assert f"{figure:.3f}" in text
    assert text.count(" rad with norm ") == len(found.attacks)
    namespace = {"rp": rp}
    exec(text.split("```python\n")[1].split("```")[0], namespace)
    assert namespace["attack"] == found.worst.attack
    assert namespace["world"].touched.any()
    assert np.iscomplexobj(namespace["world"].A)


def test_worst_attacks_are_sorted_by_their_errors_in_fresh_worlds_of_the_size_asked_for():
    found = red_team(Spectral(), budget=40, confirm_n=7, confirm_m=90, **{**SMALL, "top": 4})
    errors = [np.mean(attack.fresh_errors) for attack in found.attacks]
    assert errors == sorted(errors, reverse=True)
    assert all(len(attack.fresh_errors) == 2 for attack in found.attacks)
    unconfirmed = red_team(Spectral(), budget=40, **{**SMALL, "confirm": 0})
    assert unconfirmed.worst.fresh_errors == ()
    assert unconfirmed.error == max(unconfirmed.history)
    assert "not run" in unconfirmed.report()


def test_no_answer_counts_as_the_answer_zero_and_is_counted():
    found = red_team(Refusing(), budget=6, **SMALL)
    assert found.clean_error == found.error == 1.0
    assert found.worst.refused == 4


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(ValueError, match="budget must be at least twice"):
        red_team(Spectral(), budget=3, **SMALL)
    with pytest.raises(TypeError, match="must have fit"):
        red_team(object(), budget=8, **SMALL)
    with pytest.raises(ValueError, match="Did you mean"):
        red_team(Spectral(), budget=8, **{**SMALL, "contamination": 10})
    with pytest.raises(ValueError, match="oracle"):
        MethodEstimator("oracle").fit(np.eye(3), np.ones(3))


def test_openings_are_the_known_attacks_and_then_a_spread():
    points = openings(30, np.random.default_rng(0))
    assert points.shape == (30, len(FAMILY))
    assert ((points >= 0) & (points <= 1)).all()
    assert_allclose(points[: len(KNOWN)], [attack.to_vector() for attack in KNOWN], atol=1e-6)
    assert (np.ptp(points[len(KNOWN) :], axis=0) > 0.8).all()
    assert len(openings(3, np.random.default_rng(0))) == 3


def test_of_attacks_that_resemble_each_other_one_is_taken_while_there_are_others():
    d = len(FAMILY)
    near = [Trial((0.5 + 0.001 * k,) * d, (2.0 - 0.1 * k,)) for k in range(3)]
    far = Trial((0.9,) * d, (0.5,))
    assert most_distinct([*near, far], 2) == [near[0], far]
    assert most_distinct([*near, far], 3) == [near[0], near[1], far]


def test_the_evolution_strategy_climbs_a_tilted_ridge():
    rng = np.random.default_rng(3)
    scales = np.geomspace(1.0, 30.0, 8)
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    top = np.full(8, 0.6)

    def value(points):
        return -np.sum(((points - top) @ rotation * scales) ** 2, axis=1)

    strategy = EvolutionStrategy(np.full(8, 0.3), 0.2, rng)
    for _ in range(300):
        points = strategy.ask()
        strategy.tell(points, value(points))
    # Coordinates have six digits: the last steps are below them.
    assert_allclose(strategy.centre, top, atol=1e-4)
