"""The paper from end to end: a start by Procedure 1 or 3, then Algorithm 2 or 4 on fresh batches.

The final error is compared with the sum that Theorems 3.3 and B.3 bound it by,
σ/‖x*‖² (√(n log n/m) + √(log(1/δ)/m) + √ε), with a constant C₃ named in advance. The number of steps is that of Remark 3.5,
corrected (erratum A11), so that the optimisation error is of the same order. "Paper mode" is this by the paper's procedures and
by the estimator, with multiplicative weights as the robust mean.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from robustphase import paper, simulate
from robustphase.estimator import RobustPhaseRetrieval
from robustphase.experiments.parallel import Pool
from robustphase.experiments.reproduce.attacks import adversary
from robustphase.experiments.reproduce.starts import BACKGROUND, SIGMA, THEOREM_3_1, THEOREM_B1, StartClaim, attack_of
from robustphase.experiments.reproduce.stats import Floats, share
from robustphase.experiments.reproduce.verdict import Experiment, Verdict, chart, judge, series
from robustphase.population import distance

CLAIM = "Paper mode"
#: Dimension, and samples per step.
DIMENSION, SAMPLES = 5, 1000
#: Confidence parameter of every step.
DELTA = 0.01
#: The constant of Theorems 3.3 and B.3.
C3 = 0.5
#: Mean estimator of the paper's remark on computing (Hopkins, Li and Zhang).
MEAN_ESTIMATOR = "mmw"


class Pipeline(NamedTuple):
    """One run."""

    start: StartClaim  # Theorem of the start, which has its configuration, sample size and contamination
    #: Dimension, and samples per step.
    n: int
    m: int
    #: Noise over ‖x*‖², and contamination of the batches.
    sigma: float
    epsilon: float
    seed: int  # Of everything
    estimator: bool = False  # By the estimator, and not by the procedures
    attack: str | None = None  # Adversary of the batches. Default: that of the seed.


class Outcome(NamedTuple):
    """Relative errors of the start and of the answer, the latter over its bound, and the number of steps."""

    start: float
    error: float
    ratio: float
    T: int


def steps_for(sigma: float) -> int:
    """Number of steps for this noise level over ‖x*‖²."""
    return paper.iterations_for(1 / sigma)


def bound(n: int, m: int, sigma: float, epsilon: float, delta: float = DELTA) -> float:
    """The statistical error of Theorems 3.3 and B.3 without its constant, where ‖x*‖ = 1."""
    return sigma * (math.sqrt(n * math.log(n) / m) + math.sqrt(math.log(1 / delta) / m) + math.sqrt(epsilon))


def bound_of(task: Pipeline) -> float:
    """The bound of a run; of paired samples m counts the pairs."""
    return bound(task.n, task.m // 2 if task.start.paired else task.m, task.sigma, task.epsilon)


def run_pipeline(task: Pipeline) -> Outcome:
    """Start and descent, on samples of one signal."""
    T = steps_for(task.sigma)
    start, x, truth = (_by_estimator if task.estimator else _by_procedures)(task, T)
    error = distance(x, truth, relative=True)
    return Outcome(distance(start, truth, relative=True), error, error / bound_of(task), T)


def _by_procedures(task: Pipeline, T: int) -> tuple[Floats, Floats, Floats]:
    """Procedure and algorithm as printed; the start may have to be drawn at a lower contamination than the batches."""
    claim = task.start
    oracle = partial(
        simulate.SampleOracle,
        noise_std=task.sigma,
        noise_mean=BACKGROUND if claim.paired else 0.0,
    )
    truth = simulate.random_signal(task.n, seed=task.seed)
    level = min(claim.contamination(task.n, task.sigma), task.epsilon)
    opening = oracle(truth, contamination=level, attack=attack_of(task.seed), seed=2 * task.seed)
    attack = adversary(task.attack or attack_of(task.seed), paired=claim.paired)
    fresh = oracle(truth, contamination=task.epsilon, attack=attack, seed=2 * task.seed + 1)
    procedure, algorithm = (
        (paper.procedure_3, paper.algorithm_4) if claim.paired else (paper.procedure_1, paper.algorithm_2)
    )
    A, y = opening.draw(claim.samples(task.n, task.sigma))
    x0 = procedure(A, y, contamination=level, delta=DELTA, configuration=claim.configuration)
    x = algorithm(
        x0,
        fresh.batches(T, task.m),
        contamination=task.epsilon,
        delta=DELTA,
        mean_estimator=MEAN_ESTIMATOR,
        random_state=task.seed,
    )
    return x0, x, truth


def _by_estimator(task: Pipeline, T: int) -> tuple[Floats, Floats, Floats]:
    """The estimator in the paper's mode, on one sample that it splits into batches."""
    claim = task.start
    world = simulate.make_world(
        task.n,
        max(T * task.m, claim.samples(task.n, task.sigma)),
        contamination=task.epsilon,
        attack=attack_of(task.seed),
        noise_std=task.sigma,
        noise_mean=BACKGROUND if claim.paired else 0.0,
        seed=task.seed,
    )
    fitted = RobustPhaseRetrieval(
        contamination=task.epsilon,
        noise_mean="unknown" if claim.paired else "zero",
        init=claim.configuration,
        mean_estimator=MEAN_ESTIMATOR,
        step="paper",
        batches=T,
        polish=False,
        delta=DELTA,
        random_state=task.seed,
        nonfinite="drop",
    ).fit(world.A, world.y)
    return fitted.initial_signal_, fitted.signal_, world.truth


def run(start: StartClaim, estimator: bool, pool: Pool, quick: bool) -> Verdict:
    """One of the four ways."""
    return measure(start, estimator, pool, seeds=8 if quick else 50)


def measure(start: StartClaim, estimator: bool, pool: Pool, *, seeds: int, constant: float = C3) -> Verdict:
    """Share of the runs whose final error is within the bound of Theorem 3.3 or B.3."""
    n, m, epsilon = DIMENSION, SAMPLES, start.contamination(DIMENSION)
    tasks = [Pipeline(start, n, m, SIGMA, epsilon, seed, estimator) for seed in range(seeds)]
    outcomes = pool.map(run_pipeline, tasks)
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
    for start in (THEOREM_3_1, THEOREM_B1)
)
