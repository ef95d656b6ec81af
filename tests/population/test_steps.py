"""Steps: the constants, the contraction they guarantee, the Newton step, and the population descent they produce."""

from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from robustphase.population import (
    PAPER_STEPS,
    best_local_step,
    complex_model,
    contraction,
    convexity_radius,
    curvature_range,
    descent_path,
    distance,
    gradient,
    guaranteed_step,
    hessian,
    newton_step,
    paper_contraction,
    paper_step,
    solution_curvature,
)

MODELS = ["zero", "unknown"]
RADIUS = {"zero": 1 / 9, "unknown": 1 / 6}
points = arrays(np.float64, (4,), elements=st.floats(-3.0, 3.0, allow_subnormal=False))
nonzero = points.filter(lambda v: np.linalg.norm(v) > 0.1)


def starts_in_ball(radius: float, count: int, seed: int = 0) -> np.ndarray:
    """Random points of the ball around e₁, half of them on its surface, with its points nearest and farthest from 0."""
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((count, 3))
    h *= radius / np.linalg.norm(h, axis=1, keepdims=True)
    h[::2] *= rng.uniform(0, 1, (len(h[::2]), 1))
    ends = radius * np.array([[1.0, 0, 0], [-1.0, 0, 0]])
    return np.eye(3)[0] + np.concatenate([h, ends])


@pytest.mark.parametrize("noise_mean", MODELS)
@pytest.mark.parametrize("rule", ["paper", "guaranteed"])
def test_population_descent_contracts_in_every_step_from_anywhere_in_the_ball(noise_mean, rule):
    truth, radius = np.eye(3)[0], RADIUS[noise_mean]
    curvature = curvature_range(radius, noise_mean=noise_mean)
    for start in starts_in_ball(radius, 60):
        rules = {
            "paper": paper_step(start, noise_mean=noise_mean),
            "guaranteed": guaranteed_step(start, radius, noise_mean=noise_mean),
        }
        step = rules[rule]
        factor = contraction(step, curvature)
        assert factor <= paper_contraction(step, curvature) + 1e-12 < 1
        path = descent_path(start, truth, step=step, n_steps=80, noise_mean=noise_mean)
        errors = np.array([distance(x, truth) for x in path])
        live = errors[:-1] > 1e-12
        assert np.all(errors[1:][live] <= factor * errors[:-1][live] + 1e-14)
        assert errors[-1] < 1e-6


def test_the_guaranteed_steps_of_the_two_balls_are_one_sixth_and_25_over_136():
    start = np.array([3.0, 4.0])
    assert_allclose(guaranteed_step(start, 1 / 9), 1 / 6 / 25)
    assert_allclose(guaranteed_step(start, 1 / 6, noise_mean="unknown"), 25 / 136 / 25)
    assert PAPER_STEPS["unknown"] == Fraction(25, 136)
    assert_allclose(paper_step(start, noise_mean="unknown"), guaranteed_step(start, 1 / 6, noise_mean="unknown"))
    assert paper_step(start) < guaranteed_step(start, 1 / 9)


def test_the_corrected_step_of_algorithm_4_contracts_by_the_stated_factor():
    curvature = curvature_range(1 / 6, noise_mean="unknown")
    worst = max(
        contraction(float(PAPER_STEPS["unknown"]) / size**2, curvature) for size in np.linspace(5 / 6, 7 / 6, 101)
    )
    assert_allclose(worst, 0.8125, atol=1e-4)


@pytest.mark.parametrize("noise_mean", MODELS)
def test_no_step_is_guaranteed_where_the_risk_is_not_convex(noise_mean):
    with pytest.raises(ValueError, match="not convex"):
        guaranteed_step([1.0, 0.0], convexity_radius(noise_mean) + 0.01, noise_mean=noise_mean)


@pytest.mark.parametrize("noise_mean", MODELS)
def test_the_best_local_step_balances_both_ends_of_the_spectrum(noise_mean):
    truth = np.array([1.0, -2.0, 0.5])
    step = best_local_step(truth, noise_mean=noise_mean)
    spectrum = 1 - step * np.linalg.eigvalsh(hessian(truth, truth, noise_mean=noise_mean))
    assert_allclose(spectrum.max(), -spectrum.min())
    assert_allclose(step * (truth @ truth), {"zero": 1 / 4, "unknown": 1 / 3}[noise_mean])


@given(step=st.floats(0.0, 0.2), alpha=st.floats(0.1, 4.0), beta=st.floats(4.0, 6.0))
def test_the_factor_of_lemma_2_2_is_never_better_than_the_exact_one(step, alpha, beta):
    assert contraction(step, (alpha, beta)) <= paper_contraction(step, (alpha, beta)) + 1e-12


def test_lemma_2_2_refuses_a_step_it_does_not_cover():
    with pytest.raises(ValueError, match=r"Lemma 2\.2"):
        paper_contraction(0.5, (1.0, 6.0))


@given(x=nonzero, g=points, noise_mean=st.sampled_from(MODELS))
def test_the_newton_step_solves_with_the_curvature_at_the_solution(x, g, noise_mean):
    expected = np.linalg.solve(hessian(x, x, noise_mean=noise_mean), g)
    assert_allclose(newton_step(x, g, noise_mean=noise_mean), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(newton_step(x, g, noise_mean=noise_mean, damping=0.6), 0.6 * expected, rtol=1e-9, atol=1e-9)


@given(x=nonzero, y=points, g=points, h=points, noise_mean=st.sampled_from(MODELS))
def test_the_complex_newton_step_inverts_the_curvature_off_the_phase_direction(x, y, g, h, noise_mean):
    w, slope = x + 1j * y, g + 1j * h
    step = newton_step(w, slope, noise_mean=noise_mean)
    assert_allclose(np.vdot(w, step).imag, 0.0, atol=1e-9)
    back = complex_model.curvature(w, w, step, noise_mean=noise_mean)
    phase = 1j * w * np.vdot(w, slope).imag / np.vdot(w, w).real
    assert_allclose(back, slope - phase, rtol=1e-8, atol=1e-8)


def test_the_newton_step_can_be_limited():
    x, g = np.array([3.0, 4.0]), np.array([500.0, -100.0])
    limited = newton_step(x, g, max_relative_length=0.4)
    assert_allclose(np.linalg.norm(limited), 2.0)
    assert_allclose(limited / np.linalg.norm(limited), newton_step(x, g) / np.linalg.norm(newton_step(x, g)))
    assert_allclose(newton_step(x, g / 1000, max_relative_length=0.4), newton_step(x, g / 1000))


def test_the_newton_step_keeps_the_precision_of_its_arguments(case):
    for dtype in [np.float32, np.float64, np.complex64, np.complex128]:
        with case(dtype):
            x = np.array([1.0, 2.0], dtype=dtype)
            assert newton_step(x, x, max_relative_length=0.01).dtype == dtype


def test_newton_steps_converge_quadratically_and_from_far_away(case):
    for noise_mean in MODELS:
        for is_complex in [False, True]:
            with case(noise_mean, is_complex):
                rng = np.random.default_rng(5)
                for _ in range(20):
                    truth, h = rng.standard_normal((2, 5)) + (1j * rng.standard_normal((2, 5)) if is_complex else 0)
                    start = truth + 0.7 * np.linalg.norm(truth) * h / np.linalg.norm(h)
                    errors = [
                        distance(x, truth, relative=True)
                        for x in descent_path(start, truth, n_steps=12, noise_mean=noise_mean)
                    ]
                    assert errors[-1] < 1e-9
                    near = [(a, b) for a, b in pairwise(errors) if 1e-6 < a < 0.1]
                    assert all(b <= 5 * a**2 for a, b in near)


def test_the_solution_curvature_names_what_the_newton_step_divides_by(case):
    for noise_mean in MODELS:
        for is_complex in [False, True]:
            with case(noise_mean, is_complex):
                x = np.array([1.0, 2.0]) * (1j if is_complex else 1.0)
                across, along = solution_curvature(x, noise_mean=noise_mean)
                other = np.array([-2.0, 1.0]) * (1j if is_complex else 1.0)
                assert_allclose(newton_step(x, x, noise_mean=noise_mean), x / along)
                assert_allclose(newton_step(x, other, noise_mean=noise_mean), other / across)
                if not is_complex:
                    spectrum = np.linalg.eigvalsh(hessian(x, x, noise_mean=noise_mean))
                    assert_allclose((across, along), (spectrum[0], spectrum[-1]))


def test_a_zero_signal_and_mismatched_shapes_are_refused():
    for call in (lambda: paper_step(np.zeros(2)), lambda: newton_step(np.zeros(2), np.ones(2))):
        with pytest.raises(ValueError, match="signal is zero"):
            call()
    with pytest.raises(ValueError, match="same shape"):
        newton_step(np.ones(2), np.ones(3))


def test_a_path_starts_at_the_start_and_follows_the_gradient():
    start, truth = np.array([1.0, 0.5]), np.array([1.0, 0.0])
    path = descent_path(start, truth, step=0.1, n_steps=3)
    assert path.shape == (4, 2)
    assert_allclose(path[0], start)
    assert_allclose(path[1], start - 0.1 * gradient(start, truth))
