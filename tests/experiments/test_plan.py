"""A plan: predictions hold on fresh worlds, every argument pulls in its direction, and the inverse is the inverse."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import THOROUGH, seeds

import robustphase as rp
from robustphase.experiments import Plan, PlanWarning, compare, plan
from robustphase.experiments.plan import predicted_bytes, predicted_seconds, read_speed
from robustphase.experiments.theory import breakdown


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)
        return plan(*args, **options)


sizes = st.integers(2, 5000)
noises = st.floats(0.01, 1.5)
levels = st.floats(0.0, 0.45)
deltas = st.floats(1e-6, 0.5)


class TestPredictions:
    """On worlds with seeds and sizes that the calibration did not use."""

    @pytest.mark.parametrize(
        ("n", "s", "level", "mean"), [(35, 0.4, 0.1, 0.0), (60, 0.2, 0.05, 0.0), (40, 0.5, 0.1, 2.0)]
    )
    def test_errors_are_as_predicted(self, n, s, level, mean):
        m = 40 * n
        answer = plan(n, noise_std=s, contamination=level, m=m, noise_mean="unknown" if mean else "zero")
        attacks = [
            "huge",
            "decoy",
            "leverage",
            "erase",
            "swap",
            "saturated",
            "mimic",
            "decoy_reflected",
            "replace",
            "cloud",
        ]
        runs = compare(["robustphase"], attacks, level, "gaussian", n=n, m=m, noise_std=s, noise_mean=mean,
                       seeds=[101 + more for more in seeds(2, 3)], workers=1).runs  # fmt: skip
        errors = np.array([run.error for run in runs])
        # Two independent samples with n degrees of freedom each: their root mean square is known to 1/sqrt(4n), below 9%.
        ordinary = [run.error for run in runs if run.attack in ("huge", "decoy", "leverage", "cloud")]
        assert 0.8 < math.sqrt(np.mean(np.square(ordinary))) / answer.typical_error < 1.2
        # The bound holds, and is not idle.
        assert (errors <= answer.error).all()
        assert errors.max() > 0.6 * answer.error

    @pytest.mark.parametrize(
        ("n", "s", "level", "part"), [(30, 0.5, 0.1, 0), (40, 0.3, 0.15, 1), (70, 0.5, 0.05, 3), (30, 0.1, 0.2, 2)]
    )
    def test_with_the_samples_asked_for_every_adversary_is_survived(self, n, s, level, part):
        answer = plan(n, noise_std=s, contamination=level)
        # A quarter of the adversaries in each world; where there is time half of them, every one in two.
        attacks = list(rp.simulate.ADVERSARIES)[part % 2 :: 2] if THOROUGH else list(rp.simulate.ADVERSARIES)[part::4]
        runs = compare(
            ["robustphase"], attacks, level, "student", n=n, m=answer.m, noise_std=s, seeds=[77], workers=1
        ).runs
        lost = [run.attack for run in runs if run.error > max(0.25, answer.error)]
        # δ = 0.01: one loss to five adversaries would have a probability of 5%, and two to twenty of 2%.
        assert len(lost) <= THOROUGH, lost

    def test_a_target_is_reached(self):
        answer = plan(40, noise_std=0.3, contamination=0.05, target_error=0.05)
        runs = compare(["robustphase"], ["none", "decoy", "erase", "leverage", "duplicate"], 0.05, "gaussian", n=40, m=answer.m,
                       noise_std=0.3, seeds=[5, 6], workers=1).runs  # fmt: skip
        assert max(run.error for run in runs) <= 0.05

    def test_heavier_tails_end_below_the_prediction(self):
        answer = plan(40, m=3000)
        runs = compare(["robustphase"], ["decoy", "huge"], 0.1, ["pareto", "lognormal"], n=40, m=3000, seeds=[9, 10],
                       workers=1).runs  # fmt: skip
        assert max(run.error for run in runs) < answer.typical_error


class TestShape:
    @given(n=sizes, s=noises, level=levels, delta=deltas, m=st.integers(1, 10**6), more=st.integers(1, 1000))
    def test_more_samples_never_hurt(self, n, s, level, delta, m, more):
        few, many = (quiet(n, noise_std=s, contamination=level, delta=delta, m=count) for count in (m, m + more))
        for name in ("typical_error", "error", "worst_error"):
            assert getattr(many, name) <= getattr(few, name) * (1 + 1e-9)
        assert many.bytes > few.bytes

    @given(
        n=sizes,
        s=noises,
        level=levels,
        delta=deltas,
        per_unknown=st.floats(1.5, 300),
        harder=st.sampled_from(["n", "noise_std", "contamination", "delta", "noise_mean"]),
        factor=st.floats(1.01, 2.0),
    )
    def test_a_harder_problem_needs_more_samples_and_ends_with_a_larger_error(
        self, n, s, level, delta, per_unknown, harder, factor
    ):
        easy = {"n": n, "noise_std": s, "contamination": level, "delta": delta, "noise_mean": "zero"}
        hard = {
            **easy,
            harder: {
                "n": math.ceil(n * factor),
                "noise_std": s * factor,
                "contamination": min(level * factor, 0.499),
                "delta": delta / factor,
                "noise_mean": "unknown",
            }[harder],
        }
        m = math.ceil(n * per_unknown)
        here, there = quiet(**easy, m=m), quiet(**hard, m=m)
        for name in ("typical_error", "error", "worst_error", "floor"):
            assert getattr(there, name) >= getattr(here, name) * (1 - 1e-9), name
        if here.samples is None:
            assert there.samples is None
        else:
            assert there.samples is None or there.samples >= here.samples
        assert there.breakdown <= here.breakdown

    @given(n=sizes, s=noises, level=levels, delta=deltas, m=st.integers(1, 10**7))
    def test_the_errors_are_ordered(self, n, s, level, delta, m):
        answer = quiet(n, noise_std=s, contamination=level, delta=delta, m=m)
        assert 0 <= answer.typical_error <= answer.error * (1 + 1e-9)
        assert answer.error <= answer.worst_error <= math.sqrt(2)
        assert answer.floor <= answer.worst_error

    @settings(max_examples=10)
    @given(n=sizes, s=noises, share=st.floats(0.0, 0.7), delta=deltas, above=st.floats(1.05, 20.0))
    def test_the_samples_for_a_target_give_the_target_back(self, n, s, share, delta, above):
        options = {"noise_std": s, "contamination": share * breakdown(s), "delta": delta}
        limit = quiet(n, m=10**12, **options).error
        target = above * limit
        answer = quiet(n, target_error=target, **options)
        assert answer.m == answer.samples
        assert answer.enough
        assert answer.error <= target
        if answer.samples > answer.recovery_samples:
            # One sample fewer would not do, so the error is the target but for rounding.
            assert quiet(n, m=answer.m - 1, **options).error > target
            assert answer.error > 0.9 * target or answer.m < 3 * n
        assert quiet(n, m=answer.m, **options).error == answer.error

    @given(n=sizes, s=noises, share=st.floats(0.0, 0.9), delta=deltas)
    def test_without_a_target_the_samples_are_those_for_recovery(self, n, s, share, delta):
        answer = quiet(n, noise_std=s, contamination=share * breakdown(s), delta=delta)
        assert answer.m == answer.samples == answer.recovery_samples
        assert answer.m >= 4 * n

    def test_without_noise_the_error_is_zero(self):
        answer = plan(50, noise_std=0.0)
        assert answer.typical_error == answer.error == answer.worst_error == 0.0
        assert plan(50, noise_std=0.0, target_error=0.0).m == answer.m


class TestHonesty:
    def test_a_contamination_beyond_the_breakdown_is_refused_or_warned_of(self):
        with pytest.raises(ValueError, match=r"no number of samples is enough.*from a contamination of 0\.278 on"):
            plan(100, contamination=0.3)
        with pytest.warns(PlanWarning, match="no number of samples is enough"):
            answer = plan(100, contamination=0.3, m=10**6)
        assert answer.samples is None
        assert not answer.enough
        assert "no number suffices" in str(answer)

    def test_a_target_below_what_adversaries_add_is_refused(self):
        with pytest.raises(
            ValueError, match=r"no number of samples reaches target_error=0\.001: adversaries add up to"
        ):
            plan(100, target_error=0.001)
        with pytest.raises(ValueError, match=r"target_error=1e-09 would take more than 1e\+15 samples"):
            plan(100, contamination=0.0, target_error=1e-9)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"m": 500}, "500 samples are fewer than the .* needed; some adversaries will win"),
            ({"m": 3000, "target_error": 0.05}, "needed; the target will be missed"),
            ({"noise_std": 1.0, "contamination": 0.05}, "noise of 1 ‖x‖² is beyond 0.7"),
            ({"contamination": 0.22}, "close to the breakdown"),
        ],
    )
    def test_outside_of_its_range_a_plan_warns(self, options, words):
        with pytest.warns(PlanWarning, match=words):
            answer = plan(100, **options)
        assert any(words.split(".*")[0] in warning for warning in answer.warnings)
        assert "careful: " in str(answer)

    def test_few_unknowns_are_warned_of(self):
        with pytest.warns(PlanWarning, match="fewer than 25 unknowns"):
            plan(10)

    def test_inside_its_range_a_plan_is_silent(self):
        assert plan(100).warnings == ()
        assert plan(1000, noise_std=0.1, contamination=0.2, noise_mean="unknown").warnings == ()

    def test_the_paper_stands_beside(self):
        answer = plan(100, delta=0.05)
        assert answer.paper.descent == pytest.approx(100 * math.log(100) * 0.25)
        assert answer.paper.start_by_means == pytest.approx(100**2 * math.log(100) * 0.25)
        assert answer.paper.start_by_covariance == pytest.approx(100 * 3 * 0.5**4)
        assert answer.paper.most_in_descent == pytest.approx(4.0)
        text = str(answer)
        assert all(f"Theorem 3.{number}" in text for number in (1, 2, 3))
        assert "Theorem B.3" in str(plan(100, noise_mean="unknown"))

    def test_wrong_arguments_are_named(self):
        wrong = [
            ({"n": 1}, "n must be a whole number from 2 on, got 1"),
            ({"n": 2.5}, "n must be a whole number"),
            ({"n": True}, "n must be a whole number"),
            ({"noise_std": -1}, r"noise_std must be a number in \[0, ∞\), got -1"),
            ({"noise_std": math.nan}, "noise_std must be a number"),
            (
                {"contamination": 10},
                r"contamination must be a number in \[0, 0\.5\), got 10\. Did you mean 0\.1 \(10 percent\)\?",
            ),
            ({"delta": 0}, r"delta must be a number in \(0, 1\), got 0"),
            ({"noise_mean": 0.0}, "noise_mean must be 'zero' or 'unknown'"),
            ({"m": 0}, "m must be a whole number from 1 on"),
            ({"target_error": 0}, r"target_error must be a number in \(0, ∞\)"),
            ({"target_error": "small"}, "target_error must be a number"),
        ]
        for options, words in wrong:
            with pytest.raises(ValueError, match=words):
                plan(**{"n": 100, **options})


class TestCost:
    def test_memory_and_passes_are_as_measured(self):
        world = rp.simulate.make_world(60, 3000, seed=0)
        model = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        answer = plan(60, m=3000)
        assert 0.4 < model.history_[-1].passes / answer.passes < 1.8
        import tracemalloc

        tracemalloc.start()
        model.fit(world.A, world.y)
        extra = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 0.6 < (extra + world.A.nbytes + world.y.nbytes) / answer.bytes < 1.2

    def test_time_and_memory_grow_with_the_data_and_shrink_with_the_speed(self):
        assert (
            predicted_seconds(100, 20000, 1e10)
            > predicted_seconds(100, 10000, 1e10)
            > predicted_seconds(100, 10000, 2e10)
        )
        assert predicted_bytes(100, 1000) > 8 * 100 * 1000
        assert 1e8 < read_speed() < 1e13

    def test_a_plan_prints_as_sentences_and_compares_without_its_time(self):
        answer = plan(100)
        assert isinstance(answer, Plan)
        assert answer == plan(100)
        lines = str(answer).splitlines()
        assert lines[0] == "100 unknowns, noise 0.5 ‖x‖², contamination 10.0%, confidence 0.99, noise mean zero"
        assert lines[1].startswith("samples needed to find the signal: ")
        assert "passes" in lines[-1]
        assert "memory" in lines[-1]
