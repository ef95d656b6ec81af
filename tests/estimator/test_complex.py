"""Complex signals: what must not matter does not, and the passes agree with the real ones where nothing is imaginary."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from tests.effort import THOROUGH

from robustphase import RobustPhaseRetrieval, distance
from robustphase.rows import MemoryRows, adjoint, project, squared_loss_gradient, sweep
from robustphase.simulate import make_world

N, M = 12, 600
seeds = st.integers(0, 2**16)
#: Two fits of the same problem in other coordinates end within the tolerance of the polish of each other.
SAME = 1e-5


@pytest.fixture(scope="module")
def world():
    return make_world(N, M, contamination=0.1, attack="decoy", noise="student", noise_std=0.2, field="complex", seed=3)


@pytest.fixture(scope="module")
def model(world):
    return RobustPhaseRetrieval(0.1).fit(world.A, world.y)


def unitary(rng):
    return np.linalg.qr(rng.standard_normal((N, N)) + 1j * rng.standard_normal((N, N)))[0]


@settings(max_examples=10, deadline=None)
@given(angle=st.floats(0, 2 * np.pi))
def test_the_global_phase_of_the_truth_changes_nothing(world, model, angle):
    turned = np.exp(1j * angle) * world.truth
    noise = world.y - np.abs(world.A @ world.truth) ** 2
    again = RobustPhaseRetrieval(0.1).fit(world.A, np.abs(world.A @ turned) ** 2 + noise)
    assert distance(again.signal_, model.signal_, relative=True) < SAME
    assert distance(again.signal_, turned, relative=True) == pytest.approx(
        distance(model.signal_, world.truth, relative=True), abs=SAME
    )


def test_conjugate_covariates_give_the_conjugate_signal(world, model):
    mirrored = RobustPhaseRetrieval(0.1).fit(world.A.conj(), world.y)
    assert distance(mirrored.signal_.conj(), model.signal_, relative=True) < SAME
    assert_allclose(mirrored.weights_, model.weights_, atol=1e-3)


@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_the_phase_of_a_row_changes_nothing(world, model, seed):
    phases = np.exp(2j * np.pi * np.random.default_rng(seed).random(M))
    again = RobustPhaseRetrieval(0.1).fit(phases[:, np.newaxis] * world.A, world.y)
    assert distance(again.signal_, model.signal_, relative=True) < SAME


@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_a_unitary_change_of_coordinates_turns_the_answer(world, model, seed):
    turn = unitary(np.random.default_rng(seed))
    again = RobustPhaseRetrieval(0.1).fit(world.A @ turn, world.y)
    assert distance(turn @ again.signal_, model.signal_, relative=True) < SAME


@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_the_order_of_the_samples_does_not_matter(world, model, seed):
    order = np.random.default_rng(seed).permutation(M)
    again = RobustPhaseRetrieval(0.1).fit(world.A[order], world.y[order])
    assert distance(again.signal_, model.signal_, relative=True) < SAME


def test_the_scale_of_the_signal_does_not_matter(world, model):
    for scale in (1e-6, 1e6):
        again = RobustPhaseRetrieval(0.1).fit(world.A, scale**2 * world.y)
        assert distance(again.signal_ / scale, model.signal_, relative=True) < SAME, scale


@settings(max_examples=20, deadline=None)
@given(seed=seeds, columns=st.integers(1, 4))
def test_complex_passes_agree_with_real_ones_where_nothing_is_imaginary(seed, columns):
    rng = np.random.default_rng(seed)
    A, V, y = rng.standard_normal((50, 7)), rng.standard_normal((7, columns)), rng.standard_normal(50)
    C = rng.standard_normal((50, columns))
    real, complex_ = MemoryRows(A), MemoryRows(A.astype(complex))
    pairs = [
        (project(real, V), project(complex_, V.astype(complex))),
        (adjoint(real, C), adjoint(complex_, C.astype(complex))),
        (sweep(real, V, np.tanh).total, sweep(complex_, V.astype(complex), np.tanh).total),
        (
            squared_loss_gradient(real, y, V[:, 0]).total,
            squared_loss_gradient(complex_, y, V[:, 0].astype(complex)).total,
        ),
    ]
    for expected, found in pairs:
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("attack", ["none", "decoy", "huge", "leverage", "gradient_push"])
def test_complex_signals_are_recovered_as_real_ones_are(attack):
    for noise_mean, mean in (("zero", 0.0), ("unknown", 3.0)):
        for seed in (1, 2)[: 2 if THOROUGH else 1]:
            case = f"{noise_mean} mean, seed {seed}"
            world = make_world(40, 2400, contamination=0.1, attack=attack, noise_mean=mean, field="complex", seed=seed)
            with warnings.catch_warnings():
                if attack == "gradient_push":
                    # Its responses lie where bad ones and the tail of the noise can hardly be told apart, and the noise law
                    # may go on moving without moving the signal much.
                    warnings.simplefilter("ignore", ConvergenceWarning)
                model = RobustPhaseRetrieval(0.1, noise_mean=noise_mean).fit(world.A, world.y)
            # 2n = 80 real unknowns and σ = 0.5: least squares on the clean samples has about 0.1.
            assert distance(model.signal_, world.truth, relative=True) < 0.18, case
            assert model.noise_mean_ == pytest.approx(mean, abs=0.3), case
