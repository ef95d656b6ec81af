"""Certificates of answers, at the contamination that was stated or found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.estimator.fitted import Fitted, Settings, as_columns, unread
from robustphase.estimator.history import Clock, Note, certificate_record
from robustphase.likelihood import NoiseModel, initial_model
from robustphase.likelihood.laws import CurvedNoise
from robustphase.means.estimate import confident_level
from robustphase.population import reach
from robustphase.problem import PROBLEM, kept, real_unknowns
from robustphase.recover import Recovery
from robustphase.recover.certificate import Answers, Bounded, Certificates, Pulls, certify
from robustphase.recover.indistinguishable import indistinguishable_distances
from robustphase.recover.influence import Shares, lost_and_hidden, pseudo_responses
from robustphase.recover.model import left_by_few
from robustphase.rows import OperatorRows, project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array
from robustphase.validation import Samples


def certified_levels(told: float | str, found: Array | float) -> Array:
    """The contamination that certificates allow for, where this was told and that is the level used or found.

    Unless a level was told, the engine has allowed for the assumed one at least.
    """
    return np.asarray(np.maximum(found, PROBLEM.auto_level) if isinstance(told, str) else found)


def certified(
    samples: Samples,
    signals: Array,
    weights: Array,
    levels: Array,
    settings: Settings,
    backgrounds: Array | None = None,
    bounded: Bounded | None = None,
) -> tuple[Certificates, Array]:
    """The certificates of answers (n, p) with weights of the samples (m, p), and their noise means.

    Backgrounds are given where the law of the noise knows its mean, pseudo-responses where it was fitted.
    """
    responses = as_columns(samples.responses)
    means = np.zeros(levels.size) if backgrounds is None else backgrounds
    if backgrounds is None and settings.unknown_mean:
        means = noise_means(samples, signals, weights)
    m = samples.source.shape[0]
    hidden = unread(samples, settings)
    weights = np.where(as_columns(hidden), 0.0, weights) if hidden.any() else weights
    assumed = certified_levels(settings.contamination, levels)
    confident = np.array([float(confident_level(float(level), settings.delta, m)) for level in assumed])
    unknown = settings.unknown_mean or backgrounds is not None
    answers = Answers(samples.source, responses, weights, signals, means, confident, unknown)
    return certify(answers, bounded, mean_estimator=settings.mean_estimator, random_state=settings.seed), means


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
    assumed = certified_levels(settings.contamination, levels)
    # Samples that a likelihood fit takes for bad are counted as found. What robust means and least trimmed squares leave out
    # they do not take for bad.
    shares = lost_and_hidden(assumed, found.weights) if settings.polish else Shares(assumed, assumed)
    bounded = _bounded(samples, found, shares, settings)
    certificates, means = certified(
        samples, found.signals, found.weights, levels, settings, found.backgrounds if curved else None, bounded
    )
    note(certificate_record(certificates, clock))
    # Only the likelihood fit can leave the ball; a descent ends where robust gradients lead it.
    signals = certificates.signals if settings.polish else found.signals
    radii = certificates.radii
    ball = None
    if certificates.pulls is not None and isinstance(found.noise, NoiseModel):
        # About answers that were brought back the influences at the old ones say nothing.
        ball = _by_influence(certificates.pulls, found, found.noise)
        ball = ball._replace(reached=np.where(certificates.moved > 0, np.inf, ball.reached))
    # Shorter distances than these change no radius.
    least = radii if ball is None else np.where(ball.reached < radii, ball.decided_by, radii)
    hides = hiding(found.signals, found.noise, shares, settings, least)
    radii = np.maximum(radii, hides)
    if ball is not None:
        radii = np.where(np.isnan(hides), radii, np.fmin(radii, ball.radii(hides)))
    # Any signal that the samples did not refute may be the truth.
    radii = np.maximum(radii, found.rivals)
    return Fitted(found, signals, radii, levels, means, found.converged)


def _bounded(samples: Samples, found: Recovery, shares: Shares, settings: Settings) -> Bounded | None:
    """Pseudo-responses of a likelihood fit with one law for all samples; None where there is no such law, or no radius.

    Behind real rows the curvature of complex signals has more than the two values that a reach is known for. Who asks for
    another robust mean wants its word.
    """
    noise = found.noise
    if not isinstance(noise, NoiseModel) or found.predictions.shape != found.weights.shape:
        return None
    if not settings.polish or settings.mean_estimator != "filter":
        return None
    if samples.paired or isinstance(samples.source, OperatorRows):
        return None
    located = as_columns(samples.responses) - found.backgrounds
    pseudo = pseudo_responses(located, found.predictions, kept(found.weights), noise, shares.hidden)
    return Bounded(pseudo, shares.lost, shares.hidden)


def hiding(signals: Array, noise: NoiseModel | CurvedNoise, shares: Shares, settings: Settings, least: Array) -> Array:
    """Distances within which contamination hides signals from everybody, over the norms, shape (p,): least radii.

    Parameters
    ----------
    signals : ndarray of shape (n, p)
        The answers.
    noise : NoiseModel or CurvedNoise
        Their noise.
    shares : Shares
        Shares of the samples that may be missing, and that may hide.
    settings : Settings
        How they were fitted.
    least : ndarray of shape (p,)
        What is returned where they are shorter, and NaN where it is NaN.
    """
    curved = isinstance(noise, CurvedNoise)
    distances = indistinguishable_distances(
        initial_model(noise.scales, shares.lost) if isinstance(noise, CurvedNoise) else noise,
        np.linalg.norm(signals, axis=0) ** 2,
        shares.lost + shares.hidden,
        np.where(np.isnan(least), np.inf, least),
        is_complex=np.iscomplexobj(signals),
        unknown_mean=settings.unknown_mean or curved,
    )
    return np.where(np.isnan(least), least, distances)


class _Ball(NamedTuple):
    """The ball from the influence of the fitted law; all of shape (p,)."""

    reached: Array  # How far it reaches about a signal that clean samples hold from all sides
    settled: Array  # What the mean of the influences and chance add to a distance that contamination hides
    wider: Array  # By how much more the influences vary than their law says

    @property
    def decided_by(self) -> Array:
        """The distance that contamination hides beyond which it decides the radius."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.fmax((self.reached - self.settled) / self.wider, 0.0))

    def radii(self, hides: Array) -> Array:
        """The radii, given the distances that contamination hides."""
        with np.errstate(invalid="ignore"):
            hidden = np.where(hides > 0, self.wider * hides, 0.0)
        return np.asarray(np.maximum(self.reached, hidden + self.settled))


def _by_influence(pulls: Pulls, found: Recovery, noise: NoiseModel) -> _Ball:
    """The balls from the influence of the fitted law."""
    signals = found.signals
    is_complex, counts = np.iscomplexobj(signals), kept(found.weights).sum(axis=0)
    left = np.array([left_by_few(real_unknowns(signals), int(count), is_complex) for count in counts])
    energies = np.maximum(np.linalg.norm(signals, axis=0) ** 2, TINY)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        settled, asked_for = pulls.settled / left, (pulls.settled + pulls.bad) / left
        # What the law says of the standard deviation of displacements along a typical direction; see `Gradients.typical`.
        by_law = noise.efficient_scales / energies / np.sqrt(2 if is_complex else 4)
        wider = np.fmax(pulls.typical / by_law, 1.0)
    # The location of the residuals was fitted, whether or not their mean is known.
    return _Ball(reach(asked_for, noise_mean="unknown", is_complex=is_complex), settled, wider)
