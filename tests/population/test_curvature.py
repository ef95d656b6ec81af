"""Exact curvature over a ball, against dense search and against the Hessian itself."""

from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from robustphase.population import convexity_radius, curvature_at, curvature_range, hessian

MODELS = ["zero", "unknown"]
radii = st.floats(0.0, 0.98)
points = arrays(np.float64, (3,), elements=st.floats(-2.0, 2.0, allow_subnormal=False))


def eigenvalues(x: np.ndarray, truth: np.ndarray, noise_mean: str) -> np.ndarray:
    """Eigenvalues of the Hessians at many points, from the matrices."""
    power = np.sum(x**2, axis=1)
    eye, spike = np.eye(truth.size), 2 * np.outer(truth, truth)
    shift = 3 * power - truth @ truth if noise_mean == "zero" else 2 * power
    outer = (6 if noise_mean == "zero" else 4) * x[:, :, None] * x[:, None, :]
    return np.linalg.eigvalsh(shift[:, None, None] * eye + outer - spike)


@given(x=points, truth=points, noise_mean=st.sampled_from(MODELS))
def test_the_curvature_at_a_point_is_that_of_the_hessian(x, truth, noise_mean):
    for n in (1, 2, 3):
        spectrum = np.linalg.eigvalsh(hessian(x[:n], truth[:n], noise_mean=noise_mean))
        found = curvature_at(x[:n], truth[:n], noise_mean=noise_mean)
        assert_allclose(found, (spectrum[0], spectrum[-1]), atol=1e-9)


@pytest.mark.parametrize("noise_mean", MODELS)
@given(radius=radii)
def test_a_dense_search_over_the_ball_finds_the_exact_range(noise_mean, radius):
    """The plane of x and x* decides: a fine polar grid of the disc contains points close to both extremes."""
    distance, angle = np.meshgrid(radius * np.linspace(0, 1, 21), np.linspace(0, np.pi, 721), indexing="ij")
    x = np.stack([1 + distance * np.cos(angle), distance * np.sin(angle)], axis=-1).reshape(-1, 2)
    found = eigenvalues(x, np.array([1.0, 0.0]), noise_mean)
    exact = curvature_range(radius, noise_mean=noise_mean)
    assert exact.strong_convexity - 1e-9 <= found.min() <= exact.strong_convexity + 1e-3
    assert_allclose(found.max(), exact.smoothness, rtol=1e-12)


@pytest.mark.parametrize("noise_mean", MODELS)
def test_random_points_of_the_ball_stay_in_the_range(noise_mean):
    for dimension, radius in product((1, 2, 3, 6), (1 / 9, 1 / 6, 0.35, 0.8)):
        rng = np.random.default_rng(3)
        truth = rng.standard_normal(dimension)
        size = np.linalg.norm(truth)
        h = rng.standard_normal((20_000, dimension))
        lengths = radius * size * rng.uniform(0, 1, (20_000, 1)) ** (1 / dimension)
        h *= lengths / np.linalg.norm(h, axis=1, keepdims=True)
        found = eigenvalues(truth + h, truth, noise_mean) / size**2
        exact = curvature_range(radius, noise_mean=noise_mean, dimension=dimension)
        assert exact.strong_convexity - 1e-9 <= found.min()
        assert found.max() <= exact.smoothness + 1e-9


@pytest.mark.parametrize("noise_mean", MODELS)
def test_a_larger_ball_has_a_wider_range(noise_mean):
    ranges = np.array([curvature_range(r, noise_mean=noise_mean) for r in np.linspace(0, 0.99, 200)])
    assert np.all(np.diff(ranges[:, 0]) < 0)
    assert np.all(np.diff(ranges[:, 1]) > 0)


def test_the_curvature_at_the_solution_is_two_and_six_or_two_and_four():
    assert_allclose(curvature_range(0.0), (2, 6))
    assert_allclose(curvature_range(0.0, noise_mean="unknown"), (2, 4))
    assert_allclose(curvature_range(0.0, dimension=1), (6, 6))
    assert_allclose(curvature_range(0.0, noise_mean="unknown", dimension=1), (4, 4))


@pytest.mark.parametrize("noise_mean", MODELS)
def test_the_risk_is_convex_up_to_the_convexity_radius_and_not_beyond(noise_mean):
    radius = convexity_radius(noise_mean)
    assert_allclose(curvature_range(radius, noise_mean=noise_mean).strong_convexity, 0.0, atol=1e-12)
    assert curvature_range(radius - 1e-6, noise_mean=noise_mean).strong_convexity > 0
    assert curvature_range(radius + 1e-6, noise_mean=noise_mean).strong_convexity < 0


def test_a_ball_that_reaches_the_origin_is_refused(case):
    for radius in [-0.1, 1.0, float("nan")]:
        with case(radius), pytest.raises(ValueError, match="relative_radius"):
            curvature_range(radius)


def test_a_dimension_below_one_is_refused():
    with pytest.raises(ValueError, match="dimension"):
        curvature_range(0.1, dimension=0)
