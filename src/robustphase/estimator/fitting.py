"""The two ways to fit, with one result: the recovery engine, and a descent along robust gradients.

The descent takes the steps of Algorithms 2 and 4, or Newton's, on all samples or on fresh batches. Reusing all samples in every
iteration, the robust mean may take away other samples each time, and the iterates then wander within the accuracy of that mean
instead of coming to rest. So a descent has also settled when its gradients are shorter than that accuracy and have stopped
getting shorter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from robustphase.constants import TINY
from robustphase.descend.robust_gradient import robust_descent
from robustphase.estimator.advice import (
    ESCAPE,
    descent_advice,
    engine_advice,
    escape_advice,
    many_advice,
    nothing_advice,
    stopped_advice,
    zero_start_advice,
)
from robustphase.estimator.certifying import with_certificates
from robustphase.estimator.fitted import Fitted, Settings, as_columns, unread
from robustphase.estimator.history import Clock, Iteration, Note, stage_record, step_record
from robustphase.estimator.inputs import check_batches
from robustphase.estimator.model_checking import with_model_check, without_signal
from robustphase.estimator.progress import Progress
from robustphase.initialise.start import spectral_init
from robustphase.likelihood import initial_model
from robustphase.means import MeanResult
from robustphase.problem import PROBLEM
from robustphase.recover import Known, Recovery, recover
from robustphase.recover.drift import DRIFT, find_drift, no_drift
from robustphase.recover.law.answers import Detector
from robustphase.recover.model.residuals import located
from robustphase.recover.recovery import unasked
from robustphase.rows import MemoryRows, project, rows_at
from robustphase.rows.products import abs2
from robustphase.rows.source import Array
from robustphase.rows.watching import tell_finished, tell_found
from robustphase.validation import Samples


def fit(
    samples: Samples,
    start: Array | None,
    settings: Settings,
    clock: Clock,
    note: Note,
    detector: Detector | None = None,
) -> Fitted:
    """Fit samples whose responses have shape (m,) or (m, p), from a start (n,) if one was given.

    ``note`` takes every record of the history, ``detector`` says what is known of how the responses were read.
    """
    settings = replace(settings, detector=detector)
    if detector is not None and detector.drifting:
        return _with_drift(samples, start, settings, clock, note)
    return _fit_once(samples, start, settings, clock, note)


def as_far_as_it_got(samples: Samples, signals: Array, settings: Settings, progress: Progress) -> Fitted:
    """The answers of a fit that was ended, without what the rest of it would have found.

    Nobody has weighed the samples, so as many as were said to be bad are taken to be bad: those with the largest residuals.
    """
    responses, p = as_columns(samples.responses), signals.shape[1]
    hidden = as_columns(unread(samples, settings)) | np.zeros_like(responses, bool)
    level = PROBLEM.auto_level if isinstance(settings.contamination, str) else settings.contamination
    residuals = np.where(hidden, np.nan, responses - abs2(project(samples.source, signals)))
    centres = np.nanmedian(residuals, axis=0)
    sizes = np.abs(residuals - centres)
    weights = (sizes <= np.nanquantile(sizes, 1 - level, axis=0)).astype(np.float64)
    levels = np.full(p, level)
    nobody = len(settings.groupings) + (p > 1)
    found = Recovery(
        signals=signals,
        initial_signals=signals,
        backgrounds=centres,
        weights=weights,
        contaminations=levels,
        noise=initial_model(np.nanmedian(sizes, axis=0), levels),
        converged=np.zeros(p, bool),
        covariate_weights=(~hidden).astype(np.float64),
        residual_weights=weights,
        probabilities=weights,
        predictions=np.empty((0, p)),
        **unasked(p),
        shared=(None,) * nobody,
    )
    means = centres if settings.unknown_mean else np.zeros(p)
    fitted = Fitted(found, signals, np.full(p, np.inf), levels, means, np.zeros(p, bool))
    checked = with_model_check(samples, fitted, settings)
    return replace(checked, radii=np.full(p, np.inf), message=stopped_advice(progress.stage, progress.passes))


def _with_drift(samples: Samples, start: Array | None, settings: Settings, clock: Clock, note: Note) -> Fitted:
    """The fit to responses without their drift, which is read from the residuals of the fit before."""
    read = as_columns(samples.responses)
    drift = no_drift(read.shape)
    fitted = _fit_once(samples, start, settings, clock, note)
    for _ in range(DRIFT.rounds - 1):
        found = fitted.recovery
        weights = np.where(as_columns(unread(samples, settings)), 0.0, found.residual_weights)
        energies = found.predictions if len(found.predictions) else abs2(project(samples.source, fitted.signals))
        last, drift = drift, find_drift(read, energies, weights)
        change = drift.corrected(read) - last.corrected(read)
        scale = np.maximum(found.noise.scales, TINY)
        if (np.sqrt(np.mean(change**2, axis=0)) < DRIFT.settled * scale).all():
            break
        detector = settings.detector
        if detector is not None and drift.any and detector.noise == "poisson":
            # Counts over a gain are no counts, but their variance still follows their mean.
            settings = replace(settings, detector=detector._replace(noise="auto"))
        straight = samples._replace(
            responses=np.where(samples.dropped, 0.0, drift.corrected(read).reshape(samples.responses.shape))
        )
        fitted = _fit_once(straight, start, settings, clock, note)
    return replace(fitted, drift=drift)


def _fit_once(samples: Samples, start: Array | None, settings: Settings, clock: Clock, note: Note) -> Fitted:
    if not settings.descends:
        start = _find_start(samples, settings.contamination, settings) if start is None else start
        if start is not None and not np.any(start):
            fitted = _give_up(samples, start, settings, clock, note)
        else:
            fitted = _by_engine(samples, start, settings, clock, note)
    else:
        fitted = _by_descent(samples, start, settings, clock, note)
    return with_model_check(samples, fitted, settings)


def _by_engine(samples: Samples, start: Array | None, settings: Settings, clock: Clock, note: Note) -> Fitted:
    _, before = clock.now()
    found = _run_engine(samples, settings.contamination, start, settings)
    for stage in found.history:
        note(stage_record(stage, clock, before))
    fitted = with_certificates(samples, found, settings, clock, note)
    nothing = without_signal(as_columns(samples.responses), fitted.signals)
    message = ""
    if not (fitted.converged & ~nothing).all():
        if nothing.size > 1:
            message = many_advice(fitted.converged, nothing)
        elif nothing[0]:
            message = nothing_advice()
        else:
            message = engine_advice(settings.contamination, found, *samples.source.shape, settings.whiten is not False)
    return replace(
        fitted,
        signals=np.where(nothing, 0.0, fitted.signals),
        # Where the fit did not settle there may be other minima, of which a local curvature says nothing.
        radii=np.where(nothing | ~fitted.converged, np.inf, fitted.radii),
        converged=fitted.converged & ~nothing,
        message=message,
    )


def _by_descent(samples: Samples, start: Array | None, settings: Settings, clock: Clock, note: Note) -> Fitted:
    check_batches(settings.batches, *samples.source.shape)
    level = settings.contamination
    if isinstance(level, str):
        # The robust means of a descent need a number; the engine finds one.
        level = float(_run_engine(samples, level, None, settings).contaminations[0])
    start = _find_start(samples, level, settings) if start is None else start
    if start is None:
        start = _run_engine(samples, level, None, settings, polish=False).signal
    if not np.any(start):
        return _give_up(samples, start, settings, clock, note)
    signal, weights, message = descend(samples, start, level, settings, clock, note)
    if settings.polish:
        found = _run_engine(samples, level, signal, settings)
        passes, seconds = clock.now()
        note(Iteration("likelihood", moved=found.history[-1].moved, passes=passes, seconds=seconds))
    else:
        found = as_descended(samples, signal, weights, level)
    found = replace(found, initial_signals=start[:, np.newaxis], contaminations=np.array([level]))
    fitted = with_certificates(samples, found, settings, clock, note)
    return replace(fitted, converged=np.array([not message]), message=message)


def _give_up(samples: Samples, start: Array, settings: Settings, clock: Clock, note: Note) -> Fitted:
    """Nothing can be done from a start of zero."""
    level = 0.0 if isinstance(settings.contamination, str) else settings.contamination
    passes, seconds = clock.now()
    note(Iteration("start", passes=passes, seconds=seconds))
    found = as_descended(samples, start, np.ones(samples.responses.size), level)
    means = found.backgrounds if settings.unknown_mean else np.zeros(1)
    return Fitted(
        replace(found, backgrounds=np.zeros(1)),
        found.signals,
        np.array([np.inf]),
        np.array([level]),
        means,
        np.zeros(1, bool),
        zero_start_advice(settings.init),
    )


def _find_start(samples: Samples, level: float | str, settings: Settings) -> Array | None:
    """The starting point, or None where the engine looks for candidates itself."""
    if isinstance(settings.init, str) and settings.init == "auto" and settings.step == "newton":
        return None
    return spectral_init(
        samples.source,
        # Dropped samples read as zero, and a zero would count as a response.
        np.where(samples.dropped, np.nan, samples.responses),
        level,
        settings.noise_mean,
        settings.init,
        delta=settings.delta,
        whiten=False,
        nonfinite="drop",
        random_state=settings.seed,
        field="complex" if samples.paired else "auto",
    ).signal


def _run_engine(
    samples: Samples, level: float | str, start: Array | None, settings: Settings, *, polish: bool | None = None
) -> Recovery:
    return recover(
        samples,
        level,
        unknown_mean=settings.unknown_mean,
        start=start,
        with_polish=settings.polish if polish is None else polish,
        known=Known(settings.detector, settings.groupings),
        seed=settings.seed,
    )


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
        **unasked(1),
    )
