"""The test of a fitted model: where it fails severely nothing has converged and nothing is certified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robustphase.constants import TINY
from robustphase.estimator.advice import many_model_advice
from robustphase.estimator.fitted import Fitted, Settings, as_columns, unread
from robustphase.likelihood.laws import CurvedNoise
from robustphase.likelihood.noise_model import NoiseModel
from robustphase.problem import kept
from robustphase.recover import Recovery
from robustphase.recover.model import (
    CHECKS,
    FittedSamples,
    Told,
    certificate_factor,
    check_model,
    measure,
    sampling_error,
)
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: A signal with less energy than this fraction of the typical response is rounding error.
NOTHING = 1e-9


def with_model_check(samples: Samples, fitted: Fitted, settings: Settings) -> Fitted:
    """The same answers with a test of their model: where it fails severely nothing has converged and nothing is certified."""
    found, responses = fitted.recovery, as_columns(samples.responses)
    is_complex, curved = np.iscomplexobj(fitted.signals), isinstance(found.noise, CurvedNoise)
    figures, design = measure(
        FittedSamples(
            samples.source,
            responses,
            found.weights,
            _like(found.covariate_weights, found.weights),
            unread(samples, settings),
            fitted.signals,
            found.initial_signals,
            found.backgrounds,
            found.noise.scales,
            fitted.levels,
            settings.unknown_mean or curved,
            np.full(fitted.levels.size, _expected(settings.contamination)),
            _spreads(found),
            counts=found.noise.kind == "poisson",
            # They belong to the answers as the engine left them, which the certificate seldom moves.
            predictions=found.predictions
            if len(found.predictions) and np.array_equal(found.signals, fitted.signals)
            else None,
        ),
        seed=settings.seed,
    )
    stretches = np.ones(len(figures)) if settings.standard is None else settings.standard.typical_errors(fitted.signals)
    figures = [
        one._replace(
            efficient=float(noise),
            law=float(law),
            skew=float(skew),
            stretch=float(stretch),
            balance=float(balance),
            missed=float(missed),
        )
        for one, noise, law, skew, stretch, balance, missed in zip(
            figures,
            _efficient_noise(found),
            *_laws(found),
            stretches,
            _balances(samples, fitted.signals),
            found.missed,
            strict=True,
        )
    ]
    descended = settings.descends
    if descended and fitted.message:
        # The rival of an answer on its way is where it is going.
        figures = [one._replace(rival=0.0, rival_everywhere=0.0, at_second_gain=0.0) for one in figures]
    nothing = without_signal(responses, fitted.signals)
    # Counts have a background of their own, the dark ones; of other readings none was told.
    with_background = settings.unknown_mean or found.noise.kind == "poisson"
    detector = settings.detector
    told = Told(
        settings.contamination,
        # A descent of its own steps takes the rows as they are unless told otherwise.
        settings.whiten is True or (settings.whiten == "auto" and not descended),
        is_complex,
        with_background,
        rough=not settings.polish,
        drifting=detector is not None and detector.drifting,
        additive=detector is not None and detector.noise == "additive",
    )
    checks = tuple(
        check_model(one, design, told, no_signal=bool(none)) for one, none in zip(figures, nothing, strict=True)
    )
    factors = np.array([certificate_factor(check, design, one) for check, one in zip(checks, figures, strict=True)])
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


def _like(weights: Array, others: Array) -> Array:
    """Weights of rows in the shape of those of samples."""
    return weights if weights.shape == others.shape else np.broadcast_to(weights, others.shape)


def _expected(stated: float | str) -> float:
    """Share of flagged samples from which on a rival is of interest: one that explains more than may be bad.

    Without a stated level that is one which explains about as much as the answer.
    """
    return CHECKS.many_flags if isinstance(stated, str) else stated + CHECKS.rival


def _balances(samples: Samples, signals: Array) -> Array:
    """How much worse complex signals behind real rows are known for the unequal lengths of their two parts, shape (p,).

    With the phase that makes them as unequal as possible, the parts have the squared lengths (E ± |xᵀx|)/2, and the squared
    error is proportional to the sum of their inverses: ``E²/(E² − |xᵀx|²)`` times that of equal ones.
    """
    if not samples.paired:
        return np.ones(signals.shape[1])
    energies = np.maximum(np.linalg.norm(signals, axis=0) ** 2, TINY)
    alike = np.minimum(np.abs((signals**2).sum(axis=0)) / energies, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.sqrt((1 - alike) * (1 + alike)))


def _spreads(found: Recovery) -> Array | None:
    """Standard deviation of every sample over the typical one, where the noise depends on the signal."""
    noise = found.noise
    if not isinstance(noise, CurvedNoise):
        return None
    variances = noise.variance(found.predictions)
    return np.sqrt(np.maximum(variances, TINY)) / noise.scales


def _efficient_noise(found: Recovery) -> Array:
    """Standard deviations of even noise that would leave as much information as the fitted laws do; NaN for even noise."""
    if found.slopes is None:
        return np.full(found.contaminations.size, np.nan)
    # Rows that were blown up have predictions beyond all others, and tell nothing.
    predictions = np.where(kept(found.weights), found.predictions, 0.0)
    energy = np.maximum(predictions.sum(axis=0), TINY)
    information = np.maximum((found.slopes * predictions).sum(axis=0) / energy, 1e-200)
    noise: Array = 1 / np.sqrt(information)
    return noise


def _laws(found: Recovery) -> tuple[Array, Array]:
    """What the fitted laws of even noise leave of information, as standard deviations, and their skews; NaN and one without."""
    noise = found.noise
    if not isinstance(noise, NoiseModel):
        return np.full(found.contaminations.size, np.nan), np.ones(found.contaminations.size)
    return noise.efficient_scales, noise.skews


def without_signal(responses: Array, signals: Array) -> Array:
    """Which columns of responses say nothing: all alike, as a dead pixel reports them, so that a signal of zero explains them.

    The certificate would not tell: it is relative to the norm of the signal, and without residuals it is zero.
    """
    sizes, energies = np.abs(responses), np.linalg.norm(signals, axis=0) ** 2
    largest = sizes.max(axis=0)
    if (largest > 0).all() and (energies > NOTHING * largest).all():
        # No typical response is larger than the largest one.
        return np.zeros(energies.size, bool)
    typical = np.median(sizes, axis=0)
    typical = np.where(typical > 0, typical, sizes.mean(axis=0))
    # Written so that numbers which underflowed on the way, and became NaN, count as nothing too.
    nothing: Array = ~(energies > NOTHING * np.where(typical > 0, typical, 1.0))
    return nothing
