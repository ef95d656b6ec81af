"""The complex model: quadrature over real and imaginary parts, simulation, derivatives and symmetries."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from robustphase.population import complex_model, gradient, risk

MODELS = ["zero", "unknown"]
SIGMA2 = 0.7
real = arrays(np.float64, (3,), elements=st.floats(-2.0, 2.0, allow_subnormal=False))
complex_points = st.builds(lambda u, v: u + 1j * v, real, real)


def two_vectors(seed: int) -> np.ndarray:
    parts = np.random.default_rng(seed).uniform(-1, 1, (2, 2, 3))
    return parts[0] + 1j * parts[1]


def outer(p: np.ndarray) -> np.ndarray:
    return p[:, :, None] * p.conj()[:, None, :]


# Statistics of a (rows are vectors, so aᴴw is a.conj() @ w) and y, with the closed forms of their means.
CASES = {
    "E[y]": (lambda a, y, w, t: y, lambda w, t: complex_model.response_mean(t)),
    "Var(y)": (
        lambda a, y, w, t: (y - np.vdot(t, t).real) ** 2,
        lambda w, t: complex_model.response_variance(t, SIGMA2),
    ),
    "E[y aa^H]": (
        lambda a, y, w, t: y[:, None, None] * outer(a),
        lambda w, t: complex_model.weighted_second_moment(t),
    ),
    "Cov(y a)": (
        lambda a, y, w, t: outer(y[:, None] * a),
        lambda w, t: complex_model.scaled_rows_covariance(t, SIGMA2),
    ),
    "risk": (
        lambda a, y, w, t: (np.abs(a.conj() @ w) ** 2 - y) ** 2 / 2,
        lambda w, t: complex_model.risk(w, t, noise_variance=SIGMA2),
    ),
    "profiled risk": (
        lambda a, y, w, t: (np.abs(a.conj() @ w) ** 2 - y - np.vdot(w, w).real + np.vdot(t, t).real) ** 2 / 2,
        lambda w, t: complex_model.risk(w, t, noise_mean="unknown", noise_variance=SIGMA2),
    ),
    "gradient": (
        lambda a, y, w, t: ((np.abs(a.conj() @ w) ** 2 - y) * (a.conj() @ w))[:, None] * a,
        lambda w, t: complex_model.gradient(w, t),
    ),
    "profiled gradient": (
        lambda a, y, w, t: (
            ((np.abs(a.conj() @ w) ** 2 - y - np.vdot(w, w).real + np.vdot(t, t).real) * (a.conj() @ w))[:, None] * a
        ),
        lambda w, t: complex_model.gradient(w, t, noise_mean="unknown"),
    ),
}


def test_a_complex_moment_equals_its_quadrature(exact_samples, case):
    w, truth = two_vectors(1)
    world = exact_samples(6, SIGMA2, nodes=4)
    a = (world.a[:, :3] + 1j * world.a[:, 3:]) / np.sqrt(2)
    y = np.abs(a.conj() @ truth) ** 2 + world.z
    for name, (statistic, closed_form) in CASES.items():
        with case(name):
            exact = np.tensordot(world.weights, statistic(a, y, w, truth), axes=1)
            assert_allclose(closed_form(w, truth), exact, atol=1e-11)


def test_a_complex_moment_agrees_with_simulation(simulated, assert_mean, case):
    w, truth = two_vectors(2)
    world = simulated(6, SIGMA2, size=100_000, seed=9)
    a = (world.a[:, :3] + 1j * world.a[:, 3:]) / np.sqrt(2)
    for name, (statistic, closed_form) in CASES.items():
        with case(name):
            draws = statistic(a, np.abs(a.conj() @ truth) ** 2 + world.z, w, truth)
            assert_mean(draws.real, np.real(closed_form(w, truth)))
            assert_mean(np.imag(draws), np.imag(closed_form(w, truth)))


@pytest.mark.parametrize("background", [-0.5, 2.0])
def test_the_complex_spectral_matrices_hold_with_a_background(background, exact_samples):
    _, truth = two_vectors(3)
    world = exact_samples(6, SIGMA2, nodes=4, background=background)
    a = (world.a[:, :3] + 1j * world.a[:, 3:]) / np.sqrt(2)
    y = np.abs(a.conj() @ truth) ** 2 + world.z
    mean = np.tensordot(world.weights, y[:, None, None] * outer(a), axes=1)
    covariance = np.tensordot(world.weights, outer(y[:, None] * a), axes=1)
    assert_allclose(complex_model.response_mean(truth, background=background), world.weights @ y)
    assert_allclose(complex_model.weighted_second_moment(truth, background=background), mean, atol=1e-12)
    assert_allclose(complex_model.scaled_rows_covariance(truth, SIGMA2, background=background), covariance, atol=1e-11)


@pytest.mark.parametrize("background", [-0.5, 2.0])
def test_the_complex_risk_and_gradient_hold_with_a_background(background, exact_samples):
    w, truth = two_vectors(6)
    world = exact_samples(6, SIGMA2, nodes=4, background=background)
    a = (world.a[:, :3] + 1j * world.a[:, 3:]) / np.sqrt(2)
    inner = a.conj() @ w
    misfit = np.abs(inner) ** 2 - np.abs(a.conj() @ truth) ** 2 - world.z
    for noise_mean, centre in (("zero", 0.0), ("unknown", world.weights @ misfit)):
        options = {"noise_mean": noise_mean, "background": background}
        square = world.weights @ (misfit - centre) ** 2
        assert_allclose(risk(w, truth, noise_variance=SIGMA2, **options), square / 2, atol=1e-11)
        mean = (world.weights * (misfit - centre) * inner) @ a
        assert_allclose(gradient(w, truth, **options), mean, atol=1e-11)


def derivative(f, w, h, step=1e-2):
    """Five-point difference along h, exact for polynomials of degree 4 up to rounding."""
    left2, left, right, right2 = (f(w + k * step * h) for k in (-2, -1, 1, 2))
    return (left2 - 8 * left + 8 * right - right2) / (12 * step)


@given(w=complex_points, truth=complex_points, h=complex_points, noise_mean=st.sampled_from(MODELS))
def test_the_wirtinger_gradient_is_the_derivative_of_the_complex_risk(w, truth, h, noise_mean):
    """df(w; h) = 2 Re(hᴴ ∂f/∂w̄)."""
    slope = derivative(lambda u: complex_model.risk(u, truth, noise_mean=noise_mean), w, h)
    assert_allclose(2 * np.vdot(h, complex_model.gradient(w, truth, noise_mean=noise_mean)).real, slope, atol=1e-6)


@given(w=complex_points, truth=complex_points, h=complex_points, k=complex_points, noise_mean=st.sampled_from(MODELS))
def test_the_complex_curvature_is_the_derivative_of_the_gradient_and_self_adjoint(w, truth, h, k, noise_mean):
    numeric = derivative(lambda u: complex_model.gradient(u, truth, noise_mean=noise_mean), w, h)
    along_h = complex_model.curvature(w, truth, h, noise_mean=noise_mean)
    along_k = complex_model.curvature(w, truth, k, noise_mean=noise_mean)
    assert_allclose(along_h, numeric, atol=1e-7)
    assert_allclose(np.vdot(k, along_h).real, np.vdot(along_k, h).real, atol=1e-9)


@pytest.mark.parametrize(("noise_mean", "along"), [("zero", 4.0), ("unknown", 2.0)])
def test_the_complex_curvature_at_the_solution_has_three_eigenvalues(noise_mean, along):
    truth = two_vectors(4)[0]
    power = np.vdot(truth, truth).real
    across = np.linalg.svd(truth.conj()[None, :])[2][1].conj()
    assert_allclose(np.vdot(truth, across), 0.0, atol=1e-14)
    for direction, value in ((truth, along * power), (1j * truth, 0.0), (across, power), (1j * across, power)):
        found = complex_model.curvature(truth, truth, direction, noise_mean=noise_mean)
        assert_allclose(found, value * direction, atol=1e-12)


@given(
    w=complex_points,
    truth=complex_points,
    phase=st.floats(0, 7),
    seed=st.integers(0, 99),
    factor=st.floats(0.2, 3.0),
    noise_mean=st.sampled_from(MODELS),
)
def test_complex_risk_and_gradient_ignore_phases_turn_with_unitaries_and_scale(
    w, truth, phase, seed, factor, noise_mean
):
    rng = np.random.default_rng(seed)
    unitary = np.linalg.qr(rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)))[0]
    here = complex_model.risk(w, truth, noise_mean=noise_mean)
    slope = complex_model.gradient(w, truth, noise_mean=noise_mean)
    turn = np.exp(1j * phase)
    assert_allclose(complex_model.risk(turn * w, truth, noise_mean=noise_mean), here, atol=1e-9)
    assert_allclose(complex_model.gradient(turn * w, truth, noise_mean=noise_mean), turn * slope, atol=1e-10)
    assert_allclose(complex_model.gradient(w, turn * truth, noise_mean=noise_mean), slope, atol=1e-10)
    turned = complex_model.gradient(unitary @ w, unitary @ truth, noise_mean=noise_mean)
    assert_allclose(turned, unitary @ slope, atol=1e-10)
    scaled = complex_model.gradient(factor * w, factor * truth, noise_mean=noise_mean)
    assert_allclose(scaled, factor**3 * slope, atol=1e-9)
    assert_allclose(np.vdot(w, slope).imag, 0.0, atol=1e-9)


def test_a_complex_argument_selects_the_complex_model():
    w, truth = two_vectors(5)
    for noise_mean in MODELS:
        assert risk(w, truth.real, noise_mean=noise_mean) == complex_model.risk(w, truth.real, noise_mean=noise_mean)
        chosen = gradient(w.real, truth, noise_mean=noise_mean)
        assert_allclose(chosen, complex_model.gradient(w.real, truth, noise_mean=noise_mean))


def test_a_mistake_is_named(case):
    for call, message in [
        (lambda: complex_model.risk([1j, 0], [1.0]), "same length"),
        (lambda: complex_model.risk([[1j]], [1.0]), "must be a vector"),
        (lambda: complex_model.risk([1j], [1.0], noise_mean="no"), "noise_mean must be"),
        (lambda: complex_model.response_variance([1j], -1.0), "noise_variance"),
    ]:
        with case(message), pytest.raises(ValueError, match=message):
            call()
