"""Lemma 2.2 with the constants of Lemma 2.1: how much one step of Algorithm 2 contracts."""

from __future__ import annotations

import numpy as np

from robustphase import population
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.descents import Descent, curves
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.intervals import Estimate, slope
from robustphase.experiments.reproduce.theorem_3_3 import CLAIM as DESCENT
from robustphase.experiments.reproduce.verdict import Verdict, judge

CLAIM = "Lemma 2.2"
#: Strong convexity as printed and corrected, and smoothness, over ‖x*‖².
PRINTED, CORRECTED, SMOOTHNESS = 4.0, 37 / 27, 73 / 9
STEPS = (5, 10, 15, 20)


def factor(convexity: float) -> float:
    """√(1 − 2ηαβ/(α + β)) for the step of Algorithm 2 from a start as long as the truth, where ‖x*‖ = 1."""
    step = float(population.PAPER_STEPS["zero"])
    return population.paper_contraction(step, population.CurvatureRange(convexity, SMOOTHNESS))


def rate(crew: Crew, quick: bool) -> Verdict:
    """Contraction per step."""
    return measure_rate(crew, seeds=6 if quick else 40)


def measure_rate(crew: Crew, *, seeds: int, n: int = 5, m: int = 4000, printed: float = PRINTED) -> Verdict:
    """Factor per step on clean samples with hardly any noise, where the gradients are nearly exact."""
    errors = curves(crew, [Descent(DESCENT, n, m, T, 1e-9) for T in STEPS], seeds)
    found = Estimate(*np.exp(slope(STEPS, np.log(errors))))
    verdict, erratum = judge(
        printed=found.low <= factor(printed), corrected=found.low <= factor(CORRECTED), erratum="A8"
    )
    guides = [(name, factor(alpha)) for name, alpha in ((f"α = {printed:g}", printed), ("α = 37/27", CORRECTED))]
    first = float(np.median(errors[:, 0]))
    return Verdict(
        CLAIM,
        f"A step of Algorithm 2 contracts by √(1 − 2ηαβ/(α + β)) or better with α = {printed:g}‖x*‖² of Lemma 2.1, that is by "
        f"{factor(printed):.2f} from ‖x₀‖ = ‖x*‖.",
        f"factor per step {found}; with α = 37/27‖x*‖² the bound is {factor(CORRECTED):.2f} (n={n}, m={m} clean samples per "
        f"step, {seeds} seeds)",
        f"99%: {found.interval}",
        verdict,
        erratum,
        part="rate",
        data={
            "factor": list(found),
            "printed": factor(printed),
            "corrected": factor(CORRECTED),
            "figure": chart(
                "Lemma 2.2: contraction of Algorithm 2",
                "T",
                "error / ‖x*‖",
                series(
                    "error, all seeds",
                    STEPS,
                    np.median(errors, axis=0),
                    low=errors.min(axis=0),
                    high=errors.max(axis=0),
                ),
                *(
                    series(name, STEPS, [first * q ** (T - STEPS[0]) for T in STEPS], style="line")
                    for name, q in guides
                ),
                log_y=True,
            ),
        },
    )


EXPERIMENTS = (Experiment(CLAIM, "rate", rate),)
