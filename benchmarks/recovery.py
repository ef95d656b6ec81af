"""The whole fit under every adversary: who survives, how accurately.

``python -m benchmarks recovery [--seeds 1] [--settings 0 4]`` writes docs/_generated/recovery.md, for all settings or for those
of the given numbers.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.markdown import counted, table
from benchmarks.options import call
from benchmarks.render import publish_rows
from benchmarks.store import Row, keep_figures
from robustphase.experiments.methods import oracle_least_squares

Settings = tuple[dict[str, Any], ...]

#: Seeds on which no constant was chosen.
FIRST_SEED = 2000
PAGE = "_generated/recovery.md"
NOISES = ("gaussian", "student", "pareto", "lognormal")
#: Errors up to this are survivals.
SURVIVED = 0.25
#: Sizes, contamination, noise mean, what the fit is told.
SETTINGS: Settings = (
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


def one_run(field: str, attack: str, noise: str, setting: dict[str, Any], seed: int) -> tuple[float, float, float]:
    """Relative error, its ratio to the oracle's, and the certificate."""
    level, mean = setting["contamination"], setting.get("noise_mean", 0.0)
    world = rp.simulate.make_world(
        100,
        setting.get("m", 5000),
        contamination=level,
        attack=attack,
        noise=noise,
        noise_mean=mean,
        field=field,
        seed=seed,
    )
    model = rp.RobustPhaseRetrieval(
        setting.get("told", level), noise_mean="unknown" if mean > 0 else "zero", nonfinite="drop"
    )
    with warnings.catch_warnings():
        # What the model check says of attacked data is the question of another benchmark.
        warnings.simplefilter("ignore")
        model.fit(world.A, world.y)
    error = rp.distance(model.signal_, world.truth, relative=True)
    return error, error / oracle(world, mean > 0), model.certificate_


def measured(field: str, seeds: int, setting: dict[str, Any], pool: Parallel) -> Row:
    """What comes of one setting under all adversaries and noises."""
    range_ = range(FIRST_SEED, FIRST_SEED + seeds)
    jobs = [(attack, noise, seed) for attack in rp.simulate.ADVERSARIES for noise in NOISES for seed in range_]
    errors, ratios, certificates = np.array(pool(delayed(one_run)(field, a, z, setting, s) for a, z, s in jobs)).T
    worst = int(np.argmax(ratios))
    return {
        "setting": ", ".join(f"{key} {value}" for key, value in setting.items()),
        "seeds": [FIRST_SEED, seeds],
        "runs": len(jobs),
        "survived": int(np.sum(errors <= SURVIVED)),
        "median": np.median(ratios),
        "gaussian": np.median(ratios[[noise == "gaussian" for _, noise, _ in jobs]]),
        "worst": ratios[worst],
        "at": ", ".join(jobs[worst][:2]),
        "certified": np.median(certificates / errors),
        "below": int(np.sum(certificates < errors)),
    }


def measure(name: str, page: str, field: str, seeds: int, settings: Settings) -> None:
    """Measure settings and write the page, one after the other; settings that this engine has already measured stay."""
    figures = {}
    with Parallel(n_jobs=os.cpu_count()) as pool:
        for setting in settings:
            row = measured(field, seeds, setting, pool)
            print(_cells(row), flush=True)
            publish_rows(page, [row], part=row["setting"])
            figures[f"{row['setting']}: survived"] = row["survived"] / row["runs"]
            figures[f"{row['setting']}: worst ratio"] = row["worst"]
    keep_figures(name, figures)


def _cells(row: Row) -> list[str]:
    return [
        row["setting"],
        str(row["runs"]),
        f"{row['survived'] / row['runs']:.2%}",
        *(f"{row[key]:.2f}" for key in ("median", "gaussian", "worst")),
        row["at"],
        f"{row['certified']:.1f}",
        str(row["below"]),
    ]


def page_text(words: str, known: Settings, rows: Sequence[Row]) -> str:
    """The table, in the order of the settings."""
    order = [", ".join(f"{key} {value}" for key, value in setting.items()) for setting in known]
    seeds = sorted({row["seeds"][1] for row in rows})
    head = ["setting", "runs", f"survive (error ≤ {SURVIVED})", "median ratio", "median, Gaussian noise", "worst ratio"]
    head += ["worst at", "certificate", "below"]
    lines = [_cells(row) for row in sorted(rows, key=lambda row: order.index(row["setting"]))]
    return (
        f"{words}, n = 100, m = 5000 unless said, σ = 0.5‖x*‖², all adversaries × four noises × "
        f"{' or '.join(counted(count, 'seed') for count in seeds)} from {FIRST_SEED} on. Ratio: error over that of least squares "
        f"started at the truth and told which samples are clean. The last columns: median of certificate over error, and "
        f"certificates below the error.\n\n{table(head, lines)}"
    )


def render(page: str, rows: Sequence[Row]) -> str:
    return page_text("Real data", SETTINGS, rows)


def run(seeds: int = 1, settings: tuple[int, ...] = tuple(range(len(SETTINGS)))) -> None:
    measure("recovery", PAGE, "real", seeds, tuple(SETTINGS[index] for index in settings))


if __name__ == "__main__":
    call(run, "recovery", sys.argv[1:])
