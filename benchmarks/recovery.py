"""The whole fit under every adversary, and its cost.

``python -m benchmarks.recovery [seeds] [settings...]`` writes docs/_generated/recovery.md, for all settings or for those of the
given numbers; ``run()`` measures cost only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.stamp import measured_here, stamped
from benchmarks.timing import ratio, time_by_turns
from robustphase.atomic import write_text
from robustphase.experiments.oracle import oracle_least_squares
from robustphase.recover import recover
from robustphase.validation import check_samples

Settings = tuple[dict[str, Any], ...]
Run = Callable[[str, str, dict[str, Any], int], tuple[float, float]]

#: Seeds on which no constant was chosen.
FIRST_SEED = 2000
PAGE = Path(__file__).parents[1] / "docs" / "_generated" / "recovery.md"
HEAD = (
    "n = 100, m = 5000 unless said, σ = 0.5‖x*‖², all adversaries × four noises × seeds from 2000 on. "
    "Ratio: error over that of least squares started at the truth and told which samples are clean.\n\n"
    "| setting | runs | survive (error ≤ 0.25) | median ratio | median, Gaussian noise | worst ratio | worst at |\n"
    "|---|---|---|---|---|---|---|\n"
)
NOISES = ("gaussian", "student", "pareto", "lognormal")
#: Sizes, contamination, noise mean, what the fit is told.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"contamination": 0.05},
    {"contamination": 0.1},
    {"contamination": 0.2},
    {"contamination": 0.3},
    {"contamination": 0.05, "noise_mean": 3.0},
    {"contamination": 0.1, "noise_mean": 3.0},
    {"contamination": 0.2, "noise_mean": 3.0},
    {"contamination": 0.05, "m": 1000},
    {"contamination": 0.05, "told": 0.025},
    {"contamination": 0.05, "told": 0.1},
    {"contamination": 0.05, "told": "auto"},
)


def oracle(world: rp.simulate.World, background: bool) -> float:
    """Error of least squares started at the truth and told which samples are clean."""
    known = world.noise_mean if background else None
    best = oracle_least_squares(world.A[world.clean], world.y[world.clean], world.truth, background=known)
    return rp.distance(best, world.truth, relative=True)


def one_run(attack: str, noise: str, setting: dict[str, Any], seed: int) -> tuple[float, float]:
    """Relative error, and its ratio to the oracle's."""
    level, mean = setting["contamination"], setting.get("noise_mean", 0.0)
    world = rp.simulate.make_world(
        100, setting.get("m", 5000), contamination=level, attack=attack, noise=noise, noise_mean=mean, seed=seed
    )
    samples = check_samples(world.A, world.y, nonfinite="drop")
    found = recover(samples, setting.get("told", level), unknown_mean=mean > 0)
    error = rp.distance(found.signal, world.truth, relative=True)
    return error, error / oracle(world, mean > 0)


def rows(seeds: int, settings: Settings, run: Run) -> Iterator[str]:
    """One line of the table for each setting; ``run(attack, noise, setting, seed)`` gives an error and its ratio."""
    attacks = list(rp.simulate.ADVERSARIES)
    jobs = [
        (attack, noise, seed)
        for attack in attacks
        for noise in NOISES
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
    ]
    gaussian = [i for i, (_, noise, _) in enumerate(jobs) if noise == "gaussian"]
    with Parallel(n_jobs=os.cpu_count()) as pool:
        for setting in settings:
            flat = np.array(pool(delayed(run)(a, z, setting, s) for a, z, s in jobs))
            at = jobs[int(np.argmax(flat[:, 1]))]
            words = ", ".join(f"{key} {value}" for key, value in setting.items())
            yield (
                f"| {words} | {len(jobs)} | {np.mean(flat[:, 0] <= 0.25):.2%} | {np.median(flat[:, 1]):.2f} | "
                f"{np.median(flat[gaussian, 1]):.2f} | {flat[:, 1].max():.2f} | {at[0]}, {at[1]} |"
            )


def table(seeds: int, settings: Settings, *, page: Path, head: str, known: Settings, run: Run) -> None:
    """Write a page, line by line, keeping those of other settings that were measured on the same commit."""
    written = page.read_text("utf-8").splitlines() if measured_here(page) else []
    kept = {line.split(" | ")[0]: line for line in written if line.startswith("| cont")}
    order = ["| " + ", ".join(f"{key} {value}" for key, value in setting.items()) for setting in known]
    for line in rows(seeds, settings, run):
        print(line, flush=True)
        kept[line.split(" | ")[0]] = line
        write_text(page, stamped(head + "\n".join(kept[name] for name in order if name in kept) + "\n"))


def run() -> None:
    clean = rp.simulate.make_world(500, 20000, contamination=0.0, attack="none", seed=0)
    bad = rp.simulate.make_world(500, 20000, contamination=0.1, attack="decoy", seed=0)
    seconds = time_by_turns(
        {
            "plain": lambda: plain_wirtinger_flow(clean.A, clean.y),
            "ours": lambda: rp.RobustPhaseRetrieval(contamination=0.1).fit(bad.A, bad.y),
        },
        rounds=5,
    )
    model = rp.RobustPhaseRetrieval(contamination=0.1).fit(bad.A, bad.y)
    both = ratio(seconds["ours"], seconds["plain"])
    print(f"whole fit under attack, n=500, m=20000: {both[0]:.2f} ({both[1]:.2f}) times a plain NumPy Wirtinger flow")
    print(
        f"  {model.history_[-1].passes} passes, relative error {rp.distance(model.signal_, bad.truth, relative=True):.4f}"
    )


def plain_wirtinger_flow(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spectral start to 1e-3, then gradient steps of 0.2/‖x₀‖² to a relative change of 1e-6, as anybody would write it.

    With few samples for many unknowns the steps are too long: then it stops far away.
    """
    m, n = A.shape
    v = np.random.default_rng(0).standard_normal(n)
    v /= np.linalg.norm(v)
    for _ in range(200):
        w = A.T @ (y * (A @ v))
        w /= np.linalg.norm(w)
        done = np.linalg.norm(w - v * np.sign(w @ v)) < 1e-3
        v = w
        if done:
            break
    x = np.sqrt(y.mean()) * v
    step = 0.2 / (x @ x)
    for _ in range(500):
        s = A @ x
        move = step * (A.T @ ((s * s - y) * s)) / m
        x = x - move
        change = np.linalg.norm(move) / np.linalg.norm(x)
        if not 1e-6 <= change <= 1.0:
            break
    return x


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    chosen = tuple(SETTINGS[int(index)] for index in sys.argv[2:]) or SETTINGS
    table(seeds, chosen, page=PAGE, head=HEAD, known=SETTINGS, run=one_run)
