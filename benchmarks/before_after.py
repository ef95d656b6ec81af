"""The picture at the top of the README: the demo's data, what a plain method makes of it, and what robustphase does."""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import robustphase as rp
from benchmarks.options import call
from benchmarks.store import DOCS, keep_picture
from robustphase.cli.demo_data import CONTAMINATION, SIDE, forged_world

PICTURE = "_static/before_after.png"
#: White text would vanish on a light page and black text on a dark one; a light ground serves both.
GROUND, INK, MUTED = "#ffffff", "#19212b", "#566170"


def draw(seed: int) -> Figure:
    world = forged_world(seed)
    # The plain method is told the background, which ours has to find.
    plain = rp.baselines.wirtinger_flow(world.A, world.y - world.noise_mean).signal
    model = rp.RobustPhaseRetrieval(CONTAMINATION, noise_mean="unknown").fit(world.A, world.y)
    shown = {
        "the signal": (world.truth, "seen through |a·x|² alone"),
        "plain Wirtinger flow": (plain, _off(plain, world.truth)),
        "robustphase": (model.signal_, _off(model.signal_, world.truth)),
    }
    figure = Figure(figsize=(7.6, 3.1), layout="constrained", facecolor=GROUND)
    for axes, (name, (signal, said)) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        turned = signal * np.sign(signal @ world.truth)
        axes.imshow(
            turned.reshape(SIDE, SIDE), cmap="gray", vmin=0.0, vmax=float(world.truth.max()), interpolation="none"
        )
        axes.set(xticks=[], yticks=[])
        axes.set_title(name, color=INK, fontsize=12, fontweight="bold")
        axes.set_xlabel(said, color=MUTED, fontsize=10)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return figure


def _off(signal: np.ndarray, truth: np.ndarray) -> str:
    return f"off by {rp.distance(signal, truth, relative=True):.0%} of its norm"


def run(seed: int = 0) -> None:
    draw(seed).savefig(DOCS / PICTURE, dpi=120, metadata={"Software": None})
    keep_picture("before_after", PICTURE)


if __name__ == "__main__":
    call(run, "before_after", sys.argv[1:])
