"""Algorithm 4 with the step as printed: it does not converge."""

from __future__ import annotations

import numpy as np

from robustphase import paper, population, simulate
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.intervals import Floats, share
from robustphase.experiments.reproduce.verdict import Verdict, judge
from robustphase.population import distance

CLAIM = "Algorithm 4"
#: Dimension, radius of the ball of starts, steps, and the distance below which a run has converged.
DIMENSION, BALL, STEPS, CLOSE = 3, 1 / 6, 300, 1e-3
#: Runs on samples: samples and steps.
SAMPLES, BATCHES = 2000, 60


def step(crew: Crew, quick: bool) -> Verdict:
    """Printed and corrected step."""
    return measure_step(crew, starts=120 if quick else 1000, runs=4 if quick else 20)


def measure_step(crew: Crew, *, starts: int, runs: int) -> Verdict:
    """Descents on the population risk from random starts in the ball, and on noiseless clean samples from 0.9x*."""
    population_runs = np.array(crew.map(_population_distances, range(starts)))
    stuck = share(int((population_runs[:, 0] > CLOSE).sum()), starts)
    lost = int((population_runs[:, 1] > CLOSE).sum())
    samples = np.array(crew.map(_sample_distances, range(runs)))
    verdict, erratum = judge(
        printed=stuck.low == 0.0, corrected=lost == 0 and bool((samples[:, 1] < CLOSE).all()), erratum="A3"
    )
    truth = np.eye(DIMENSION)[0]
    start = 1.1 * truth
    lengths = {
        name: population.descent_path(
            start, truth, step=rule(start, noise_mean="unknown"), n_steps=40, noise_mean="unknown"
        )[:, 0]
        for name, rule in (("printed step", population.printed_step), ("corrected step", population.paper_step))
    }
    cycle = sorted(population_cycle(start, truth))
    return Verdict(
        CLAIM,
        "With the step 1024/(1647‖x₀‖²) the descent converges from every start within ‖x*‖/6 of the truth.",
        f"with exact gradients {stuck.value:.0%} of {starts} starts do not converge (from 1.1x* the iterates end in the "
        f"two-cycle {cycle[0]:.3f}x*, {cycle[1]:.3f}x*), with the step 25/(136‖x₀‖²) {lost}; on clean samples without noise the "
        f"median error after {BATCHES} steps is {np.median(samples[:, 0]):.2g} and {np.median(samples[:, 1]):.1g}",
        f"99%, Clopper–Pearson: {stuck.interval} do not converge",
        verdict,
        erratum,
        part="printed step",
        data={
            "stuck": list(stuck),
            "lost_with_corrected_step": lost,
            "cycle": cycle,
            "errors_on_samples": samples.tolist(),
            "figure": chart(
                "Algorithm 4 from 1.1x*, exact gradients",
                "step",
                "length along x* / ‖x*‖",
                *(series(name, range(len(path)), path, style="line") for name, path in lengths.items()),
            ),
        },
    )


def population_cycle(start: Floats, truth: Floats, steps: int = 2000) -> tuple[float, float]:
    """Lengths, along the truth, of the last two iterates with the printed step."""
    path = population.descent_path(
        start, truth, step=population.printed_step(start, noise_mean="unknown"), n_steps=steps, noise_mean="unknown"
    )
    return float(path[-2] @ truth), float(path[-1] @ truth)


def _population_distances(seed: int) -> tuple[float, float]:
    """Distances to the truth, with the printed and the corrected step, from a point evenly spread in the ball."""
    rng = np.random.default_rng(seed)
    truth = np.eye(DIMENSION)[0]
    away = rng.standard_normal(DIMENSION)
    start = truth + BALL * rng.random() ** (1 / DIMENSION) * away / np.linalg.norm(away)
    ends = [
        population.descent_path(
            start, truth, step=rule(start, noise_mean="unknown"), n_steps=STEPS, noise_mean="unknown"
        )[-1]
        for rule in (population.printed_step, population.paper_step)
    ]
    return distance(ends[0], truth), distance(ends[1], truth)


def _sample_distances(seed: int) -> tuple[float, float]:
    """The same on fresh batches of clean samples without noise."""
    truth = simulate.random_signal(DIMENSION, seed=seed)
    # Only just beyond the limit, as from 1.1x*, the randomness of the batches can make the iterates contract after all.
    start = 0.9 * truth
    ends = []
    for printed in (True, False):
        oracle = simulate.SampleOracle(truth, contamination=0.0, attack="none", noise="none", seed=seed)
        batches = oracle.batches(BATCHES, SAMPLES)
        ends.append(distance(paper.algorithm_4(start, batches, contamination=0.0, as_published=printed), truth))
    return ends[0], ends[1]


EXPERIMENTS = (Experiment(CLAIM, "printed step", step),)
