"""Lemma 2.1: strong convexity and smoothness of the risk for zero-mean noise."""

from __future__ import annotations

from functools import partial

from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.curvature import CurvatureClaim, measure
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.verdict import Verdict

CLAIM = "Lemma 2.1"
CONVEXITY = CurvatureClaim(
    CLAIM,
    "strong convexity",
    "Within ‖x*‖/9 of the truth the risk is 4‖x*‖²-strongly convex.",
    noise_mean="zero",
    side="lower",
    radius=1 / 9,
    printed=4.0,
    corrected=37 / 27,
    erratum="A1",
)
SMOOTHNESS = CurvatureClaim(
    CLAIM,
    "smoothness",
    "Within ‖x*‖/9 of the truth the risk is 73/9 ‖x*‖²-smooth.",
    noise_mean="zero",
    side="upper",
    radius=1 / 9,
    printed=73 / 9,
    corrected=73 / 9,
)


def run(claim: CurvatureClaim, crew: Crew, quick: bool) -> Verdict:
    """Measure one of the two constants; it takes a second, quick or not."""
    return measure(claim, crew)


EXPERIMENTS = tuple(Experiment(CLAIM, claim.part, partial(run, claim)) for claim in (CONVEXITY, SMOOTHNESS))
