"""Certificates of answers, at the contamination that was stated or found."""

from __future__ import annotations

import numpy as np

from robustphase.estimator.fitted import Fitted, Settings, as_columns, unread
from robustphase.estimator.history import Clock, Note, certificate_record
from robustphase.likelihood import NoiseModel, initial_model
from robustphase.likelihood.laws import CurvedNoise
from robustphase.means.estimate import confident_level
from robustphase.problem import PROBLEM, kept
from robustphase.recover import Recovery
from robustphase.recover.certificate import Answers, Certificates, certify
from robustphase.recover.indistinguishable import indistinguishable_distances
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.validation import Samples


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
    responses = as_columns(samples.responses)
    means = np.zeros(levels.size) if backgrounds is None else backgrounds
    if backgrounds is None and settings.unknown_mean:
        means = noise_means(samples, signals, weights)
    m = samples.source.shape[0]
    hidden = unread(samples, settings)
    weights = np.where(as_columns(hidden), 0.0, weights) if hidden.any() else weights
    assumed = _assumed(levels, settings)
    confident = np.array([float(confident_level(float(level), settings.delta, m)) for level in assumed])
    unknown = settings.unknown_mean or backgrounds is not None
    answers = Answers(samples.source, responses, weights, signals, means, confident, unknown)
    return certify(answers, mean_estimator=settings.mean_estimator, random_state=settings.seed), means


def _assumed(levels: Array, settings: Settings) -> Array:
    """The contamination that was told; unless one was, the engine has allowed for this much at least."""
    return np.asarray(np.maximum(levels, PROBLEM.auto_level)) if isinstance(settings.contamination, str) else levels


def noise_means(samples: Samples, signals: Array, weights: Array) -> Array:
    """Mean residual of the samples that are kept, for each signal.

    Where the fitted noise law has its peak would not do: for skewed noise that is not the mean.
    """
    responses = as_columns(samples.responses)
    residuals = responses - abs2(project(samples.source, signals))
    keep = kept(weights)
    residuals[~keep] = 0
    means: Array = residuals.sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
    return np.where(keep.any(axis=0), means, np.median(responses, axis=0))


def with_certificates(samples: Samples, found: Recovery, settings: Settings, clock: Clock, note: Note) -> Fitted:
    """The answers of the engine or a descent, as far as robust gradients vouch for them."""
    level, p = settings.contamination, found.contaminations.size
    levels = found.contaminations if isinstance(level, str) else np.full(p, level)
    curved = isinstance(found.noise, CurvedNoise)
    certificates, means = certified(
        samples, found.signals, found.weights, levels, settings, found.backgrounds if curved else None
    )
    note(certificate_record(certificates, clock))
    # Only the likelihood fit can leave the ball; a descent ends where robust gradients lead it.
    signals = certificates.signals if settings.polish else found.signals
    # Samples that a likelihood fit takes for bad are counted as found. What robust means and least trimmed squares leave out
    # they do not take for bad.
    flagged = 1 - kept(found.weights).mean(axis=0) if settings.polish else np.zeros(p)
    radii = promised(certificates.radii, found.signals, found.noise, (levels, flagged), settings)
    return Fitted(found, signals, radii, levels, means, found.converged)


def promised(
    radii: Array, signals: Array, noise: NoiseModel | CurvedNoise, shares: tuple[Array, Array], settings: Settings
) -> Array:
    """Radii of certificates (p,), at least the distance within which contamination hides signals from everybody.

    Parameters
    ----------
    radii : ndarray of shape (p,)
        What robust gradients vouch for.
    signals : ndarray of shape (n, p)
        The answers.
    noise : NoiseModel or CurvedNoise
        Their noise.
    shares : tuple of ndarray of shape (p,)
        Shares of the samples that were said or found to be bad, and that were found: those between the two are kept, and hide.
    settings : Settings
        How they were fitted.
    """
    levels, flagged = _assumed(shares[0], settings), shares[1]
    curved = isinstance(noise, CurvedNoise)
    distances = indistinguishable_distances(
        initial_model(noise.scales, levels) if isinstance(noise, CurvedNoise) else noise,
        np.linalg.norm(signals, axis=0) ** 2,
        levels + np.maximum(levels - flagged, 0.0),
        np.where(np.isnan(radii), np.inf, radii),
        is_complex=np.iscomplexobj(signals),
        unknown_mean=settings.unknown_mean or curved,
    )
    return np.where(np.isnan(radii), radii, distances)
