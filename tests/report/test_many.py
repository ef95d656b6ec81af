"""Reports of many signals: what is true of all of them, the worst in detail, and files that keep it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import robustphase as rp
from robustphase.report import FitDiagnostics, ManyDiagnostics, ResultFileError, load_result, render_report, save_result
from robustphase.report.many import FLAGGED, PER_SIGNAL

from .conftest import DEAD, SHAPE, quietly
from .test_results import assert_same

#: Most bytes of the report of a thousand signals.
LARGEST = 1_000_000


def test_the_figures_are_those_of_the_estimator(many, model_of_many, pixels):
    A, Y = pixels
    for name in ("signal", "weights", "row_weights", "certificate", "converged", "noise_scale"):
        np.testing.assert_array_equal(getattr(many, name), getattr(model_of_many, f"{name}_"))
    assert many.frame_shape == many.detector_shape == SHAPE
    named = list(many.check_names)
    for index, check in enumerate(model_of_many.model_check_):
        assert {named[place] for place in np.flatnonzero(many.check_failed[index])} == {c.name for c in check.failed}
        error = many.expected_error[index]
        assert [c.figure for c in check.checks if c.name == "expected error"] == [error] or index == DEAD
    assert np.isnan(many.expected_error[DEAD])
    flagged = model_of_many.flag_samples()
    np.testing.assert_array_equal(many.flagged_responses, Y[flagged])
    np.testing.assert_allclose(many.flagged_predictions, model_of_many.predict(A)[flagged])


def test_details_are_what_a_fit_to_that_signal_would_show(many, model_of_many, pixels):
    A, Y = pixels
    index = next(index for index in many.details if index != DEAD)
    one = many.details[index]
    np.testing.assert_array_equal(one.weights, model_of_many.weights_[:, index])
    np.testing.assert_array_equal(one.responses, Y[:, index])
    np.testing.assert_allclose(one.predictions, (A @ model_of_many.signal_[index]) ** 2)
    alone = rp.RobustPhaseRetrieval(0.12).fit(A, Y[:, index])
    expected = FitDiagnostics.of(alone, A, Y[:, index])
    # Bad rows are judged by all signals together, so the two fits differ a little.
    np.testing.assert_allclose(one.expected_error, expected.expected_error, rtol=0.2)
    assert one.image_shape == (3, 3)


def test_one_signal_for_every_kind_of_trouble_comes_first(many):
    assert many.order[0] == DEAD
    assert many.worst(3)[0] == DEAD
    # A crowd of dead pixels do not hide a signal with another trouble.
    failed, severe = many.check_failed.copy(), many.check_severe.copy()
    failed[:10], severe[:10] = failed[DEAD], severe[DEAD]
    crowd = replace(many, check_failed=failed, check_severe=severe, converged=np.arange(12) >= 10)
    assert set(crowd.worst(2)) & {10, 11}
    assert len(crowd.worst(4)) == 4
    assert crowd.worst(0) == []


@pytest.mark.usefixtures("sketched")
def test_the_page_sums_up_and_shows_the_worst(many, model_of_many, read):
    page = render_report(many)
    found = read(page)
    assert found.values["converged_signals"] == [str(int(model_of_many.converged_.sum()))] == ["11"]
    assert found.values["rejected"] == [str(int(model_of_many.flag_samples().sum()))]
    assert found.values["bad_rows"] == [str(int((model_of_many.row_weights_ < 0.5).sum()))]
    assert [int(row["data-signal"]) for row in found.rows("data-signal")] == list(many.order)
    assert [row["data-model"] for row in found.rows("data-model")] == list(many.check_names)
    rows = {int(row["data-row"]) for row in found.rows("data-row")}
    assert rows
    assert rows <= set(np.flatnonzero(model_of_many.row_weights_ < 0.5))
    for index in many.details:
        assert f"Signal {index} (pixel {index // 4}, {index % 4})" in found.text
    assert "Mind <this>." in found.text
    assert "<b>frames" in found.text
    assert "on the detector" in found.text


@pytest.mark.usefixtures("sketched")
def test_a_few_dead_pixels_are_said_but_raise_no_alarm(many, read):
    def lamps(diagnostics):
        page = render_report(diagnostics)
        return '<h1 class="warn"' in page, [e["data-value"] for _, e in read(page).elements if "data-check" in e]

    assert lamps(many) == (True, ["False"] * 4)
    calm = summary_of(many, 10)
    assert lamps(calm) == (False, ["True"] * 4)
    assert "1 of 120 signals did not converge" in read(render_report(calm)).text


@pytest.mark.usefixtures("sketched")
def test_many_signals_survive_a_file_and_give_the_same_page(tmp_path, many):
    save_result(tmp_path / "many.npz", many)
    again = load_result(tmp_path / "many.npz")
    assert list(again.details) == list(many.details)
    for index, one in many.details.items():
        assert_same(again.details[index], one)
    for field in fields(many):
        if field.name != "details":
            np.testing.assert_array_equal(getattr(again, field.name), getattr(many, field.name), err_msg=field.name)
    assert render_report(again) == render_report(many)


def test_files_of_other_times_are_refused_with_a_cure(tmp_path, many):
    path = tmp_path / "many.npz"
    save_result(path, many)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(path, **arrays | {"schema": np.array(99)})
    with pytest.raises(ResultFileError, match="later version"):
        load_result(path)
    np.savez(path, **{name: array for name, array in arrays.items() if name != "schema"})
    with pytest.raises(ResultFileError, match="fit again"):
        load_result(path)
    np.savez(path, **arrays | {"certificate": np.zeros(3)})
    with pytest.raises(ResultFileError, match="damaged or incomplete"):
        load_result(path)


def test_one_and_many_point_to_each_other(many, model_of_many, pixels):
    A, Y = pixels
    with pytest.raises(ValueError, match=r"ManyDiagnostics\.of"):
        FitDiagnostics.of(model_of_many, A, Y)
    with pytest.raises(ValueError, match=r"FitDiagnostics\.of"):
        ManyDiagnostics.of(rp.RobustPhaseRetrieval(0.12).fit(A, Y[:, 0]), A, Y[:, 0])
    with pytest.raises(ValueError, match="500 samples of 12 signals"):
        ManyDiagnostics.of(model_of_many, A, Y[:, :7])
    with pytest.raises(ValueError, match="has not been fitted"):
        ManyDiagnostics.of(rp.RobustPhaseRetrieval(), A, Y)
    with pytest.raises(ValueError, match="for one signal"):
        render_report(many, [{"method": "another"}])


def test_a_thousand_signals_fit_into_a_megabyte(many):
    """Figures of twelve signals, many times over, and with as many samples as a page draws."""
    times, long = 84, 20
    data = {field.name: getattr(many, field.name) for field in fields(many)}
    for name in ("contamination", "noise_mean", "noise_scale", "certificate", "converged", "expected_error"):
        data[name] = np.tile(data[name], times)
    for name in ("signal", "initial_signal", "check_failed", "check_severe"):
        data[name] = np.tile(data[name], (times, 1))
    data["weights"], data["row_weights"] = np.tile(many.weights, (long, times)), np.tile(many.row_weights, long)
    for name in ("flagged_responses", "flagged_predictions", "flagged_covariate_weights"):
        data[name] = np.resize(data[name], int((data["weights"] < 0.5).sum()))
    data["frame_shape"] = (times, 12)
    data["details"] = {index: _longer(one, long) for index, one in many.details.items()}
    page = render_report(ManyDiagnostics(**data))
    assert "of 1,008" in page
    assert len(page.encode()) < LARGEST


def summary_of(many, times):
    """Twelve signals, of which one is dead, and many times as many that are not, without details."""
    good = [index for index in range(12) if index != DEAD] * times
    taken = [DEAD, *good][: 12 * times]
    taken += good[: 12 * times - len(taken)]
    data = {name: getattr(many, name)[taken] for name in (*PER_SIGNAL, "expected_error", "signal", "initial_signal")}
    data |= {name: getattr(many, name)[taken] for name in ("check_failed", "check_severe")}
    weights = many.weights[:, taken]
    empty = {f"flagged_{name}": np.zeros(int((weights < 0.5).sum())) for name in FLAGGED}
    return replace(many, **data, **empty, weights=weights, frame_shape=(12 * times,), details={})


def _longer(one, times):
    names = ("weights", "covariate_weights", "responses", "predictions", "squared_norms")
    return replace(one, **{name: np.tile(getattr(one, name), times) for name in names})


@pytest.mark.usefixtures("sketched")
def test_groups_of_many_signals_are_listed(pixels, read):
    A, Y = pixels
    labels = np.repeat(np.arange(25), 20)
    fitted = quietly(rp.RobustPhaseRetrieval(0.12), A, Y[:, :4], groups=labels)
    page = read(render_report(ManyDiagnostics.of(fitted, A, Y[:, :4], detailed=(2,))))
    listed = [int(row["data-group"]) for row in page.rows("data-group")]
    assert set(np.flatnonzero(fitted.flag_groups())) <= set(listed)
    assert "Signal 2: converged" in page.text


def test_a_known_background_is_no_residual(pixels):
    A, Y = pixels
    dark = np.linspace(0.0, 40.0, 500)
    plain = rp.RobustPhaseRetrieval(0.12).fit(A, Y[:, 0])
    dimmed = rp.RobustPhaseRetrieval(0.12, background=dark).fit(A, Y[:, 0] + dark)
    expected = FitDiagnostics.of(plain, A, Y[:, 0])
    found = FitDiagnostics.of(dimmed, A, Y[:, 0] + dark)
    np.testing.assert_allclose(found.residuals, expected.residuals, atol=1e-8)
    np.testing.assert_allclose(found.standard_errors, expected.standard_errors, rtol=1e-6)
