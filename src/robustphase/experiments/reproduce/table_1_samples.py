"""Table 1, column "sample complexity": how many samples each method needs, against the dimension.

The entries for the two starts of the paper are Theorems 3.1 and 3.2 (part "samples needed"). Here are the descent, and the two
methods that the table compares with, both on noiseless data where success is exact. At sizes that can be run, n and n log n
differ by little: between n=16 and n=128 a line through n log n has the slope 1.27. What can be said is whether the growth
exceeds the entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from robustphase import baselines, simulate
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.descents import Descent, DescentClaim, run_descent
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.growth import (
    SLACK,
    SizeFor,
    error_curve,
    exponent_of,
    growth,
    size_for_error,
    size_for_success,
)
from robustphase.experiments.reproduce.starts import attack_of
from robustphase.experiments.reproduce.theorem_3_3 import CLAIM as DESCENT
from robustphase.experiments.reproduce.verdict import Verdict, judge
from robustphase.population import distance

CLAIM = "Table 1, samples"
#: Relative error below which noiseless data have been recovered exactly.
EXACT = 1e-4


@dataclass(frozen=True)
class Row:
    """An entry of the table and how to measure it.

    Attributes
    ----------
    part, statement : str
        As in the verdict.
    entry, order : str and callable
        The entry, as text and as a function of n.
    error : callable
        From ``(n, m, seed)`` to an error.
    goal : float
        The error that is enough.
    first : int
        First sample size, over n.
    size_for : callable
        How the needed size is read off the errors.
    who, setting : str
        Which runs must reach the goal, and what was run, for the verdict.
    """

    part: str
    statement: str
    entry: str
    order: Callable[[float], float]
    error: Callable[[tuple[int, int, int]], float]
    goal: float
    first: int
    size_for: SizeFor
    who: str
    setting: str


def baseline_error(method: str, attack: str, contamination: float, size: tuple[int, int, int]) -> float:
    """Relative error of a baseline without noise."""
    n, m, seed = size
    world = simulate.make_world(n, m, contamination=contamination, attack=attack, noise="none", seed=seed)
    found = baselines.METHODS[method](world.A, world.y, max_iter=300, tol=1e-7)
    return distance(found.signal, world.truth, relative=True)


def descent_error(claim: DescentClaim, size: tuple[int, int, int]) -> float:
    """Relative error of Algorithm 2 with m samples per step, at constant contamination."""
    n, m, seed = size
    return run_descent(Descent(claim, n, m, T=16, sigma=0.5, epsilon=0.01, attack=attack_of(seed), seed=seed))


def n_log_n(n: float) -> float:
    """The order n log n."""
    return n * math.log(n)


WIRTINGER = Row(
    "Wirtinger flow",
    "Wirtinger flow needs order n samples without noise and contamination.",
    "n",
    float,
    partial(baseline_error, "wirtinger_flow", "none", 0.0),
    EXACT,
    1,
    size_for_success,
    "half of the runs",
    "exact recovery; what its authors prove is n log n, erratum B18",
)
MEDIAN = Row(
    "median-truncated Wirtinger flow",
    "Median-truncated Wirtinger flow needs order n log n samples at constant contamination of the responses.",
    "n log n",
    n_log_n,
    partial(baseline_error, "median_truncated_wirtinger_flow", "huge", 0.05),
    EXACT,
    1,
    size_for_success,
    "half of the runs",
    "exact recovery, 5% of the responses huge",
)
ROBUST = Row(
    "robust gradient descent",
    "Algorithm 2 needs order n log n samples per step at constant contamination.",
    "n log n",
    n_log_n,
    partial(descent_error, DESCENT),
    0.02,
    6,
    size_for_error,
    "90% of the runs",
    "error 0.02, σ=0.5‖x*‖², ε=0.01, every seed another adversary",
)


def run(row: Row, dimensions: Sequence[int], crew: Crew, quick: bool) -> Verdict:
    """One row of the table."""
    return measure(row, crew, dimensions=dimensions[:-1] if quick else dimensions, seeds=10 if quick else 40)


def measure(row: Row, crew: Crew, *, dimensions: Sequence[int], seeds: int) -> Verdict:
    """Growth of the samples that are needed, against the entry of the table."""
    curves = [error_curve(row.error, n, row.first * n, row.goal, seeds, crew) for n in dimensions]
    found = growth(curves, row.goal, row.size_for)
    promised = exponent_of(row.order, dimensions)
    verdict, _ = judge(found.exponent.low <= promised + SLACK)
    sizes = ", ".join(f"n={n}: {size.value:.0f}" for n, size in zip(dimensions, found.needed, strict=True))
    scale = found.needed[0].value / row.order(dimensions[0])
    return Verdict(
        CLAIM,
        f"{row.statement} (Order {row.entry} has exponent {promised:.2f} over these n.)",
        f"{row.who} need {sizes}; exponent {found.exponent} ({row.setting}; {seeds} seeds)",
        f"99%, bootstrap: {found.exponent.interval}",
        verdict,
        part=row.part,
        data={
            "dimensions": list(dimensions),
            "needed": [list(size) for size in found.needed],
            "exponent": list(found.exponent),
            "promised_exponent": promised,
            "figure": chart(
                f"Table 1: samples needed, {row.part}",
                "n",
                "samples",
                series(
                    f"needed by {row.who}",
                    dimensions,
                    [size.value for size in found.needed],
                    low=[size.low for size in found.needed],
                    high=[size.high for size in found.needed],
                ),
                series(f"order {row.entry}", dimensions, [scale * row.order(n) for n in dimensions], style="line"),
                log_x=True,
                log_y=True,
            ),
        },
    )


EXPERIMENTS = (
    Experiment(CLAIM, WIRTINGER.part, partial(run, WIRTINGER, (16, 32, 64, 128))),
    Experiment(CLAIM, MEDIAN.part, partial(run, MEDIAN, (16, 32, 64, 128))),
    Experiment(CLAIM, ROBUST.part, partial(run, ROBUST, (8, 16, 32, 64))),
)
