"""One function for every method: views and arrays alike, and numbers that cannot be computed with never spoil the answer."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.means import METHODS, robust_mean
from robustphase.means.estimate import RANDOMISED
from robustphase.rows import MemoryRows, ScaledRows

NOT_FINITE = [np.nan, np.inf, -np.inf]
HUGE = [1e150, -1e308]


@pytest.fixture
def points(rng):
    return rng.standard_normal((400, 6))


def test_one_bad_entry_is_an_error_that_names_its_row(points):
    for value in NOT_FINITE:
        points[17, 3] = value
        with pytest.raises(ValueError, match=r"1 rows of X hold NaN or infinite entries \(first: row 17\)"):
            robust_mean(points, 0.1)


def test_huge_finite_points_are_contamination_that_every_estimator_survives(case, points):
    for method in list(METHODS):
        with case(method):
            for value in HUGE:
                spoilt = points.copy()
                spoilt[:40] = value
                found = robust_mean(spoilt, 0.1, method, random_state=0)
                assert (found.weights[:40] == 0).all()
                assert_allclose(
                    found.location, robust_mean(points[40:], 0.1, method, random_state=0).location, atol=0.1
                )
            single = points.astype(np.float32)
            single[:40] = 1e30
            assert np.linalg.norm(robust_mean(single, 0.1, method, random_state=0).location) < 0.5


def test_most_points_huge_is_an_error_that_names_the_unit(points):
    with pytest.raises(ValueError, match=r"400 of 400 rows of X are larger than .* Divide X by 1e\+\d+\.$"):
        robust_mean(1e200 * points, 0.1)


def test_dropped_rows_count_as_contamination_and_change_nothing_else(case, points):
    for method in list(METHODS):
        with case(method):
            for value in NOT_FINITE + HUGE:
                spoilt = points.copy()
                spoilt[[17, 200, 399], [3, 0, 5]] = value
                found = robust_mean(spoilt, 0.1, method, nonfinite="drop", random_state=0)
                assert np.isfinite(found.location).all()
                assert (found.weights[[17, 200, 399]] == 0).all()
                assert found.removed >= 3 / 400 - 1e-12
                assert np.linalg.norm(found.location) < 1.0


def test_dropping_rows_is_leaving_them_out(case, points):
    for method in ["median", "trimmed", "catoni", "geometric_median", "lrv", "empirical"]:
        with case(method):
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


DEGENERATE = {
    "zeros": lambda rng: np.zeros((50, 4)),
    "constant": lambda rng: np.full((50, 4), 7.0),
    "mostly one point": lambda rng: np.vstack((np.zeros((40, 3)), rng.standard_normal((10, 3)))),
    "one point": lambda rng: rng.standard_normal((1, 5)),
    "two points": lambda rng: rng.standard_normal((2, 5)),
    "a line": lambda rng: np.outer(rng.standard_normal(60), np.ones(4)),
    "bits": lambda rng: rng.integers(0, 2, (60, 3)),
    "tiny": lambda rng: 1e-160 * rng.standard_normal((60, 3)),
    "huge": lambda rng: 1e36 * rng.standard_normal((60, 3)),
    "narrow": lambda rng: rng.standard_normal((60, 3)).astype(np.float32) * np.float32(1e15),
}


def test_degenerate_clouds_give_means_among_their_points_without_warnings(rng, case):
    for name, make in DEGENERATE.items():
        points = make(rng)
        # Up to roundings, in single precision where the points are.
        room = 1e-5 * np.abs(points).max(axis=0)
        for method in METHODS:
            with case(name, method):
                found = robust_mean(points, 0.1, method, random_state=0)
                assert (found.location >= points.min(axis=0) - room).all()
                assert (found.location <= points.max(axis=0) + room).all()
                assert ((found.weights >= 0) & (found.weights <= 1)).all()


def test_where_most_points_coincide_the_answer_is_there(case):
    points = np.full((100, 3), 2.0)
    points[:5] = 50.0
    for method in METHODS:
        with case(method):
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


@pytest.mark.parametrize("method", list(METHODS))
def test_views_have_the_means_of_the_points_they_stand_for(method, rng):
    for imaginary, paired in product((0.0, 1j), (False, True)):
        rows = rng.standard_normal((601, 7)) + imaginary * rng.standard_normal((601, 7))
        rows[:30] += 5.0
        scale = rng.standard_normal(601)
        points = scale[:, None] * rows.conj()
        if paired:
            points = points[:300] - points[300:600]
        dropped = np.zeros(len(points), bool)
        dropped[[4, 77]] = True
        options = {"random_state": 3} if method in RANDOMISED else {}
        view = ScaledRows(MemoryRows(rows, block_rows=50, threads=2), scale, paired=paired)
        dense = ScaledRows(MemoryRows(points.conj()))
        here = METHODS[method](view, 0.1, dropped=dropped, **options)
        there = METHODS[method](dense, 0.1, dropped=dropped, **options)
        assert_allclose(here.location, there.location, atol=1e-7)
        assert_allclose(here.weights, there.weights, atol=1e-5)
        assert (here.weights[dropped] == 0).all()


def test_no_method_holds_much_more_than_a_fraction_of_the_points(rng):
    rows = rng.standard_normal((4000, 600))
    for method in ("filter", "mmw", "median", "trimmed", "geometric_median_of_means"):
        options = {"random_state": 0} if method in RANDOMISED else {}
        view = ScaledRows(MemoryRows(rows, block_rows=64, threads=1))
        METHODS[method](view, 0.05, **options)
        tracemalloc.start()
        METHODS[method](view, 0.05, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.2 * rows.nbytes, method
