"""The experiments behind the constants of ``robustphase.plan``.

``python -m benchmarks calibrate_plan [--folder runs] [--minutes 9] [--parts ...]`` runs what is missing and prints measured
beside predicted figures. Finished runs are kept in the folder, so it may be interrupted, or cut into parts with ``--minutes``.
Gaussian noise throughout; one seed for each of the adversaries unless said.

* ``efficiency``: no contamination. The error over the closed form for least squares.
* ``contamination``: many samples per unknown. The excess of the error over the noise, in units of sε, of the worst adversary.
* ``recovery``: how many samples per unknown until all adversaries are survived (error at most 0.25, or at most twice what the
  noise alone would cost where that is more).
* ``sizes``: the same at other dimensions, and with an unknown noise mean.
* ``cost``: passes, time in reads of the data, memory. Processor time: run it with ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import math
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import robustphase as rp
from benchmarks.options import call
from robustphase.experiments.compare import Comparison, ComparisonInterrupted, compare
from robustphase.experiments.plan import BYTES_PER_SAMPLE, PASSES, predicted_seconds, read_speed
from robustphase.experiments.theory import (
    EFFICIENCY,
    breakdown,
    excess_error,
    floor,
    least_squares_error,
    samples_for_recovery,
)

OURS = ["robustphase"]
#: Samples per unknown that are tried, in this order.
LADDER = (4, 6, 8, 10, 14, 20, 28, 40, 56, 80, 112, 160)


def say(line: str) -> None:
    print(line, flush=True)


class Runs:
    """Comparisons of our method alone, kept in files."""

    def __init__(self, folder: Path, minutes: float) -> None:
        self._folder, self._deadline = folder, time.monotonic() + 60.0 * minutes
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(
        self, n: int, m: int, noise_std: float, attacks: str, level: float, seeds: int = 1, noise_mean: float = 0.0
    ) -> Comparison:
        """One comparison; only what is missing in its file is run."""
        return compare(
            OURS,
            attacks,
            level,
            "gaussian",
            n=n,
            m=m,
            noise_std=noise_std,
            noise_mean=noise_mean,
            seeds=seeds,
            out=self._folder / f"{n}_{m}_{noise_std:g}_{noise_mean:g}.csv",
            progress=self._tick,
        )

    def _tick(self, done: int, total: int, text: str) -> None:
        if time.monotonic() > self._deadline:
            raise KeyboardInterrupt


def efficiency(runs: Runs) -> None:
    say("part efficiency: root mean squared error over the closed form, 20 seeds")
    for s in (0.1, 0.5, 1.0, 2.0):
        for n, per_unknown in ((20, 50), (50, 8), (50, 15), (50, 30), (100, 50)):
            m = n * per_unknown
            errors = [run.error for run in runs(n, m, s, "none", 0.0, seeds=20).runs]
            found = math.sqrt(np.mean(np.square(errors))) / least_squares_error(n, m, s)
            say(f"  s {s:<4} n {n:<4} m/n {per_unknown:<4} {found:.3f} (assumed: at most {EFFICIENCY})")


def contamination(runs: Runs) -> None:
    say(
        "part contamination: n 40, m/n 300; median error over prediction; excess of the worst adversaries in units of s ε"
    )
    n, m = 40, 12000
    for s in (0.1, 0.5, 1.0):
        for level in (0.05, 0.1, 0.2):
            if level > 0.75 * breakdown(s):
                continue
            found = runs(n, m, s, "all", level)
            typical = least_squares_error(n, (1 - level) * m, s)
            erased = least_squares_error(n, m, s, erased=level)
            excess = {r.attack: math.sqrt(max(r.error**2 - erased**2, 0.0)) / (s * level) for r in found.runs}
            worst = sorted(excess, key=excess.__getitem__)[::-1][:4]
            say(
                f"  s {s:<4} ε {level:<5} median {np.median([r.error for r in found.runs]) / typical:.3f} "
                f"assumed excess {excess_error(s, level) / (s * level):.2f}, floor {floor(s, level) / (s * level):.2f}, measured "
                + ", ".join(f"{name} {excess[name]:.2f}" for name in worst),
            )


def survivors(found: Comparison) -> int:
    """Runs that ended near the truth, the noise considered."""
    return sum(
        run.error <= max(0.25, 2.0 * least_squares_error(run.n, run.m, run.noise_std, erased=run.contamination))
        for run in found.runs
    )


def _climb(runs: Runs, n: int, s: float, level: float, *, noise_mean: float = 0.0) -> None:
    attacks, seeds = ("all", 1) if level else ("none", 40)
    steps, clear = [], 0
    assumed = samples_for_recovery(n, s, level) / n
    for per_unknown in LADDER:
        found = runs(n, n * per_unknown, s, attacks, level, seeds, noise_mean)
        lost = len(found) - survivors(found)
        steps.append(f"{per_unknown}:{lost}")
        clear = clear + 1 if lost == 0 else 0
        if clear == 2 or per_unknown > 4.0 * assumed:
            break
    say(
        f"  n {n:<4} s {s:<4} ε {level:<5} samples per unknown: lost of {len(found)}  {' '.join(steps)}  "
        f"(assumed {assumed:.1f})",
    )


def recovery(runs: Runs) -> None:
    say("part recovery: n 50")
    for s in (0.1, 0.5, 0.7, 1.0):
        for level in (0.0, 0.05, 0.1, 0.15, 0.2):
            if level <= 0.75 * breakdown(s):
                _climb(runs, 50, s, level)


def sizes(runs: Runs) -> None:
    say("part sizes: other dimensions")
    for n in (25, 100, 200):
        for s, level in ((0.5, 0.1), (0.1, 0.2)):
            _climb(runs, n, s, level)
    say("part sizes: noise mean 3, unknown")
    for s, level in ((0.5, 0.1), (0.5, 0.2), (1.0, 0.1)):
        _climb(runs, 50, s, level, noise_mean=3.0)


def cost(runs: Runs) -> None:
    say(f"part cost: passes (assumed {PASSES}), seconds over prediction, bytes per sample (assumed {BYTES_PER_SAMPLE})")
    sizes = ((50, 1000), (50, 5000), (100, 5000), (100, 20000), (300, 6000), (300, 20000), (500, 20000))
    for (n, m), attack in zip(sizes, ("decoy", "erase", "none", "leverage", "decoy", "none", "decoy"), strict=True):
        world = rp.simulate.make_world(n, m, contamination=0.1, attack=attack, seed=0)
        model = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        began = time.process_time()
        model = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        seconds = time.process_time() - began
        tracemalloc.start()
        model.fit(world.A, world.y)
        extra = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        share = seconds / predicted_seconds(n, m, read_speed())
        say(
            f"  n {n:<4} m {m:<6} {attack:<9} passes {model.history_[-1].passes:<4} "
            f"seconds {seconds:.3f} = {share:.2f} × predicted, {extra / m:.0f} bytes per sample",
        )


PARTS: dict[str, Callable[[Runs], None]] = {
    part.__name__: part for part in (efficiency, contamination, recovery, sizes, cost)
}


def run(folder: Path = Path("build/plan"), minutes: float = np.inf, parts: tuple[str, ...] = tuple(PARTS)) -> None:
    """Finished runs are kept in ``folder``; after ``minutes`` it stops, and the same command goes on."""
    runs = Runs(folder, minutes)
    warnings.simplefilter("ignore")
    try:
        for part in parts:
            PARTS[part](runs)
    except ComparisonInterrupted:
        say("stopped for now; the same command continues")


if __name__ == "__main__":
    call(run, "calibrate_plan", sys.argv[1:])
