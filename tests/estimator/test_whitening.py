"""Whitening sees the rows that can be seen and no others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance, spectral_init
from robustphase.initialise.standardise import standardised
from robustphase.recover.model import ModelWarning
from robustphase.simulate import make_world, on_off
from robustphase.validation import check_samples


def holes(rng, design):
    """A design that is not white, with its signal and responses, and NaN in 30% of the rows."""
    m, n = 1500, 10
    A = rng.standard_normal((m, n)) @ (np.eye(n) + 0.4) if design == "correlated" else rng.integers(0, 2, (m, n)) * 1.0
    x = rng.standard_normal(n)
    y = (A @ x) ** 2 + 0.05 * rng.standard_normal(m)
    missing = np.arange(m) % 10 < 3
    A[missing, 2] = np.nan
    return A, x, y, missing


@pytest.mark.parametrize("design", ["correlated", "bits"])
def test_a_third_of_the_rows_missing_leaves_the_fit_as_if_they_had_never_been(design, rng):
    A, x, y, missing = holes(rng, design)
    fits = RobustPhaseRetrieval(whiten=True, nonfinite="drop"), RobustPhaseRetrieval(whiten=True)
    model, without = fits[0].fit(A, y), fits[1].fit(A[~missing], y[~missing])
    assert distance(model.signal_, x, relative=True) < 1.2 * distance(without.signal_, x, relative=True) + 1e-3
    assert model.converged_
    assert (model.weights_[missing] == 0).all()
    assert np.mean(model.weights_[~missing] < 0.5) < 0.1


def test_many_signals_and_starts_are_whitened_alike(rng):
    A, x, y, _ = holes(rng, "correlated")
    with pytest.warns(ModelWarning, match="Column 1 of y"):
        several = RobustPhaseRetrieval(whiten=True, nonfinite="drop").fit(A, np.stack((y, y[::-1]), axis=1))
    assert distance(several.signal_[0], x, relative=True) < 0.05
    start = spectral_init(A, y, whiten=True, nonfinite="drop")
    assert distance(start.signal, x, relative=True) < 0.5


def test_the_whitened_rows_that_are_left_have_the_second_moment_one(rng):
    A, _, y, missing = holes(rng, "correlated")
    changed = standardised(check_samples(A, y, nonfinite="drop"), True, 0.1)
    rows = changed.back(A[~missing].T).T
    assert_allclose(rows.T @ rows / len(rows), np.eye(10), atol=0.1)


def test_skewed_rows_are_kept_where_the_contamination_is_to_be_found_out():
    """Few mirrors that are on make skewed rows, of which a mean that looks for bad ones by itself takes away a third."""
    for seed in seeds(1, 3):
        world = make_world(
            50, 3000, design=on_off(0.1), field="complex", contamination=0.1, attack="spectral_tie", seed=seed
        )
        model = RobustPhaseRetrieval("auto", field="complex").fit(world.A, world.y)
        assert model.converged_
        assert (model.covariate_weights_[world.clean] < 0.5).mean() < 0.25
        assert distance(model.signal_, world.truth, relative=True) < 0.25
