"""Table 1, column "statistical error": what is left of the error when the descent has converged.

Zero for Wirtinger flow on clean data; at most of order √B or B, with B the bound on the noise over ‖x*‖², for the two
median-truncated flows; σ/‖x*‖² (O(1) + √ε) for the paper's methods, from end to end, over a grid of σ and ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from robustphase import baselines, simulate
from robustphase.experiments.reproduce import theorem_3_1, theorem_3_2
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.intervals import share, slope
from robustphase.experiments.reproduce.pipeline import C3, DELTA, Pipeline, run_pipeline, steps_for
from robustphase.experiments.reproduce.starts import StartClaim
from robustphase.experiments.reproduce.verdict import Verdict, judge
from robustphase.population import distance

CLAIM = "Table 1, error"
#: Dimension, samples and outliers of the baselines.
DIMENSION, SAMPLES, OUTLIERS = 20, 1000, 0.05
#: Largest error that counts as none, in double precision and with steps that stop at 1e-12.
NOTHING = 1e-9
#: The two flows of the second row, and the exponent of B in their entries.
FLOWS = {"median_truncated_wirtinger_flow": 1.0, "median_reshaped_wirtinger_flow": 0.5}
#: How far from the claimed one an exponent may be.
SLACK = 0.1


def clean(crew: Crew, quick: bool) -> Verdict:
    """First row: Wirtinger flow on clean data without noise."""
    return measure_clean(crew, seeds=20 if quick else 100)


def measure_clean(crew: Crew, *, seeds: int) -> Verdict:
    """Error of Wirtinger flow where it recovers at all."""
    tasks = [("wirtinger_flow", 0.0, 0.0, seed) for seed in range(seeds)]
    errors = np.array(crew.map(_flow_error, tasks))
    exact = share(int((errors <= NOTHING).sum()), seeds)
    verdict, _ = judge(exact.value >= 0.9)
    return Verdict(
        CLAIM,
        "Wirtinger flow has no error on clean data without noise.",
        f"{exact.value:.0%} of {seeds} runs end below {NOTHING:g}, largest error {errors.max():.1g} (n={DIMENSION}, m={SAMPLES})",
        f"99%, Clopper–Pearson: {exact.interval}",
        verdict,
        part="Wirtinger flow",
        data={
            "share": list(exact),
            "errors": errors.tolist(),
            "figure": chart(
                "Table 1: error of Wirtinger flow without noise",
                "seed",
                "error / ‖x*‖",
                series("error", range(seeds), np.maximum(errors, 1e-17), style="points"),
                log_y=True,
            ),
        },
    )


def bounded(crew: Crew, quick: bool) -> Verdict:
    """Second row: median-truncated flows under bounded noise."""
    return measure_bounded(crew, bounds=(0.01, 0.04, 0.16), seeds=8 if quick else 40)


def measure_bounded(crew: Crew, *, bounds: Sequence[float], seeds: int) -> Verdict:
    """Error against the bound on the noise; the entries are upper bounds, so exponents may be larger."""
    found, medians = {}, {}
    for method in FLOWS:
        tasks = [(method, bound, OUTLIERS, seed) for seed in range(seeds) for bound in bounds]
        errors = np.array(crew.map(_flow_error, tasks)).reshape(seeds, len(bounds))
        found[method] = slope(np.log(bounds), np.log(errors))
        medians[method] = np.median(errors, axis=0)
    verdict, _ = judge(all(found[method].meets(claimed - SLACK, np.inf) for method, claimed in FLOWS.items()))
    names = {method: method.removesuffix("_wirtinger_flow").replace("_", "-") for method in FLOWS}
    return Verdict(
        CLAIM,
        "With noise bounded by B‖x*‖² and outliers in the responses, the error of the median-truncated flow is at most of order "
        "B and that of the reshaped one at most of order √B.",
        f"exponent of B from {bounds[0]:g} to {bounds[-1]:g}: "
        + ", ".join(f"{found[method]} ({name})" for method, name in names.items())
        + f" (n={DIMENSION}, m={SAMPLES}, {OUTLIERS:.0%} of the responses huge, {seeds} seeds)",
        "99%: " + ", ".join(found[method].interval for method in names),
        verdict,
        part="median-truncated flows",
        data={
            "bounds": list(bounds),
            "exponents": {name: list(found[method]) for method, name in names.items()},
            "figure": chart(
                "Table 1: error under bounded noise",
                "B",
                "error / ‖x*‖",
                *(series(name, bounds, medians[method]) for method, name in names.items()),
                log_x=True,
                log_y=True,
            ),
        },
    )


def _flow_error(task: tuple[str, float, float, int]) -> float:
    method, bound, outliers, seed = task
    world = simulate.make_world(
        DIMENSION,
        SAMPLES,
        contamination=outliers,
        attack="huge" if outliers else "none",
        noise="bounded" if bound else "none",
        noise_std=bound / math.sqrt(3),
        seed=seed,
    )
    found = baselines.METHODS[method](world.A, world.y, max_iter=1000, tol=1e-12)
    return distance(found.signal, world.truth, relative=True)


def robust(start: StartClaim, crew: Crew, quick: bool) -> Verdict:
    """Third and fourth row: the paper's methods, with either start."""
    if quick:
        return measure_robust(start, crew, noises=(0.1, 0.5), levels=(0.002, 0.04), seeds=5)
    return measure_robust(start, crew, noises=(0.05, 0.1, 0.2, 0.4, 0.8), levels=(0.0, 0.002, 0.01, 0.04), seeds=12)


def measure_robust(
    start: StartClaim,
    crew: Crew,
    *,
    noises: Sequence[float],
    levels: Sequence[float],
    seeds: int,
    n: int = 5,
    m: int = 1000,
    constant: float = C3,
) -> Verdict:
    """Final error over its bound on a grid of σ and ε, and its exponent in σ."""
    tasks = [
        Pipeline(start, n, m, sigma, epsilon, seed, attack="mirror")
        for seed in range(seeds)
        for epsilon in levels
        for sigma in noises
    ]
    outcomes = crew.map(run_pipeline, tasks)
    errors = np.array([outcome.error for outcome in outcomes]).reshape(seeds, len(levels), len(noises))
    ratios = np.array([outcome.ratio for outcome in outcomes])
    inside = share(int((ratios <= constant).sum()), len(tasks))
    exponent = slope(np.log(noises), np.log(errors).mean(axis=1))
    promised = 1 - (max(map(steps_for, noises)) + 1) * DELTA
    verdict, _ = judge(inside.value >= promised and exponent.meets(1 - SLACK, 1 + SLACK))
    medians = np.median(errors, axis=0)
    return Verdict(
        CLAIM,
        f"From end to end ({start.configuration} configuration), the error is at most C₃σ/‖x*‖² (√(n log n/m) + √(log(1/δ)/m) + "
        f"√ε), hence proportional to σ (C₃={constant:g}, in {promised:.0%} of the runs).",
        f"{inside.value:.0%} of {len(tasks)} runs, largest ratio {ratios.max():.2f}; exponent of σ {exponent} (n={n}, m={m} per "
        f"step, σ = {noises[0]:g} … {noises[-1]:g}‖x*‖², ε = {levels[0]:g} … {levels[-1]:g}, adversary: mirror)",
        f"99%: {inside.interval} (Clopper–Pearson) and {exponent.interval}",
        verdict,
        part=f"robust gradient descent, {start.configuration} start",
        data={
            "noises": list(noises),
            "levels": list(levels),
            "share": list(inside),
            "exponent": list(exponent),
            "largest_ratio": float(ratios.max()),
            "figure": chart(
                f"Table 1: error from end to end, {start.configuration} start",
                "σ / ‖x*‖²",
                "error / ‖x*‖",
                *(series(f"ε = {epsilon:g}", noises, medians[place]) for place, epsilon in enumerate(levels)),
                log_x=True,
                log_y=True,
            ),
        },
    )


EXPERIMENTS = (
    Experiment(CLAIM, "Wirtinger flow", clean),
    Experiment(CLAIM, "median-truncated flows", bounded),
    *(
        Experiment(CLAIM, f"robust gradient descent, {start.configuration} start", partial(robust, start))
        for start in (theorem_3_1.CLAIM, theorem_3_2.CLAIM)
    ),
)
