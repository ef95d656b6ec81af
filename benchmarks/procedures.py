"""Theorems 3.1, 3.2, B.1 and B.2 as experiments: how often the starts of Procedures 1 and 3 lie in their balls.

The conditions are those of the theorems as corrected in docs/errata.md (A6: "1 +" is missing; A12: pairing doubles ε),
with the constants below. Every seed meets another adversary. Run by name, it takes about half an hour on two cores:
``python -m benchmarks.procedures``, or with ``--quick`` a few minutes.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.timing import slope
from robustphase import distance, paper
from robustphase.initialise import printed_start
from robustphase.rows.threads import single_threaded_blas
from robustphase.simulate import ADVERSARIES, make_world
from robustphase.validation import check_samples

SIGMA, KURTOSIS = 0.5, 15.0  # Student's t with 4.5 degrees of freedom: K₄⁴ = 15 σ⁴
DELTA = 0.05
DIMENSIONS = (5, 10, 20)
ATTACKS = ("none", *ADVERSARIES)
BACKGROUND = 3.0


class Theorem(NamedTuple):
    """One theorem: which procedure, which ball, and the constants C₁ of its contamination and C₂ of its sample size."""

    name: str
    configuration: str
    paired: bool
    ball: float
    C1: float
    C2: float

    def level(self, n: int) -> float:
        """Contamination ε of the samples."""
        margin = (1 + SIGMA**2) * n if self.configuration == "mean" else 1 + KURTOSIS * SIGMA**4
        return self.C1 / margin / (2 if self.paired else 1)

    def size(self, n: int) -> int:
        """Number of samples drawn; of a paired procedure, twice m₀."""
        if self.configuration == "mean":
            m0 = self.C2 * (1 + SIGMA**2) * max(n**2 * np.log(n), n * np.log(n / DELTA))
        else:
            m0 = self.C2 * (1 + KURTOSIS * SIGMA**4) * max(n, np.log(1 / DELTA))
        return int(np.ceil(m0)) * (2 if self.paired else 1)


THEOREMS = (
    Theorem("3.1", "mean", False, 1 / 9, C1=0.02, C2=100),
    Theorem("3.2", "covariance", False, 1 / 9, C1=0.004, C2=2000),
    Theorem("B.1", "mean", True, 1 / 6, C1=0.02, C2=100),
    Theorem("B.2", "covariance", True, 1 / 6, C1=0.002, C2=4000),
)


class Start(NamedTuple):
    """How far a start is from the truth, in all, in direction (sine), and in squared length (1 is right)."""

    distance: float
    sine: float
    squared_norm: float
    attack: str


def one_start(theorem: Theorem, n: int, m: int, seed: int) -> Start:
    """One start, on a world whose adversary depends on the seed."""
    attack = ATTACKS[seed % len(ATTACKS)]
    world = make_world(
        n,
        m,
        contamination=theorem.level(n),
        attack=attack,
        noise_std=SIGMA,
        noise_mean=BACKGROUND if theorem.paired else 0.0,
        seed=1000 * n + seed,
    )
    samples = check_samples(world.A, world.y, nonfinite="drop")
    with warnings.catch_warnings(), single_threaded_blas():
        # A negative scale is counted as a miss; no need to print it.
        warnings.simplefilter("ignore", UserWarning)
        start = printed_start(
            samples.source,
            samples.responses,
            contamination=theorem.level(n),
            delta=DELTA,
            configuration=theorem.configuration,
            paired=theorem.paired,
            dropped=samples.dropped,
        )
    cosine = min(abs(float(start.direction @ world.truth)), 1.0)
    return Start(distance(start.signal, world.truth), float(np.sqrt(1 - cosine**2)), start.squared_norm, attack)


def check(theorem: Theorem, n: int, seeds: int, pool: ProcessPoolExecutor) -> None:
    """Print the share of starts inside the ball at the theorem's sample size and contamination."""
    m = theorem.size(n)
    starts = list(pool.map(partial(one_start, theorem, n, m), range(seeds)))
    inside = np.mean([start.distance <= theorem.ball for start in starts])
    misses = Counter(start.attack for start in starts if start.distance > theorem.ball)
    sines = np.quantile([start.sine for start in starts], (0.5, 0.95))
    scales = np.quantile([start.squared_norm for start in starts], (0.05, 0.5))
    print(
        f"  n={n:3d} m={m:7d} ε={theorem.level(n):.5f}: inside {inside:6.1%} (asked {1 - DELTA:.0%})  "
        f"sine {sines[0]:.3f} (95%: {sines[1]:.3f})  squared norm {scales[1]:.2f} (5%: {scales[0]:.2f})"
        + (f"  missed: {', '.join(misses)}" if misses else ""),
        flush=True,
    )


def proof_variance(n: int) -> float:
    """``m E‖Y − EY‖²`` in Frobenius norm for clean data and plain means: what the proof of Theorem 3.1 bounds.

    It adds up the errors of all columns, ``E[y²‖a‖⁴] − ‖EY‖²``. The direction only feels the operator norm.
    """
    return 3 * (n + 4) * (n + 6) + SIGMA**2 * n * (n + 2) - (n + 8)


def start_error(theorem: Theorem, n: int, m: int, seed: int) -> float:
    return one_start(theorem, n, m, seed).distance


def needed(errors: np.ndarray, sizes: list[int], goal: float) -> float:
    """Sample size at which the error falls to the goal, between the sizes tried; NaN if it does not."""
    below = np.flatnonzero(errors <= goal)
    if below.size == 0 or below[0] == 0:
        return float("nan")
    i = int(below[0])
    x, y = np.log(sizes[i - 1 : i + 1]), np.log(errors[i - 1 : i + 1])
    return float(np.exp(x[0] + (np.log(goal) - y[0]) * (x[1] - x[0]) / (y[1] - y[0])))


def growth(
    title: str, error: partial[float], goal: float, per_n: tuple[int, ...], seeds: int, pool: ProcessPoolExecutor
) -> None:
    """Print the sample size that 90 percent of the runs need, against n, and the fitted exponent."""
    found = []
    for n in DIMENSIONS:
        sizes = [factor * n for factor in per_n]
        errors = np.array([np.quantile(list(pool.map(partial(error, n, m), range(seeds))), 0.9) for m in sizes])
        found.append(needed(errors, sizes, goal))
    known = [(n, m) for n, m in zip(DIMENSIONS, found, strict=True) if np.isfinite(m)]
    fitted = slope([n for n, _ in known], [m for _, m in known]) if len(known) > 1 else float("nan")
    shown = ", ".join(f"n={n}: {m:.0f}" for n, m in zip(DIMENSIONS, found, strict=True))
    print(f"  {title}: {shown}; slope {fitted:.2f}", flush=True)


def time_procedure_1(n: int = 100, m: int = 46000) -> None:
    world = make_world(n, m, contamination=THEOREMS[0].level(n), attack="decoy", noise_std=SIGMA, seed=0)
    begin = time.perf_counter()
    start = paper.procedure_1(world.A, world.y, contamination=THEOREMS[0].level(n), delta=DELTA)
    seconds = time.perf_counter() - begin
    print(f"Procedure 1, mean configuration, n={n}, m={m}: {seconds:.1f} s, error {distance(start, world.truth):.3f}")


def run(quick: bool = False) -> None:
    seeds = 20 if quick else 100
    time_procedure_1()
    with ProcessPoolExecutor(2) as pool:
        for theorem in THEOREMS:
            print(
                f"Theorem {theorem.name} ({theorem.configuration}, {'unknown' if theorem.paired else 'zero'} noise mean), "
                f"ball {theorem.ball:.3f}, C1={theorem.C1}, C2={theorem.C2}, {seeds} seeds"
            )
            for n in DIMENSIONS[:2] if quick and theorem.configuration == "mean" else DIMENSIONS:
                check(theorem, n, seeds, pool)
        print("samples that nine of ten starts need, at the theorem's contamination")
        few = 10 if quick else 40
        grid = (100, 200, 400, 800, 1600, 3200)
        growth("mean, start in the ball", partial(start_error, THEOREMS[0]), 1 / 9, grid, few, pool)
        growth("covariance, start in the ball", partial(start_error, THEOREMS[1]), 1 / 9, grid, few, pool)
        for ends in ([DIMENSIONS[0], DIMENSIONS[-1]], [100, 400]):
            exponent = slope(ends, [proof_variance(n) for n in ends])
            print(f"  mean, what the proof bounds (closed form), from n={ends[0]} to {ends[1]}: slope {exponent:.2f}")


if __name__ == "__main__":
    run(quick="--quick" in sys.argv)
