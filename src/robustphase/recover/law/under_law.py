"""From additive noise to the law of the readings: a start without censored samples, then all of them under their law.

What additive noise says of groups of samples does not hold where the noise depends on the signal: a row with large energies has
wide residuals behind every signal, and is as good as the others. So groups are judged again by residuals that the law makes
alike: over their standard deviation, and for counts by the difference of roots ``2 (√(y + 3/8) − √(μ + 3/8))`` (Anscombe),
which has the variance one from a few counts on and less below, so that no row looks bad for want of light.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robustphase.constants import TINY, derived
from robustphase.descend.shared_weights import SampleFit, Shared, nothing_shared, shared_weights
from robustphase.initialise.screening import plausible_rows
from robustphase.likelihood import NoiseModel
from robustphase.likelihood.bad_responses import marginal_law
from robustphase.likelihood.noise_model import law_mean, law_variance
from robustphase.population import distance
from robustphase.problem import Problem, kept
from robustphase.recover.law.answers import Answer, Detector, Lawful
from robustphase.recover.law.engine import all_counts, lawful_again, lawful_answer
from robustphase.recover.recovery import Recovery, Run
from robustphase.recover.selection import SELECTION
from robustphase.rows import OperatorRows
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: What makes the variance of the root of a count most even (Anscombe 1948).
ANSCOMBE = 3 / 8


@dataclass(frozen=True)
class CensoringOptions:
    """Constants of the start without censored samples."""

    fewest_left: float = derived(
        4.0,
        "samples per unknown without which censored ones are not left out of the start: real signals need two, and noise twice",
    )


CENSORING = CensoringOptions()


def without_censored(samples: Samples, detector: Detector | None) -> Samples:
    """The samples without censored ones, whose responses are wrong as they stand, as long as enough are left."""
    if detector is None or detector.censored is None:
        return samples
    dropped = samples.dropped | detector.censored.reshape(samples.dropped.shape)
    m, n = samples.source.shape
    left = (m - dropped.reshape(m, -1).sum(axis=0)).min()
    return samples._replace(dropped=dropped) if left >= CENSORING.fewest_left * n else samples


def with_censored(problem: Problem, samples: Samples, detector: Detector) -> Problem:
    """The problem with the weights that the rows of censored samples have."""
    dropped, m = samples.dropped, samples.source.shape[0]
    usable: Array = ~np.asarray(dropped.reshape(m, -1).all(axis=1))
    if isinstance(samples.source, OperatorRows):
        weights = usable.astype(np.float64)
    else:
        weights, _ = plausible_rows(samples.source, usable)
    assert detector.censored is not None
    return problem._replace(weights=np.where(detector.censored, weights[:, np.newaxis], 0.0))


def under_law(problem: Problem, found: Recovery, detector: Detector, run: Run) -> Recovery:
    """The answers under the law of the readings, where that is not additive noise."""
    noise = found.noise
    assert isinstance(noise, NoiseModel)
    # Censored rows had no part in the additive answer, and have weights of their own.
    weights = np.where(
        found.covariate_weights > 0, found.covariate_weights, problem.weights if detector.censored is not None else 0.0
    )
    weighted = problem._replace(weights=weights)
    answer = Answer(found.signals, found.backgrounds, noise, found.weights, found.predictions)
    counted = detector.noise == "poisson" or all_counts(weighted)
    if run.history.overruled and not found.converged.all() and not counted:
        # What was elected and has not settled has no place that a variance curve could sharpen.
        return found
    lawful = lawful_answer(weighted, answer, detector, seed=run.seed)
    if lawful is None:
        return found
    # What additive noise says of groups does not hold under another law.
    shared = groups_under_law(weighted, lawful, detector)
    if shared.bad:
        lawful = lawful_again(shared.applied_to(weighted), lawful, answer, detector, seed=run.seed)
    if run.history.overruled and _left(found.signals, lawful, paired=problem.paired):
        return found
    clean = np.clip(lawful.clean, 0.0, 1.0)
    run.history.note(lawful.noise.kind, found.converged.size, scale=float(lawful.noise.scales[0]))
    return replace(
        found,
        signals=lawful.signals,
        backgrounds=lawful.backgrounds,
        weights=clean,
        contaminations=1 - kept(clean).mean(axis=0),
        noise=lawful.noise,
        covariate_weights=weights,
        converged=lawful.converged,
        residual_weights=lawful.weights,
        probabilities=clean,
        predictions=lawful.predictions,
        scores=lawful.scores,
        slopes=lawful.slopes,
        # They were asked about noise that is the same for all.
        missed=np.full(found.missed.shape, np.nan),
        shared=shared.evidence,
    )


def _left(elected: Array, lawful: Lawful, *, paired: bool) -> bool:
    """Whether a variance curve has led away from signals that were elected against the likelihood of all samples.

    Samples rewritten where predictions are large look like noise that grows with them. So a curve may sharpen such signals, but
    not replace them: as far as candidates that are on the way to different places. Counts show in the readings themselves.
    """
    if lawful.noise.kind == "poisson":
        return False
    pairs = zip(lawful.signals.T, elected.T, strict=True)
    return any(distance(*pair, relative=True, conjugate=paired) > SELECTION.apart for pair in pairs)


def groups_under_law(problem: Problem, lawful: Lawful, detector: Detector) -> Shared:
    """What an answer under a law, in the units of the responses, says of the groups.

    The weights of the problem know nothing of groups.
    """
    if not problem.groupings:
        return nothing_shared(problem)
    means = lawful.predictions + lawful.backgrounds
    read = problem.responses * problem.units
    counted = bool(np.all(lawful.noise.counts))
    if counted:
        residuals, slopes = _root_residuals(read, means, detector.offsets)
        # Ties have a probability, and no density.
        law = marginal_law(read, np.broadcast_to(problem.weights > 0, read.shape), counts=True)
    else:
        residuals, slopes = _scaled_residuals(read, means, lawful.noise.variance(lawful.predictions))
        law = problem.density / problem.units
    shape = NoiseModel(np.ones_like(lawful.noise.scales), *lawful.noise[1:4])
    if not counted:
        shape = shape._replace(scales=1 / np.sqrt(law_variance(shape)))
        # Residuals are counted from the mean, the law from its peak.
        residuals = residuals + law_mean(shape)
    weights = problem.weights
    if detector.censored is not None:
        weights = weights * ~detector.censored
    alike = problem._replace(density=law / np.maximum(slopes, TINY), weights=weights)
    return shared_weights(alike, SampleFit(residuals, np.zeros_like(residuals), lawful.clean, shape))


def _root_residuals(counts: Array, means: Array, offsets: Array | None) -> tuple[Array, Array]:
    """Differences of the roots of counts and means, and their derivatives by the count."""
    known = 0.0 if offsets is None else offsets
    roots = np.sqrt(np.maximum(counts + known, 0.0) + ANSCOMBE)
    return 2 * (roots - np.sqrt(np.maximum(means + known, 0.0) + ANSCOMBE)), 1 / roots


def _scaled_residuals(read: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Residuals over their standard deviations, and their derivatives by the reading."""
    deviations = np.sqrt(np.maximum(variances, TINY))
    return (read - means) / deviations, 1 / deviations
