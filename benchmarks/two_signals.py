"""Attacks in the name of a second signal, and how near they come to what no method survives.

``python -m benchmarks two_signals`` writes docs/_generated/two_signals.md. The bad samples answer for a second signal of any
direction and norm, on rows chosen in several ways; none of these attacks is one of `simulate`.

How far apart signals must be, `robustphase.experiments.indistinguishable_distance` says; the second has a part beside the first.
"""

from __future__ import annotations

import os
import sys
from itertools import product

import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.options import call
from benchmarks.render import publish
from robustphase.experiments import indistinguishable_distance, total_variation
from robustphase.recover import recover
from robustphase.simulate import World, make_world
from robustphase.validation import check_samples

PAGE = "_generated/two_signals.md"
N, M, SIGMA, SEED = 100, 5000, 0.5, 1
LEVELS = (0.05, 0.1, 0.15, 0.2)
COSINES, NORMS = (0.0, -0.5, 0.7), (0.6, 1.0, 1.7)
#: Which rows are rewritten: where the two signals differ most, where the first or the second is largest, or any.
CHOICES = ("difference", "first", "second", "random")
NOISES = ("gaussian", "lognormal")


def second_signal(world: World, cosine: float, norm: float) -> np.ndarray:
    rng = np.random.default_rng(world.seed + 99)
    beside = rng.standard_normal(world.truth.size)
    beside -= world.truth * (world.truth @ beside) / (world.truth @ world.truth)
    beside *= np.linalg.norm(world.truth) / np.linalg.norm(beside)
    return norm * (cosine * world.truth + np.sqrt(1 - cosine**2) * beside)


def one_run(level: float, cosine: float, norm: float, choice: str, noise: str, keep_noise: bool) -> tuple[float, float]:
    """Error of the fit, and the total variation between the two signals under normal noise."""
    world = make_world(N, M, contamination=0.0, attack="none", noise=noise, noise_std=SIGMA, seed=SEED)
    second = second_signal(world, cosine, norm)
    here, there = world.A @ world.truth, world.A @ second
    strengths = {
        "difference": np.abs(here**2 - there**2),
        "first": here**2,
        "second": there**2,
        "random": np.random.default_rng(SEED).random(M),
    }
    bad = np.argsort(-strengths[choice])[: int(level * M)]
    y = world.y.copy()
    y[bad] = there[bad] ** 2 + (world.y - here**2)[bad] * keep_noise
    found = recover(check_samples(world.A, y), level, unknown_mean=False)
    apart = total_variation((norm * cosine, norm * np.sqrt(1 - cosine**2)), "gaussian", SIGMA)
    return rp.distance(found.signal, world.truth, relative=True), apart


def run() -> None:
    attacks = list(product(COSINES, NORMS, CHOICES, NOISES, (True, False)))
    lines = [
        f"n = {N}, m = {M}, σ = {SIGMA}‖x*‖², {len(attacks)} attacks in the name of a second signal at each level.",
        "",
        "| ε | error ≤ 0.25 | total variation to the second signal where lost | no method separates signals closer than |",
        "|---|---|---|---|",
    ]
    with Parallel(n_jobs=os.cpu_count()) as pool:
        for level in LEVELS:
            found = np.array(pool(delayed(one_run)(level, *attack) for attack in attacks))
            lost = found[:, 0] > 0.25
            at = f"{found[lost, 1].min():.2f} to {found[lost, 1].max():.2f}" if lost.any() else "none lost"
            lines.append(
                f"| {level} | {np.mean(~lost):.1%} | {at} | {indistinguishable_distance(level, noise_std=SIGMA):.2f}‖x*‖ |"
            )
            print(lines[-1], flush=True)
    publish(PAGE, "\n".join(lines) + "\n", seeds=[SEED, 1])


if __name__ == "__main__":
    call(run, "two_signals", sys.argv[1:])
