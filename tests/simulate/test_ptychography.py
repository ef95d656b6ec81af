"""The ptychographic operator: its products, its light, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.rows import as_source
from robustphase.simulate import Ptychography
from robustphase.testing import dot_test


def scan(frames=11, seed=0):
    rng = np.random.default_rng(seed)
    probe = rng.standard_normal((4, 6)) + 1j * rng.standard_normal((4, 6))
    return Ptychography(probe, rng.integers(0, 9, (frames, 2)))


def test_products_are_transforms_of_lit_patches():
    operator, rng = scan(), np.random.default_rng(1)
    picture = rng.standard_normal(operator.object_shape) + 1j * rng.standard_normal(operator.object_shape)
    readings = (operator @ picture.ravel()).reshape(-1, 4, 6)
    for (row, column), frame in zip(operator.positions, readings, strict=True):
        lit = operator.probe * picture[row : row + 4, column : column + 6]
        assert_allclose(frame, np.fft.fft2(lit, norm="ortho"))
    dot_test(as_source(operator))


def test_blocks_of_rows_are_the_rows():
    operator = scan(frames=19)
    x = np.random.default_rng(2).standard_normal(operator.shape[1])
    assert len(operator.row_blocks) > 1
    assert_allclose(np.concatenate([block @ x for block in operator.row_blocks]), operator @ x)
    assert_array_equal(operator.frames, np.repeat(np.arange(19), 24))


def test_the_light_is_the_diagonal_that_probing_finds():
    operator = scan()
    dense = operator @ np.eye(operator.shape[1])
    exact = (np.abs(dense) ** 2).sum(axis=0)
    assert_allclose(operator.column_energies, exact, atol=1e-12)

    class Silent(Ptychography):
        column_energies = None  # type: ignore[assignment]

    silent = Silent(operator.probe, operator.positions)
    assert_allclose(as_source(silent).column_energies(), exact, atol=1e-9)


def test_scans_that_cannot_be_are_refused(case):
    for probe, positions, shape, what in [
        (np.ones(4), [(0, 0)], None, "probe must be a picture"),
        (np.ones((2, 2)), [(0.5, 0)], None, "whole numbers"),
        (np.ones((2, 2)), [0, 1], None, "a row and a column"),
        (np.ones((2, 2)), [(-1, 0)], None, "beyond the object"),
        (np.ones((2, 2)), [(3, 3)], (4, 4), "beyond the object"),
    ]:
        with case(what), pytest.raises(ValueError, match=what):
            Ptychography(probe, positions, shape)
