"""Two ways to take an expectation: exactly, by Gauss–Hermite quadrature, and by simulation with a stated confidence.

Every moment in the paper is the mean of a polynomial in Gaussian coordinates and independent noise. A tensor
Gauss–Hermite rule with q nodes per coordinate integrates every monomial of degree at most 2q − 1 in each coordinate
exactly, and a noise law on two points has exact moments, so the quadrature tests are proofs up to rounding for the
vectors they use. The simulation shares no code with them beyond the statistic itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, np.dtype[Any]]

# Noise on two points with mean 0: P(z = 2σ) = 0.2, P(z = −σ/2) = 0.8. Skewed on purpose: nothing may rely on symmetry.
NOISE_VALUES, NOISE_WEIGHTS = np.array([2.0, -0.5]), np.array([0.2, 0.8])


@dataclass(frozen=True)
class Draws:
    """Points of (a, z), or of (a, z, a', z'), with weights that sum to one (all equal when simulated)."""

    a: Array
    z: Array
    weights: Array
    a2: Array | None = None
    z2: Array | None = None

    def respond(self, truth: Array) -> Array:
        """Responses ``y`` of the first samples."""
        return (self.a @ truth) ** 2 + self.z

    def pair(self, truth: Array) -> tuple[Array, Array, Array]:
        """Pair the samples as in Procedure 3: b, c, υ."""
        y, y2 = self.respond(truth), (self.a2 @ truth) ** 2 + self.z2
        return (self.a + self.a2) / np.sqrt(2), (self.a - self.a2) / np.sqrt(2), (y - y2) / 2


@cache
def _hermite_grid(dimension: int, nodes: int) -> tuple[Array, Array]:
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    grid = np.stack(np.meshgrid(*[points] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    mass = np.prod(np.stack(np.meshgrid(*[weights] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension), axis=1)
    return grid, mass


@pytest.fixture(scope="session")
def exact_samples() -> Callable[..., Draws]:
    """Quadrature over one sample (a, z), exact for degree at most 2·nodes − 1 in each coordinate of a."""

    def build(dimension: int, noise_variance: float, *, nodes: int = 7, background: float = 0.0) -> Draws:
        grid, mass = _hermite_grid(dimension, nodes)
        z = np.sqrt(noise_variance) * NOISE_VALUES + background
        return Draws(
            a=np.repeat(grid, z.size, axis=0),
            z=np.tile(z, len(grid)),
            weights=np.outer(mass, NOISE_WEIGHTS).ravel(),
        )

    return build


@pytest.fixture(scope="session")
def exact_pairs() -> Callable[..., Draws]:
    """Quadrature over two independent samples (a, z, a', z')."""

    def build(dimension: int, noise_variance: float, *, nodes: int = 5, background: float = 0.0) -> Draws:
        grid, mass = _hermite_grid(2 * dimension, nodes)
        z = np.sqrt(noise_variance) * NOISE_VALUES + background
        first, second = (v.ravel() for v in np.meshgrid(z, z, indexing="ij"))
        both = np.repeat(grid, first.size, axis=0)
        return Draws(
            a=both[:, :dimension],
            z=np.tile(first, len(grid)),
            weights=np.outer(mass, np.outer(NOISE_WEIGHTS, NOISE_WEIGHTS).ravel()).ravel(),
            a2=both[:, dimension:],
            z2=np.tile(second, len(grid)),
        )

    return build


@pytest.fixture(scope="session")
def simulated() -> Callable[..., Draws]:
    """Simulated pairs of samples; the noise is a centred exponential, another skewed law."""

    def build(dimension: int, noise_variance: float, *, size: int, seed: int, background: float = 0.0) -> Draws:
        rng = np.random.default_rng(seed)
        noise = np.sqrt(noise_variance) * (rng.standard_exponential((2, size)) - 1.0) + background
        a, a2 = rng.standard_normal((2, size, dimension))
        return Draws(a=a, z=noise[0], weights=np.full(size, 1.0 / size), a2=a2, z2=noise[1])

    return build


@pytest.fixture(scope="session")
def assert_mean() -> Callable[[Array, Array | float], None]:
    """Compare the average of simulated statistics with a closed form, entry by entry, at six standard errors.

    Confidence: one entry of a right formula fails with probability 2Φ(−6) ≈ 2e-9, and fewer than 500 entries are
    compared in this folder, so by Bonferroni the chance of a false alarm is below 1e-6 over the choice of seeds
    (which are fixed), up to the normal approximation for an average of at least 10⁵ terms. A wrong coefficient of
    relative size 0.2 is many standard errors away; the exact tests catch smaller ones.
    """

    def check(statistics: Array, closed_form: Array | float) -> None:
        count = len(statistics)
        error = statistics.std(axis=0) / np.sqrt(count)
        gap = np.abs(statistics.mean(axis=0) - closed_form)
        assert np.all(gap <= 6.0 * error + 1e-12), f"off by up to {np.max(gap / (error + 1e-300)):.1f} standard errors"

    return check
