"""The paper's mode from end to end, by its procedures and by the estimator, with multiplicative weights as the robust mean."""

from __future__ import annotations

from functools import partial

import numpy as np

from robustphase.experiments.reproduce import theorem_3_1, theorem_b1
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.intervals import share
from robustphase.experiments.reproduce.pipeline import C3, DELTA, Pipeline, bound_of, run_pipeline, steps_for
from robustphase.experiments.reproduce.starts import SIGMA, StartClaim
from robustphase.experiments.reproduce.verdict import Verdict, judge

CLAIM = "Paper mode"
#: Dimension, and samples per step.
DIMENSION, SAMPLES = 5, 1000


def run(start: StartClaim, estimator: bool, crew: Crew, quick: bool) -> Verdict:
    """One of the four ways."""
    return measure(start, estimator, crew, seeds=8 if quick else 50)


def measure(start: StartClaim, estimator: bool, crew: Crew, *, seeds: int, constant: float = C3) -> Verdict:
    """Share of the runs whose final error is within the bound of Theorem 3.3 or B.3."""
    n, m, epsilon = DIMENSION, SAMPLES, start.contamination(DIMENSION)
    tasks = [Pipeline(start, n, m, SIGMA, epsilon, seed, estimator) for seed in range(seeds)]
    outcomes = crew.map(run_pipeline, tasks)
    ratios = np.array([outcome.ratio for outcome in outcomes])
    inside = share(int((ratios <= constant).sum()), seeds)
    T = steps_for(SIGMA)
    promised = 1 - (T + 1) * DELTA
    verdict, _ = judge(inside.value >= promised)
    theorems = "B.1 and B.3" if start.paired else "3.1 and 3.3"
    middle = [float(np.median([getattr(outcome, name) for outcome in outcomes])) for name in ("start", "error")]
    limit = constant * bound_of(tasks[0])
    return Verdict(
        CLAIM,
        f"Theorems {theorems} together: {_how(start, estimator)} ends within C₃σ/‖x*‖² (√(n log n/m) + √(log(1/δ)/m) + √ε) "
        f"‖x*‖ with probability 1 − (T + 1)δ (C₃={constant:g}, T={T}, δ={DELTA:g}: {promised:.0%}).",
        f"{inside.value:.0%} of {seeds} runs; median error {middle[0]:.2g} at the start and {middle[1]:.2g} at the end, largest "
        f"{max(outcome.error for outcome in outcomes):.2g}, bound {limit:.2g} (n={n}, m={m} per step, ε={epsilon:.2g}, every "
        "seed another adversary)",
        f"99%, Clopper–Pearson: {inside.interval}",
        verdict,
        part=_part(start, estimator),
        data={
            "share": list(inside),
            "ratios": ratios.tolist(),
            "T": T,
            "figure": chart(
                f"Paper mode: {_part(start, estimator)}",
                "seed",
                "error / ‖x*‖",
                series("start", range(seeds), [outcome.start for outcome in outcomes], style="points"),
                series("end", range(seeds), [outcome.error for outcome in outcomes], style="points"),
                series("bound", [0, seeds - 1], [limit] * 2, style="line"),
                log_y=True,
            ),
        },
    )


def _how(start: StartClaim, estimator: bool) -> str:
    if estimator:
        return (
            'RobustPhaseRetrieval(step="paper", batches=T, mean_estimator="mmw", init="mean", '
            f'noise_mean="{"unknown" if start.paired else "zero"}")'
        )
    return f"Procedure {3 if start.paired else 1} and Algorithm {4 if start.paired else 2} on fresh batches"


def _part(start: StartClaim, estimator: bool) -> str:
    mean = "unknown noise mean" if start.paired else "zero noise mean"
    return f"{'estimator' if estimator else 'procedures'}, {mean}"


EXPERIMENTS = tuple(
    Experiment(CLAIM, _part(start, estimator), partial(run, start, estimator))
    for estimator in (False, True)
    for start in (theorem_3_1.CLAIM, theorem_b1.CLAIM)
)
