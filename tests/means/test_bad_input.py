"""Numbers that cannot be computed with are refused by name or set aside; they never spoil the answer."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.means import METHODS, robust_mean

NOT_FINITE = [np.nan, np.inf, -np.inf]
HUGE = [1e150, -1e308]


@pytest.fixture
def points(rng):
    return rng.standard_normal((400, 6))


@pytest.mark.parametrize("value", NOT_FINITE)
def test_one_bad_entry_is_an_error_that_names_its_row(points, value):
    points[17, 3] = value
    with pytest.raises(ValueError, match=r"1 rows of X hold NaN or infinite entries \(first: row 17\)"):
        robust_mean(points, 0.1)


@pytest.mark.parametrize("method", list(METHODS))
def test_huge_finite_points_are_contamination_that_every_estimator_survives(points, method):
    for value in HUGE:
        spoilt = points.copy()
        spoilt[:40] = value
        found = robust_mean(spoilt, 0.1, method, random_state=0)
        assert (found.weights[:40] == 0).all()
        assert_allclose(found.location, robust_mean(points[40:], 0.1, method, random_state=0).location, atol=0.1)
    single = points.astype(np.float32)
    single[:40] = 1e30
    assert np.linalg.norm(robust_mean(single, 0.1, method, random_state=0).location) < 0.5


def test_most_points_huge_is_an_error_that_names_the_unit(points):
    with pytest.raises(ValueError, match=r"400 of 400 rows of X are larger than .* Divide X by 1e\+\d+\.$"):
        robust_mean(1e200 * points, 0.1)


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("value", NOT_FINITE + HUGE)
def test_dropped_rows_count_as_contamination_and_change_nothing_else(points, value, method):
    spoilt = points.copy()
    spoilt[[17, 200, 399], [3, 0, 5]] = value
    found = robust_mean(spoilt, 0.1, method, nonfinite="drop", random_state=0)
    assert np.isfinite(found.location).all()
    assert (found.weights[[17, 200, 399]] == 0).all()
    assert found.removed >= 3 / 400 - 1e-12
    assert np.linalg.norm(found.location) < 1.0


@pytest.mark.parametrize("method", ["median", "trimmed", "catoni", "geometric_median", "lrv", "empirical"])
def test_dropping_rows_is_leaving_them_out(points, method):
    spoilt = points.copy()
    spoilt[:20] = np.nan
    found = robust_mean(spoilt, 0.1, method, nonfinite="drop")
    assert_allclose(found.location, robust_mean(points[20:], 0.1, method).location, atol=1e-5)


def test_a_tenth_of_the_rows_may_be_dropped(points):
    points[:40] = np.inf
    for method in ("filter", "mmw"):
        found = robust_mean(points, 0.1, method, nonfinite="drop", random_state=0)
        assert_allclose(found.location, points[40:].mean(axis=0), atol=0.15)
        assert found.removed >= 0.1 - 1e-12


def test_nothing_usable_is_an_error(points):
    points[:, 2] = np.nan
    with pytest.raises(ValueError, match="nothing is left to average"):
        robust_mean(points, 0.1, nonfinite="drop")


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(
    "make",
    [
        lambda rng: np.zeros((50, 4)),
        lambda rng: np.full((50, 4), 7.0),
        lambda rng: np.vstack((np.zeros((40, 3)), rng.standard_normal((10, 3)))),
        lambda rng: rng.standard_normal((1, 5)),
        lambda rng: rng.standard_normal((2, 5)),
        lambda rng: np.outer(rng.standard_normal(60), np.ones(4)),
        lambda rng: rng.integers(0, 2, (60, 3)),
        lambda rng: 1e-160 * rng.standard_normal((60, 3)),
        lambda rng: 1e36 * rng.standard_normal((60, 3)),
        lambda rng: rng.standard_normal((60, 3)).astype(np.float32) * np.float32(1e15),
    ],
    ids=[
        "zeros",
        "constant",
        "mostly one point",
        "one point",
        "two points",
        "a line",
        "bits",
        "tiny",
        "huge",
        "narrow",
    ],
)
def test_degenerate_clouds_give_finite_means_without_warnings(make, method, rng):
    found = robust_mean(make(rng), 0.1, method, random_state=0)
    assert np.isfinite(found.location).all()
    assert np.isfinite(found.weights).all()


@pytest.mark.parametrize("method", list(METHODS))
def test_where_most_points_coincide_the_answer_is_there(method):
    points = np.full((100, 3), 2.0)
    points[:5] = 50.0
    found = robust_mean(points, 0.05, method, random_state=0)
    expected = 2.0 if method not in ("empirical",) else points.mean()
    assert_allclose(found.location, expected, atol=0.25 if method == "catoni" else 1e-5)


def test_wrong_arguments_are_refused_with_the_remedy(points):
    with pytest.raises(ValueError, match=r"Did you mean 0.05 \(5 percent\)\?"):
        robust_mean(points, 5)
    with pytest.raises(ValueError, match="method must be one of 'filter', 'mmw'"):
        robust_mean(points, 0.1, "average")
    with pytest.raises(ValueError, match="nonfinite must be one of 'raise', 'drop'"):
        robust_mean(points, 0.1, nonfinite="ignore")
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        robust_mean(points, 0.1, delta=0)
    with pytest.raises(TypeError, match="X must hold numbers"):
        robust_mean(np.array([["a"]]), 0.1)


def test_confidence_is_paid_for_in_contamination(points):
    found = robust_mean(points, 0.05, delta=np.exp(-4))
    assert found.contamination == pytest.approx(0.05 + 4 / 400)
    assert robust_mean(points, 0.45, delta=1e-30).contamination == 0.49
