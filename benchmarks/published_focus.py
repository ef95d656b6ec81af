"""The published setting of RAF 2-1: 1024 inputs, 5120 phase-only masks; the focus that recovered rows reach.

``python -m benchmarks published_focus`` fits a few output pixels, noiseless, then with 5% of the readings hit by spikes and 2% of
the masks not the ones that were recorded. The focus of a row t̂ is shown with the phases of its conjugate; the focus ratio is the
light there over the mean of the speckle, for the true row 1 + (n − 1)π/4, about 804 for 1024 inputs (a published run has 822.8).
"""

from __future__ import annotations

import sys
import warnings
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.options import call

INPUTS, MASKS, SEED = 1024, 5120, 60
SPIKES, WRONG = 0.05, 0.02
#: What the fit is told where there are faults.
CONTAMINATION = 0.08


def focus_ratio(row: np.ndarray, truth: np.ndarray) -> float:
    """Light on the pixel with the phases of the conjugate row, over the mean of its speckle."""
    return float(np.abs(np.exp(-1j * np.angle(row)) @ truth) ** 2 / np.linalg.norm(truth) ** 2)


def one_pixel(seed: int, *, faults: bool) -> None:
    """Draw, fit, focus, print."""
    rng = np.random.default_rng([SEED, seed])
    truth = rp.simulate.random_signal(INPUTS, field="complex", seed=rng)
    design = rp.simulate.phases()
    masks = design.sample(MASKS, INPUTS, field="complex", seed=rng)
    readings = np.abs(masks @ truth) ** 2
    if faults:
        spikes = rng.random(MASKS) < SPIKES
        readings[spikes] += readings.mean() * rng.uniform(1.0, 20.0, int(spikes.sum()))
        wrong = rng.choice(MASKS, round(WRONG * MASKS), replace=False)
        masks[wrong] = design.sample(wrong.size, INPUTS, field="complex", seed=rng)
    began = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = rp.RobustPhaseRetrieval(CONTAMINATION if faults else 0.0, noise="additive").fit(masks, readings)
    found, best = focus_ratio(model.signal_, truth), focus_ratio(truth, truth)
    print(
        f"| {'5% spikes, 2% wrong masks' if faults else 'noiseless'} | {seed} | {best:.1f} | {found:.1f} | {found / best:.2%} | "
        f"{rp.distance(model.signal_, truth, relative=True):.1e} | {bool(model.converged_)} | {perf_counter() - began:.0f} |",
        flush=True,
    )


def run(pixels: int = 3) -> None:
    print("| readings | pixel | focus ratio of the true row | of the found row | share | error | converged | seconds |")
    print("|" + "---|" * 8)
    for seed in range(pixels):
        for faults in (False, True):
            one_pixel(seed, faults=faults)


if __name__ == "__main__":
    call(run, "published_focus", sys.argv[1:])
