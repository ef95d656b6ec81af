"""What ``history_`` holds."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.descend.robust_gradient import DescentStep
from robustphase.recover.certificate import Certificates
from robustphase.recover.recovery import Stage
from robustphase.rows import RowSource


class Iteration(NamedTuple):
    """One record of ``history_``.

    Attributes
    ----------
    stage : str
        What was done: "start", "selection", "finalists", "likelihood", "all samples" (where those before looked at some of very
        many), "second opinion" (where other influences contradicted the answer), "certificate" or "descent"; "check" behind
        many signals; "poisson", "variance" or "additive" for the law of a detector; "amplitudes" behind an operator with columns
        of very different energies; "stopped" where a callback has ended the fit.
    moved : float
        How far the signal moved, relative to its norm.
    gradient_norm : float
        Length of the robust gradient, where one was computed.
    certificate : float
        Variance along the worst direction: of the gradients in a descent, of the displacements they ask for at the end, over the
        squared norm.
    removed : float
        Fraction of the samples taken away by the mean estimator, where one ran.
    score : float
        Mean log-likelihood ratio against no signal, where candidates were compared.
    candidates : int
        Candidates that took part.
    passes : int
        Sweeps over the data so far.
    seconds : float
        Time so far.
    """

    stage: str
    moved: float = np.nan
    gradient_norm: float = np.nan
    certificate: float = np.nan
    removed: float = np.nan
    score: float = np.nan
    candidates: int = 1
    passes: int = 0
    seconds: float = np.nan

    def __str__(self) -> str:
        parts = [f"{self.stage:12s} passes {self.passes:5d}  {self.seconds:7.2f} s"]
        if self.candidates > 1:
            parts.append(f"candidates {self.candidates}")
        for name, value in (("moved", self.moved), ("gradient", self.gradient_norm), ("removed", self.removed)):
            if np.isfinite(value):
                parts.append(f"{name} {value:.2e}")
        return "  ".join(parts)


class Clock:
    """Passes and seconds since a fit began."""

    def __init__(self, source: RowSource) -> None:
        self._source, self._first_pass, self._began = source, source.passes, perf_counter()

    def now(self) -> tuple[int, float]:
        """Passes made and seconds gone."""
        return self.passes_at(self._source.passes), perf_counter() - self._began

    def passes_at(self, count: int) -> int:
        """Passes made when the source had counted this many."""
        return count - self._first_pass

    def moved_to(self, source: RowSource) -> Clock:
        """The same clock on a source that wraps the first one and counts from where it is now."""
        moved = Clock(source)
        moved._first_pass, moved._began = source.passes - self.now()[0], self._began
        return moved


Note = Callable[[Iteration], None]


def step_record(step: DescentStep, clock: Clock) -> Iteration:
    """The record of a step along a robust gradient."""
    passes, seconds = clock.now()
    return Iteration(
        "descent",
        moved=float(np.linalg.norm(step.move)) / max(float(np.linalg.norm(step.signal)), TINY),
        gradient_norm=float(np.linalg.norm(step.gradient.location)),
        certificate=float(step.gradient.top_variance),
        removed=float(step.gradient.removed),
        passes=passes,
        seconds=seconds,
    )


def certificate_record(certificates: Certificates, clock: Clock) -> Iteration:
    """The record of the certificates: of the largest of them, where there are many."""
    passes, seconds = clock.now()
    gradients, count = certificates.gradients, certificates.moved.size
    return Iteration(
        "certificate",
        moved=float(certificates.moved.max()),
        gradient_norm=float(np.linalg.norm(gradients.means, axis=0).max()),
        certificate=float(gradients.variances.max()),
        removed=float(gradients.removed.max()),
        candidates=count,
        passes=passes,
        seconds=seconds,
    )


def stage_record(stage: Stage, clock: Clock, before: float) -> Iteration:
    """The record of a stage of the engine, which began after so many seconds."""
    return Iteration(
        stage.stage,
        moved=stage.moved,
        score=stage.score,
        candidates=stage.candidates,
        passes=clock.passes_at(stage.passes),
        seconds=before + stage.seconds,
    )
