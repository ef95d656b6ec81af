"""Every moment of the paper, twice: exactly by quadrature, and by simulation at six standard errors (see conftest)."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.population import gradient, moments, risk

Array = np.ndarray[Any, np.dtype[Any]]
SIGMA2 = 0.7


def outer(p: Array, q: Array | None = None) -> Array:
    return p[:, :, None] * (p if q is None else q)[:, None, :]


def scale(c: Array, p: Array) -> Array:
    return c[:, None] * p


class Case(NamedTuple):
    """A statistic of one draw, and the closed form of its mean."""

    statistic: Callable[..., Array]
    closed_form: Callable[[Array, Array, Array], Any]


def zero_mean_gradients(a: Array, y: Array, x: Array) -> Array:
    s = a @ x
    return scale((s**2 - y) * s, a)


def paired_gradients(b: Array, c: Array, v: Array, x: Array) -> Array:
    return scale((b @ x) * (c @ x) - v, scale(c @ x, b) + scale(b @ x, c))


# Arguments: covariates and responses, then the point x, the truth t and a third vector d.
SINGLE: dict[str, Case] = {
    "E[y]": Case(lambda a, y, x, t, d: y, lambda x, t, d: moments.response_mean(t)),
    "Var(y)": Case(lambda a, y, x, t, d: (y - t @ t) ** 2, lambda x, t, d: moments.response_variance(t, SIGMA2)),
    "E[(a.x*)^2 (a.x) a], Lemma E.3 (1)": Case(
        lambda a, y, x, t, d: scale((a @ t) ** 2 * (a @ x), a), lambda x, t, d: moments.cubic_moment(x, t)
    ),
    "E[y aa'], Lemma E.3 (2)": Case(
        lambda a, y, x, t, d: outer(scale(y, a), a), lambda x, t, d: moments.weighted_second_moment(t)
    ),
    "E[(a.x)^2 (a.x*)^4 aa'], Lemma E.3 (3)": Case(
        lambda a, y, x, t, d: outer(scale((a @ x) ** 2 * (a @ t) ** 4, a), a),
        lambda x, t, d: moments.sextic_moment(x, t),
    ),
    "E[y a] = 0": Case(lambda a, y, x, t, d: scale(y, a), lambda x, t, d: np.zeros_like(t)),
    "Cov(y a)": Case(
        lambda a, y, x, t, d: outer(scale(y, a)), lambda x, t, d: moments.scaled_rows_covariance(t, SIGMA2)
    ),
    "Cov(y (a.d) a), proof of Theorem 3.1": Case(
        lambda a, y, x, t, d: outer(scale(y * (a @ d), a) - moments.cubic_moment(d, t)),
        lambda x, t, d: moments.column_covariance(t, d, SIGMA2),
    ),
    "risk (3)": Case(
        lambda a, y, x, t, d: ((a @ x) ** 2 - y) ** 2 / 4,
        lambda x, t, d: risk(x, t, noise_variance=SIGMA2),
    ),
    "gradient of the risk (3), Lemma E.1": Case(
        lambda a, y, x, t, d: zero_mean_gradients(a, y, x), lambda x, t, d: gradient(x, t)
    ),
    "covariance of the gradients, Lemma E.3 (4)": Case(
        lambda a, y, x, t, d: outer(zero_mean_gradients(a, y, x) - gradient(x, t)),
        lambda x, t, d: moments.gradient_covariance(x, t, SIGMA2),
    ),
}

PAIRED: dict[str, Case] = {
    "E[v b c'], Lemma E.4 (1)": Case(
        lambda b, c, v, x, t, d: outer(scale(v, b), c), lambda x, t, d: moments.cross_moment(t)
    ),
    "Cov(v (c.d) b), Lemma E.4 (2)": Case(
        lambda b, c, v, x, t, d: outer(scale(v * (c @ d), b) - (t @ d) * t),
        lambda x, t, d: moments.column_covariance(t, d, SIGMA2, noise_mean="unknown"),
    ),
    "Cov(v b)": Case(
        lambda b, c, v, x, t, d: outer(scale(v, b)),
        lambda x, t, d: moments.scaled_rows_covariance(t, SIGMA2, noise_mean="unknown"),
    ),
    "E[v b.c]": Case(lambda b, c, v, x, t, d: v * np.sum(b * c, axis=1), lambda x, t, d: moments.scale_mean(t)),
    "Var(v b.c)": Case(
        lambda b, c, v, x, t, d: (v * np.sum(b * c, axis=1) - t @ t) ** 2,
        lambda x, t, d: moments.scale_variance(t, SIGMA2),
    ),
    "E[v (b.d)(c.d)]": Case(
        lambda b, c, v, x, t, d: v * (b @ d) * (c @ d), lambda x, t, d: moments.directional_scale_mean(t, d)
    ),
    "Var(v (b.d)(c.d))": Case(
        lambda b, c, v, x, t, d: (v * (b @ d) * (c @ d) - (t @ d) ** 2) ** 2,
        lambda x, t, d: moments.directional_scale_variance(t, d, SIGMA2),
    ),
    "risk (9)": Case(
        lambda b, c, v, x, t, d: ((b @ x) * (c @ x) - v) ** 2 / 2,
        lambda x, t, d: risk(x, t, noise_variance=SIGMA2, noise_mean="unknown"),
    ),
    "gradient of the risk (9), Lemma E.2": Case(
        lambda b, c, v, x, t, d: paired_gradients(b, c, v, x), lambda x, t, d: gradient(x, t, noise_mean="unknown")
    ),
    "covariance of the gradients, Lemma E.4 (3)": Case(
        lambda b, c, v, x, t, d: outer(paired_gradients(b, c, v, x) - gradient(x, t, noise_mean="unknown")),
        lambda x, t, d: moments.gradient_covariance(x, t, SIGMA2, noise_mean="unknown"),
    ),
}


def three_vectors(seed: int, dimension: int) -> Array:
    return np.random.default_rng(seed).uniform(-1.2, 1.2, size=(3, dimension))


def test_a_moment_of_the_zero_mean_model_equals_its_quadrature(exact_samples, case):
    for dimension in (1, 4):
        x, truth, direction = three_vectors(1, dimension)
        world = exact_samples(dimension, SIGMA2, nodes=6)
        for name, moment in SINGLE.items():
            with case(name, dimension):
                statistic = moment.statistic(world.a, world.respond(truth), x, truth, direction)
                exact = np.tensordot(world.weights, statistic, axes=1)
                assert_allclose(moment.closed_form(x, truth, direction), exact, rtol=1e-10, atol=1e-10)


def test_a_moment_of_the_unknown_mean_model_equals_its_quadrature(exact_pairs, case):
    for dimension in (1, 3):
        x, truth, direction = three_vectors(2, dimension)
        # The background is there to show that pairing removes it.
        world = exact_pairs(dimension, SIGMA2, nodes=5, background=3.0)
        for name, moment in PAIRED.items():
            with case(name, dimension):
                exact = np.tensordot(world.weights, moment.statistic(*world.pair(truth), x, truth, direction), axes=1)
                assert_allclose(moment.closed_form(x, truth, direction), exact, rtol=1e-10, atol=1e-10)


def test_a_moment_of_the_zero_mean_model_agrees_with_simulation(simulated, assert_mean, case):
    x, truth, direction = three_vectors(3, 3)
    world = simulated(3, SIGMA2, size=200_000, seed=3)
    for name, moment in SINGLE.items():
        with case(name):
            statistic = moment.statistic(world.a, world.respond(truth), x, truth, direction)
            assert_mean(statistic, moment.closed_form(x, truth, direction))


def test_a_moment_of_the_unknown_mean_model_agrees_with_simulation(simulated, assert_mean, case):
    x, truth, direction = three_vectors(4, 3)
    world = simulated(3, SIGMA2, size=200_000, seed=4, background=-2.0)
    for name, moment in PAIRED.items():
        with case(name):
            statistic = moment.statistic(*world.pair(truth), x, truth, direction)
            assert_mean(statistic, moment.closed_form(x, truth, direction))


def test_the_spectral_matrices_of_procedure_1_hold_with_a_background(case, exact_samples):
    for background in [-1.0, 0.0, 2.5]:
        with case(background):
            _, truth, _ = three_vectors(5, 4)
            world = exact_samples(4, SIGMA2, nodes=6, background=background)
            y = world.respond(truth)
            mean = np.tensordot(world.weights, outer(scale(y, world.a), world.a), axes=1)
            covariance = np.tensordot(world.weights, outer(scale(y, world.a)), axes=1)
            assert_allclose(moments.response_mean(truth, background=background), world.weights @ y, rtol=1e-12)
            assert_allclose(moments.weighted_second_moment(truth, background=background), mean, atol=1e-11)
            assert_allclose(
                moments.scaled_rows_covariance(truth, SIGMA2, background=background), covariance, atol=1e-10
            )


@pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
def test_the_covariance_bounds_hold_in_the_ball_and_are_attained(noise_mean):
    def ratios(h: Array, truth: Array) -> tuple[float, float, float, float]:
        error = moments.gradient_covariance(truth + h, truth, noise_mean=noise_mean)
        noise = moments.gradient_covariance(truth + h, truth, 1.0, noise_mean=noise_mean) - error
        power = truth @ truth
        size = (h @ h) * power**2
        return (
            np.trace(error) / size,
            np.trace(noise) / power,
            np.linalg.eigvalsh(error)[-1] / size,
            np.linalg.eigvalsh(noise)[-1] / power,
        )

    for radius, dimension in product((0.02, 1 / 9, 1 / 6, 0.6), (1, 2, 5)):
        rng = np.random.default_rng(6)
        truth = rng.standard_normal(dimension)
        bounds = moments.gradient_covariance_bounds(radius, dimension=dimension, noise_mean=noise_mean)
        assert_allclose(ratios(radius * truth, truth), bounds, rtol=1e-8)
        for _ in range(200):
            h = rng.standard_normal(dimension)
            h *= radius * rng.uniform(0.05, 1.0) * np.linalg.norm(truth) / np.linalg.norm(h)
            assert np.all(np.array(ratios(h, truth)) <= np.array(bounds) * (1 + 1e-9))


def test_a_negative_noise_variance_is_refused():
    with pytest.raises(ValueError, match="noise_variance"):
        moments.response_variance([1.0], -1.0)


def test_pairing_turns_into_a_difference_of_two_scaled_rows():
    """(xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x = ½[(s² − y) − (s'² − y')](s a − s' a'): no b or c is needed."""
    rng = np.random.default_rng(8)
    a, a2, x = rng.standard_normal((3, 6))
    y, y2 = rng.standard_normal(2)
    b, c, v = (a + a2) / np.sqrt(2), (a - a2) / np.sqrt(2), (y - y2) / 2
    s, s2 = a @ x, a2 @ x
    printed = ((x @ b) * (c @ x) - v) * (np.outer(b, c) + np.outer(c, b)) @ x
    assert_allclose(((s**2 - y) - (s2**2 - y2)) / 2 * (s * a - s2 * a2), printed, rtol=1e-12)
