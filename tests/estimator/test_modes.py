"""Every way to fit: the engine, starts, scales, backgrounds, whitening, the paper's mode, streams."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase import RobustPhaseRetrieval, distance
from robustphase.simulate import SampleOracle, make_world, random_signal


def error(model, world):
    return distance(model.signal_, world.truth, relative=True)


def test_the_certificate_holds_the_truth_and_is_not_empty_talk():
    for place, attack in enumerate(("leverage", "decoy", "huge", "erase")):
        for seed in (place, place + 10):
            world = make_world(20, 1500, attack=attack, seed=seed)
            model = RobustPhaseRetrieval().fit(*world)
            assert error(model, world) < model.certificate_ < 0.5, f"{attack}, seed {seed}"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"contamination": "auto"},
        {"noise_mean": "unknown"},
        {"step": "paper", "init": "covariance", "polish": False},
        {"batches": 5},
    ],
    ids=str,
)
def test_the_scale_of_the_signal_does_not_matter(parameters):
    errors = []
    for norm in (1e-6, 1.0, 1e6):
        world = make_world(15, 900, attack="leverage", norm=norm, seed=1)
        errors.append(error(RobustPhaseRetrieval(**parameters).fit(*world), world))
    assert errors[1] < 0.1
    assert_allclose(errors, errors[1], rtol=1e-3)


def test_any_reasonable_start_leads_to_the_same_answer(world):
    expected = RobustPhaseRetrieval().fit(*world)
    starts = ["auto", "mean", "covariance", "spectral", 1.3 * world.truth, list(-world.truth)]
    for init in starts:
        model = RobustPhaseRetrieval(init=init).fit(*world)
        assert distance(model.signal_, expected.signal_) < 0.01
    assert_allclose(RobustPhaseRetrieval(init=world.truth).fit(*world).initial_signal_, world.truth)


def test_a_background_is_found():
    for seed, noise in enumerate(("gaussian", "student", "pareto", "lognormal")):
        for world in (
            make_world(20, 1500, attack="moderate", noise=noise, noise_mean=3.0, seed=s) for s in (2, 10 + seed)
        ):
            case = f"{noise}, seed {world.seed}"
            model = RobustPhaseRetrieval(noise_mean="unknown").fit(*world)
            assert error(model, world) < 0.1, case
            # The noise has standard deviation 0.5; trimming a skewed tail costs up to a fifth of that.
            assert abs(model.noise_mean_ - 3.0) < 0.12, case
            assert_allclose(model.predict(world.A[:5]), (world.A[:5] @ model.signal_) ** 2 + model.noise_mean_)


def test_correlated_designs_are_whitened(rng):
    world = make_world(20, 2000, attack="constant", seed=1)
    mixing = np.eye(20) + rng.standard_normal((20, 20)) / np.sqrt(20)
    A, truth = world.A @ mixing, np.linalg.solve(mixing, world.truth)
    for init in ("auto", truth + 0.05):
        model = RobustPhaseRetrieval(whiten=True, init=init).fit(A, world.y)
        assert distance(model.signal_, truth, relative=True) < 0.1
        assert_allclose(model.predict(A), (A @ model.signal_) ** 2)


class TestPaperMode:
    @pytest.mark.parametrize("init", ["mean", "covariance"])
    @pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
    def test_fresh_batches_and_multiplicative_weights_bring_the_start_closer(self, init, noise_mean):
        background = 3.0 if noise_mean == "unknown" else 0.0
        world = make_world(10, 6000, contamination=0.05, attack="leverage", noise_mean=background, seed=0)
        model = RobustPhaseRetrieval(
            0.05,
            noise_mean=noise_mean,
            init=init,
            step="paper",
            mean_estimator="mmw",
            batches=20,
            polish=False,
            random_state=0,
        ).fit(*world)
        assert error(model, world) < 0.5 * distance(model.initial_signal_, world.truth, relative=True)
        assert error(model, world) < 0.2
        assert model.converged_
        assert [record.stage for record in model.history_].count("descent") == 20

    @pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
    def test_all_samples_in_every_iteration_settle(self, world, noise_mean):
        model = RobustPhaseRetrieval(step="paper", noise_mean=noise_mean, max_iter=200, polish=False).fit(*world)
        assert model.converged_
        assert error(model, world) < 0.15
        assert model.weights_.shape == (1000,)
        assert model.flag_samples()[world.touched].mean() > model.flag_samples()[world.clean].mean()

    def test_the_polish_ends_where_the_engine_does(self, world):
        model = RobustPhaseRetrieval(step="paper", max_iter=200).fit(*world)
        assert distance(model.signal_, RobustPhaseRetrieval().fit(*world).signal_) < 0.01

    def test_an_unknown_level_is_found_first(self, world):
        model = RobustPhaseRetrieval("auto", step="paper", batches=5).fit(*world)
        assert 0.05 < model.contamination_ < 0.15


class TestStreams:
    @pytest.mark.parametrize("attack", ["leverage", "decoy", "erase"])
    @pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
    def test_the_error_falls_as_batches_arrive(self, attack, noise_mean):
        truth = random_signal(15, seed=3)
        oracle = SampleOracle(truth, attack=attack, noise_mean=2.0 if noise_mean == "unknown" else 0.0, seed=1)
        model, errors = RobustPhaseRetrieval(noise_mean=noise_mean), []
        for batch in oracle.batches(16, 400):
            model.partial_fit(*batch)
            errors.append(distance(model.signal_, truth, relative=True))
        # Sixteen batches: a quarter of the error of one, if none were wasted.
        assert np.mean(errors[-4:]) < 0.5 * np.mean(errors[:2])
        assert abs(model.noise_mean_ - oracle.noise_mean) < 0.2

    def test_state_does_not_grow_and_iterations_are_counted(self, monkeypatch):
        from robustphase.estimator import estimator

        monkeypatch.setattr(estimator, "LONGEST_HISTORY", 6)
        truth = random_signal(10, seed=3)
        oracle, model = SampleOracle(truth, seed=1), RobustPhaseRetrieval()
        counts, sizes = [], []
        for batch in oracle.batches(10, 200):
            model.partial_fit(*batch)
            counts.append(model.n_iter_)
            held = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
            sizes.append(sum(value.size for value in held) + len(model.history_))
        assert counts == list(range(counts[0], counts[0] + 10))
        assert max(sizes[1:]) == sizes[-1] == sizes[5]
        assert model.batches_seen_ == 10

    def test_batches_may_be_smaller_than_the_signal_asks_for(self):
        truth = random_signal(15, seed=3)
        oracle = SampleOracle(truth, attack="leverage", seed=1)
        model = RobustPhaseRetrieval().partial_fit(*oracle.draw(300))
        first = distance(model.signal_, truth)
        for batch in oracle.batches(60, 40):
            model.partial_fit(*batch)
        assert distance(model.signal_, truth) < 0.8 * first

    def test_in_paper_mode_each_batch_is_an_iteration_of_the_algorithm(self):
        truth = random_signal(10, seed=3)
        oracle = SampleOracle(truth, attack="leverage", seed=1)
        model = RobustPhaseRetrieval(step="paper", init=1.4 * truth, batches=2, polish=False)
        model.partial_fit(*oracle.draw(400))
        errors = [distance(model.signal_, truth)]
        for batch in oracle.batches(12, 300):
            model.partial_fit(*batch)
            errors.append(distance(model.signal_, truth))
        assert errors[-1] < 0.5 * errors[0]

    def test_fit_forgets_the_stream(self, world):
        streamed = RobustPhaseRetrieval().partial_fit(*world).partial_fit(*world).fit(*world)
        assert_array_equal(streamed.signal_, RobustPhaseRetrieval().fit(*world).signal_)
        assert streamed.batches_seen_ == 1

    def test_a_batch_with_other_columns_is_refused(self, world):
        model = RobustPhaseRetrieval().partial_fit(*world)
        with pytest.raises(ValueError, match="expecting 20 features"):
            model.partial_fit(world.A[:, :-1], world.y)
