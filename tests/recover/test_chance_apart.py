"""Chance leaves two fits to the same samples as far apart as is said."""

from __future__ import annotations

import numpy as np
import pytest

from robustphase import RobustPhaseRetrieval, distance
from robustphase.recover import engine, second_opinion
from robustphase.recover.contradiction import Contradictions, chance_apart
from robustphase.recover.election import Verdict
from robustphase.simulate import make_world


@pytest.fixture
def heard(monkeypatch):
    """Ratios of squared distances to chance, between each answer and the tight fit from it, of all fits that are made."""
    ratios = []

    def watched(one, other):
        chance = chance_apart(one, other)
        signals = (one.fit.state.signals[:, 0], other.fit.state.signals[:, 0])
        ratios.append(distance(*signals) ** 2 / chance[0])
        return chance

    monkeypatch.setattr(second_opinion, "chance_apart", watched)
    monkeypatch.setattr(engine, "contradictions", lambda *_: Contradictions(np.full(1, 1.5), np.zeros((2, 1), bool)))
    return ratios


def won_by(winner, residuals):
    """An election that this signal wins."""
    return Verdict(winner, np.zeros(residuals.shape[1]), np.ones(residuals.shape[1], bool))


@pytest.mark.parametrize("field", ["real", "complex"])
@pytest.mark.parametrize("place", [0, 1], ids=["as they are", "strong samples held back"])
def test_fits_to_clean_samples_are_as_far_apart_as_chance_leaves_them(heard, monkeypatch, field, place):
    monkeypatch.setattr(second_opinion, "elected", lambda residuals, *_: won_by(1 + place, residuals))
    for noise in ("gaussian", "student"):
        for seed in range(3):
            world = make_world(30, 3000, contamination=0.0, attack="none", noise=noise, field=field, seed=seed)
            RobustPhaseRetrieval(0.1).fit(world.A, world.y)
    # Six fits of thirty unknowns or more: the mean has a standard error of about 0.1.
    assert len(heard) == 6
    assert 0.7 < np.mean(heard) < 1.4


def test_chance_does_not_depend_on_the_phase_of_a_signal(heard, monkeypatch):
    monkeypatch.setattr(second_opinion, "elected", lambda residuals, *_: won_by(1, residuals))
    world = make_world(20, 2000, contamination=0.0, attack="none", noise="gaussian", field="complex", seed=0)
    seen = []

    def turned(one, other):
        plain = chance_apart(one, other)
        state, fit = other.fit.state, other.fit
        around = other._replace(
            fit=fit._replace(state=state._replace(signals=1j * state.signals), projections=1j * fit.projections)
        )
        seen.append(chance_apart(one, around) / plain)
        return plain

    monkeypatch.setattr(second_opinion, "chance_apart", turned)
    RobustPhaseRetrieval(0.1).fit(world.A, world.y)
    np.testing.assert_allclose(seen, 1.0, rtol=1e-9)
