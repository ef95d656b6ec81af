"""Shares that groups have in their own predictions."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from robustphase.descend.amplitude_flow import AMPLITUDE, group_leverages
from robustphase.problem import Grouping, Problem
from robustphase.rows import as_source
from robustphase.simulate import Ptychography


def scan():
    along = np.arange(8) - 3.5
    probe = np.exp(-(along[:, None] ** 2 + along**2) / 8) * np.exp(0.2j * along)
    corners = [(row, column) for row in range(0, 17, 4) for column in range(0, 17, 4)]
    operator = Ptychography(probe, corners)
    m, n = operator.shape
    grouping = Grouping(operator.frames, len(corners))
    rng = np.random.default_rng(0)
    signal = np.exp(1j * rng.standard_normal(n))
    ones = np.ones((m, 1))
    problem = Problem(as_source(operator), ones, ones, ones, np.array([0.1]), np.ones(1), False, groupings=(grouping,))
    return operator, signal, problem


def exact_shares(operator, signal):
    light = operator.column_energies
    light = light + AMPLITUDE.regularised * light.max()
    shares = []
    for corner in operator.positions:
        one = Ptychography(operator.probe, [corner], operator.object_shape)
        field = one @ signal
        shares.append(np.sum(np.abs(one.rmatvec(field)) ** 2 / light) / np.vdot(field, field).real)
    return np.array(shares)


def test_shares_are_those_of_one_frame_after_the_other():
    operator, signal, problem = scan()
    found = group_leverages(problem, signal, np.ones(operator.shape[0]))
    expected = exact_shares(operator, signal)
    assert_allclose(found.shares, expected, rtol=1e-9)
    rim = expected > np.median(expected)
    assert rim[0]
    assert not rim[12]


def test_groups_that_count_have_longer_residuals_and_others_have_not():
    operator, signal, problem = scan()
    found = group_leverages(problem, signal, np.ones(operator.shape[0]))
    kept = (operator.frames != 3).astype(float)
    factors = found.left_out(problem, signal, kept, kept)
    assert_allclose(factors[operator.frames == 3], 1.0)
    assert (factors[operator.frames != 3] > 1).all()


def test_without_groups_there_are_none():
    operator, signal, problem = scan()
    assert group_leverages(problem._replace(groupings=()), signal, np.ones(operator.shape[0])) is None
