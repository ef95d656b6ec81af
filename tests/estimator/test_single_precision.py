"""Rows in single precision stay that, cost no more passes than others, and give the same answers."""

from __future__ import annotations

import numpy as np
import pytest

from robustphase import RobustPhaseRetrieval, distance
from robustphase.simulate import make_world

SINGLE = {"float64": np.float32, "complex128": np.complex64}
#: Relative difference of two answers: a step of a few spacings, and what further ones would have added.
SAME = 1e-5


@pytest.mark.parametrize(
    "drawn",
    [
        {"n": 40, "m": 2000, "attack": "decoy"},
        {"n": 40, "m": 2000, "attack": "leverage", "noise_std": 0.01},
        {"n": 40, "m": 2000, "attack": "huge", "noise_std": 0.0},
        {"n": 30, "m": 1500, "attack": "decoy", "field": "complex"},
        {"n": 40, "m": 2000, "attack": "huge", "noise_mean": 3.0},
    ],
    ids=["decoy", "little noise", "no noise", "complex", "background"],
)
def test_roundings_of_the_rows_neither_hold_up_a_fit_nor_change_its_answer(drawn):
    world = make_world(**drawn, seed=3)
    fits = [
        RobustPhaseRetrieval(0.1, noise_mean="unknown" if world.noise_mean else "zero").fit(A, world.y)
        for A in (world.A, world.A.astype(SINGLE[world.A.dtype.name]))
    ]
    double, single = fits
    assert single.converged_
    # Roundings may send a candidate another way, which costs the passes of a try or two.
    assert single.history_[-1].passes <= double.history_[-1].passes + 3
    assert distance(single.signal_, double.signal_, relative=True) < SAME


@pytest.mark.parametrize("field", ["real", "complex"])
def test_no_product_takes_rows_to_double_precision(field, monkeypatch):
    world = make_world(40, 2000, attack="decoy", field=field, seed=0)
    A = world.A.astype(SINGLE[world.A.dtype.name])
    plain, seen = np.dot, set()

    def watched(a, b, **options):
        # Products of many rows; between them are matrices of the 80 real unknowns at most, in double precision.
        if max(len(a), len(b)) > 80:
            seen.add((a.dtype, b.dtype))
        return plain(a, b, **options)

    monkeypatch.setattr(np, "dot", watched)
    RobustPhaseRetrieval(0.1).fit(A, world.y)
    # Complex rows may be taken for pairs of real numbers.
    assert {(A.dtype, A.dtype)} <= seen <= {(A.dtype, A.dtype), (np.dtype(np.float32), np.dtype(np.float32))}
