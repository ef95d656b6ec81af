"""Robust covariances against each other, and the leading eigenvector against plain and Tyler's; writes the docs tables."""

from __future__ import annotations

import os
import sys
import warnings
from itertools import product

import numpy as np
from joblib import Parallel, delayed
from sklearn.decomposition import PCA

from benchmarks.markdown import counted
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.timing import ratio, time_by_turns
from robustphase import leading_eigenvector, robust_covariance

Array = np.ndarray

PAGE = "_generated/spectra.md"
LEVELS, COUNTS, DIMENSION, COVARIANCE_SEEDS = (0.05, 0.1), (500, 2000), 10, 1
ATTACKS = ("none", "symmetric")
D, N, SHARE, SEEDS = 100, 3000, 0.1, 10
WORLDS = ("clean", "far", "symmetric", "t3", "t3 + symmetric")
TIMED = ((3000, 100), (20000, 500))


def _unit(vector: Array) -> Array:
    return vector / np.linalg.norm(vector)


def _spoil(rng: np.random.Generator, points: Array, u: Array, attack: str, share: float) -> Array:
    """Replace a share of the points by outliers along u, in place; returns which."""
    bad = np.zeros(len(points), bool)
    if attack == "none":
        return bad
    bad[rng.choice(len(points), round(share * len(points)), replace=False)] = True
    count = int(bad.sum())
    if attack == "far":
        points[bad] = 100 * u + 0.1 * rng.standard_normal((count, len(u)))
    else:
        length = np.sqrt(np.median((points**2).sum(axis=1)))
        points[bad] = np.outer(rng.choice([-1, 1], count) * length, u) + 0.3 * rng.standard_normal((count, len(u)))
    return bad


def covariance_errors(count: int, level: float, attack: str) -> Array:
    """Median operator-norm errors, over the largest eigenvalue: oracle, minmax, filter; and the largest gap."""
    errors, gaps = [], []
    for seed in range(COVARIANCE_SEEDS):
        rng = np.random.default_rng(seed)
        axes = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0]
        truth = (axes * np.linspace(1, 4, DIMENSION)) @ axes.T
        points = rng.standard_normal((count, DIMENSION)) @ np.linalg.cholesky(truth).T
        bad = _spoil(rng, points, axes[:, 0], attack, level)
        exact = robust_covariance(points, level, "minmax", assume_centered=True)
        fast = robust_covariance(points, level, assume_centered=True)
        known = points[~bad].T @ points[~bad] / (~bad).sum()
        errors.append([np.linalg.norm(m - truth, 2) / 4 for m in (known, exact.covariance, fast.covariance)])
        gaps.append(exact.gap)
    return np.append(np.median(errors, axis=0), max(gaps))


def covariance_table() -> list[str]:
    lines = [
        "| N | ε | outliers | clean points only | `minmax` | gap | `filter` | filter / minmax |",
        "|---|---|---|---|---|---|---|---|",
    ]
    cases = list(product(reversed(COUNTS), LEVELS, ATTACKS))
    found = Parallel(n_jobs=os.cpu_count())(delayed(covariance_errors)(*case) for case in cases)
    for (count, level, attack), (known, exact, fast, gap) in sorted(
        zip(cases, found, strict=True), key=lambda one: one[0]
    ):
        lines.append(
            f"| {count} | {level} | {attack} | {known:.3f} | {exact:.3f} | {gap:.0%} | {fast:.3f} | {fast / exact:.2f} |"
        )
    return lines


def spiked(seed: int, kind: str) -> tuple[Array, Array, Array]:
    """Points with covariance I + 4vvᵀ, perhaps with t(3) radii, of which some are replaced; which; and v."""
    rng = np.random.default_rng(seed)
    v = _unit(rng.standard_normal(D))
    points = rng.standard_normal((N, D))
    points += (np.sqrt(5) - 1) * np.outer(points @ v, v)
    if kind.startswith("t3"):
        points /= np.sqrt(rng.chisquare(3, N) / 3)[:, np.newaxis]
    u = rng.standard_normal(D)
    attack = "far" if kind == "far" else "symmetric" if kind.endswith("symmetric") else "none"
    bad = _spoil(rng, points, _unit(u - (u @ v) * v), attack, SHARE)
    return points, bad, v


def tyler(points: Array, iterations: int = 40) -> Array:
    """Leading eigenvector of Tyler's shape matrix."""
    shape = np.eye(points.shape[1])
    for _ in range(iterations):
        squares = np.einsum("ij,ij->i", points @ np.linalg.inv(shape), points)
        shape = (points.T / squares) @ points
        shape *= points.shape[1] / np.trace(shape)
    return np.linalg.eigh(shape)[1][:, -1]


def plain(points: Array) -> Array:
    return np.linalg.eigh(points.T @ points)[1][:, -1]


def sine(u: Array, v: Array) -> float:
    return float(np.sqrt(max(0.0, 1.0 - abs(u @ v) ** 2)))


def eigenvector_table() -> list[str]:
    lines = [
        "| points | plain, clean only | Tyler, clean only | plain | Tyler | `leading_eigenvector` | removed |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in WORLDS:
        rows = []
        for seed in range(SEEDS):
            points, bad, v = spiked(seed, kind)
            result = leading_eigenvector(points, SHARE)
            others = (plain(points[~bad]), tyler(points[~bad]), plain(points), tyler(points))
            rows.append([*(sine(u, v) for u in (*others, result.vector)), result.removed])
        median = np.median(rows, axis=0)
        lines.append(f"| {kind} | " + " | ".join(f"{value:.3f}" for value in median[:5]) + f" | {median[5]:.1%} |")
    return lines


def time_table() -> list[str]:
    lines = ["| N × n | PCA, first component | PCA, full | `leading_eigenvector` over the first |", "|---|---|---|---|"]
    for count, n in TIMED:
        points = np.random.default_rng(0).standard_normal((count, n))
        points[:, 0] *= np.sqrt(5)
        seconds = time_by_turns(
            {
                "first": lambda points=points: PCA(1, svd_solver="randomized", random_state=0).fit(points),
                "full": lambda points=points: PCA(svd_solver="covariance_eigh").fit(points),
                "ours": lambda points=points: leading_eigenvector(points, SHARE),
            },
            rounds=3,
        )
        first, full = (1e3 * np.median(seconds[name]) for name in ("first", "full"))
        times = ratio(seconds["ours"], seconds["first"])[0]
        lines.append(f"| {count} × {n} | {first:.0f} ms | {full:.0f} ms | {times:.1f} |")
    return lines


def run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = [
            f"Operator-norm error over the largest eigenvalue, n = {DIMENSION}, eigenvalues 1 to 4, outliers along the axis "
            f"of least variance; {counted(COVARIANCE_SEEDS, 'seed')}, largest gap of the min-max solution.",
            "",
            *covariance_table(),
            "",
            f"Sine of the angle to the leading eigenvector of I + 4vvᵀ, d = {D}, N = {N}, ε = {SHARE}; medians of {SEEDS} "
            "seeds.",
            "",
            *eigenvector_table(),
            "",
            "Time against scikit-learn's PCA, medians of three rounds by turns.",
            "",
            *time_table(),
        ]
    text = "\n".join(parts) + "\n"
    publish(PAGE, text, seeds=[0, SEEDS])
    print(text)


if __name__ == "__main__":
    call(run, "spectra", sys.argv[1:])
