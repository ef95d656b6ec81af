"""A descent along robust gradients: Algorithms 2 and 4, or Newton's steps, on all samples or on fresh batches.

Reusing all samples in every iteration, the robust mean may take away other samples each time, and the iterates then wander
within the accuracy of that mean instead of coming to rest. So a descent has also settled when its gradients are shorter than
that accuracy and have stopped getting shorter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robustphase.descend.robust_gradient import robust_descent
from robustphase.estimator.advice import ESCAPE, descent_advice, escape_advice
from robustphase.estimator.fitted import Settings
from robustphase.estimator.history import Clock, Iteration, Note, step_record
from robustphase.likelihood import initial_model
from robustphase.means import MeanResult
from robustphase.recover import Recovery
from robustphase.recover.model.residuals import located
from robustphase.rows import MemoryRows, project, rows_at
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.rows.watching import tell_finished, tell_found
from robustphase.validation import Samples

#: Iterations over which gradients must have become shorter, and by which factor, to count as still falling.
WINDOW, FALLING = 8, 0.8


def descend(
    samples: Samples, start: Array, level: float, settings: Settings, clock: Clock, note: Note
) -> tuple[Array, Array, str]:
    """Robust steps until they settle: the signal, the weights of the samples when last used, and what to warn of."""
    rule, length = settings.rule(level, start), float(np.linalg.norm(start))
    weights, records, signal = np.ones(samples.responses.size), [], start
    ranges, batches = _batches(samples, settings)
    for rows, step in zip(ranges, robust_descent(start, batches, rule), strict=True):
        signal, used = step.signal, step.sample_weights(rule)
        weights[rows.start : rows.start + used.size] = used
        records.append(step_record(step, clock))
        note(records[-1])
        tell_finished("descent")
        tell_found(signal[:, np.newaxis])
        reached = float(np.linalg.norm(signal))
        if not reached <= ESCAPE * length:
            return start, weights, escape_advice(length, reached)
        if settings.batches == 1 and _settled(records, step.gradient, settings.tol):
            return signal, weights, ""
    return signal, weights, descent_advice(records, settings.tol) if settings.batches == 1 else ""


def _settled(records: list[Iteration], gradient: MeanResult, tol: float) -> bool:
    if records[-1].moved <= tol:
        return True
    if len(records) < 2 * WINDOW:
        return False
    lengths = np.array([record.gradient_norm for record in records[-2 * WINDOW :]])
    accuracy = np.sqrt(max(gradient.contamination, 1 / gradient.weights.size) * max(gradient.top_variance, 0.0))
    wandering = lengths[WINDOW:].mean() > FALLING * lengths[:WINDOW].mean()
    return bool(wandering and lengths[WINDOW:].max() < accuracy)


def _batches(samples: Samples, settings: Settings) -> tuple[list[slice], Iterator[Samples]]:
    """All samples again and again, or disjoint batches; and the range of rows that each holds."""
    m = samples.responses.size
    if settings.batches == 1:
        return [slice(0, m)] * settings.max_iter, iter([samples] * settings.max_iter)
    size = m // settings.batches
    ranges = [slice(index * size, (index + 1) * size) for index in range(settings.batches)]
    # A batch is a small part of the data, so it may be made.
    return ranges, (
        Samples(
            MemoryRows(rows_at(samples.source, np.arange(rows.start, rows.stop))),
            samples.responses[rows],
            samples.dropped[rows],
        )
        for rows in ranges
    )


def as_descended(samples: Samples, signal: Array, weights: Array, level: float) -> Recovery:
    """The outcome of a descent without a likelihood fit, in the words of the engine."""
    residuals = samples.responses - abs2(project(samples.source, signal))
    centre, scale = located(residuals)
    weights = np.where(samples.dropped, 0.0, weights)[:, np.newaxis]
    levels = np.array([level])
    return Recovery(
        signals=signal[:, np.newaxis],
        initial_signals=signal[:, np.newaxis],
        backgrounds=np.array([centre]),
        weights=weights,
        contaminations=levels,
        noise=initial_model(np.array([scale]), levels),
        converged=np.ones(1, bool),
        covariate_weights=(~samples.dropped[:, np.newaxis]).astype(np.float64),
        residual_weights=weights,
        probabilities=weights,
        predictions=np.empty((0, 1)),
    )
