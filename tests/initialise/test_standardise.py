"""Rows that are not standard normal are noticed and made standard; those that are cost nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.initialise.standardise import STANDARD, row_figures, shrunken, standardised
from robustphase.rows import Parts
from robustphase.simulate import make_world
from robustphase.validation import check_samples

M, N = 3000, 40
DESIGNS = {
    "scaled": lambda rng: 1.4 * rng.standard_normal((M, N)),
    "with a mean": lambda rng: rng.standard_normal((M, N)) + 1,
    "on/off": lambda rng: (rng.random((M, N)) < 0.3) * 1.0,
    "grey": lambda rng: rng.integers(0, 256, (M, N)) / 255,
    "correlated": lambda rng: rng.standard_normal((M, N)) * np.geomspace(1, 0.1, N),
    "complex with a mean": lambda rng: rng.standard_normal((M, N)) + 1j * rng.standard_normal((M, N)) + 1 + 2j,
}


def samples_of(A):
    return check_samples(A, np.ones(len(A)), look=STANDARD.rows)


def test_standard_normal_rows_are_left_as_they_are_whatever_a_tenth_of_them_does(case):
    for field in ["real", "complex"]:
        for attack in ["none", "leverage", "decoy", "duplicate", "spectral_tie"]:
            with case(field, attack):
                for seed in range(5):
                    world = make_world(30, 1500, contamination=0.1, attack=attack, field=field, seed=seed)
                    samples = samples_of(world.A)
                    found = standardised(samples, "auto", 0.1)
                    assert not found.changes
                    assert found.samples.source is samples.source
                    assert found.samples.normal


@pytest.mark.parametrize("name", DESIGNS)
def test_other_rows_get_the_identity_for_a_second_moment(name, rng):
    A = DESIGNS[name](rng)
    found = standardised(samples_of(A), "auto", 0.1)
    assert found.changes
    rows = found.samples.source.reduce(lambda block: Parts(rows=(block.copy(),))).rows[0]
    spectrum = np.linalg.eigvalsh(rows.conj().T @ rows / M)
    # Where Marchenko and Pastur's law puts them, with room for chance.
    assert spectrum[0] > 0.6
    assert spectrum[-1] < 1.5
    signal = rng.standard_normal((N, 2)).astype(A.dtype)
    assert_allclose(A @ found.back(signal), rows @ signal, atol=1e-8 * np.abs(A).max())
    assert_allclose(found.there(found.back(signal)), signal, atol=1e-8)


def test_a_radius_is_stretched_as_the_signal_may_be(rng):
    found = standardised(samples_of(DESIGNS["on/off"](rng)), "auto", 0.1)
    signal, error = rng.standard_normal((N, 1)), rng.standard_normal((N, 1))
    radius = np.linalg.norm(error, axis=0) / np.linalg.norm(signal, axis=0)
    there = found.back(signal)
    assert np.linalg.norm(found.back(error)) <= found.radii(signal, radius)[0] * np.linalg.norm(there) * (1 + 1e-9)


def test_rows_of_one_length_and_of_many_are_not_normal(rng):
    signs, normal = rng.choice([-1.0, 1.0], (400, 60)), rng.standard_normal((400, 60))
    heavy = normal / np.sqrt(rng.chisquare(4, (400, 1)) / 4)
    assert row_figures(normal, 0.1).normal_lengths
    assert row_figures(signs, 0.1).standard
    assert not row_figures(signs, 0.1).normal_lengths
    assert not row_figures(heavy, 0.1).normal_lengths


def test_a_second_moment_of_few_rows_is_drawn_to_the_identity(rng):
    rows = rng.standard_normal((60, 40))
    moment = rows.T @ rows / 60
    assert np.linalg.cond(shrunken(moment, 60)) < 3 < np.linalg.cond(moment)
    known = np.diag(np.geomspace(1, 0.01, 40))
    assert_allclose(shrunken(known, 1e9), known, atol=1e-6)


def test_dropped_rows_never_enter(rng):
    A = DESIGNS["on/off"](rng)
    holes = A.copy()
    holes[::2, 3] = np.nan
    found = standardised(check_samples(holes, np.ones(M), nonfinite="drop", look=STANDARD.rows), "auto", 0.1)
    without = standardised(samples_of(A[1::2]), "auto", 0.1)
    signal = rng.standard_normal((N, 1))
    assert_allclose(found.back(signal), without.back(signal), rtol=0.1, atol=0.1)
