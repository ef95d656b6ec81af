"""The default start under every adversary: best and chosen candidate, cost against a plain spectral start.

``python -m benchmarks.start [seeds]`` writes docs/_generated/start.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.stamp import stamped
from benchmarks.timing import ratio, slope, time_by_turns
from robustphase.initialise.start import plain_spectral_start
from robustphase.rows import MemoryRows

SETTINGS = ((0.1, 0.0, 0.5), (0.2, 0.0, 0.7), (0.1, 3.0, 0.5), (0.2, 3.0, 0.7))
#: Seeds on which no constant was chosen.
FIRST_SEED = 2000
PAGE = Path(__file__).parents[1] / "docs" / "_generated" / "start.md"


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


def cost() -> None:
    clean = rp.simulate.make_world(500, 20000, contamination=0.0, attack="none", seed=0)
    bad = rp.simulate.make_world(500, 20000, contamination=0.1, attack="decoy", seed=0)
    source = MemoryRows(clean.A)
    seconds = time_by_turns(
        {
            "plain spectral start to 1e-3": lambda: plain_spectral_start(source, clean.y),
            "default start under attack": lambda: rp.spectral_init(bad.A, bad.y, 0.1),
        },
        rounds=5,
    )
    plain, robust = seconds.values()
    print(f"start, n=500, m=20000: {ratio(robust, plain)[0]:.2f} ({ratio(robust, plain)[1]:.2f}) times a plain one")
    for name, sizes in (("m", [(200, m) for m in (8000, 16000, 32000)]), ("n", [(n, 16000) for n in (100, 200, 400)])):
        times = []
        for n, m in sizes:
            world = rp.simulate.make_world(n, m, contamination=0.1, attack="decoy", seed=0)
            run = time_by_turns({"start": lambda w=world: rp.spectral_init(w.A, w.y, 0.1)}, rounds=3)
            times.append(float(run["start"].min()))
        print(f"  growth in {name}: exponent {slope([n if name == 'n' else m for n, m in sizes], times):.2f}")


def run() -> None:
    cost()


if __name__ == "__main__":
    text = table(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    PAGE.write_text(stamped(text), encoding="utf-8")
    print(text)
