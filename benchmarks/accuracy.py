"""Accuracy beside the grid of attacks: clean and noiseless data, units, unknown contamination.

``python -m benchmarks accuracy [--seeds 5]`` writes docs/_generated/accuracy.md, for real and complex data.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks import recovery
from benchmarks.options import call
from benchmarks.render import publish
from robustphase.baselines import METHODS
from robustphase.simulate import World, make_world

PAGE = "_generated/accuracy.md"
N, M, LEVEL = 100, 5000, 0.1
FIRST_SEED = recovery.FIRST_SEED
#: Relative error below which an answer is exact; and up to which least squares has not been moved.
EXACT, HARMLESS = 1e-8, 0.25


def fit(world: World, told: float | str) -> rp.RobustPhaseRetrieval:
    with warnings.catch_warnings():
        # Without noise at the least number of samples some runs fail, and say so; they are counted here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return rp.RobustPhaseRetrieval(told, nonfinite="drop").fit(world.A, world.y)


def error(world: World, told: float | str) -> float:
    return rp.distance(fit(world, told).signal_, world.truth, relative=True)


def clean_ratio(field: str, told: float | str, seed: int) -> float:
    """Error on clean data with normal noise, over that of least squares."""
    world = make_world(N, M, contamination=0.0, attack="none", noise="gaussian", field=field, seed=seed)
    return error(world, told) / recovery.oracle(world, False)


def noiseless(field: str, m: int, seed: int) -> float:
    world = make_world(N, m, contamination=0.0, attack="none", noise_std=0.0, field=field, seed=seed)
    return error(world, 0.0)


def noiseless_attacked(field: str, attack: str, seed: int) -> float:
    world = make_world(N, 20 * N, contamination=LEVEL, attack=attack, noise_std=0.0, field=field, seed=seed)
    return error(world, LEVEL)


def other_units(field: str, attack: str, seed: int) -> float:
    """Largest relative change of the answer when the norm is a million times as large or as small."""
    answers = []
    for norm in (1.0, 1e-6, 1e6):
        world = make_world(N, M, contamination=LEVEL, attack=attack, norm=norm, field=field, seed=seed)
        answers.append(fit(world, LEVEL).signal_ / norm)
    return max(rp.distance(other, answers[0], relative=True) for other in answers[1:])


def found_level(field: str, attack: str, seed: int) -> tuple[float, float]:
    """How far the contamination found is from that of the data, and the error of least squares started at the truth."""
    world = make_world(N, M, contamination=LEVEL, attack=attack, field=field, seed=seed)
    found = fit(world, "auto").contamination_
    usable = np.isfinite(world.y) & np.isfinite(world.A).all(axis=1) & (np.abs(world.A).max(axis=1) < 1e50)
    with np.errstate(all="ignore"):
        plain = METHODS["wirtinger_flow"](world.A[usable], world.y[usable], start=world.truth).signal
        moved = rp.distance(plain, world.truth, relative=True)
    return abs(found - LEVEL), moved


def lines(field: str, seeds: int) -> Iterator[str]:
    """One line of the table for each question."""
    attacks, range_ = list(rp.simulate.ADVERSARIES), range(FIRST_SEED, FIRST_SEED + seeds)
    with Parallel(n_jobs=os.cpu_count()) as pool:

        def gather(run: Callable[..., Any], *arguments: Iterable[Any]) -> np.ndarray:
            return np.array(pool(delayed(run)(field, *job) for job in product(*arguments)))

        for told in (0.0, LEVEL, "auto"):
            ratios = gather(clean_ratio, [told], range_)
            words = f"clean data, normal noise, told {told}: error over that of least squares"
            yield f"| {words} | median {np.median(ratios):.3f}, worst {ratios.max():.3f} of {ratios.size} |"
        for samples in (4, 6, 8):
            exact = gather(noiseless, [samples * N], range_) < EXACT
            yield f"| clean and noiseless, m = {samples}n: exact to 1e-8 | {exact.sum()} of {exact.size} |"
        exact = gather(noiseless_attacked, attacks, range_[:1]) < EXACT
        yield f"| noiseless under every adversary, ε = {LEVEL}, m = 20n: exact to 1e-8 | {exact.sum()} of {exact.size} |"
        changes = gather(other_units, attacks[::4], range_[:1])
        yield f"| norms 1e-6, 1 and 1e6: largest relative difference | {changes.max():.1e} of {changes.size} |"
        off, moved = gather(found_level, attacks, range_[:1]).T
        count = int((moved > HARMLESS).sum())
        yield (
            f"| ε = {LEVEL} found by itself, attacks that move least squares: median distance | "
            f"{np.median(off[moved > HARMLESS]):.3f} of {count} |"
        )


def run(seeds: int = 5) -> None:
    written = [f"n = {N}, m = {M} unless said, {seeds} seeds from {FIRST_SEED} on."]
    for field in ("real", "complex"):
        written += ["", f"| {field} data | |", "|---|---|"]
        for line in lines(field, seeds):
            print(field, line, flush=True)
            written.append(line)
    publish(PAGE, "\n".join(written) + "\n", seeds=[FIRST_SEED, seeds])


if __name__ == "__main__":
    call(run, "accuracy", sys.argv[1:])
