"""Theorem B.2: the start of Procedure 3 from the covariance of υ b, and why its scale needs another estimate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from robustphase import paper, simulate
from robustphase.experiments.reproduce.attacks import scale_adversary
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.intervals import slope
from robustphase.experiments.reproduce.starts import BACKGROUND, DELTA, SIGMA, StartClaim, in_the_ball, needed_samples
from robustphase.experiments.reproduce.verdict import Verdict, judge
from robustphase.means import robust_mean

CLAIM = StartClaim("Theorem B.2", "covariance", paired=True, ball=1 / 6, C1=0.002, C2=4000)
#: Contamination at which the scale is estimated in growing dimensions, and samples.
LEVEL, SAMPLES = 0.005, 60_000
#: An exponent of the error below this counts as independent of the dimension.
FLAT = 0.1


def ball(crew: Crew, quick: bool) -> Verdict:
    """Starts in the ball."""
    return in_the_ball(CLAIM, crew, dimensions=(5, 10) if quick else (5, 10, 20), seeds=20 if quick else 100)


def needed(crew: Crew, quick: bool) -> Verdict:
    """Growth of the needed sample size."""
    return needed_samples(CLAIM, crew, dimensions=(5, 10, 20, 40), seeds=50)


def scale(crew: Crew, quick: bool) -> Verdict:
    """The scale estimate at a constant contamination."""
    return measure_scale(
        crew, dimensions=(8, 32, 128) if quick else (8, 16, 32, 64, 128, 256), seeds=8 if quick else 20
    )


def measure_scale(crew: Crew, *, dimensions: Sequence[int], seeds: int) -> Verdict:
    """Error of the estimated ‖x*‖² against n, as printed and by the remedy, each against its own adversary."""
    errors = np.array([crew.map(_scale_errors, [(n, seed) for seed in range(seeds)]) for n in dimensions])
    printed, remedy = (slope(np.log(dimensions), np.log(errors[:, :, which]).T) for which in (0, 1))
    verdict, erratum = judge(
        printed=printed.meets(-np.inf, FLAT),
        corrected=printed.meets(FLAT, 0.5) and remedy.meets(-np.inf, FLAT),
        erratum="A5",
    )
    middle = np.median(errors, axis=1)
    return Verdict(
        CLAIM.claim,
        "The scale estimate of Procedure 3 (robust mean of υ bᵀc) tolerates a contamination that does not depend on n.",
        f"at ε={LEVEL:g} the error of ‖x*‖² goes from {middle[0, 0]:.2g} (n={dimensions[0]}) to {middle[-1, 0]:.2g} "
        f"(n={dimensions[-1]}), exponent {printed}; along the direction found, υ(b·u)(c·u), from {middle[0, 1]:.2g} to "
        f"{middle[-1, 1]:.2g}, exponent {remedy}",
        f"99%: {printed.interval} and {remedy.interval}",
        verdict,
        erratum,
        part="scale",
        data={
            "dimensions": list(dimensions),
            "exponent": list(printed),
            "remedy_exponent": list(remedy),
            "figure": chart(
                "Theorem B.2: error of the scale at constant contamination",
                "n",
                "error / ‖x*‖²",
                series("υ bᵀc, as printed", dimensions, middle[:, 0]),
                series("υ(b·u)(c·u)", dimensions, middle[:, 1]),
                log_x=True,
                log_y=True,
            ),
        },
    )


def _scale_errors(task: tuple[int, int]) -> tuple[float, float]:
    """Error of ‖x*‖² as printed, and of (u·x*)² along the direction u of the start; the truth has norm 1."""
    n, seed = task
    truth = simulate.random_signal(n, seed=seed)
    oracle = partial(simulate.SampleOracle, truth, noise_std=SIGMA, noise_mean=BACKGROUND, contamination=LEVEL)
    A, y = oracle(attack=scale_adversary(), seed=seed).draw(SAMPLES)
    x0 = paper.procedure_3(A, y, contamination=LEVEL, delta=DELTA, configuration="covariance")
    squared = float(x0 @ x0)
    direction = x0 / np.sqrt(squared) if squared > 0 else truth
    # The remedy asks for other samples than those that gave the direction.
    b, c, upsilon = paper.pair_samples(*oracle(attack=scale_adversary(direction), seed=10_000 + seed).draw(SAMPLES))
    numbers = upsilon * (b @ direction) * (c @ direction)
    remedy = float(robust_mean(numbers[:, np.newaxis], 2 * LEVEL).location[0])
    return abs(squared - 1.0), abs(remedy - float(direction @ truth) ** 2)


EXPERIMENTS = (
    Experiment(CLAIM.claim, "in the ball", ball),
    Experiment(CLAIM.claim, "samples needed", needed, in_quick=False),
    Experiment(CLAIM.claim, "scale", scale),
)
