"""The two ways to fit, with one result: the recovery engine, and a descent along robust gradients.

Reusing all samples in every iteration, the robust mean may take away other samples each time, and the iterates then wander
within the accuracy of that mean instead of coming to rest. So a descent has also settled when its gradients are shorter than
that accuracy and have stopped getting shorter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustphase.descend.robust_gradient import DescentRule, robust_descent
from robustphase.estimator.advice import (
    ESCAPE,
    descent_advice,
    engine_advice,
    escape_advice,
    many_advice,
    many_model_advice,
    nothing_advice,
    stopped_advice,
    zero_start_advice,
)
from robustphase.estimator.history import Clock, Iteration, Note, certificate_record, stage_record, step_record
from robustphase.estimator.inputs import check_batches
from robustphase.estimator.progress import Progress
from robustphase.initialise.start import spectral_init
from robustphase.likelihood import initial_model
from robustphase.likelihood.laws import CurvedNoise
from robustphase.means import MeanResult
from robustphase.means.estimate import confident_level
from robustphase.population import paper_step
from robustphase.problem import PROBLEM, Grouping, kept
from robustphase.recover import Known, Recovery, recover
from robustphase.recover.certificate import Answers, Certificates, certify
from robustphase.recover.drift import DRIFT, Drift, find_drift, no_drift
from robustphase.recover.law_engine import Detector
from robustphase.recover.model_check import CHECKS, ModelCheck, Told, certificate_factor, check_model, sampling_error
from robustphase.recover.model_figures import RIVAL_AUTO, FittedSamples, measure
from robustphase.rows import MemoryRows, project, rows_at
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.rows.watching import tell_finished, tell_found
from robustphase.validation import Samples

#: Iterations over which gradients must have become shorter, and by which factor, to count as still falling.
WINDOW, FALLING = 8, 0.8
#: A signal with less energy than this fraction of the typical response is rounding error.
NOTHING = 1e-9


@dataclass(frozen=True)
class Settings:
    """How to fit; the names are those of the estimator's parameters, with a definite seed."""

    contamination: float | str
    noise_mean: str
    init: Any
    mean_estimator: str
    step: str
    batches: int
    polish: bool
    delta: float
    max_iter: int
    tol: float
    whiten: bool | str
    field: str
    seed: int
    detector: Detector | None = None
    groupings: tuple[Grouping, ...] = ()

    @property
    def unknown_mean(self) -> bool:
        """Whether the noise may have a mean."""
        return self.noise_mean == "unknown"

    def rule(self, contamination: float, start: Array) -> DescentRule:
        """The steps of a descent from ``start``: those of Algorithm 2 or 4, or Newton's."""
        as_published = self.step == "paper"
        noise_mean: Any = self.noise_mean
        return DescentRule(
            contamination,
            self.delta,
            mean_estimator=self.mean_estimator,
            paired=as_published and self.unknown_mean,
            step_size=paper_step(start, noise_mean=noise_mean) if as_published else None,
            unknown_mean=self.unknown_mean,
            random_state=self.seed,
        )


@dataclass(frozen=True)
class Fitted:
    """What a fit found, one column for each signal.

    Attributes
    ----------
    recovery : Recovery
        The answers as the engine or the descent left them.
    signals : ndarray of shape (n, p)
        The answers as the robust gradient vouches for them.
    radii, levels, noise_means : ndarray of shape (p,)
        Certificates, contamination used or found, and noise means.
    converged : ndarray of bool, shape (p,)
        Whether each settled.
    message : str
        What to warn of, if anything.
    checks : tuple of ModelCheck
        The test of each one's model.
    drift : Drift, optional
        What drifts over the rows, where that was asked for.
    """

    recovery: Recovery
    signals: Array
    radii: Array
    levels: Array
    noise_means: Array
    converged: Array
    message: str = ""
    checks: tuple[ModelCheck, ...] = ()
    drift: Drift | None = None


def fit(
    samples: Samples,
    start: Array | None,
    settings: Settings,
    clock: Clock,
    note: Note,
    detector: Detector | None = None,
) -> Fitted:
    """Fit samples whose responses have shape (m,) or (m, p) as the settings say.

    Parameters
    ----------
    samples : Samples
        The data.
    start : ndarray of shape (n,), optional
        A starting point that was given.
    settings : Settings
        How to fit.
    clock : Clock
        Passes and seconds so far.
    note : callable
        Takes every record of the history.
    detector : Detector, optional
        What is known of how the responses were read.
    """
    settings = replace(settings, detector=detector)
    if detector is not None and detector.drifting:
        return _with_drift(samples, start, settings, clock, note)
    return _fit_once(samples, start, settings, clock, note)


def as_far_as_it_got(samples: Samples, signals: Array, settings: Settings, progress: Progress) -> Fitted:
    """The answers of a fit that was ended, without what the rest of it would have found.

    Nobody has weighed the samples, so as many as were said to be bad are taken to be bad: those with the largest residuals.
    """
    responses, p = _columns(samples.responses), signals.shape[1]
    unread = _columns(_unread(samples, settings)) | np.zeros_like(responses, bool)
    level = PROBLEM.auto_level if isinstance(settings.contamination, str) else settings.contamination
    residuals = np.where(unread, np.nan, responses - abs2(project(samples.source, signals)))
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
        broad=np.zeros(p, bool),
        covariate_weights=(~unread).astype(np.float64),
        residual_weights=weights,
        probabilities=weights,
        predictions=np.empty((0, p)),
        shared=(None,) * nobody,
    )
    means = centres if settings.unknown_mean else np.zeros(p)
    fitted = Fitted(found, signals, np.full(p, np.inf), levels, means, np.zeros(p, bool))
    checked = with_model_check(samples, fitted, settings)
    return replace(checked, radii=np.full(p, np.inf), message=stopped_advice(progress.stage, progress.passes))


def _with_drift(samples: Samples, start: Array | None, settings: Settings, clock: Clock, note: Note) -> Fitted:
    """The fit to responses without their drift, which is read from the residuals of the fit before."""
    read = _columns(samples.responses)
    drift = no_drift(read.shape)
    fitted = _fit_once(samples, start, settings, clock, note)
    for _ in range(DRIFT.rounds - 1):
        found = fitted.recovery
        weights = np.where(_columns(_unread(samples, settings)), 0.0, found.residual_weights)
        energies = found.predictions if len(found.predictions) else abs2(project(samples.source, fitted.signals))
        last, drift = drift, find_drift(read, energies, weights)
        change = drift.corrected(read) - last.corrected(read)
        scale = np.maximum(found.noise.scales, np.finfo(np.float64).tiny)
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
    by_engine = settings.step == "newton" and settings.batches == 1
    if by_engine:
        start = _find_start(samples, settings.contamination, settings) if start is None else start
        if start is not None and not np.any(start):
            fitted = _give_up(samples, start, settings, clock, note)
        else:
            fitted = _by_engine(samples, start, settings, clock, note)
    else:
        fitted = _by_descent(samples, start, settings, clock, note)
    return with_model_check(samples, fitted, settings)


def with_model_check(samples: Samples, fitted: Fitted, settings: Settings) -> Fitted:
    """The same answers with a test of their model: where it fails severely nothing has converged and nothing is certified."""
    found, responses = fitted.recovery, _columns(samples.responses)
    is_complex, curved = np.iscomplexobj(fitted.signals), isinstance(found.noise, CurvedNoise)
    figures, design = measure(
        FittedSamples(
            samples.source,
            responses,
            found.weights,
            np.broadcast_to(found.covariate_weights, found.weights.shape),
            _unread(samples, settings),
            fitted.signals,
            found.initial_signals,
            found.backgrounds,
            found.noise.scales,
            fitted.levels,
            settings.unknown_mean or curved,
            # Without a stated level only a rival that explains about as much as the answer is of interest.
            np.full(
                fitted.levels.size, RIVAL_AUTO if isinstance(settings.contamination, str) else settings.contamination
            ),
            _spreads(found),
            counts=found.noise.kind == "poisson",
            # They belong to the answers as the engine left them, which the certificate seldom moves.
            predictions=found.predictions
            if len(found.predictions) and np.array_equal(found.signals, fitted.signals)
            else None,
        ),
        seed=settings.seed,
    )
    figures = [one._replace(efficient=noise) for one, noise in zip(figures, _efficient_noise(found), strict=True)]
    nothing = _without_signal(responses, fitted.signals)
    # Counts have a background of their own, the dark ones; of other readings none was told.
    known = not (settings.unknown_mean or found.noise.kind == "poisson")
    detector = settings.detector
    descended = settings.step == "paper" or settings.batches > 1
    told = Told(
        settings.contamination,
        # A descent of its own steps takes the rows as they are unless told otherwise.
        settings.whiten is True or (settings.whiten == "auto" and not descended),
        is_complex,
        not known,
        rough=not settings.polish,
        drifting=detector is not None and detector.drifting,
        additive=detector is not None and detector.noise == "additive",
    )
    checks = tuple(
        check_model(one, design, told, no_signal=bool(none)) for one, none in zip(figures, nothing, strict=True)
    )
    factors = np.array([certificate_factor(check, design) for check in checks])
    least = CHECKS.sampling * np.array([sampling_error(one, design, is_complex) for one in figures]) * settings.polish
    with np.errstate(invalid="ignore"):
        # Exact fits have certificates of zero, which no factor makes larger, unless there is no certificate at all.
        radii = np.where(np.isinf(factors), np.inf, np.maximum(fitted.radii, least) * factors)
    radii = np.where(np.isnan(fitted.radii) & np.isfinite(factors), np.nan, radii)
    severe = np.array([check.severe for check in checks])
    message = fitted.message
    # Of a missing signal the fit has spoken already, and a descent of its own steps.
    if (severe & ~nothing).any() and not (descended and message):
        message = checks[0].message if severe.size == 1 else many_model_advice(checks)
    return replace(fitted, radii=radii, converged=fitted.converged & ~severe, message=message, checks=checks)


def _unread(samples: Samples, settings: Settings) -> Array:
    """Samples whose responses cannot be compared with predictions: dropped, or censored."""
    censored = None if settings.detector is None else settings.detector.censored
    unread: Array = samples.dropped if censored is None else samples.dropped | censored.reshape(samples.dropped.shape)
    return unread


def _spreads(found: Recovery) -> Array | None:
    """Standard deviation of every sample over the typical one, where the noise depends on the signal."""
    noise = found.noise
    if not isinstance(noise, CurvedNoise):
        return None
    variances = noise.variance(found.predictions)
    return np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny)) / noise.scales


def certified(
    samples: Samples,
    signals: Array,
    weights: Array,
    levels: Array,
    settings: Settings,
    backgrounds: Array | None = None,
) -> tuple[Certificates, Array]:
    """The certificates of answers (n, p) with weights of the samples (m, p), and their noise means.

    Backgrounds are given where the law of the noise knows its mean.
    """
    responses = _columns(samples.responses)
    means = np.zeros(levels.size) if backgrounds is None else backgrounds
    if backgrounds is None and settings.unknown_mean:
        means = noise_means(samples, signals, weights)
    m = samples.source.shape[0]
    unread = _unread(samples, settings)
    weights = np.where(_columns(unread), 0.0, weights) if unread.any() else weights
    # Unless a contamination was told, the engine has allowed for this much.
    assumed = np.maximum(levels, PROBLEM.auto_level) if isinstance(settings.contamination, str) else levels
    confident = np.array([float(confident_level(float(level), settings.delta, m)) for level in assumed])
    unknown = settings.unknown_mean or backgrounds is not None
    answers = Answers(samples.source, responses, weights, signals, means, confident, unknown)
    return certify(answers, mean_estimator=settings.mean_estimator, random_state=settings.seed), means


def noise_means(samples: Samples, signals: Array, weights: Array) -> Array:
    """Mean residual of the samples that are kept, for each signal.

    Where the fitted noise law has its peak would not do: for skewed noise that is not the mean.
    """
    responses = _columns(samples.responses)
    residuals = responses - abs2(project(samples.source, signals))
    keep = kept(weights)
    residuals[~keep] = 0
    means: Array = residuals.sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
    return np.where(keep.any(axis=0), means, np.median(responses, axis=0))


def _by_engine(samples: Samples, start: Array | None, settings: Settings, clock: Clock, note: Note) -> Fitted:
    _, before = clock.now()
    found = _run_engine(samples, settings.contamination, start, settings)
    for stage in found.history:
        note(stage_record(stage, clock, before))
    fitted = _with_certificates(samples, found, settings, clock, note)
    nothing = _without_signal(_columns(samples.responses), fitted.signals)
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
    signal, weights, message = _descend(samples, start, level, settings, clock, note)
    if settings.polish:
        found = _run_engine(samples, level, signal, settings)
        passes, seconds = clock.now()
        note(Iteration("polish", moved=found.history[-1].moved, passes=passes, seconds=seconds))
    else:
        found = _as_descended(samples, signal, weights, level)
    found = replace(found, initial_signals=start[:, np.newaxis], contaminations=np.array([level]))
    fitted = _with_certificates(samples, found, settings, clock, note)
    return replace(fitted, converged=np.array([not message]), message=message)


def _efficient_noise(found: Recovery) -> Array:
    """Standard deviations of even noise that would leave as much information as the fitted laws do; NaN for even noise."""
    if found.slopes is None:
        return np.full(found.contaminations.size, np.nan)
    energy = np.maximum(found.predictions.sum(axis=0), np.finfo(np.float64).tiny)
    information = np.maximum((found.slopes * found.predictions).sum(axis=0) / energy, 1e-200)
    noise: Array = 1 / np.sqrt(information)
    return noise


def _with_certificates(samples: Samples, found: Recovery, settings: Settings, clock: Clock, note: Note) -> Fitted:
    level, p = settings.contamination, found.contaminations.size
    levels = found.contaminations if isinstance(level, str) else np.full(p, level)
    curved = isinstance(found.noise, CurvedNoise)
    certificates, means = certified(
        samples, found.signals, found.weights, levels, settings, found.backgrounds if curved else None
    )
    note(certificate_record(certificates, clock))
    # Only the likelihood fit can leave the ball; a descent ends where robust gradients lead it.
    signals = certificates.signals if settings.polish else found.signals
    return Fitted(found, signals, certificates.radii, levels, means, found.converged)


def _descend(
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


def _as_descended(samples: Samples, signal: Array, weights: Array, level: float) -> Recovery:
    """The outcome of a descent without a likelihood fit, in the words of the engine."""
    residuals = samples.responses - abs2(project(samples.source, signal))
    centre = float(np.median(residuals))
    scale = np.array([np.median(np.abs(residuals - centre))])
    weights = np.where(samples.dropped, 0.0, weights)[:, np.newaxis]
    levels = np.array([level])
    return Recovery(
        signals=signal[:, np.newaxis],
        initial_signals=signal[:, np.newaxis],
        backgrounds=np.array([centre]),
        weights=weights,
        contaminations=levels,
        noise=initial_model(scale, levels),
        converged=np.ones(1, bool),
        broad=np.zeros(1, bool),
        covariate_weights=(~samples.dropped[:, np.newaxis]).astype(np.float64),
        residual_weights=weights,
        probabilities=weights,
        predictions=np.empty((0, 1)),
    )


def _give_up(samples: Samples, start: Array, settings: Settings, clock: Clock, note: Note) -> Fitted:
    """Nothing can be done from a start of zero."""
    level = 0.0 if isinstance(settings.contamination, str) else settings.contamination
    passes, seconds = clock.now()
    note(Iteration("start", passes=passes, seconds=seconds))
    found = _as_descended(samples, start, np.ones(samples.responses.size), level)
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


def _without_signal(responses: Array, signals: Array) -> Array:
    """Which columns of responses say nothing: all alike, as a dead pixel reports them, so that a signal of zero explains them.

    The certificate would not tell: it is relative to the norm of the signal, and without residuals it is zero.
    """
    sizes = np.abs(responses)
    typical = np.median(sizes, axis=0)
    typical = np.where(typical > 0, typical, sizes.mean(axis=0))
    energies = np.linalg.norm(signals, axis=0) ** 2
    # Written so that numbers which underflowed on the way, and became NaN, count as nothing too.
    nothing: Array = ~(energies > NOTHING * np.where(typical > 0, typical, 1.0))
    return nothing


def _columns(values: Array) -> Array:
    return values.reshape(len(values), -1)
