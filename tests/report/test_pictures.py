"""Signals are shown turned to a common sign or phase, and behind real rows to a common one of the two conjugates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robustphase.report.pictures import comparison_drawings, signal_section

SHAPE = (3, 4)


@pytest.fixture(scope="module")
def paired(plain):
    """Diagnostics of a complex signal behind real rows, without truth."""
    rng = np.random.default_rng(0)
    signal = rng.standard_normal(plain.n) + 1j * rng.standard_normal(plain.n)
    return replace(plain, signal=signal, initial_signal=signal, standard_errors=None)


@pytest.mark.parametrize("shape", [None, SHAPE])
def test_a_start_at_the_conjugate_is_the_same_start_behind_real_rows(paired, shape):
    here = replace(paired, image_shape=shape)
    there = replace(here, initial_signal=1j * here.signal.conj())
    assert signal_section(there) == signal_section(here)


def test_a_method_that_found_the_conjugate_shows_the_same_picture_behind_real_rows(paired):
    fit = replace(paired, image_shape=SHAPE)
    drawn = [comparison_drawings(fit, [("other", one, "")]) for one in (fit.signal, 1j * fit.signal.conj())]
    assert drawn[0] == drawn[1]


def test_behind_complex_rows_the_conjugate_is_another_signal(paired):
    fit = replace(paired, image_shape=SHAPE, dtype="complex128")
    drawn = [comparison_drawings(fit, [("other", one, "")]) for one in (fit.signal, 1j * fit.signal.conj())]
    assert drawn[0] != drawn[1]
