"""The variance of residuals against the energy for three kinds of noise: what was measured, and the curve that was fitted.

``python -m benchmarks noise_picture`` draws docs/_static/noise_variance.svg.
"""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import robustphase as rp
from benchmarks.options import call
from benchmarks.store import DOCS, keep_picture

PICTURE = "_static/noise_variance.svg"
BINS = 12


def worlds() -> dict[str, rp.simulate.World]:
    return {
        "additive": rp.simulate.make_world(20, 3000, noise="gaussian", noise_std=0.3, attack="permute", seed=0),
        "counts": rp.simulate.make_counts(20, 3000, mean_count=9.0, contamination=0.05, attack="permute", seed=0),
        "camera": rp.simulate.make_camera(20, 3000, saturated=1e-3, attack="permute", seed=0),
    }


def draw() -> Figure:
    figure = Figure(figsize=(9.0, 2.8), layout="constrained")
    for axes, (name, world) in zip(figure.subplots(1, 3), worlds().items(), strict=True):
        model = rp.RobustPhaseRetrieval(0.1, noise_mean="unknown").fit(world.A, world.y)
        predicted = model.predict(world.A)
        keep = ~model.flag_samples()
        energies, residuals = (predicted - model.noise_mean_)[keep], (world.y - predicted)[keep]
        bins = np.array_split(np.argsort(energies), BINS)
        axes.plot(
            [energies[part].mean() for part in bins], [residuals[part].var() for part in bins], "o", label="measured"
        )
        grid = np.linspace(0, energies[bins[-1]].mean(), 50)
        noise = model.noise_model_
        curve = noise.variance(grid) if noise.kind != "additive" else np.full(50, model.noise_scale_**2)
        axes.plot(grid, curve, label="fitted")
        axes.set(title=f"{name}: {noise.kind}", xlabel="energy |a·x|²", ylabel="variance", ylim=(0, None))
        axes.legend()
    return figure


def run() -> None:
    with mpl.rc_context({"svg.hashsalt": "noise"}):
        draw().savefig(DOCS / PICTURE, metadata={"Date": None})
    keep_picture("noise_picture", PICTURE)


if __name__ == "__main__":
    call(run, "noise_picture", sys.argv[1:])
