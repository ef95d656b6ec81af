"""The worst attack that is found against ours, the paper's algorithm and two baselines, beside what no method avoids.

``python -m benchmarks.red_team --budget 3000`` writes docs/_generated/red_team.md. Every search is kept in a file of its own
(``--folder``); after an interruption the same command goes on. How the error falls with m is measured with the
attack that was found.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.stamp import stamped
from robustphase.atomic import write_text
from robustphase.experiments import RedTeamResult, red_team
from robustphase.experiments.methods import find_estimator

PAGE = Path(__file__).parents[1] / "docs" / "_generated" / "red_team.md"
METHODS = ("ours", "paper", "median_reshaped_wirtinger_flow", "cauchy_least_squares")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=300, help="fits of each of the searches")
    parser.add_argument("--folder", type=Path, default=Path("build/red_team"), help="where searches are kept")
    parser.add_argument("--larger", type=int, nargs="+", default=[10_000, 40_000], help="further numbers of samples")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    more = " | ".join(f"m = {m}" for m in options.larger)
    lines = [
        f"n = {N}, m = {M}, {NOISE} noise of {SIGMA}‖x*‖², {options.budget} fits for each search; mean errors in fresh worlds.",
        "",
        f"| method | ε | nobody attacks | worst attack found | the same attack, {more} | no method avoids |",
        "|---|---|---|---|---|" + "---|" * len(options.larger),
    ]
    told = ["", "What these attacks do:", ""]
    for method in METHODS:
        for level in LEVELS:
            found = searched(method, level, options.budget, options.folder)
            with Parallel(n_jobs=os.cpu_count()) as pool:
                larger = [
                    np.mean(pool(delayed(error_with)(m, method, level, found, seed) for seed in range(SEEDS)))
                    for m in options.larger
                ]
            with_more = " | ".join(f"{error:.2f}" for error in larger)
            lines.append(
                f"| `{method}` | {level:g} | {found.clean_error:.2f} | {found.error:.2f} | {with_more} | "
                f"{found.unavoidable_error:.2f} |"
            )
            told.append(f"- `{method}`, {level:g}: {found.worst.attack.describe()}")
    write_text(PAGE, stamped("\n".join([*lines, *told]) + "\n"))


if __name__ == "__main__":
    main()
