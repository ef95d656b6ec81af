"""Lemma 2.3: strong convexity and smoothness of the risk for an unknown noise mean."""

from __future__ import annotations

from functools import partial

from robustphase.experiments.reproduce.curvature import CurvatureClaim
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.lemma_2_1 import run

CLAIM = "Lemma 2.3"
CONVEXITY = CurvatureClaim(
    CLAIM,
    "strong convexity",
    "Within ‖x*‖/6 of the truth the risk of the paired samples is ‖x*‖²-strongly convex.",
    noise_mean="unknown",
    side="lower",
    radius=1 / 6,
    printed=1.0,
    corrected=25 / 18,
)
SMOOTHNESS = CurvatureClaim(
    CLAIM,
    "smoothness",
    "Within ‖x*‖/6 of the truth the risk of the paired samples is 49/12 ‖x*‖²-smooth.",
    noise_mean="unknown",
    side="upper",
    radius=1 / 6,
    printed=49 / 12,
    corrected=37 / 6,
    erratum="A2",
)
EXPERIMENTS = tuple(Experiment(CLAIM, claim.part, partial(run, claim)) for claim in (CONVEXITY, SMOOTHNESS))
