"""Worlds for robust means: inliers with a known mean, and the points an adversary put in place of some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class MeanWorld(NamedTuple):
    """Contaminated points, which of them are bad, and the mean of the distribution of the others."""

    points: Array
    bad: Array
    truth: Array

    def error(self, location: Array) -> float:
        """Distance of an estimate to the true mean."""
        return float(np.linalg.norm(location - self.truth))

    def oracle(self) -> float:
        """Error of the mean of the inliers: what an estimator that knows the bad points would have."""
        return self.error(self.points[~self.bad].mean(axis=0))


World = Callable[..., MeanWorld]


def _unit(rng: np.random.Generator, d: int) -> Array:
    u = rng.standard_normal(d)
    return u / np.linalg.norm(u)


def _mixed(rng: np.random.Generator, inliers: Array, outliers: Array, truth: Array) -> MeanWorld:
    """Inliers of which some, at random places, are replaced."""
    points, bad = inliers.copy(), np.zeros(len(inliers), bool)
    bad[rng.choice(len(inliers), len(outliers), replace=False)] = True
    points[bad] = outliers
    return MeanWorld(points, bad, truth)


def _cluster(rng: np.random.Generator, count: int, d: int, distance: float) -> Array:
    return distance * _unit(rng, d) + 0.1 * rng.standard_normal((count, d))


def far(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """A tight cluster at distance 100."""
    rng = np.random.default_rng(seed)
    return _mixed(rng, rng.standard_normal((N, d)), _cluster(rng, round(eps * N), d, 100.0), np.zeros(d))


def subtle(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """A tight cluster at distance sqrt(d): no farther from the centre than the inliers are."""
    rng = np.random.default_rng(seed)
    return _mixed(rng, rng.standard_normal((N, d)), _cluster(rng, round(eps * N), d, np.sqrt(d)), np.zeros(d))


def dkk(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """The mixture of Diakonikolas, Kamath, Kane and others: half random bits, half at (12, -2, 0, ...)."""
    rng = np.random.default_rng(seed)
    count = round(eps * N)
    bits = rng.integers(0, 2, (count // 2, d)).astype(float)
    point = np.zeros((count - count // 2, d))
    point[:, 0], point[:, 1] = 12.0, -2.0
    return _mixed(rng, 1.0 + rng.standard_normal((N, d)), np.vstack((bits, point)), np.ones(d))


def _student(rng: np.random.Generator, N: int, d: int) -> Array:
    """Student-t with 3 degrees of freedom in every coordinate, unit variance."""
    return rng.standard_t(3, (N, d)) / np.sqrt(3)


def heavy_subtle(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """Heavy tails (Student-t, 3 degrees) and the subtle cluster."""
    rng = np.random.default_rng(seed)
    return _mixed(rng, _student(rng, N, d), _cluster(rng, round(eps * N), d, np.sqrt(d)), np.zeros(d))


def heavy(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """Heavy tails (Student-t, 3 degrees) and nothing else; ``eps`` is not used."""
    rng = np.random.default_rng(seed)
    return _mixed(rng, _student(rng, N, d), np.empty((0, d)), np.zeros(d))


def heavy_elliptical(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """Student-t with 3 degrees of freedom and spherical contours: whole points are large; ``eps`` is not used."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((N, d)) / np.sqrt(rng.chisquare(3, (N, 1)))
    return _mixed(rng, points, np.empty((0, d)), np.zeros(d))


def scaled(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """The subtle cluster, with everything multiplied by 5."""
    world = subtle(N, d, eps, seed)
    return MeanWorld(5.0 * world.points, world.bad, world.truth)


def anisotropic(N: int, d: int, eps: float, seed: int) -> MeanWorld:
    """Inliers with covariance eigenvalues from 10 to 0.1 along unknown axes, and a cluster at sqrt(d)."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    inliers = (rng.standard_normal((N, d)) * np.sqrt(np.geomspace(10, 0.1, d))) @ axes.T
    return _mixed(rng, inliers, _cluster(rng, round(eps * N), d, np.sqrt(d)), np.zeros(d))


def adaptive(N: int, d: int, eps: float, seed: int, edge: float = 2.5) -> MeanWorld:
    """Bad points like good ones in all directions but one, along which they sit ``edge`` standard deviations out.

    The adversary has seen the data: ``edge`` is chosen to be where clean points still are, and the direction is the one
    in which the clean sample varies most, so that a little more variance is the least surprise.
    """
    rng = np.random.default_rng(seed)
    inliers = rng.standard_normal((N, d))
    u = np.linalg.eigh(inliers.T @ inliers)[1][:, -1]
    hidden = rng.standard_normal((round(eps * N), d))
    hidden += np.outer(edge + 0.1 * rng.standard_normal(len(hidden)) - hidden @ u, u)
    return _mixed(rng, inliers, hidden, np.zeros(d))


WORLDS: dict[str, World] = {
    "far cluster": far,
    "subtle cluster": subtle,
    "dkk mixture": dkk,
    "heavy tails + subtle": heavy_subtle,
    "scaled by 5": scaled,
    "anisotropic": anisotropic,
    "adaptive, one direction": adaptive,
}
