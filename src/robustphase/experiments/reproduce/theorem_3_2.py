"""Theorem 3.2: the start of Procedure 1 from the covariance of y a."""

from __future__ import annotations

from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.starts import StartClaim, in_the_ball, needed_samples
from robustphase.experiments.reproduce.verdict import Verdict

CLAIM = StartClaim("Theorem 3.2", "covariance", paired=False, ball=1 / 9, C1=0.004, C2=2000)


def ball(crew: Crew, quick: bool) -> Verdict:
    """Starts in the ball."""
    return in_the_ball(CLAIM, crew, dimensions=(5, 10, 20), seeds=20 if quick else 100)


def needed(crew: Crew, quick: bool) -> Verdict:
    """Growth of the needed sample size."""
    return needed_samples(CLAIM, crew, dimensions=(5, 10, 20) if quick else (5, 10, 20, 40), seeds=10 if quick else 50)


EXPERIMENTS = (
    Experiment(CLAIM.claim, "in the ball", ball),
    Experiment(CLAIM.claim, "samples needed", needed),
)
