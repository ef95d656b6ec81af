"""How the error falls with the number of samples: like one over its root, as far as one looks.

``python -m benchmarks large_samples [--seeds 2] [--most 1e6]`` writes docs/_generated/large_samples.md and
docs/_static/large_samples.svg: n = 20, several noises, clean data and a twentieth of outliers that nobody could mistake, from
m = 10⁴ to ``most`` (up to 10⁷). Of small worlds there are more than ``seeds``: in one of 10⁴ samples chance moves the ratio by a
tenth.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

import robustphase as rp
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.store import DOCS, keep_picture

PAGE, PICTURE = "_generated/large_samples.md", "_static/large_samples.svg"
N, SCALE, TOLD, SHARE, OUTLIER = 20, 0.5, 0.1, 0.05, 30.0
NOISES = ("gaussian", "student", "lognormal", "laplace")
FIRST_SEED = 5000
#: Samples in all the worlds of one size together, at least.
ALTOGETHER = 300_000


def draw(noise: str, m: int, rng: np.random.Generator) -> np.ndarray:
    """Noise of mean zero and standard deviation one half."""
    if noise == "gaussian":
        return SCALE * rng.standard_normal(m)
    if noise == "student":
        return SCALE / np.sqrt(3) * rng.standard_t(3, m)
    if noise == "laplace":
        return SCALE / np.sqrt(2) * rng.laplace(size=m)
    return SCALE * (np.exp(rng.standard_normal(m)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


def informed(A: np.ndarray, y: np.ndarray, x: np.ndarray, clean: np.ndarray) -> np.ndarray:
    """Least squares from the truth on the clean samples, a block of rows at a time."""
    for _ in range(4):
        normal, right = np.zeros((N, N)), np.zeros(N)
        for low in range(0, y.size, 1 << 18):
            part = slice(low, low + (1 << 18))
            rows = A[part][clean[part]].astype(np.float64)
            s = rows @ x
            slopes = 2 * s[:, None] * rows
            normal += slopes.T @ slopes
            right += slopes.T @ (y[part][clean[part]] - s * s)
        x = x + np.linalg.solve(normal, right)
    return x


def one_run(noise: str, outliers: bool, m: int, seed: int) -> tuple[float, float, float]:
    """Relative errors of the fit and of informed least squares, and seconds."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, N), np.float32)
    x = rng.standard_normal(N)
    x /= np.linalg.norm(x)
    y = (A @ x) ** 2 + draw(noise, m, rng)
    clean = rng.random(m) >= SHARE if outliers else np.ones(m, bool)
    y[~clean] = OUTLIER
    began = perf_counter()
    model = rp.RobustPhaseRetrieval(TOLD).fit(A, y)
    seconds = perf_counter() - began
    return rp.distance(model.signal_, x), rp.distance(informed(A, y, x, clean), x), seconds


def worlds(m: int, seeds: int) -> int:
    """How many worlds of a size there are."""
    return max(seeds, ALTOGETHER // m)


def run(seeds: int = 2, most: float = 1e6) -> None:
    sizes = [m for m in (10**4, 10**5, 10**6, 10**7) if m <= most]
    counts = ", ".join(f"{worlds(m, seeds)} of {m:,}" for m in sizes)
    lines = [
        f"n = {N}, noise of standard deviation {SCALE}‖x*‖², told {TOLD}. Error over that of least squares started at the truth "
        f"and told which samples are clean; root mean squares over worlds ({counts} samples), in brackets the error "
        "itself.\n",
        "| noise | outliers | " + " | ".join(f"m = {m:,}" for m in sizes) + " |",
        "|---|---|" + "---|" * len(sizes),
    ]
    curves = {}
    for noise in NOISES:
        for outliers in (False, True):
            cells, errors = [], []
            for m in sizes:
                runs = np.array([one_run(noise, outliers, m, FIRST_SEED + seed) for seed in range(worlds(m, seeds))])
                error, best = np.sqrt((runs[:, :2] ** 2).mean(axis=0))
                cells.append(f"{error / best:.2f} ({error:.1e})")
                errors.append(error)
                print(noise, outliers, m, f"{error / best:.3f} {error:.2e} {runs[:, 2].mean():.1f} s", flush=True)
            curves[noise, outliers] = errors
            lines.append(
                f"| {noise} | {f'{SHARE:.0%} at {OUTLIER:g}' if outliers else 'none'} | " + " | ".join(cells) + " |"
            )
    publish(PAGE, "\n".join(lines) + "\n", seeds=[FIRST_SEED, seeds])
    draw_curves(sizes, curves)


def draw_curves(sizes: list[int], curves: dict[tuple[str, bool], list[float]]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for (noise, outliers), errors in curves.items():
        axes.loglog(
            sizes, errors, "o--" if outliers else "o-", label=f"{noise}{', outliers' if outliers else ''}", ms=4
        )
    slope = curves["gaussian", False][0] * np.sqrt(sizes[0] / np.array(sizes))
    axes.loglog(sizes, slope, "k:", label="m^(−1/2)")
    axes.set_xlabel("samples m")
    axes.set_ylabel("relative error")
    axes.legend(fontsize=7)
    figure.savefig(DOCS / PICTURE, metadata={"Date": None})
    plt.close(figure)
    keep_picture("large_samples", PICTURE)


if __name__ == "__main__":
    call(run, "large_samples", sys.argv[1:])
