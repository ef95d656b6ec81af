"""The noise section: quantiles of the fitted model, and what is shown where none was fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from robustphase.estimator import NoiseModel
from robustphase.report import render_report
from robustphase.report.samples import noise_quantiles, noise_section

models = st.builds(
    NoiseModel,
    scales=st.floats(0.1, 10),
    tails=st.floats(1 / 60, 1 / 2.5),
    log_skews=st.floats(-np.log(4), np.log(4)),
    mixing=st.floats(0.002, 0.3),
)


@given(noise=models)
def test_the_quantiles_belong_to_the_density_of_the_engine(noise):
    levels = np.array([0.01, 0.2, 0.5, 0.7, 0.99])
    points = noise_quantiles(noise, levels)
    assert (np.diff(points) > 0).all()
    for low, high, mass in zip(points, points[1:], np.diff(levels), strict=False):
        # The density has a kink at the centre, which the quadrature must be told of.
        kink = [0.0] if low < 0 < high else None
        assert_allclose(integrate.quad(noise.density, low, high, points=kink)[0], mass, rtol=1e-6)


@given(noise=models)
def test_without_skew_they_are_those_of_students_law(noise):
    noise = noise._replace(log_skews=0.0)
    student = stats.t(noise.degrees, 0.0, noise.scales)
    levels = [0.05, 0.5, 0.9]
    assert_allclose(noise_quantiles(noise, levels), student.ppf(levels), rtol=1e-7, atol=1e-9 * noise.scales)


def test_the_charts_show_the_model_that_was_fitted(plain, plain_page, read):
    found = read(plain_page)
    assert float(found.values["law-scale"][0]) == plain.noise_model.scales
    assert float(found.values["law-degrees"][0]) == plain.noise_model.degrees
    assert float(found.values["law-mixing"][0]) == plain.noise_model.mixing
    assert "noise law" in found.text
    heavier = replace(plain, noise_model=plain.noise_model._replace(tails=0.4))
    assert _residual_chart(heavier) != _residual_chart(plain)


@pytest.mark.usefixtures("sketched")
def test_without_a_model_the_residuals_are_shown_and_nothing_is_said_of_tails(plain, read):
    found = read(render_report(replace(plain, noise_model=None)))
    assert "No noise model belongs to this fit" in found.text
    assert "Residuals of the samples" in found.text
    assert "noise law" not in found.text
    assert "law-degrees" not in found.values


def _residual_chart(diagnostics):
    (chart,) = (one for one in noise_section(diagnostics).drawings if one.title.startswith("Residuals of the samples"))
    return chart.svg
