"""Designs as instruments show them: what still works, by default.

``python -m benchmarks designs`` fits worlds of every design, with real and with complex signals, under adversaries, told the
contamination and not, and writes docs/_generated/designs.md; then what few distinct values do to concentrated signals, in
docs/_generated/concentrated.md. ``--attacks all`` takes every adversary, ``--designs`` and ``--fields`` some of the designs.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.markdown import counted
from benchmarks.options import call
from benchmarks.render import publish
from robustphase.experiments.methods import oracle_least_squares
from robustphase.simulate import Design

N, SAMPLES = 50, {"real": 50, "complex": 60}
LEVELS = (0.05, 0.1)
#: Standard deviation of the noise, Student with three degrees of freedom, in units of the mean response.
NOISE = 0.5
#: A signal is found if its error is at most this many times that of least squares told the clean samples.
FOUND = 3.0
ATTACKS = (
    "none",
    "decoy",
    "decoy_equal",
    "replace",
    "leverage",
    "cloud",
    "huge",
    "erase",
    "swap",
    "gradient_push",
    "mimic",
)
#: Between the seeds of two adversaries.
APART = 1000
DESIGNS: dict[str, Design] = {
    **{name: design for name, design in rp.simulate.DESIGNS.items() if name != "gaussian"},
    "on_off, duty 0.1": rp.simulate.on_off(0.1),
    "switched_hadamard, complements": rp.simulate.hadamard(scrambled=True, switched=True, complements=True),
}


class Run(NamedTuple):
    """Relative error, its ratio to that of informed least squares, the certificate, and whether the fit says it converged."""

    error: float
    ratio: float
    certificate: float
    converged: bool


def one_run(design: Design, field: str, attack: str, level: float, told: bool, seed: int, n: int = N) -> Run:
    """A world and its fit, with default parameters except the field where rows are real."""
    m = SAMPLES[field] * n
    world = rp.simulate.make_world(
        n, m, design=design, field=field, attack=attack, contamination=level, noise_std=NOISE, seed=seed
    )
    return fitted(world.A, world.y, world.truth, world.clean, level if told else "auto", field)


def one_named(name: str, *key: Any) -> Run:
    """A run of a design by its name: designs hold functions, which do not travel to other processes."""
    return one_run(DESIGNS[name], *key)


def fitted(A: np.ndarray, y: np.ndarray, truth: np.ndarray, clean: np.ndarray, level: float | str, field: str) -> Run:
    paired = field == "complex" and not np.iscomplexobj(A)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = rp.RobustPhaseRetrieval(level, nonfinite="drop", field="complex" if paired else "auto").fit(A, y)
    error = rp.distance(model.signal_, truth, relative=True)
    informed = rp.distance(oracle_least_squares(A[clean], y[clean], np.asarray(truth)), truth, relative=True)
    return Run(error, error / informed, model.certificate_, bool(model.converged_))


def table(names: list[str], fields: tuple[str, ...], attacks: tuple[str, ...], seeds: range) -> Iterator[str]:
    """Lines of the table: for each design and field the share found, median and worst ratio, told and not."""
    yield "| design | signal | found | median ratio | worst ratio | worst by | error above certificate | found, not converged |"
    yield "|---" * 8 + "|"
    everything: list[Run] = []
    pool = Parallel(n_jobs=os.cpu_count())
    for name in names:
        for field in fields:
            if field == "real" and DESIGNS[name].rows == "complex":
                continue
            # A world of its own for each adversary: how well least squares does in one world is chance.
            worlds = [(attack, seed + APART * k) for k, attack in enumerate(attacks) for seed in seeds]
            keys = [(a, e, t, s) for a, s in worlds for e in LEVELS for t in (True, False)]
            runs = pool(delayed(one_named)(name, field, *key) for key in keys)
            everything += runs
            worst = int(np.argmax([run.ratio for run in runs]))
            attack, level, told, _ = keys[worst]
            yield (
                f"| {name} | {field} | {_summary(runs)} | {attack}, {level:g}, {'told' if told else 'auto'} "
                f"| {sum(run.error > run.certificate for run in runs)} "
                f"| {sum(run.ratio <= FOUND and not run.converged for run in runs)} |"
            )
    yield f"| **all {len(everything)} runs** | | {_summary(everything)} | | | |"


def _summary(runs: list[Run]) -> str:
    ratios = np.array([run.ratio for run in runs])
    found = int((ratios <= FOUND).sum())
    return f"{found} of {ratios.size} | {np.median(ratios):.2f} | {ratios.max():.2f}"


def concentrated() -> Iterator[str]:
    """Few distinct values before signals of few entries: what the moduli of the entries cannot tell."""
    kinds = {
        "±1": rp.simulate.signs(),
        "0 and ±√3": Design("three", "", "real", _three_levels, lambda rows: rows),
        "Gaussian": rp.simulate.DESIGNS["real_gaussian"],
    }
    yield "| entries of A | entries of the signal | lost, of 9 runs | median ratio |"
    yield "|---|---|---|---|"
    for name, design in kinds.items():
        for support in (50, 5, 2, 1):
            runs = [
                _sparse_run(design, support, attack, seed) for attack in ("none", "decoy", "huge") for seed in range(3)
            ]
            lost = sum(run.error > 0.25 for run in runs)
            yield f"| {name} | {support} equal | {lost} | {np.median([run.ratio for run in runs]):.2f} |"


def _sparse_run(design: Design, support: int, attack: str, seed: int) -> Run:
    rng = np.random.default_rng([600, seed])
    truth = np.zeros(N)
    truth[rng.choice(N, support, replace=False)] = rng.choice((-1.0, 1.0), support) / np.sqrt(support)
    A = design.sample(SAMPLES["real"] * N, N, seed=rng)
    y = (A @ truth) ** 2
    std = NOISE * float(y.mean())
    y = y + rp.simulate.draw_noise("student", y.size, std=std, seed=rng)
    bad = rp.simulate.corrupt(A, y, truth, attack=attack, contamination=0.1, noise_std=std, design=design, seed=rng)
    return fitted(bad.A, bad.y, truth, bad.clean, 0.1, "real")


def _three_levels(m: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """The values that have the fourth moment of a normal variable."""
    return np.sqrt(3.0) * rng.choice([-1.0, 0.0, 1.0], (m, n), p=[1 / 6, 2 / 3, 1 / 6])


def _written(lines: Iterator[str]) -> str:
    found = []
    for line in lines:
        found.append(line)
        print(line, flush=True)
    return "\n".join(found) + "\n"


def run(
    seeds: int = 1,
    first_seed: int = 600,
    attacks: tuple[str, ...] = ATTACKS,
    designs: tuple[str, ...] = tuple(DESIGNS),
    fields: tuple[str, ...] = ("real", "complex"),
) -> None:
    """``--attacks all`` takes every adversary; with some of the designs nothing is written."""
    chosen = ("none", *rp.simulate.ADVERSARIES) if attacks == ("all",) else attacks
    range_ = range(first_seed, first_seed + seeds)
    words = f"{len(chosen)} attacks at {' and '.join(map(str, LEVELS))}, told and not, {counted(seeds, 'seed')}"
    text = f"{words} from {first_seed} on.\n\n" + _written(table(list(designs), fields, chosen, range_))
    if designs == tuple(DESIGNS):
        publish("_generated/designs.md", text, seeds=[first_seed, seeds])
        publish("_generated/concentrated.md", _written(concentrated()), seeds=[600, 3])


if __name__ == "__main__":
    call(run, "designs", sys.argv[1:])
