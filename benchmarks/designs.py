"""Designs as instruments show them: what still works, by default.

``python -m benchmarks.designs`` fits worlds of every design, with real and with complex signals, under adversaries, told the
contamination and not, and writes docs/_generated/designs.md; then what few distinct values do to concentrated signals, in
docs/_generated/concentrated.md. ``--attacks all`` takes every adversary, ``--designs`` and ``--fields`` some of the designs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import robustphase as rp
from benchmarks.stamp import stamped
from robustphase.atomic import write_text
from robustphase.experiments.oracle import oracle_least_squares
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
PAGES = Path(__file__).parents[1] / "docs" / "_generated"
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
    for name in names:
        for field in fields:
            if field == "real" and DESIGNS[name].rows == "complex":
                continue
            # A world of its own for each adversary: how well least squares does in one world is chance.
            worlds = [(attack, seed + APART * k) for k, attack in enumerate(attacks) for seed in seeds]
            keys = [(a, e, t, s) for a, s in worlds for e in LEVELS for t in (True, False)]
            runs = [one_run(DESIGNS[name], field, *key) for key in keys]
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


def _written(page: str, lines: Iterator[str]) -> None:
    found = []
    for line in lines:
        found.append(line)
        print(line, flush=True)
    if page:
        write_text(PAGES / page, stamped("\n".join(found) + "\n"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", nargs="*", choices=list(DESIGNS), help="only these; nothing is written then")
    parser.add_argument("--fields", nargs="*", default=("real", "complex"))
    parser.add_argument("--attacks", nargs="*", default=ATTACKS, help='names, or "all"')
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=600)
    asked = parser.parse_args()
    attacks = ("none", *rp.simulate.ADVERSARIES) if list(asked.attacks) == ["all"] else tuple(asked.attacks)
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    lines = table(asked.designs or list(DESIGNS), tuple(asked.fields), attacks, seeds)
    _written("" if asked.designs else "designs.md", lines)
    if not asked.designs:
        _written("concentrated.md", concentrated())


if __name__ == "__main__":
    main()
