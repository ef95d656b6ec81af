"""Points with lengths of their own: longer or shorter than good ones, and in no direction."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from benchmarks.poison import clean_error, operator_error, poisoned
from sklearn.metrics import roc_auc_score

import robustphase as rp
from robustphase.spectra.reconsider import some_stand_apart


def _roots(squares):
    roots = np.cbrt(squares)
    centre = float(np.median(roots))
    return roots, centre, 1.4826 * float(np.median(np.abs(roots - centre)))


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_a_group_of_another_length_stands_apart(rng, factor):
    squares = rng.chisquare(50, 2000)
    squares[:100] *= factor
    assert some_stand_apart(*_roots(squares))


def test_lengths_that_differ_by_roundings_need_little_memory(rng):
    squares = 50 * (1 + 1e-10 * rng.standard_normal(2000))
    tracemalloc.start()
    try:
        assert not some_stand_apart(*_roots(squares))
        squares[:100] *= 4.0
        assert some_stand_apart(*_roots(squares))
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


def test_tails_do_not_however_heavy(case):
    for dimension in [2, 20, 200]:
        for degrees in [3.0, 10.0, np.inf]:
            with case(dimension, degrees):
                # None of 200 draws of each did.
                for seed in range(10):
                    rng = np.random.default_rng(seed)
                    tails = 1.0 if np.isinf(degrees) else rng.chisquare(degrees, 2000) / degrees
                    assert not some_stand_apart(*_roots(rng.chisquare(dimension, 2000) / tails))


def test_lengths_that_are_all_one_have_no_groups():
    assert not some_stand_apart(np.ones(100), 1.0, 0.0)
    assert not some_stand_apart(np.zeros(100), 0.0, 1.0)


@pytest.mark.parametrize("spectrum", ["identity", "spiked", "toeplitz"])
@pytest.mark.parametrize("kind", ["doubled", "tenth"])
def test_rows_of_another_scale_are_found_though_no_direction_shows_them(kind, spectrum):
    world = poisoned(kind, 3000, 60, 0.1, spectrum)
    model = rp.RobustEnvelope(contamination=0.1).fit(world.points)
    assert operator_error(model.covariance_, world.truth) < 1.1 * clean_error(world)
    assert roc_auc_score(world.bad, model.outlyingness_) > 0.999


def test_rows_too_short_among_heavy_tails_do_not_lower_the_variances():
    # On seeds 0 to 5 the ratio was at most 1.16, and 1.07 on this one; where short rows do not count it is 1.57 and 1.38.
    world = poisoned("tails", 3000, 100, 0.1, "spiked", seed=1)
    model = rp.RobustEnvelope(contamination=0.1).fit(world.points)
    assert operator_error(model.covariance_, world.truth) < 1.15 * clean_error(world)
    assert roc_auc_score(world.bad, model.outlyingness_) > 0.9


def test_rows_near_the_centre_are_no_outliers_where_none_was_found_short(rng):
    points = rng.standard_normal((1000, 2))
    model = rp.RobustEnvelope(contamination=0.1).fit(points)
    assert model.predict(np.zeros((1, 2))) == 1
