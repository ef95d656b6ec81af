"""The default start under every adversary: best and chosen candidate.

``python -m benchmarks start [--seeds 5]`` writes docs/_generated/start.md.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.options import call
from benchmarks.render import publish

SETTINGS = ((0.1, 0.0, 0.5), (0.2, 0.0, 0.7), (0.1, 3.0, 0.5), (0.2, 3.0, 0.7))
#: Seeds on which no constant was chosen.
FIRST_SEED = 2000
PAGE = "_generated/start.md"


def errors(attack: str, level: float, mean: float, seed: int) -> tuple[float, float]:
    """Relative error of the best of the candidates handed on, and of the best-scored one."""
    world = rp.simulate.make_world(
        100, 5000, contamination=level, attack=attack, noise="student", noise_std=0.5, noise_mean=mean, seed=seed
    )
    start = rp.spectral_init(world.A, world.y, level, "unknown" if mean else "zero", nonfinite="drop")
    every = [rp.distance(candidate, world.truth, relative=True) for candidate in start.candidates]
    return min(every), every[0]


def table(seeds: int) -> str:
    attacks = ["none", *rp.simulate.ADVERSARIES]
    jobs = [
        (attack, *setting[:2], seed)
        for attack in attacks
        for setting in SETTINGS
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
    ]
    with Parallel(n_jobs=os.cpu_count()) as pool:
        flat = pool(delayed(errors)(*job) for job in jobs)
    results = np.array(flat).reshape(len(attacks), len(SETTINGS), seeds, 2)
    worst = results[..., 0].max(axis=2)
    lines = [
        f"Student noise, σ = 0.5‖x*‖², n = 100, m = 5000, {seeds} seeds. Largest relative error, over the seeds, of the best of "
        "the (at most 16) candidates handed on; in brackets the median error of the best-scored one.",
        "",
        "| adversary | " + " | ".join(f"ε={e}, noise mean {m:g}" for e, m, _ in SETTINGS) + " |",
        "|---|" + "---|" * len(SETTINGS),
    ]
    chosen = np.median(results[..., 1], axis=2)
    for i, attack in enumerate(attacks):
        cells = (f"{worst[i, j]:.2f} ({chosen[i, j]:.2f})" for j in range(len(SETTINGS)))
        lines.append(f"| `{attack}` | " + " | ".join(cells) + " |")
    limits = np.array([limit for _, _, limit in SETTINGS])
    over = [(attacks[i], SETTINGS[j][:2], float(worst[i, j])) for i, j in np.argwhere(worst > limits)]
    share = (results[..., 0] <= limits[:, np.newaxis]).mean()
    lines += ["", f"Within 0.5 (ε = 0.1) or 0.7 (ε = 0.2) in {share:.2%} of the runs; beyond: {over or 'none'}."]
    return "\n".join(lines) + "\n"


def run(seeds: int = 5) -> None:
    text = table(seeds)
    print(text)
    publish(PAGE, text, seeds=[FIRST_SEED, seeds])


if __name__ == "__main__":
    call(run, "start", sys.argv[1:])
