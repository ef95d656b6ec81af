"""Steps on the batches of a stream.

With ``step="paper"`` a step is an iteration of Algorithm 2 (4). Otherwise steps are the engine's own, from the present
signal: screened covariates, weights of the mixture likelihood, population curvature. They need no more samples than the
population's moments do, so a batch may be small, and unlike a robust gradient they lose nothing to trimming; averaged over
batches the estimate keeps improving. The robust gradient then vouches for the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.candidate_steps import advance, at_rest, evaluate, placed
from robustphase.descend.robust_gradient import robust_descent
from robustphase.estimator.certifying import certified, certified_levels, hiding, noise_means
from robustphase.estimator.fitted import Settings
from robustphase.estimator.history import Clock, Iteration, certificate_record, step_record
from robustphase.initialise.standardise import Standardised
from robustphase.initialise.start import screened_problem
from robustphase.likelihood import compare, initial_model
from robustphase.likelihood.comparison import comparison_floor
from robustphase.recover.influence import Shares
from robustphase.recover.model.residuals import located
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: Steps on a batch: iterated weights follow slowly, so one alone goes only part of the way.
STEPS = 3


class Stream(NamedTuple):
    """What a stream has learned: its signal and where it began, centre and mean of the residuals, and batches with this one."""

    signal: Array
    initial_signal: Array
    centre: float
    noise_mean: float
    batches: int


class StreamStep(NamedTuple):
    """Where a batch has moved the stream, and what is said of the batch."""

    #: The stream after the batch.
    signal: Array
    centre: float
    noise_mean: float
    #: (m,): weights of its samples and of its rows.
    weights: Array
    covariate_weights: Array
    radius: float | None  # The certificate; None where there is no new one
    record: Iteration  # For the history


def as_at_first(samples: Samples, standard: Standardised) -> Samples:
    """A batch with rows changed as those of the first were."""
    for change in standard.changes:
        samples = samples._replace(source=change.rows(samples.source))
    return samples._replace(normal=standard.samples.normal)


def averaged_step(stream: Stream, samples: Samples, level: float, settings: Settings, clock: Clock) -> StreamStep:
    """A step on a fresh batch, averaged with all earlier ones."""
    gain = 1.0 / stream.batches
    asked = batch_step(samples, stream.signal, stream.centre, level, settings.seed)
    signal = stream.signal + gain * (asked.signal - stream.signal)
    levels = np.array([level])
    certificates, means = certified(samples, signal[:, np.newaxis], asked.weights, levels, settings)
    # Nobody has found which samples of a batch are bad, so all that may be hide.
    noise = initial_model(np.array([asked.scale]), levels)
    assumed = certified_levels(settings.contamination, levels)
    radii = hiding(signal[:, np.newaxis], noise, Shares(assumed, assumed), settings, certificates.radii)
    return StreamStep(
        certificates.signals[:, 0],
        stream.centre + gain * (asked.centre - stream.centre),
        stream.noise_mean + gain * (float(means[0]) - stream.noise_mean),
        asked.weights[:, 0],
        asked.covariate_weights[:, 0],
        float(radii[0]),
        certificate_record(certificates, clock)._replace(stage="descent"),
    )


def published_step(stream: Stream, samples: Samples, level: float, settings: Settings, clock: Clock) -> StreamStep:
    """One iteration of Algorithm 2 or 4 on a fresh batch."""
    rule = settings.rule(level, stream.initial_signal)
    step = next(robust_descent(stream.signal, [samples], rule))
    weights, used = np.ones(samples.responses.size), step.sample_weights(rule)
    weights[: used.size] = used
    weights = np.where(samples.dropped, 0.0, weights)
    noise_mean = stream.noise_mean
    if settings.unknown_mean:
        background = noise_means(samples, step.signal[:, np.newaxis], weights[:, np.newaxis])
        noise_mean += (float(background[0]) - noise_mean) / stream.batches
    covariates = (~samples.dropped).astype(np.float64)
    return StreamStep(step.signal, stream.centre, noise_mean, weights, covariates, None, step_record(step, clock))


class BatchStep(NamedTuple):
    """Where a batch would move the signal, centre and scale of its residuals, weights of its samples and of its rows (m, 1)."""

    signal: Array
    centre: float
    scale: float
    weights: Array
    covariate_weights: Array


def batch_step(samples: Samples, signal: Array, centre: float, contamination: float, seed: int) -> BatchStep:
    """The signal that a batch asks for, near the present one.

    The location of the residuals is free even where the noise mean is known to be zero, as in the likelihood fit: the equation
    for the signal is then unbiased under skewed noise too.
    """
    problem, _ = screened_problem(samples, contamination, unknown_mean=True, thorough=True, seed=seed)
    problem = problem.floored(comparison_floor(problem.levels))
    unit = float(problem.units[0])
    here = placed(problem, (signal / np.sqrt(unit))[:, np.newaxis], np.array([centre / unit]))
    there = advance(problem, at_rest(problem, here), STEPS).candidates
    seen = evaluate(problem, there.signals, there.backgrounds)
    _, ratio = compare(seen.residuals, problem.density, seen.scales, problem.levels)
    weights = np.clip((1 - problem.levels / ratio) * problem.weights, 0.0, 1.0)
    scale = located(seen.residuals[:, 0][problem.weights[:, 0] > 0]).scale
    return BatchStep(
        np.sqrt(unit) * there.signals[:, 0], float(there.backgrounds[0]) * unit, scale * unit, weights, problem.weights
    )
