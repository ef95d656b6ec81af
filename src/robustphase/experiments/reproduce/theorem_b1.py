"""Theorem B.1: the start of Procedure 3 from robust means of the columns of υ b cᵀ."""

from __future__ import annotations

import numpy as np

from robustphase import simulate
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.intervals import mean
from robustphase.experiments.reproduce.starts import StartClaim, in_the_ball, needed_samples
from robustphase.experiments.reproduce.verdict import Verdict, judge

CLAIM = StartClaim("Theorem B.1", "mean", paired=True, ball=1 / 6, C1=0.02, C2=100)
#: Contaminations and samples with which bad pairs are counted.
LEVELS, SAMPLES = (0.01, 0.02, 0.05, 0.1), 20_000


def ball(crew: Crew, quick: bool) -> Verdict:
    """Starts in the ball."""
    return in_the_ball(CLAIM, crew, dimensions=(5, 10) if quick else (5, 10, 20), seeds=20 if quick else 100)


def needed(crew: Crew, quick: bool) -> Verdict:
    """Growth of the needed sample size."""
    return needed_samples(CLAIM, crew, dimensions=(5, 10, 20), seeds=50)


def pairing(crew: Crew, quick: bool) -> Verdict:
    """The share of bad pairs."""
    return measure_pairing(crew, seeds=20)


def measure_pairing(crew: Crew, *, seeds: int) -> Verdict:
    """Bad pairs over bad samples when the adversary chooses its samples at random, not even knowing the pairs."""
    counts = np.array([crew.map(_bad_pairs, [(level, seed) for seed in range(seeds)]) for level in LEVELS])
    factor = mean((counts / np.array(LEVELS)[:, np.newaxis]).mean(axis=0))
    # An adversary that knows the pairs reaches 2 exactly; a random choice hits some pairs twice, a share ε of them.
    verdict, erratum = judge(
        printed=factor.meets(0.0, 0.5), corrected=factor.meets(2 - max(LEVELS), 2.0), erratum="A12"
    )
    return Verdict(
        CLAIM.claim,
        "After pairing, the condition on the contamination is one on ε/2.",
        f"bad pairs over bad samples: {factor} (a random choice of samples; at most 2)",
        f"99%: {factor.interval}",
        verdict,
        erratum,
        part="pairing",
        data={
            "levels": list(LEVELS),
            "factor": list(factor),
            "figure": chart(
                "Theorem B.1: contamination of the pairs",
                "ε of the samples",
                "share of bad pairs",
                series("measured", LEVELS, counts.mean(axis=1)),
                series("2ε", LEVELS, 2 * np.array(LEVELS), style="line"),
                series("ε/2, as printed", LEVELS, np.array(LEVELS) / 2, style="line"),
            ),
        },
    )


def _bad_pairs(task: tuple[float, int]) -> float:
    level, seed = task
    world = simulate.make_world(2, SAMPLES, contamination=level, attack="decoy", seed=seed)
    pairs = SAMPLES // 2
    return float((world.touched[:pairs] | world.touched[pairs:]).mean())


EXPERIMENTS = (
    Experiment(CLAIM.claim, "in the ball", ball),
    Experiment(CLAIM.claim, "samples needed", needed, in_quick=False),
    Experiment(CLAIM.claim, "pairing", pairing),
)
