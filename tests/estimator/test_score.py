"""The score ranks models by how well they predict, also where some of the held-out responses are bad."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.estimator.scoring import better_half, explained
from robustphase.simulate import make_world


def test_for_normal_responses_and_residuals_it_is_nearly_r_squared():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(20_000)
    predictions = y + 0.5 * rng.standard_normal(20_000)
    # The standard deviation of either half of mean squares is about 0.02 of itself.
    assert explained(y, predictions) == pytest.approx(r2_score(y, predictions), abs=0.03)
    assert explained(y, y) == 1.0


def test_no_constant_scores_above_zero_and_the_best_scores_about_zero():
    rng = np.random.default_rng(1)
    y = rng.standard_normal(1000) ** 2
    scores = [explained(y, np.full(1000, level)) for level in np.linspace(0, 1, 101)]
    assert max(scores) <= 1e-9
    assert max(scores) > -0.01


def test_bad_held_out_responses_hardly_move_it_and_cannot_decide():
    clean = make_world(20, 3000, contamination=0.0, attack="none", seed=1)
    right = RobustPhaseRetrieval().fit(clean.A[:1500], clean.y[:1500])
    worse = RobustPhaseRetrieval().fit(clean.A[:1500], clean.y[:1500])
    worse.signal_ = worse.signal_ + 0.1 * np.roll(worse.signal_, 1)
    A, y = clean.A[1500:], clean.y[1500:].copy()
    before, below = right.score(A, y), worse.score(A, y)
    assert below < before
    y[:75] = np.r_[np.full(40, 1e150), np.full(35, -1e9)]
    # A twentieth of the better half is replaced by its neighbours.
    assert right.score(A, y) == pytest.approx(before, abs=0.1)
    assert worse.score(A, y) < right.score(A, y)


def test_a_search_over_the_contamination_chooses_the_better_signal():
    for seed in seeds(1, 3):
        world = make_world(20, 1500, contamination=0.2, attack="mimic", seed=seed)
        search = GridSearchCV(RobustPhaseRetrieval(), {"contamination": [0.0, 0.25]}, cv=3)
        with warnings.catch_warnings():
            # Told that nothing is bad, the model fails, and says so.
            warnings.simplefilter("ignore", ConvergenceWarning)
            search.fit(world.A, world.y)
            (level,) = {0.0, 0.25} - {search.best_params_["contamination"]}
            other = RobustPhaseRetrieval(level).fit(world.A, world.y)
        chosen, rejected = (
            distance(one.signal_, world.truth, relative=True) for one in (search.best_estimator_, other)
        )
        assert chosen < rejected + 0.05


def test_weights_count_samples_and_missing_responses_do_not():
    rng = np.random.default_rng(2)
    y, predictions = rng.standard_normal(301), rng.standard_normal(301)
    assert explained(y, predictions, np.full(301, 2.0)) == pytest.approx(explained(y, predictions))
    weights = np.r_[np.ones(151), np.zeros(150)]
    assert explained(y, predictions, weights) == explained(y[:151], predictions[:151])
    holes = np.where(np.arange(301) < 151, y, np.nan)
    assert explained(holes, predictions) == explained(y[:151], predictions[:151])


def test_constant_responses_are_explained_or_not():
    ones = np.ones(10)
    assert explained(ones, ones) == 1.0
    assert explained(ones, 2 * ones) == 0.0
    assert better_half(np.array([0.0, 0.0, 1e200]), np.ones(3)) == 0.0


def test_the_shapes_must_agree():
    world = make_world(10, 300, seed=0)
    model = RobustPhaseRetrieval().fit(*world)
    with pytest.raises(ValueError, match=r"y has shape \(299,\), the predictions have \(300,\)"):
        model.score(world.A, world.y[:-1])
