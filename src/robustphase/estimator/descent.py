"""Descent along robust gradients: the paper's constant steps, or Newton's on fresh batches.

Reusing all samples in every iteration, the robust mean may take away other samples each time, and the iterates then wander
within the accuracy of that mean instead of coming to rest. So a descent has also settled when its gradients are shorter than
that accuracy and have stopped getting shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robustphase.descend.gradients import gradient_points, robust_gradient
from robustphase.estimator.advice import ESCAPE, descent_advice, escape_advice
from robustphase.estimator.records import Clock, Iteration, gradient_record
from robustphase.means import MeanResult
from robustphase.means.estimate import HIGHEST_LEVEL, confident_level
from robustphase.population import newton_step, paper_step
from robustphase.rows import MemoryRows, rows_at
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: Longest Newton step, relative to the signal.
LONGEST_STEP = 0.4
#: Iterations over which gradients must have become shorter, and by which factor, to count as still falling.
WINDOW, FALLING = 8, 0.8

Note = Callable[[Iteration], None]


@dataclass
class Settings:
    """How to descend; the names are those of the estimator's parameters."""

    contamination: float
    noise_mean: str
    mean_estimator: str
    step: str
    batches: int
    delta: float
    max_iter: int
    tol: float
    seed: int

    @property
    def paired(self) -> bool:
        """Whether samples are paired, as the paper does when the noise mean is unknown."""
        return self.step == "paper" and self.noise_mean == "unknown"


@dataclass
class Descent:
    """How a descent ended.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        The last iterate.
    weights : ndarray of shape (m,)
        Weight of every sample when it was last used.
    message : str
        Empty if it settled; otherwise the likely cause and what to try.
    records : list of Iteration
        One per step.
    """

    signal: Array
    weights: Array
    message: str = ""
    records: list[Iteration] = field(default_factory=list)


def descend(samples: Samples, start: Array, settings: Settings, clock: Clock, note: Note) -> Descent:
    """Take robust steps from ``start``, which is not zero."""
    size = paper_step(start, noise_mean="unknown" if settings.paired else "zero")
    outcome = Descent(start, np.ones(samples.responses.size))
    length = float(np.linalg.norm(start))
    last: MeanResult | None = None
    for rows, batch in _batches(samples, settings):
        warm = last if settings.batches == 1 else None
        last = batch_gradient(batch, outcome.signal, settings, start=warm)
        move = size * last.location if settings.step == "paper" else newton(outcome.signal, last, settings.noise_mean)
        outcome.signal = outcome.signal - move
        used = sample_weights(last, settings)
        outcome.weights[rows.start : rows.start + used.size] = used
        outcome.records.append(gradient_record("descent", last, move, outcome.signal, *clock.now()))
        note(outcome.records[-1])
        reached = float(np.linalg.norm(outcome.signal))
        if not reached <= ESCAPE * length:
            outcome.signal, outcome.message = start, escape_advice(length, reached)
            return outcome
        if settings.batches == 1 and _settled(outcome.records, last, settings.tol):
            return outcome
    if settings.batches == 1:
        outcome.message = descent_advice(outcome.records, settings.tol)
    return outcome


def batch_gradient(
    batch: Samples, signal: Array, settings: Settings, *, background: float = 0.0, start: MeanResult | None = None
) -> MeanResult:
    """Robust mean of the gradients of one batch."""
    view = gradient_points(batch.source, batch.responses, signal, background=background, paired=settings.paired)
    epsilon = min(2 * settings.contamination, HIGHEST_LEVEL) if settings.paired else settings.contamination
    return robust_gradient(
        view,
        confident_level(epsilon, settings.delta, view.shape[0]),
        mean_estimator=settings.mean_estimator,
        start=start,
        random_state=settings.seed,
    )


def sample_weights(gradient: MeanResult, settings: Settings) -> Array:
    """Weights of the samples, from those of the gradients: both samples of a pair get its weight."""
    return np.concatenate((gradient.weights, gradient.weights)) if settings.paired else gradient.weights


def newton(signal: Array, gradient: MeanResult, noise_mean: str) -> Array:
    """A population-Newton step, limited in length; to be subtracted."""
    move: Array = newton_step(
        signal,
        gradient.location,
        noise_mean="unknown" if noise_mean == "unknown" else "zero",
        max_relative_length=LONGEST_STEP,
    )
    return move


def _settled(records: list[Iteration], gradient: MeanResult, tol: float) -> bool:
    if records[-1].moved <= tol:
        return True
    if len(records) < 2 * WINDOW:
        return False
    lengths = np.array([record.gradient_norm for record in records[-2 * WINDOW :]])
    accuracy = np.sqrt(max(gradient.contamination, 1 / gradient.weights.size) * max(gradient.top_variance, 0.0))
    wandering = lengths[WINDOW:].mean() > FALLING * lengths[:WINDOW].mean()
    return bool(wandering and lengths[WINDOW:].max() < accuracy)


def _batches(samples: Samples, settings: Settings) -> Iterator[tuple[slice, Samples]]:
    """All samples again and again, or disjoint batches, each with the range of rows it holds."""
    m = samples.responses.size
    if settings.batches == 1:
        for _ in range(settings.max_iter):
            yield slice(0, m), samples
        return
    size = m // settings.batches
    for index in range(settings.batches):
        rows = slice(index * size, (index + 1) * size)
        # A batch is a small part of the data, so it may be made.
        source = MemoryRows(rows_at(samples.source, np.arange(rows.start, rows.stop)))
        yield rows, Samples(source, samples.responses[rows], samples.dropped[rows])


def check_batches(batches: int, m: int, n: int) -> None:
    """Refuse batches with fewer samples than unknowns."""
    if m // batches < n:
        raise ValueError(
            f"batches={batches} leaves {m // batches} samples in each, fewer than the {n} unknowns. "
            f"Use at most {m // n} batches."
        )


def settings_of(estimator: Any, contamination: float, seed: int) -> Settings:
    """The settings of an estimator, with its level and seed made definite."""
    names = ("noise_mean", "mean_estimator", "step", "batches", "delta", "max_iter", "tol")
    return Settings(contamination=contamination, seed=seed, **{name: getattr(estimator, name) for name in names})
