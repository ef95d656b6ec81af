"""How far from the truth: the accuracy tables and pictures of docs/means.md.

``python -m benchmarks means_accuracy`` measures everything anew and writes ``docs/_generated/means_accuracy.md`` and
``docs/_static/means_*.svg``. The pictures need matplotlib, from the docs dependency group.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.markdown import table
from benchmarks.mean_worlds import WORLDS, adaptive, heavy, heavy_elliptical, subtle
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.store import DOCS, keep_picture
from robustphase.means import METHODS, robust_mean
from robustphase.means.estimate import mean_of
from robustphase.means.filter import filter_mean
from robustphase.rows import MemoryRows, ScaledRows

N, D, SEEDS, LEVELS = 4000, 200, 5, (0.05, 0.1, 0.2)
EDGES = (1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
TAILS = {"independent coordinates": heavy, "spherical": heavy_elliptical}
TAIL_SIZES, TAIL_SEEDS, DELTA = ((500, 20), (500, 100), (2000, 20)), 300, 0.01
TAIL_METHODS = ("filter", "mmw", "geometric_median_of_means", "catoni", "median_of_means")
SHORT = {"geometric_median_of_means": "geo. MoM", "median_of_means": "MoM", "geometric_median": "geo. median"}

Ratios = dict[tuple[str, float, str], float]


def run() -> None:
    ratios = accuracy()
    tails = heavy_tails()
    parts = [accuracy_table(ratios), adaptive_table(), tail_table(tails)]
    for part in parts:
        print(part)
    publish("_generated/means_accuracy.md", "\n".join(parts), seeds=[0, SEEDS])
    pictures(ratios, tails)


def accuracy() -> Ratios:
    """Median error of every method in every world, over the median error of the mean of the inliers."""
    cells = [(name, eps) for name in WORLDS for eps in LEVELS]
    found = Parallel(n_jobs=os.cpu_count())(delayed(one_world)(*cell) for cell in cells)
    return {
        (*cell, method): ratio for cell, ratios in zip(cells, found, strict=True) for method, ratio in ratios.items()
    }


def one_world(name: str, eps: float) -> dict[str, float]:
    worlds = [WORLDS[name](N, D, eps, seed) for seed in range(SEEDS)]
    oracle = np.median([world.oracle() for world in worlds])
    return {
        method: float(
            np.median(
                [
                    world.error(robust_mean(world.points, eps, method, random_state=seed).location)
                    for seed, world in enumerate(worlds)
                ]
            )
            / oracle
        )
        for method in METHODS
    }


def heavy_tails() -> dict[tuple[str, int, int, str], np.ndarray]:
    """Errors at δ = 0.01 on heavy tails without contamination, one for each seed."""
    cells = [(tail, *size) for tail in TAILS for size in TAIL_SIZES]
    found = Parallel(n_jobs=os.cpu_count())(delayed(one_tail)(*cell) for cell in cells)
    return {(*cell, method): some for cell, errors in zip(cells, found, strict=True) for method, some in errors.items()}


def one_tail(tail: str, count: int, d: int) -> dict[str, np.ndarray]:
    errors: dict[str, list[float]] = {}
    for seed in range(TAIL_SEEDS):
        world = TAILS[tail](count, d, 0.0, seed)
        for method in ("empirical", *TAIL_METHODS):
            found = robust_mean(world.points, 0.0, method, delta=DELTA, random_state=seed)
            errors.setdefault(method, []).append(world.error(found.location))
    return {method: np.array(values) for method, values in errors.items()}


def accuracy_table(ratios: Ratios) -> str:
    names = [SHORT.get(method, method) for method in METHODS]
    rows = []
    for name in WORLDS:
        cells = ["/".join(f"{ratios[name, eps, method]:.2f}" for eps in LEVELS) for method in METHODS]
        rows.append([name, *cells])
    title = (
        f"**Error over that of the mean of the inliers** (medians of {SEEDS} seeds, d={D}, N={N}, contamination "
        f"{' / '.join(map(str, LEVELS))}, which the estimators are told)\n\n"
    )
    return title + table(["world", *names], rows)


def adaptive_table() -> str:
    """What the one-direction attack costs, for every place it may choose, in units of sqrt(ε) standard deviations."""
    rows = []
    for eps in LEVELS:
        cells = [f"{eps:g}"]
        for edge in EDGES:
            costs = []
            for seed in range(SEEDS):
                world = adaptive(N, D, eps, seed, edge)
                clean = world.points[~world.bad].mean(axis=0)
                costs.append(np.linalg.norm(robust_mean(world.points, eps).location - clean) / np.sqrt(eps))
            cells.append(f"{np.median(costs):.2f}")
        rows.append(cells)
    title = (
        "**The adaptive attack on the filter**: distance to the mean of the inliers in units of sqrt(ε) standard "
        "deviations, by how many standard deviations out the bad points sit (the theory allows a constant)\n\n"
    )
    return title + table(["ε", *(f"{edge:g}" for edge in EDGES)], rows)


def tail_table(errors: dict[tuple[str, int, int, str], np.ndarray]) -> str:
    rows = []
    for tail in TAILS:
        for count, d in TAIL_SIZES:
            plain = errors[tail, count, d, "empirical"]
            cells = []
            for method in TAIL_METHODS:
                mine = errors[tail, count, d, method]
                middle = np.median(mine) / np.median(plain)
                cells.append(f"{middle:.3f} / {np.quantile(mine, 0.99) / np.quantile(plain, 0.99):.3f}")
            rows.append([f"{tail}, N={count}, d={d}", *cells])
    title = (
        f"**Heavy tails without contamination** (Student-t, 3 degrees, told ε=0 and δ={DELTA}): median / 99th percentile "
        f"of the error over that of the empirical mean, {TAIL_SEEDS} seeds\n\n"
    )
    return title + table(["data", *(SHORT.get(m, m) for m in TAIL_METHODS)], rows)


def pictures(ratios: Ratios, tails: dict[tuple[str, int, int, str], np.ndarray]) -> None:
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no pictures. pip install --group docs")
        return
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "robustphase", "font.size": 9})
    draw_accuracy(ratios)
    draw_tails(tails)
    draw_round()


def save(figure: Any, name: str) -> None:
    figure.savefig(DOCS / "_static" / name, bbox_inches="tight", metadata={"Date": None})
    keep_picture("means_accuracy", f"_static/{name}")


def draw_accuracy(ratios: Ratios) -> None:
    """One line of dots for each world at contamination 0.1."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 3.6))
    markers = "osv^<>DpX*"
    for k, method in enumerate(METHODS):
        values = [ratios[name, 0.1, method] for name in WORLDS]
        size = 60 if method in ("filter", "mmw") else 28
        axes.scatter(
            values, range(len(WORLDS)), s=size, marker=markers[k], label=SHORT.get(method, method), zorder=3 - k / 10
        )
    axes.set_yticks(range(len(WORLDS)), list(WORLDS))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1.0, color="grey", lw=0.8)
    axes.set_xlabel("error / error of the mean of the inliers")
    axes.set_title(f"contamination 0.1, d={D}, N={N}")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    save(figure, "means_accuracy.svg")
    plt.close(figure)


def draw_tails(tails: dict[tuple[str, int, int, str], np.ndarray]) -> None:
    """How often the error exceeds a value, for the plain mean and the robust ones."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(TAILS), figsize=(7.5, 3.0), sharey=True)
    count, d = TAIL_SIZES[1]
    for axes, tail in zip(panels, TAILS, strict=True):
        for method in ("empirical", "filter", "mmw", "geometric_median_of_means"):
            values = np.sort(tails[tail, count, d, method])
            axes.step(values, 1 - np.arange(values.size) / values.size, label=SHORT.get(method, method))
        axes.set_yscale("log")
        axes.axhline(DELTA, color="grey", lw=0.8, ls=":")
        axes.set_xlabel("error")
        axes.set_title(f"Student-t(3), {tail}")
    panels[0].set_ylabel("share of samples with a larger error")
    panels[0].legend(frameon=False)
    save(figure, "means_tails.svg")
    plt.close(figure)


def draw_round() -> None:
    """What the filter sees: the points along an ordinary direction and along the worst one."""
    from matplotlib import pyplot as plt

    world = subtle(N, D, 0.1, 0)
    view = ScaledRows(MemoryRows(world.points))
    worst = filter_mean(view, 0.1, max_rounds=1).directions
    assert worst is not None
    final = mean_of(MemoryRows(world.points), 0.1)
    figure, panels = plt.subplots(1, 2, figsize=(7.5, 2.6), sharey=True)
    ordinary = np.eye(D)[:, 0]
    for axes, direction, title in (
        (panels[0], ordinary, "an ordinary direction"),
        (panels[1], worst[:, 0], "the worst"),
    ):
        along = world.points @ direction
        bins = np.linspace(along.min(), along.max(), 70)
        axes.hist([along[~world.bad], along[world.bad]], bins=bins, stacked=True, label=["good", "bad"])
        axes.axvline(along.mean(), color="black", ls="--", lw=1, label="empirical mean")
        axes.axvline(final.location @ direction, color="black", lw=1, label="filter")
        axes.set_xlabel(f"projection on {title} direction" if "worst" in title else f"projection on {title}")
    panels[1].legend(frameon=False)
    panels[0].set_ylabel("points")
    save(figure, "means_round.svg")
    plt.close(figure)


if __name__ == "__main__":
    call(run, "means_accuracy", sys.argv[1:])
