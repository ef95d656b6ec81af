"""What is collected from a fit, for every way to fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import robustphase as rp
from robustphase.files import fingerprint
from robustphase.report import FitDiagnostics, render_report
from robustphase.report.diagnostics import HISTORY

SMALL = {"n": 15, "m": 600, "attack": "leverage", "seed": 1}


@pytest.fixture(scope="module")
def world():
    return rp.simulate.make_world(**SMALL)


@pytest.fixture(scope="module")
def model(world):
    return rp.RobustPhaseRetrieval(0.1, random_state=5).fit(*world)


def test_it_holds_what_the_estimator_found(world, model):
    e = FitDiagnostics.of(model, *world, truth=world.truth).from_where("data.npz", command="fit")
    assert_array_equal(e.signal, model.signal_)
    assert_array_equal(e.weights, model.weights_)
    assert_array_equal(e.rejected, model.flag_samples())
    assert_allclose(e.residuals, world.y - model.predict(world.A))
    assert_allclose(e.squared_norms, (world.A**2).sum(axis=1))
    assert_array_equal(e.standard_errors, model.standard_errors(*world))
    assert e.expected_error == np.linalg.norm(e.standard_errors) / np.linalg.norm(e.signal)
    assert e.true_error == rp.distance(model.signal_, world.truth, relative=True)
    assert (e.n, e.m, e.dtype, e.seed) == (15, 600, "float64", 5)
    assert (e.certificate, e.noise_scale, e.converged) == (model.certificate_, model.noise_scale_, model.converged_)
    assert e.fingerprint == fingerprint(*world)
    assert e.versions["robustphase"] == rp.__version__
    for name in HISTORY:
        assert_array_equal(e.history[name], [getattr(record, name) for record in model.history_])
    assert (e.seconds, e.passes) == (model.history_[-1].seconds, model.history_[-1].passes)


def test_the_weights_of_the_covariates_are_those_of_the_fit(case):
    for seed in range(3):
        world = rp.simulate.make_world(**SMALL | {"seed": seed})
        e = FitDiagnostics.of(rp.RobustPhaseRetrieval(0.1).fit(*world), *world)
        with case(seed):
            # A sample is never worth more than its covariates.
            assert (e.weights <= e.covariate_weights + 1e-12).all()
            # The attack rewrites rows, so most bad samples lose their weight before any response is looked at.
            assert (e.covariate_weights[world.touched] < 0.5).mean() > 0.9
            assert (e.covariate_weights[world.clean] < 0.5).mean() < 0.05


def test_the_noise_model_has_about_the_tails_of_the_noise(case):
    for seed in range(3):
        world = rp.simulate.make_world(n=10, m=5000, contamination=0.0, attack="none", noise="student", seed=seed)
        e = FitDiagnostics.of(rp.RobustPhaseRetrieval(0.0).fit(*world), *world)
        with case(seed):
            # The noise is Student's with 4.5 degrees of freedom, symmetric; a fiftieth of the samples counts as bad all the
            # same, which leaves tails of 7.1 degrees, with deviation 0.5 over ten worlds.
            assert 3 < e.noise_model.degrees < 12
            assert 0.8 < e.noise_model.skews < 1.25


def test_nothing_is_fitted_again(world, model):
    e = FitDiagnostics.of(model, *world)
    assert e.noise_model == model.noise_model_
    assert e.noise_scale == model.noise_scale_ == model.noise_model_.scales
    assert e.residual_centre == model.residual_centre_ - model.noise_mean_
    assert_array_equal(e.covariate_weights, model.covariate_weights_)


@pytest.mark.parametrize("standard_errors", [None, True, False])
def test_the_data_are_read_three_times_at_most(world, model, standard_errors):
    source = rp.rows.as_source(world.A)
    FitDiagnostics.of(model, source, world.y, standard_errors=standard_errors)
    # Lengths and predictions in one pass, standard errors in two.
    assert source.passes == (1 if standard_errors is False else 3)


def test_samples_that_were_dropped_cost_no_pass_and_no_standard_errors(world):
    A, y = world.A.copy(), world.y.copy()
    A[3, 2], A[5, 0], y[7], y[9] = np.nan, np.inf, np.nan, 1e200
    model = rp.RobustPhaseRetrieval(nonfinite="drop").fit(A, y)
    source = rp.rows.as_source(A)
    e = FitDiagnostics.of(model, source, y)
    assert source.passes == 3
    assert_allclose(e.standard_errors, model.standard_errors(A, y), rtol=1e-9)
    assert_array_equal(np.isnan(e.predictions), np.isin(np.arange(600), [3, 5]))


def test_clean_residuals_lie_around_their_centre_under_skewed_noise():
    world = rp.simulate.make_world(n=10, m=5000, contamination=0.0, attack="none", noise="lognormal", seed=0)
    e = FitDiagnostics.of(rp.RobustPhaseRetrieval(noise_mean="unknown").fit(*world), *world)
    kept = e.residuals[~e.rejected]
    share_below = 1 / (1 + e.noise_model.skews)
    # Predictions hold the noise mean, so the peak of lognormal noise lies below their residuals' zero.
    assert e.residual_centre < 0
    assert abs((kept < e.residual_centre).mean() - share_below) < 0.05


def test_the_columns_of_a_frame_must_be_those_of_the_fit(world):
    frame = pd.DataFrame(world.A, columns=[f"c{i}" for i in range(15)])
    model = rp.RobustPhaseRetrieval().fit(frame, world.y)
    with pytest.raises(ValueError, match="feature names should match"):
        FitDiagnostics.of(model, frame[frame.columns[::-1]], world.y)


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize(
    "parameters",
    [
        {"contamination": "auto"},
        {"noise_mean": "unknown"},
        {"polish": False},
        {"step": "paper", "init": "covariance"},
        {"step": "paper", "init": "covariance", "polish": False},
        {"batches": 4},
        {"whiten": True},
        {"init": np.ones(15)},
        {"random_state": np.random.RandomState(0)},
    ],
    ids=lambda p: " ".join(p),
)
def test_every_way_to_fit_has_diagnostics_and_a_report(world, parameters):
    model = rp.RobustPhaseRetrieval(**parameters).fit(*world)
    e = FitDiagnostics.of(model, *world)
    page = render_report(e)
    assert f'data-key="certificate" data-value="{model.certificate_!r}"' in page
    assert (e.standard_errors is None) == (not model.polish)
    assert (e.noise_model is None) == (not model.polish)
    assert (e.seed is None) == isinstance(parameters.get("random_state"), np.random.RandomState)


@pytest.mark.usefixtures("sketched")
def test_complex_data_has_diagnostics_without_standard_errors():
    world = rp.simulate.make_world(n=16, m=800, field="complex", attack="huge", seed=0)
    model = rp.RobustPhaseRetrieval().fit(*world)
    e = FitDiagnostics.of(model, *world, truth=world.truth, image_shape=(4, 4))
    assert e.standard_errors is None
    assert_allclose(e.squared_norms, (np.abs(world.A) ** 2).sum(axis=1))
    assert "recovered (phase)" in render_report(e)
    assert "imaginary part" in render_report(FitDiagnostics.of(model, *world))
    with pytest.raises(ValueError, match="standard errors are for real data"):
        FitDiagnostics.of(model, *world, standard_errors=True)


@pytest.mark.usefixtures("sketched")
def test_data_without_noise_has_no_noise_model():
    world = rp.simulate.make_world(n=15, m=600, attack="huge", noise="none", seed=0)
    e = FitDiagnostics.of(rp.RobustPhaseRetrieval().fit(*world), *world)
    assert e.noise_model is None
    assert e.noiseless
    assert "there is no noise to show" in render_report(e)


@pytest.mark.usefixtures("sketched")
def test_a_stream_reports_its_last_batch(world, model):
    oracle = rp.simulate.SampleOracle(world.truth, contamination=0.1, attack="leverage", seed=2)
    stream = rp.RobustPhaseRetrieval().fit(*world)
    for batch in oracle.batches(3, 200):
        stream.partial_fit(batch.A, batch.y)
    e = FitDiagnostics.of(stream, batch.A, batch.y)
    assert e.m == 200
    assert_array_equal(e.covariate_weights, stream.covariate_weights_)
    # A step on a batch fits no noise model.
    assert e.noise_model is None
    assert "No noise model belongs to this fit" in render_report(e)
    with pytest.raises(ValueError, match="need the data of the fit, 200 samples, got 600 rows"):
        FitDiagnostics.of(stream, *world)


@pytest.mark.usefixtures("sketched")
def test_a_batch_with_fewer_samples_than_unknowns_is_not_screened(world):
    stream = rp.RobustPhaseRetrieval().fit(*world)
    stream.partial_fit(world.A[:10], world.y[:10])
    e = FitDiagnostics.of(stream, world.A[:10], world.y[:10])
    assert_array_equal(e.covariate_weights, 1.0)
    assert render_report(e)


def test_frames_lists_and_single_precision_are_taken(world):
    frame = pd.DataFrame(world.A, columns=[f"c{i}" for i in range(15)])
    named = rp.RobustPhaseRetrieval().fit(frame, pd.Series(world.y))
    expected = FitDiagnostics.of(named, frame, pd.Series(world.y))
    listed = rp.RobustPhaseRetrieval().fit(world.A.tolist(), world.y.tolist())
    assert FitDiagnostics.of(listed, world.A.tolist(), world.y.tolist()).fingerprint == expected.fingerprint
    single = world.A.astype(np.float32)
    assert FitDiagnostics.of(rp.RobustPhaseRetrieval().fit(single, world.y), single, world.y).dtype == "float32"


def test_rows_that_cannot_be_squared_have_no_length(world):
    A, y = world.A.copy(), world.y
    A[3, 2], A[5, 0], A[7, 1] = np.nan, np.inf, 1e200
    model = rp.RobustPhaseRetrieval(nonfinite="drop").fit(A, y)
    e = FitDiagnostics.of(model, A, y)
    assert np.isnan(e.squared_norms[3])
    assert np.isposinf(e.squared_norms[[5, 7]]).all()
    assert np.isfinite(np.delete(e.squared_norms, [3, 5, 7])).all()


def test_what_does_not_belong_together_is_refused(world, model):
    with pytest.raises(ValueError, match="has not been fitted"):
        FitDiagnostics.of(rp.RobustPhaseRetrieval(), *world)
    with pytest.raises(ValueError, match="the data of the fit, 600 samples, got 599 rows and 599 responses"):
        FitDiagnostics.of(model, world.A[1:], world.y[1:])
    with pytest.raises(ValueError, match="has 16 pixels but the signal 15 entries"):
        FitDiagnostics.of(model, *world, image_shape=(4, 4))
    with pytest.raises(ValueError, match=r"truth has shape \(3,\) but needs \(15,\)"):
        FitDiagnostics.of(model, *world, truth=np.ones(3))


def test_a_different_byte_makes_a_different_fingerprint(world, model):
    changed = world.y.copy()
    changed[100] = np.nextafter(changed[100], np.inf)
    assert FitDiagnostics.of(model, world.A, changed).fingerprint != FitDiagnostics.of(model, *world).fingerprint
