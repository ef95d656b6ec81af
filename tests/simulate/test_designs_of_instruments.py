"""Designs as instruments show them, and adversaries that show patterns of the same kind."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.population import PairedSignal
from robustphase.simulate import ADVERSARIES, DESIGNS, corrupt, hadamard, make_world, on_off

ALPHABETS = {
    "on_off": (0.0, 1.0),
    "signs": (-1.0, 1.0),
    "hadamard": (-1.0, 1.0),
    "scrambled_hadamard": (-1.0, 1.0),
    "switched_scrambled_hadamard": (0.0, 1.0),
    "grey": tuple(np.arange(256) / 255),
    "4_phases": (1, 1j, -1, -1j),
}
PAIRS = [
    (name, field)
    for name, law in DESIGNS.items()
    for field in ("real", "complex")
    if law.rows != "complex" or field == "complex"
]


def within(rows, alphabet):
    return np.abs(rows[..., np.newaxis] - np.array(alphabet)).min(axis=-1) < 1e-9


def test_every_adversary_works_on_every_design(case):
    for name, field in PAIRS:
        with case(name, field):
            for attack in ADVERSARIES:
                world = make_world(8, 120, design=name, field=field, attack=attack, contamination=0.1, seed=1)
                assert world.A.shape == (120, 8)
                assert np.iscomplexobj(world.truth) == (field == "complex")
                assert isinstance(world.truth, PairedSignal) == (field == "complex" and not np.iscomplexobj(world.A))
                sound = np.isfinite(world.A).all(axis=1) & (np.abs(world.A).max(axis=1) < 1e9)
                if name in ALPHABETS:
                    assert within(world.A[sound], ALPHABETS[name]).all(), attack


def test_a_pattern_is_its_own_match(case, rng):
    for name in ALPHABETS:
        with case(name):
            law = DESIGNS[name]
            rows = law.sample(50, 12, field="complex", seed=rng)
            assert_allclose(law.match(rows), rows, atol=1e-12)
            wished = rng.standard_normal((50, 12)) * (1 + 1j if np.iscomplexobj(rows) else 1)
            assert within(law.match(wished), ALPHABETS[name]).all()


def test_hadamard_rows_are_orthogonal_and_have_complements(rng):
    rows = hadamard(scrambled=True).sample(16, 16, seed=rng)
    assert_allclose(rows @ rows.T, 16 * np.eye(16))
    pairs = hadamard(switched=True, complements=True).sample(40, 12, seed=rng)
    assert_array_equal(pairs[::2] + pairs[1::2], 1.0)
    assert len(np.unique(hadamard().sample(200, 12, seed=rng), axis=0)) > 150


def test_noise_is_in_units_of_the_mean_response():
    world = make_world(20, 4000, design=on_off(0.3), attack="none", noise_std=0.5, seed=0)
    energy = (world.A @ world.truth) ** 2
    assert_allclose(np.std(world.y - energy), 0.5 * energy.mean(), rtol=0.25)
    assert_allclose(world.A.mean(), 0.3, atol=0.02)


def test_a_design_may_be_named_for_data_of_ones_own(rng):
    A = on_off().sample(300, 10, seed=rng)
    x = rng.standard_normal(10) + 1j * rng.standard_normal(10)
    bad = corrupt(A, np.abs(A @ x) ** 2, x, attack="replace", contamination=0.1, design="on_off", seed=0)
    assert within(bad.A, (0.0, 1.0)).all()
    assert bad.touched.sum() == 30


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match='field="complex"'):
        make_world(5, 50, design="phases", field="real")
    with pytest.raises(ValueError, match="design"):
        make_world(5, 50, design="hexagonal")
    with pytest.raises(ValueError, match="duty"):
        on_off(1.5)
