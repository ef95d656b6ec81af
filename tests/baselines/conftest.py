"""Worlds of the papers: Gaussian rows, exact responses, and outliers in the responses alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest


class Samples(NamedTuple):
    A: np.ndarray
    y: np.ndarray
    truth: np.ndarray


def draw_noiseless(n, ratio, seed, *, outliers=0.0, magnitude=10.0, field="real"):
    rng = np.random.default_rng([seed, n, ratio])
    m = ratio * n

    def normal(*shape):
        drawn = rng.standard_normal(shape)
        return drawn if field == "real" else (drawn + 1j * rng.standard_normal(shape)) / np.sqrt(2)

    x, A = normal(n), normal(m, n)
    y = np.abs(A @ x) ** 2
    bad = rng.permutation(m)[: int(outliers * m)]
    y[bad] = rng.uniform(0, magnitude * np.linalg.norm(x) ** 2, bad.size)
    return Samples(A, y, x)


def draw_noisy(n, m, seed, *, std=0.5):
    rng = np.random.default_rng([seed, n, m])
    x, A = rng.standard_normal(n), rng.standard_normal((m, n))
    x /= np.linalg.norm(x)
    return Samples(A, (A @ x) ** 2 + std * rng.standard_normal(m), x)


@pytest.fixture(scope="session")
def noiseless():
    """``ratio * n`` exact samples, of which a share has responses uniform in [0, magnitude ‖x‖²]."""
    return draw_noiseless


@pytest.fixture(scope="session")
def noisy():
    """Unit signal and Gaussian noise of σ = 0.5: about a fifth of the responses is negative."""
    return draw_noisy
