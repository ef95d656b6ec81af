"""Theorem B.3: the error of Algorithm 4."""

from __future__ import annotations

from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.descents import (
    DescentClaim,
    against_contamination,
    against_noise,
    against_samples,
    against_steps,
)
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.verdict import Verdict

CLAIM = DescentClaim("Theorem B.3", algorithm=4, ball=1 / 6)


def steps(crew: Crew, quick: bool) -> Verdict:
    """Error against T."""
    return against_steps(CLAIM, crew, steps=(4, 10, 16, 22, 28), seeds=8 if quick else 50)


def samples(crew: Crew, quick: bool) -> Verdict:
    """Error against m."""
    sizes = (1000, 2000, 4000, 8000) if quick else (1000, 2000, 4000, 8000, 16000)
    return against_samples(CLAIM, crew, sizes=sizes, seeds=8 if quick else 40, T=20 if quick else 30)


def noise(crew: Crew, quick: bool) -> Verdict:
    """Error against σ."""
    levels = (0.05, 0.125, 0.3, 0.8) if quick else (0.05, 0.1, 0.2, 0.4, 0.8)
    return against_noise(CLAIM, crew, levels=levels, seeds=6 if quick else 30, T=24 if quick else 30)


def contamination(crew: Crew, quick: bool) -> Verdict:
    """Error against ε; pairs are contaminated twice as much."""
    levels = (0.005, 0.015, 0.045) if quick else (0.0025, 0.005, 0.01, 0.02, 0.04)
    return against_contamination(CLAIM, crew, levels=levels, seeds=6 if quick else 20, T=20 if quick else 30)


EXPERIMENTS = tuple(
    Experiment(CLAIM.claim, part, run)
    for part, run in (
        ("error against T", steps),
        ("error against m", samples),
        ("error against σ", noise),
        ("error against ε", contamination),
    )
)
