"""The worst attack that is found against ours, the paper's algorithm and two baselines, beside what no method avoids.

``python -m benchmarks red_team [--budget 3000]`` writes docs/_generated/red_team.md. Every search is kept in a file of its own
(``--folder``), below a folder named after the engine; after an interruption the same command goes on. How the error falls with
m is measured with the attack that was found.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.digest import engine_digest
from benchmarks.options import call
from benchmarks.registry import BENCHMARKS
from benchmarks.render import publish
from robustphase.experiments import RedTeamResult, red_team
from robustphase.experiments.methods import find_estimator

PAGE = "_generated/red_team.md"
FOLDER = Path("build/red_team")
METHODS = ("ours", "paper", "median_reshaped_wirtinger_flow", "cauchy_least_squares")
#: A fit of the paper's algorithm takes some five times as long as one of ours; its searches are that much shorter.
SHARES = {"paper": 5}
LEVELS = (0.05, 0.1, 0.2)
N, M, SIGMA, NOISE = 50, 2500, 0.5, "gaussian"
#: Fresh worlds for the attack that was found, with more samples.
SEEDS = 4


def error_with(m: int, method: str, level: float, found: RedTeamResult, seed: int) -> float:
    world = rp.simulate.make_world(
        N, m, contamination=level, attack=found.adversary, noise=NOISE, noise_std=SIGMA, seed=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # It is the error that is asked for.
        fitted = find_estimator(method, level).fit(world.A, world.y)
    return rp.distance(fitted.signal_, world.truth, relative=True)


def searched(method: str, level: float, budget: int, folder: Path) -> RedTeamResult:
    def tell(done: int, total: int, text: str) -> None:
        print(f"\r{method} at {level:g}: {done}/{total} {text}", end="", flush=True)

    found = red_team(
        find_estimator(method, level),
        contamination=level,
        n=N,
        m=M,
        noise=NOISE,
        noise_std=SIGMA,
        budget=budget,
        store=folder / f"{method}-{level:g}-{budget}.json",
        progress=tell,
    )
    print()
    return found


def run(budget: int = 300, folder: Path = FOLDER, larger: tuple[int, ...] = (10_000,)) -> None:
    """``budget`` fits for each of the searches, which are kept in ``folder``; further numbers of samples."""
    folder /= engine_digest(BENCHMARKS["red_team"].rooms)
    folder.mkdir(parents=True, exist_ok=True)
    more = " | ".join(f"m = {m}" for m in larger)
    lines = [
        f"n = {N}, m = {M}, {NOISE} noise of {SIGMA}‖x*‖², {budget} fits for each search, "
        f"{budget // SHARES['paper']} against the paper's algorithm; mean errors in {SEEDS} fresh worlds.",
        "",
        f"| method | ε | nobody attacks | worst attack found | the same attack, {more} | no method avoids |",
        "|---|---|---|---|---|" + "---|" * len(larger),
    ]
    told = ["", "What these attacks do:", ""]
    for method in METHODS:
        for level in LEVELS:
            found = searched(method, level, budget // SHARES.get(method, 1), folder)
            with Parallel(n_jobs=os.cpu_count()) as pool:
                errors = [
                    np.mean(pool(delayed(error_with)(m, method, level, found, seed) for seed in range(SEEDS)))
                    for m in larger
                ]
            with_more = " | ".join(f"{error:.2f}" for error in errors)
            lines.append(
                f"| `{method}` | {level:g} | {found.clean_error:.2f} | {found.error:.2f} | {with_more} | "
                f"{found.unavoidable_error:.2f} |"
            )
            told.append(f"- `{method}`, {level:g}: {found.worst.attack.describe()}")
    publish(PAGE, "\n".join([*lines, *told]) + "\n", seeds=[0, SEEDS])


if __name__ == "__main__":
    call(run, "red_team", sys.argv[1:])
