"""The noise law: a density, its quantiles, and a fit that finds both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from robustphase.report.law import NoiseLaw, fit_law

laws = st.builds(
    NoiseLaw,
    centre=st.floats(-3, 3),
    scale=st.floats(0.1, 10),
    degrees=st.floats(2, 100),
    skew=st.floats(0.25, 4),
)


@given(law=laws)
def test_the_density_belongs_to_the_quantiles(law):
    levels = np.array([0.01, 0.2, 0.5, 0.7, 0.99])
    points = law.quantile(levels)
    assert (np.diff(points) > 0).all()
    for low, high, mass in zip(points, points[1:], np.diff(levels), strict=False):
        # The density has a kink at the centre, which the quadrature must be told of.
        kink = [law.centre] if low < law.centre < high else None
        assert_allclose(integrate.quad(law.density, low, high, points=kink)[0], mass, rtol=1e-6)


@given(law=laws)
def test_without_skew_it_is_students_law(law):
    law = law._replace(skew=1.0)
    student = stats.t(law.degrees, law.centre, law.scale)
    points = law.centre + law.scale * np.linspace(-5, 5, 11)
    assert_allclose(law.density(points), student.pdf(points), rtol=1e-9)
    assert_allclose(law.quantile([0.05, 0.5, 0.9]), student.ppf([0.05, 0.5, 0.9]), rtol=1e-7, atol=1e-9 * law.scale)


@pytest.mark.parametrize(
    "law", [NoiseLaw(0.3, 2.0, 4.0, 1.0), NoiseLaw(-1.0, 0.5, 8.0, 2.0), NoiseLaw(0.0, 1.0, 100.0, 0.5)]
)
@pytest.mark.parametrize("known", [True, False])
def test_a_fit_finds_the_law(law, known, rng):
    residuals = law.quantile(rng.random(20_000))
    found = fit_law(residuals, np.ones(20_000), law.scale if known else None)
    assert_allclose(
        found.quantile([0.02, 0.25, 0.5, 0.75, 0.98]), law.quantile([0.02, 0.25, 0.5, 0.75, 0.98]), atol=0.1 * law.scale
    )
    assert found.scale == law.scale if known else found.scale == pytest.approx(law.scale, rel=0.15)


def test_bad_samples_without_weight_do_not_matter(rng):
    residuals, weights = rng.standard_normal(5000), np.ones(5000)
    spoilt = np.concatenate((residuals, np.full(1000, 50.0), [np.nan, np.inf]))
    alone = fit_law(residuals, weights)
    assert fit_law(spoilt, np.concatenate((weights, np.zeros(1002)))) == alone


def test_there_is_no_law_of_nothing():
    assert fit_law(np.arange(5.0), np.ones(5)) is None
    assert fit_law(np.zeros(100), np.ones(100)) is None
