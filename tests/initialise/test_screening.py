"""Covariates against their known distribution: clean ones stay, clouds and impossible lengths go."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from robustphase.initialise.screening import (
    largest_energy,
    length_kurtosis,
    match_lengths,
    match_normal,
    ordinary_lengths,
    plausible_rows,
    screen_directions,
)
from robustphase.problem import WeighedDown
from robustphase.rows import MemoryRows


def screened(A, usable):
    """Weights of rows that are of possible lengths for the most part."""
    weights, screen = plausible_rows(MemoryRows(A), usable)
    assert screen is not None
    return screen_directions(MemoryRows(A), weights)[0]


def test_screening_leaves_clean_covariates_alone_and_catches_a_cloud(rng):
    A = rng.standard_normal((4000, 50))
    assert screened(A, np.ones(4000, bool)).mean() > 0.999
    A[:400, 0] = 4.0 * rng.choice([-1, 1], 400)
    weights = screened(A, np.ones(4000, bool))
    assert weights[:400].mean() < 0.15
    assert weights[400:].mean() > 0.99


def test_complex_covariates_are_screened_too(rng):
    A = (rng.standard_normal((4000, 30)) + 1j * rng.standard_normal((4000, 30))) / np.sqrt(2)
    assert screened(A, np.ones(4000, bool)).mean() > 0.999
    A[:400, 0] = 3.0
    assert screened(A, np.ones(4000, bool))[:400].mean() < 0.3


def test_matching_moves_weights_only_where_there_is_too_much():
    values = np.concatenate((np.random.default_rng(0).standard_normal(10000), np.full(500, 3.0)))
    edges, factors = match_normal(values, np.ones(10500))
    weights = WeighedDown(np.ones(1), False, edges, factors).factors_of(values)
    assert weights[10000:].max() < 0.2
    assert (weights[np.abs(values) < 1] == 1).all()


def test_ordinary_lengths_are_those_of_chi_square_variables(rng):
    squares = (rng.standard_normal((5000, 8)) ** 2).sum(axis=1)
    shortest, longest = ordinary_lengths(squares, 8, False)
    assert np.mean((squares > shortest) & (squares < longest)) > 0.999
    shortest, longest = ordinary_lengths(np.array([8 * 9.0, 1e-3]), 8, False)
    assert 1e-3 < shortest < longest < 8 * 9.0


def test_the_kurtosis_of_lengths_is_that_of_their_law_and_knows_no_row_without_weight(rng):
    squares, n = rng.chisquare(6, 20_000), 6
    # E q² / (E q)² of a chi-square variable; its relative standard error is about 2 % here.
    assert length_kurtosis(squares, np.ones(squares.size)) == pytest.approx(1 + 2 / n, rel=0.06)
    assert length_kurtosis(np.full(9, 4.0), np.ones(9)) == pytest.approx(1.0)
    assert length_kurtosis(np.array([1.0, 3.0, 1e300]), np.array([1.0, 1.0, 0.0])) == pytest.approx(5 / 4)
    assert length_kurtosis(np.array([1e300, 3e300]), np.ones(2)) == pytest.approx(5 / 4)
    assert length_kurtosis(np.zeros(3), np.ones(3)) == 1.0


def test_weights_only_shrink_and_rows_that_cannot_be_used_get_none(rng):
    A, usable = rng.standard_normal((1000, 10)), np.ones(1000, bool)
    A[:50, 3], usable[60:70] = 6.0, False
    weights = screened(A, usable)
    assert 0 <= weights.min() <= weights.max() <= 1
    assert not weights[60:70].any()
    before = rng.random(1000)
    assert (screen_directions(MemoryRows(A), before)[0] <= before).all()


def test_clean_rows_stay_below_the_edge_and_a_cloud_rises_above_it():
    for seed in range(3):
        A = np.random.default_rng(seed).standard_normal((2000, 60))
        edge = largest_energy(60, np.ones(2000))
        assert np.linalg.eigvalsh(A.T @ A / 2000)[-1] < edge, f"seed {seed}"
        A[:200, 5] = 4.0
        assert np.linalg.eigvalsh(A.T @ A / 2000)[-1] > edge, f"seed {seed}"


@pytest.mark.parametrize("shape", [(120, 15), (1000, 10)])
def test_clean_rows_exceed_the_edge_about_once_in_a_hundred(shape):
    m, n = shape
    rng, edge = np.random.default_rng(0), largest_energy(n, np.ones(m))
    draws = (rng.standard_normal(shape) for _ in range(400))
    exceeded = sum(np.linalg.eigvalsh(A.T @ A / m)[-1] > edge for A in draws)
    # Binomial with the rate 0.01 leaves this range once in a thousand runs.
    assert 0 < exceeded < 12


def test_a_design_of_another_scale_is_used_whole_with_a_warning(rng):
    with pytest.warns(UserWarning, match="whiten=True"):
        weights, screen = plausible_rows(MemoryRows(10 * rng.standard_normal((300, 8))), np.arange(300) > 4)
    assert screen is None
    assert weights.sum() == 295


@pytest.mark.parametrize("turned", [1.0, 1j])
def test_what_was_weighed_down_can_be_asked_about_other_rows(rng, turned):
    A = rng.standard_normal((4000, 20)) + (1j * rng.standard_normal((4000, 20)) if turned != 1.0 else 0)
    A = A / np.sqrt(1.0 if turned == 1.0 else 2.0)
    A[:400, 0] = 4.0 * turned
    weights, down = screen_directions(MemoryRows(A), np.ones(4000))
    again = np.ones(4000)
    for one in down:
        projections = A @ one.vector
        again *= one.factors_of(projections.imag if one.imaginary else projections.real)
    assert down
    np.testing.assert_allclose(again, weights, rtol=1e-12)


@pytest.mark.parametrize("is_complex", [False, True])
def test_rows_of_a_length_that_is_too_frequent_lose_weight(rng, is_complex):
    A = rng.standard_normal((4000, 50))
    if is_complex:
        A = (A + 1j * rng.standard_normal((4000, 50))) / np.sqrt(2)
    clean = match_lengths(MemoryRows(A), np.ones(4000))
    assert clean.mean() > 0.98
    # A fifth of the rows, two standard deviations shorter: none of them is impossible.
    A[:800] *= 1 - 2 / np.sqrt(2 * 50 * (2 if is_complex else 1))
    weights = match_lengths(MemoryRows(A), np.ones(4000))
    assert weights[:800].mean() < 0.6
    assert weights[800:].mean() > 0.85
    # Rows without weight do not count.
    assert_array_equal(match_lengths(MemoryRows(A), np.zeros(4000)), np.zeros(4000))
