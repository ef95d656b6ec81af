"""κ₄ is the largest kurtosis over all directions, found exactly by quadrature."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.population import kappa_4, kappa_4_bound, paired_kappa_4

Array = np.ndarray[Any, np.dtype[Any]]
SIGMA2 = 0.7
NOISE = (0.0, 0.0, 0.0), (SIGMA2, 1.5 * SIGMA2**1.5, 3.25 * SIGMA2**2), (40.0, 1.5 * 40.0**1.5, 3.25 * 40.0**2)


def largest_kurtosis(points: Array, weights: Array, truth: Array) -> float:
    """Search all directions: ``v`` enters through its angle with the truth, so one great circle is enough."""
    unit = truth / np.linalg.norm(truth)
    across = np.linalg.svd(unit[None, :])[2][1]
    angle = np.linspace(0, np.pi / 2, 2001)
    along, off = points @ unit, points @ across
    fourth = sum(
        coefficient * np.cos(angle) ** (4 - k) * np.sin(angle) ** k * (weights @ (along ** (4 - k) * off**k))
        for k, coefficient in enumerate((1, 4, 6, 4, 1))
    )
    second = sum(
        coefficient * np.cos(angle) ** (2 - k) * np.sin(angle) ** k * (weights @ (along ** (2 - k) * off**k))
        for k, coefficient in enumerate((1, 2, 1))
    )
    return float(np.max(fourth / second**2) ** 0.25)


@pytest.mark.parametrize(("variance", "third", "fourth"), NOISE)
def test_kappa_4_is_the_largest_kurtosis_over_all_directions(variance, third, fourth, exact_samples, exact_pairs):
    truth = np.array([0.8, -0.5])
    single = exact_samples(2, variance, nodes=8)
    exact = largest_kurtosis(single.respond(truth)[:, None] * single.a, single.weights, truth)
    assert_allclose(kappa_4(truth, variance, third, fourth), exact, rtol=1e-6)
    assert kappa_4(truth, variance, third, fourth) <= kappa_4_bound(truth, fourth)
    pairs = exact_pairs(2, variance, nodes=8)
    b, _, v = pairs.pair(truth)
    exact = largest_kurtosis(v[:, None] * b, pairs.weights, truth)
    assert_allclose(paired_kappa_4(truth, variance, fourth), exact, rtol=1e-6)


def test_kappa_4_without_noise_is_a_fraction():
    assert_allclose(kappa_4([3.0, 4.0]) ** 4, 105 / 2, rtol=1e-12)
    assert_allclose(paired_kappa_4([3.0, 4.0]) ** 4, 270 / 7, rtol=1e-12)
    assert_allclose(kappa_4([2.0]) ** 4, 10395 / 15**2, rtol=1e-12)


def test_impossible_noise_moments_are_refused(case):
    for variance, third, fourth in [(-1.0, 0.0, 0.0), (1.0, 0.0, 0.5), (1.0, 2.0, 3.0), (0.0, 0.0, 1.0)]:
        with case(variance, third, fourth), pytest.raises(ValueError, match="no noise has"):
            kappa_4([1.0, 0.0], variance, third, fourth)


def test_kappa_4_needs_some_variance():
    with pytest.raises(ValueError, match="both zero"):
        kappa_4([0.0, 0.0])
    with pytest.raises(ValueError, match="truth is zero"):
        kappa_4_bound([0.0, 0.0])
