"""A citizen of scikit-learn."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.effort import THOROUGH

from robustphase import RobustPhaseRetrieval, distance
from robustphase.estimator import RobustPhaseRetrieval as FromModule
from robustphase.estimator import fitting
from robustphase.simulate import make_world

#: Checks of how data are taken, with many fits: before any fit they are taken alike, so one model is enough in every run.
TAKING_DATA = (
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_train",
)


def error(model, world):
    return distance(model.signal_, world.truth, relative=True)


@pytest.mark.parametrize(
    # The likelihood fit after a descent is that of the first.
    ("model", "left_out"),
    [
        (RobustPhaseRetrieval(), () if THOROUGH else TAKING_DATA),
        (RobustPhaseRetrieval(step="paper", max_iter=3, polish=False), ()),
    ],
    ids=["newton", "paper"],
)
def test_all_checks_of_scikit_learn_pass(model, left_out):
    """None may fail. Complex responses are refused in scikit-learn's words; complex covariates with real responses, which no
    check tries, are supported.
    """
    passed, skipped = set(), dict.fromkeys(left_out, "made for another model")
    for estimator, check in estimator_checks_generator(model, expected_failed_checks=skipped, mark="skip"):
        with warnings.catch_warnings():
            # The checks fit iris and the like: designs that are not Gaussian, and responses that are no squares.
            warnings.simplefilter("ignore")
            try:
                check(estimator)
            except SkipTest:
                continue
        passed.add(check.func.__name__)
    assert len(passed) > 40 - len(left_out)
    assert passed >= set(TAKING_DATA) - set(left_out)


def test_it_is_the_same_class_everywhere():
    assert FromModule is RobustPhaseRetrieval


def test_complex_covariates_are_welcome():
    world = make_world(15, 900, attack="leverage", field="complex", seed=0)
    model = RobustPhaseRetrieval().fit(*world)
    assert np.iscomplexobj(model.signal_)
    assert error(model, world) < 0.15
    assert model.predict(world.A).dtype == np.float64
    with pytest.raises(ValueError, match="standard errors are for real data"):
        model.standard_errors(*world)


def test_single_precision_agrees_with_double(world):
    double = RobustPhaseRetrieval().fit(*world)
    single = RobustPhaseRetrieval().fit(world.A.astype(np.float32), world.y.astype(np.float32))
    assert single.signal_.dtype == np.float64
    assert_allclose(single.signal_, double.signal_, atol=1e-3)


def test_clones_and_pickles_fit_and_predict_alike(world):
    model = RobustPhaseRetrieval(contamination=0.15, random_state=3).fit(*world)
    assert clone(model).get_params() == model.get_params()
    assert_array_equal(clone(model).fit(*world).signal_, model.signal_)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(world.A), model.predict(world.A))


def test_fitting_again_repeats_the_answer_and_leaves_parameters_alone(world):
    model = RobustPhaseRetrieval(init=world.truth + 0.1)
    before = {name: np.copy(value) for name, value in model.get_params().items()}
    first = model.fit(*world).signal_.copy()
    assert_array_equal(model.fit(*world).signal_, first)
    for name, value in model.get_params().items():
        assert_array_equal(value, before[name])


def test_the_input_is_not_changed(world):
    A, y = world.A.copy(), world.y.copy()
    A.flags.writeable = y.flags.writeable = False
    RobustPhaseRetrieval().fit(A, y).predict(A)
    assert_array_equal(A, world.A)


def test_every_kind_of_seed_is_accepted(world):
    for random_state in (None, 0, np.int64(7), np.random.RandomState(5)):
        model = RobustPhaseRetrieval(random_state=random_state).fit(*world)
        assert error(model, world) < 0.1, random_state


def test_works_in_a_pipeline_and_under_model_selection(clean):
    halve = FunctionTransformer(lambda A: A / 2)
    pipeline = make_pipeline(halve, FunctionTransformer(lambda A: A * 2), RobustPhaseRetrieval(0.05))
    # Noise is half of the signal's energy, whose square has variance 2: at best 1 - 0.25 / 2.25 = 0.89.
    assert cross_val_score(pipeline, clean.A, clean.y, cv=3, scoring="r2").min() > 0.75
    # Half of the responses are small, and lie closer together than the noise leaves them: their share explained is less.
    assert cross_val_score(pipeline, clean.A, clean.y, cv=3).min() > 0.25
    search = GridSearchCV(RobustPhaseRetrieval(), {"contamination": [0.0, 0.2], "polish": [True, False]}, cv=2)
    search.fit(clean.A, clean.y)
    assert r2_score(clean.y, search.predict(clean.A)) > 0.75


def test_data_frames_give_their_names_and_are_held_to_them(clean):
    names = [f"pixel{i}" for i in range(clean.A.shape[1])]
    frame, responses = pd.DataFrame(clean.A, columns=names), pd.Series(clean.y)
    model = RobustPhaseRetrieval().fit(frame, responses)
    assert list(model.feature_names_in_) == names
    # Frames lie in memory column by column, so sums are rounded differently.
    assert_allclose(model.signal_, RobustPhaseRetrieval().fit(*clean).signal_, atol=1e-9)
    assert_allclose(model.predict(frame), abs(clean.A @ model.signal_) ** 2)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(clean.A)
    model.fit(*clean)
    assert not hasattr(model, "feature_names_in_")


def test_lists_and_objects_that_hold_numbers_are_converted(clean):
    expected = RobustPhaseRetrieval().fit(*clean).signal_
    assert_array_equal(RobustPhaseRetrieval().fit(clean.A.tolist(), clean.y.tolist()).signal_, expected)
    assert_array_equal(RobustPhaseRetrieval().fit(clean.A.astype(object), clean.y.astype(object)).signal_, expected)


def test_a_column_of_responses_is_taken_with_a_warning(clean):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = RobustPhaseRetrieval().fit(clean.A, clean.y[:, np.newaxis])
    assert_array_equal(model.signal_, RobustPhaseRetrieval().fit(*clean).signal_)


def test_malformed_data_is_refused_in_words_that_help(case, clean):
    for change, kind, message in [
        (lambda A, y: (csr_array(A), y), TypeError, r"Sparse data was passed.*toarray"),
        (lambda A, y: (A[0], y), ValueError, r"Expected 2D array, got 1D array.*Reshape your data"),
        (lambda A, y: (A[:0], y[:0]), ValueError, r"Found array with 0 sample\(s\)"),
        (lambda A, y: (A[:, :0], y), ValueError, r"Found array with 0 feature\(s\) \(shape=\(600, 0\)\)"),
        (lambda A, y: (A[:1], y[:1]), ValueError, r"1 sample cannot determine"),
        (lambda A, y: (A, None), ValueError, r"requires y to be passed, but the target y is None"),
        (lambda A, y: (A, y[:-1]), ValueError, r"A has 600 rows but y has 599"),
        (lambda A, y: (A, y + 1j), ValueError, r"Complex data not supported as responses.*np.abs"),
        (lambda A, y: (A, np.ones((600, 2, 2))), ValueError, r"y must be one-dimensional"),
        (lambda A, y: (A.astype(str), y), ValueError, r"A must hold numbers"),
        (lambda A, y: ([[{}, 1.0]] * 600, y), TypeError, r"A must hold numbers: .*dict"),
        (lambda A, y: (A * np.nan, y), ValueError, r'600 rows of A hold NaN.*nonfinite="drop"'),
    ]:
        with case(message), pytest.raises(kind, match=message):
            RobustPhaseRetrieval().fit(*change(*clean))


def test_prediction_checks_its_input(clean):
    with pytest.raises(NotFittedError):
        RobustPhaseRetrieval().predict(clean.A)
    model = RobustPhaseRetrieval().fit(*clean)
    with pytest.raises(ValueError, match="expecting 15 features"):
        model.predict(clean.A[:, :-1])
    with pytest.raises(ValueError, match="Reshape your data"):
        model.predict(clean.A[0])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 15), np.nan))


def test_bad_parameters_are_named_with_their_value_and_a_remedy(case, clean):
    for parameters, message in [
        ({"contamination": 5}, r"contamination must be .*got 5\. Did you mean 0.05"),
        ({"noise_mean": "some"}, r"noise_mean must be one of 'zero', 'unknown', got 'some'"),
        ({"init": "random"}, r"init must be one of 'auto', .*got 'random'"),
        ({"init": np.ones(4)}, r"init must be .*array of 15 numbers.*shape \(4,\)"),
        ({"init": np.zeros(15)}, r"init must be finite and not zero"),
        ({"init": np.ones(15) * 1j}, r"init is complex but A is real"),
        ({"mean_estimator": "mode"}, r"mean_estimator must be one of 'filter'"),
        ({"step": "long"}, r"step must be one of 'newton', 'paper'"),
        ({"batches": 0}, r"batches must be a positive whole number, got 0"),
        ({"batches": 100}, r"batches=100 leaves 6 samples.*at most 40"),
        ({"max_iter": 2.5}, r"max_iter must be a positive whole number, got 2.5"),
        ({"delta": 1.0}, r"delta must lie strictly between 0 and 1"),
        ({"tol": -1}, r"tol must be .*got -1"),
        ({"nonfinite": "keep"}, r"nonfinite must be one of 'raise', 'drop', got 'keep'"),
        ({"random_state": "lucky"}, r"random_state must be .*got 'lucky'"),
    ]:
        with case(parameters), pytest.raises(ValueError, match=message):
            RobustPhaseRetrieval(**parameters).fit(*clean)


def test_verbose_prints_the_history_and_silence_is_the_default(clean, capsys):
    RobustPhaseRetrieval().fit(*clean)
    assert capsys.readouterr().out == ""
    model = RobustPhaseRetrieval(verbose=True).fit(*clean)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [record.stage for record in model.history_]


def test_history_counts_passes_and_time_upwards(world):
    for model in (RobustPhaseRetrieval(), RobustPhaseRetrieval(batches=5, whiten=True)):
        history = model.fit(*world).history_
        passes, seconds = [r.passes for r in history], [r.seconds for r in history]
        assert passes == sorted(passes)
        assert passes[0] > 0
        assert seconds == sorted(seconds)
        assert model.n_iter_ == len(history) >= 1
        assert history[-1].stage == "certificate"
        assert history[-1].certificate > 0


class TestConvergenceWarning:
    def test_names_a_contamination_that_is_too_low(self, monkeypatch, world):
        self.never_settle(monkeypatch, contamination=0.17)
        with pytest.warns(ConvergenceWarning, match=r'contamination=0.05 is lower .*about 0.17.*contamination="auto"'):
            model = RobustPhaseRetrieval(0.05).fit(*world)
        assert not model.converged_

    def test_names_a_model_that_does_not_hold(self, monkeypatch, world):
        self.never_settle(monkeypatch, contamination=0.6)
        with pytest.warns(ConvergenceWarning, match=r"60% of the samples do not fit.*whiten=True.*noise_mean"):
            RobustPhaseRetrieval(whiten=False).fit(*world)
        with pytest.warns(ConvergenceWarning, match=r"60% of the samples do not fit.*Try noise_mean"):
            RobustPhaseRetrieval().fit(*world)

    def test_names_samples_that_are_too_few(self, monkeypatch, world):
        self.never_settle(monkeypatch, contamination=0.1)
        with pytest.warns(ConvergenceWarning, match=r"1000 samples for 20 unknowns, 50.0 each"):
            RobustPhaseRetrieval().fit(*world)

    def test_names_responses_that_do_not_depend_on_the_covariates(self, clean, rng):
        for y in (0 * clean.y, 0 * clean.y + 7.0):
            for noise_mean in ("zero", "unknown"):
                with pytest.warns(ConvergenceWarning, match=r"Check that every response stands beside its own row"):
                    model = RobustPhaseRetrieval(noise_mean=noise_mean).fit(clean.A, y)
                assert not model.converged_

    def test_names_iterations_that_are_too_few(self, world, clean):
        with pytest.warns(ConvergenceWarning, match=r"stopped after 4 iterations.*max_iter=100"):
            RobustPhaseRetrieval(step="paper", max_iter=4).fit(*world)
        with pytest.warns(ConvergenceWarning, match=r"stopped after 20 iterations.*max_iter=\d\d"):
            model = RobustPhaseRetrieval(0.0, step="paper", max_iter=20, polish=False).fit(*clean)
        assert not model.converged_

    def test_names_a_start_that_makes_the_step_too_long(self, world):
        with pytest.warns(ConvergenceWarning, match=r'diverged.*init="auto"'):
            model = RobustPhaseRetrieval(step="paper", init=world.truth / 1000, polish=False).fit(*world)
        assert_array_equal(model.signal_, world.truth / 1000)

    def test_names_a_start_of_zero(self, world):
        A, y = world
        with pytest.warns() as caught:
            model = RobustPhaseRetrieval(step="paper", init="spectral").fit(A, -np.abs(y))
        assert "gave a start of zero" in str(caught[-1].message)
        assert not model.signal_.any()
        assert model.n_iter_ == 1

    def test_points_at_the_line_of_the_user(self, world):
        with pytest.warns(ConvergenceWarning) as caught:
            RobustPhaseRetrieval(step="paper", max_iter=1).fit(*world)
        assert caught[0].filename == __file__

    @staticmethod
    def never_settle(monkeypatch, contamination):
        def restless(*args, **kwargs):
            found = recover(*args, **kwargs)
            return replace(found, converged=np.zeros(1, bool), contaminations=np.array([contamination]))

        recover = fitting.recover
        monkeypatch.setattr(fitting, "recover", restless)
