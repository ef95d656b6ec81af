"""Pictures of the page on robust statistics."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import PCA

import robustphase as rp
from benchmarks.options import call
from benchmarks.poison import poisoned
from benchmarks.store import DOCS, keep_picture

GOOD, BAD, OTHER = "#3b6ea5", "#c44e3a", "#8a8a8a"


def envelope() -> None:
    """Histograms of the scores of good and bad rows, by distance and by outlyingness."""
    world = poisoned("cluster", 3000, 60, 0.1, "geometric", seed=1)
    model = rp.RobustEnvelope(contamination=0.1).fit(world.points)
    plain = rp.RobustCovariance(contamination=0).fit(world.points)
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    for ax, scores, title in (
        (axes[0], np.sqrt(plain.dist_), "Mahalanobis distance"),
        (axes[1], model.outlyingness_, "outlyingness"),
    ):
        bins = np.linspace(scores.min(), scores.max(), 60)
        ax.hist(scores[~world.bad], bins, color=GOOD, label="good rows")
        ax.hist(scores[world.bad], bins, color=BAD, alpha=0.8, label="a tight group")
        ax.set(xlabel=title, yscale="log")
    axes[0].set_ylabel("rows")
    axes[1].legend(frameon=False, loc="upper center")
    save(figure, "statistics_envelope")


def components() -> None:
    """Coordinates of good and bad rows in the first two components, ordinary and robust."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((600, 40)) * np.concatenate(([5.0, 3.0], np.ones(38)))
    points[:60, 7] = np.where(np.arange(60) % 2, 16.0, -16.0)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for ax, model, title in (
        (axes[0], PCA(2), "PCA"),
        (axes[1], rp.RobustPCA(2, contamination=0.1), "RobustPCA"),
    ):
        at = model.fit(points).transform(points)
        ax.scatter(*at[60:].T, s=5, color=GOOD, label="good rows")
        ax.scatter(*at[:60].T, s=9, color=BAD, label="opposite outliers")
        ax.set(title=title, xlabel="first component", aspect="equal")
    axes[0].set_ylabel("second component")
    axes[1].legend(loc="upper right", fontsize="small")
    save(figure, "statistics_pca")


def aggregates() -> None:
    """Errors as a group of four in twenty moves away."""
    rng = np.random.default_rng(0)
    sizes = np.geomspace(0.05, 10, 16)
    errors: dict[str, list[float]] = {"mean": [], "coordinate median": [], "aggregate": []}
    updates = rng.standard_normal((20, 20000)).astype(np.float32)
    honest = updates[4:].mean(axis=0)
    noise = float(np.linalg.norm(honest))
    for size in sizes:
        updates[:4] = honest + size
        found = (updates.mean(axis=0), np.median(updates, axis=0), rp.aggregate(updates, 0.2))
        for name, value in zip(errors, found, strict=True):
            errors[name].append(max(float(np.linalg.norm(value - honest)) / noise, 1e-3))
    figure, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    for (name, values), colour in zip(errors.items(), (OTHER, BAD, GOOD), strict=True):
        ax.loglog(sizes, values, "o-", ms=3, color=colour, label=name)
    ax.set(
        xlabel="shift of the group, deviations per coordinate",
        ylabel="error / error of the honest mean\n(at least 0.001 is drawn)",
    )
    ax.legend(frameon=False)
    save(figure, "statistics_aggregate")


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(DOCS / "_static" / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)
    keep_picture("statistics_pictures", f"_static/{name}.svg")


def run() -> None:
    mpl.rcParams["svg.hashsalt"] = "robustphase"
    for draw in (envelope, components, aggregates):
        draw()


if __name__ == "__main__":
    call(run, "statistics_pictures", sys.argv[1:])
