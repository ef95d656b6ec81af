"""What a report shows of groups, of noise that depends on the signal and of the model; how large it is, and what it needs."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import robustphase as rp
from robustphase.report import FitDiagnostics, load_result, render_report, save_result
from robustphase.report import page as page_module

#: Most bytes of the report of one signal.
LARGEST = 400_000


@pytest.fixture(scope="module")
def counted():
    """Counts in groups, of which three were shuffled."""
    rng = np.random.default_rng(0)
    A, truth, labels = rng.standard_normal((1500, 10)), 2 * rng.standard_normal(10), np.repeat(np.arange(30), 50)
    y = rng.poisson((A @ truth) ** 2).astype(float)
    y[labels < 3] = rng.permutation(y[labels < 3])
    model = rp.RobustPhaseRetrieval(0.15, noise="poisson").fit(A, y, groups=labels)
    return model, FitDiagnostics.of(model, A, y)


def test_checks_groups_and_curves_survive_a_file(tmp_path, counted):
    model, kept = counted
    save_result(tmp_path / "result.npz", kept)
    read = load_result(tmp_path / "result.npz")
    assert read.model_check == kept.model_check
    assert [check.name for check in read.model_check] == [check.name for check in model.model_check_.checks]
    np.testing.assert_array_equal(read.groups, [str(name) for name in range(30)])
    np.testing.assert_array_equal(read.group_weights, model.group_weights_)
    assert read.noise_curve.kind == "poisson"
    assert read.noise_curve == tuple(float(part) for part in kept.noise_curve)


def test_the_page_lists_bad_groups_every_check_and_the_law_of_counts(counted, read):
    model, kept = counted
    page = render_report(kept)
    found = read(page)
    listed = [row["data-group"] for row in found.rows("data-group")]
    assert set(listed[: int(model.flag_groups().sum())]) == {str(g) for g in np.flatnonzero(model.flag_groups())}
    assert [row["data-model"] for row in found.rows("data-model")] == [check.name for check in kept.model_check]
    assert "their variance is their mean" in found.text
    assert "How the noise grows with the signal" in found.text
    assert len(page.encode()) < LARGEST


@pytest.mark.usefixtures("sketched")
def test_groups_whose_widths_were_not_compared_are_shown_by_their_weights(counted, read):
    _, kept = counted
    compared = read(render_report(kept)).text
    assert "Width of the residuals of every group" in compared
    assert "is over that of the noise" in compared
    other = read(render_report(replace(kept, group_widths=None))).text
    assert "Weight of every group" in other
    assert "Width of the residuals of every group" not in other
    assert "is over that of the noise" not in other


def test_the_expected_error_stands_first_and_each_error_is_explained(page, read):
    found = read(page)
    assert next(iter(key for key in found.values if key.endswith("_error"))) == "expected_error"
    for said in ("What the noise alone leaves", "It is a guarantee, not a forecast", "known in simulations only"):
        assert said in found.text
    assert len(page.encode()) < LARGEST


def test_samples_that_are_readings_of_a_detector_are_shown_as_it_lies(tmp_path, plain, plain_page, read):
    world = rp.simulate.make_world(n=12, m=400, contamination=0.1, attack="huge", seed=1)
    model = rp.RobustPhaseRetrieval("auto").fit(world.A, world.y)
    frames = FitDiagnostics.of(model, world.A, world.y.reshape(2, 10, 20))
    assert frames.detector_shape == (2, 10, 20)
    assert FitDiagnostics.of(model, world.A, world.y[:, np.newaxis]).detector_shape is None
    assert FitDiagnostics.of(model, world.A, world.y, detector_shape=(20, 20)).detector_shape == (20, 20)
    save_result(tmp_path / "result.npz", frames)
    again = load_result(tmp_path / "result.npz")
    assert again.detector_shape == (2, 10, 20)
    page = render_report(again)
    assert read(page).text.count("on the detector") >= 2
    assert "on the detector" not in read(plain_page).text
    assert len(page.encode()) < LARGEST
    with pytest.raises(ValueError, match="300 readings but the fit 400 samples"):
        replace(plain, detector_shape=(20, 15))


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_without_the_extra_the_error_names_the_command(plain, monkeypatch, package):
    page_module._template.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'robustphase\[report\]'"):
        render_report(plain)
    with pytest.raises(ImportError, match=package):
        page_module.require_report()
