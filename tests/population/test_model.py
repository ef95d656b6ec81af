"""Risk, gradient and Hessian: consistent with each other, and with the symmetries of the problem."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from robustphase import population
from robustphase.population import gradient, hessian, minimiser, moments, risk

MODELS = ["zero", "unknown"]
entries = st.floats(-3.0, 3.0, allow_subnormal=False)
points = arrays(np.float64, (4,), elements=entries)
seeds = st.integers(0, 2**16)
models = st.sampled_from(MODELS)


def rotation(seed: int, n: int = 4) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def derivative(f, x: np.ndarray, step: float = 1e-2) -> np.ndarray:
    """Five-point differences: exact for polynomials of degree 4, hence for these risks, up to rounding."""
    columns = []
    for e in np.eye(x.size):
        shifted = [np.asarray(f(x + k * step * e)) for k in (-2, -1, 1, 2)]
        columns.append((shifted[0] - 8 * shifted[1] + 8 * shifted[2] - shifted[3]) / (12 * step))
    return np.stack(columns, axis=-1)


@given(x=points, truth=points, noise_mean=models)
def test_the_gradient_is_the_derivative_of_the_risk(x, truth, noise_mean):
    numeric = derivative(lambda u: risk(u, truth, noise_mean=noise_mean), x)
    assert_allclose(gradient(x, truth, noise_mean=noise_mean), numeric, atol=1e-8)


@given(x=points, truth=points, noise_mean=models)
def test_the_hessian_is_the_derivative_of_the_gradient(x, truth, noise_mean):
    numeric = derivative(lambda u: gradient(u, truth, noise_mean=noise_mean), x)
    assert_allclose(hessian(x, truth, noise_mean=noise_mean), numeric, atol=1e-9)


@given(x=points, truth=points, background=entries)
def test_a_background_enters_risk_gradient_and_hessian_alike(x, truth, background):
    numeric = derivative(lambda u: risk(u, truth, background=background), x)
    assert_allclose(gradient(x, truth, background=background), numeric, atol=1e-8)
    numeric = derivative(lambda u: gradient(u, truth, background=background), x)
    assert_allclose(hessian(x, truth, background=background), numeric, atol=1e-9)


def test_the_risk_with_a_background_equals_its_quadrature(exact_samples):
    x, truth = np.random.default_rng(1).uniform(-1, 1, (2, 4))
    world = exact_samples(4, 0.6, nodes=5, background=1.7)
    residual = (world.a @ x) ** 2 - world.respond(truth)
    exact = world.weights @ residual**2 / 4
    assert_allclose(risk(x, truth, noise_variance=0.6, background=1.7), exact, rtol=1e-12)


@given(x=points, truth=points, seed=seeds, noise_mean=models)
def test_rotating_both_vectors_rotates_everything(x, truth, seed, noise_mean):
    q = rotation(seed)
    assert_allclose(risk(q @ x, q @ truth, noise_mean=noise_mean), risk(x, truth, noise_mean=noise_mean), atol=1e-9)
    turned = gradient(q @ x, q @ truth, noise_mean=noise_mean)
    assert_allclose(turned, q @ gradient(x, truth, noise_mean=noise_mean), atol=1e-10)
    turned = hessian(q @ x, q @ truth, noise_mean=noise_mean)
    assert_allclose(turned, q @ hessian(x, truth, noise_mean=noise_mean) @ q.T, atol=1e-10)


MATRICES = {
    "sextic": (lambda x, t, d: moments.sextic_moment(x, t), 6),
    "column": (lambda x, t, d: moments.column_covariance(t, d), 4 + 2),
    "gradient covariance": (lambda x, t, d: moments.gradient_covariance(x, t), 6),
    "scaled rows": (lambda x, t, d: moments.scaled_rows_covariance(t), 4),
    "weighted second moment": (lambda x, t, d: moments.weighted_second_moment(t), 2),
    "paired column": (lambda x, t, d: moments.column_covariance(t, d, noise_mean="unknown"), 4 + 2),
    "paired gradient covariance": (lambda x, t, d: moments.gradient_covariance(x, t, noise_mean="unknown"), 6),
    "paired scaled rows": (lambda x, t, d: moments.scaled_rows_covariance(t, noise_mean="unknown"), 4),
}


@pytest.mark.parametrize("name", MATRICES)
@given(x=points, truth=points, direction=points, seed=seeds, factor=st.floats(0.2, 3.0))
def test_a_moment_matrix_turns_with_its_arguments_scales_by_its_degree_and_ignores_signs(
    name, x, truth, direction, seed, factor
):
    function, degree = MATRICES[name]
    q, here = rotation(seed), function(x, truth, direction)
    rounding = 1e-11 * max(map(np.linalg.norm, (x, truth, direction))) ** degree
    assert_allclose(function(q @ x, q @ truth, q @ direction), q @ here @ q.T, atol=rounding)
    scaled = function(factor * x, factor * truth, factor * direction)
    assert_allclose(scaled, factor**degree * here, atol=factor**degree * rounding)
    assert_allclose(function(-x, truth, direction), here, atol=rounding)
    assert_allclose(function(x, -truth, -direction), here, atol=rounding)
    assert np.linalg.eigvalsh(here)[0] >= -rounding, "a covariance is positive semi-definite"


@pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
def test_the_gradient_covariance_keeps_its_digits_next_to_the_solution(noise_mean):
    """Its noiseless part shrinks like ‖h‖²; written in x and x* it would drown in rounding here."""
    truth, h = np.array([3.0, 4.0, 0.0]), np.array([1.0, -2.0, 0.5])
    for side in (truth, -truth):
        near, far = (
            moments.gradient_covariance(side + size * h, truth, noise_mean=noise_mean) / size**2
            for size in (1e-9, 1e-5)
        )
        assert_allclose(near, far, rtol=1e-4, atol=1e-2)


@given(x=points, truth=points, noise_mean=models)
def test_the_sign_of_the_signal_cannot_be_seen(x, truth, noise_mean):
    assert risk(-x, truth, noise_mean=noise_mean) == risk(x, truth, noise_mean=noise_mean)
    assert risk(x, -truth, noise_mean=noise_mean) == risk(x, truth, noise_mean=noise_mean)
    assert_allclose(gradient(-x, truth, noise_mean=noise_mean), -gradient(x, truth, noise_mean=noise_mean))
    assert_allclose(hessian(-x, truth, noise_mean=noise_mean), hessian(x, truth, noise_mean=noise_mean))


@given(x=points, truth=points, factor=st.floats(0.1, 10.0), noise_mean=models)
def test_risk_gradient_and_hessian_have_degrees_four_three_two(x, truth, factor, noise_mean):
    for function, degree in ((risk, 4), (gradient, 3), (hessian, 2)):
        here = np.asarray(function(x, truth, noise_mean=noise_mean))
        scaled = function(factor * x, factor * truth, noise_mean=noise_mean)
        assert_allclose(scaled, factor**degree * here, rtol=1e-9, atol=1e-9 * factor**degree)


@given(truth=points, noise_mean=models)
def test_the_truth_is_a_minimiser_and_the_noise_is_what_remains(truth, noise_mean):
    assert_allclose(gradient(truth, truth, noise_mean=noise_mean), 0.0, atol=1e-10)
    assert_allclose(risk(truth, truth, noise_mean=noise_mean, noise_variance=2.0), 0.5, atol=1e-9)
    assert np.linalg.eigvalsh(hessian(truth, truth, noise_mean=noise_mean))[0] >= -1e-10


@given(x=points, truth=points)
def test_fitting_the_background_gives_the_risk_of_pairing(x, truth):
    """The minimum over β of E[((a·x)² + β − y)²]/4 is r_new(x): a free background shifts the noise mean by −β."""
    best = truth @ truth - x @ x  # the mean of y − (a·x)², the best constant
    profiled = risk(x, truth, noise_variance=0.3, background=-best)
    assert_allclose(profiled, risk(x, truth, noise_variance=0.3, noise_mean="unknown"), atol=1e-9)
    for other in (best - 0.5, best + 0.5):
        assert risk(x, truth, noise_variance=0.3, background=-other) > profiled


@given(x=points, truth=points, background=st.floats(-5.0, 5.0))
def test_the_model_with_an_unknown_mean_does_not_see_a_background(x, truth, background):
    for function in (risk, gradient, hessian):
        blind = function(x, truth, noise_mean="unknown", background=background)
        assert_allclose(blind, function(x, truth, noise_mean="unknown"), rtol=0, atol=0)
    assert_allclose(
        moments.scaled_rows_covariance(truth, 0.4, noise_mean="unknown", background=background),
        moments.scaled_rows_covariance(truth, 0.4, noise_mean="unknown"),
        rtol=0,
        atol=0,
    )


def test_a_background_moves_the_minimiser_along_its_own_line(case):
    for background in [-2.0, 0.0, 3.0, 30.0]:
        with case(background):
            truth = np.array([0.6, -0.8, 1.0])
            x = minimiser(truth, background=background)
            assert_allclose(gradient(x, truth, background=background), 0.0, atol=1e-12)
            assert np.linalg.eigvalsh(hessian(x, truth, background=background))[0] > 0
            assert_allclose(x @ x, truth @ truth + background / 3)


def test_below_minus_three_times_the_signal_power_the_minimiser_is_the_origin():
    truth = np.array([0.6, 0.8])
    assert_allclose(minimiser(truth, background=-3.5), 0.0)
    assert np.linalg.eigvalsh(hessian(np.zeros(2), truth, background=-3.5))[0] > 0
    with pytest.raises(ValueError, match="truth is zero"):
        minimiser([0.0, 0.0])


def test_a_mistake_is_named(case):
    for call, error, message in [
        (lambda: risk([1.0, 2.0], [1.0]), ValueError, "same length: x has 2, truth has 1"),
        (lambda: risk([[1.0]], [1.0]), ValueError, "must be a vector"),
        (lambda: hessian([1j], [1.0]), TypeError, "complex"),
        (lambda: risk([1.0], [1.0], noise_mean="none"), ValueError, "noise_mean must be"),
        (lambda: risk([1.0], [1.0], noise_variance=-1.0), ValueError, "noise_variance"),
    ]:
        with case(message), pytest.raises(error, match=message):
            call()


def test_everything_promised_is_there():
    assert all(hasattr(population, name) for name in population.__all__)
    assert population.__all__ == sorted(population.__all__, key=lambda s: (not s.isupper(), not s[0].isupper(), s))
