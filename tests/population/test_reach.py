"""How far the truth can be: beyond no truth that asks for as little."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase import population
from robustphase.population import complex_model, newton_step, reach


def asked_for(x, truth, noise_mean):
    gradient = complex_model.gradient if np.iscomplexobj(truth) else population.gradient
    return np.linalg.norm(newton_step(x, gradient(x, truth, noise_mean=noise_mean), noise_mean=noise_mean))


def test_no_truth_on_the_way_out_is_farther_than_its_displacement_says(case):
    for noise_mean in ["zero", "unknown"]:
        for is_complex in [False, True]:
            with case(noise_mean, is_complex):
                rng = np.random.default_rng(3)
                for _ in range(40):
                    x, step = rng.standard_normal((2, 6))
                    if is_complex:
                        x, step = x + 1j * rng.standard_normal(6), step + 1j * rng.standard_normal(6)
                        # Truths whose phase is that of x.
                        step = step - 1j * np.vdot(x, step).imag / np.vdot(x, x).real * x
                    x, step = x / np.linalg.norm(x), step / np.linalg.norm(step)
                    distances = np.linspace(0.01, 0.6, 30)
                    needed = np.maximum.accumulate([asked_for(x, x + r * step, noise_mean) for r in distances])
                    bound = reach(needed, noise_mean=noise_mean, is_complex=is_complex)
                    assert np.all(distances <= bound + 0.01), (distances[distances > bound + 0.01], noise_mean)


def test_small_displacements_are_distances():
    for noise_mean in ("zero", "unknown"):
        for is_complex in (False, True):
            small = np.array([0.001, 0.01, 0.03])
            assert_allclose(reach(small, noise_mean=noise_mean, is_complex=is_complex), small, rtol=0.06)


def test_it_grows_and_ends_where_signals_across_are_not_ruled_out():
    bounds = np.linspace(0.0, 0.6, 200)
    for noise_mean in ("zero", "unknown"):
        found = reach(bounds, noise_mean=noise_mean)
        finite = np.isfinite(found)
        assert np.all(np.diff(found[finite]) >= 0), noise_mean
        assert np.all(found >= bounds), noise_mean
        last = bounds[finite].max()
        assert 0.4 < last < 0.5, noise_mean
    # Across the signal, with an unknown mean: half of the signal is what the risk asks for.
    assert asked_for(np.array([1.0, 0.0]), np.array([0.0, 1.3]), "unknown") == pytest.approx(0.5)


def test_nothing_is_known_of_nothing():
    assert_array_equal(reach([np.inf, np.nan]), [np.inf, np.nan])
