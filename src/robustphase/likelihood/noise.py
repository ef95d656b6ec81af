"""The law of clean residuals: a Student density with its own scale, tails and skew, beside a share of bad ones.

Fitting the law instead of assuming one is what makes the last step efficient: with normal noise it weighs all clean samples
alike, with heavy tails it does better than least squares on the clean samples alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from robustphase.likelihood.types import Array

#: Degrees of freedom and skews (scale above zero over scale below) to choose from.
DEGREES = (2.5, 4.0, 8.0, 40.0)
SKEWS = (1 / 3, 0.5, 1.0, 2.0, 3.0)
#: Least share of bad samples: a mixture without any would trust every sample.
LEAST = 0.002
TINY_SCALE = 1e-13
#: Rounds of counting bad samples.
COUNTS = 8


class NoiseFit(NamedTuple):
    """Law of the residuals and what it says of each.

    Attributes
    ----------
    scale, degrees, skew : float
        Of the clean residuals.
    contamination : float
        Share of bad samples.
    clean : ndarray of shape (m,)
        Probability that a sample is clean.
    weights : ndarray of shape (m,)
        Weights of iterated least squares, without those of the covariates.
    """

    scale: float
    degrees: float
    skew: float
    contamination: float
    clean: Array
    weights: Array


def fit_noise(residuals: Array, density: Array, weights: Array, last: NoiseFit, most: float) -> NoiseFit:
    """Tails and skew by likelihood, near those of ``last``; then two steps of expectation-maximisation.

    Parameters
    ----------
    residuals : ndarray of shape (m,)
        Response minus prediction.
    density : ndarray of shape (m,)
        Density of bad responses.
    weights : ndarray of shape (m,)
        Weights of the covariates, summing to one.
    last : NoiseFit
        Where to start.
    most : float
        Largest share of bad samples.
    """
    share = last.contamination
    scale, degrees, skew = _choose_law(residuals, density, weights, last, share)
    for _ in range(2):
        fitted = _expect(residuals, density, max(scale, TINY_SCALE), degrees, skew, share)
        scale = _scale(residuals, weights, fitted)
        share = float(np.clip(weights @ (1 - fitted.clean), LEAST, max(most, LEAST)))
    return _expect(residuals, density, max(scale, TINY_SCALE), degrees, skew, share)


def count_bad(residuals: Array, density: Array, weights: Array, last: NoiseFit, most: float) -> NoiseFit:
    """The law with the share of bad samples counted: those that are more likely bad than clean.

    Bad responses may look ordinary, so :func:`fit_noise` takes every clean sample for a little bit bad, and the average of
    these doubts feeds on itself. That is cautious for an estimate, and too much for a report.
    """
    fitted = last
    for _ in range(COUNTS):
        share = float(np.clip(weights @ (fitted.clean < 0.5), LEAST, max(most, LEAST)))
        scale, degrees, skew = _choose_law(residuals, density, weights, fitted, share)
        fitted = _expect(residuals, density, scale, degrees, skew, share)
        fitted = fitted._replace(scale=_scale(residuals, weights, fitted))
    return _expect(residuals, density, max(fitted.scale, TINY_SCALE), fitted.degrees, fitted.skew, fitted.contamination)


def _scale(residuals: Array, weights: Array, fitted: NoiseFit) -> float:
    """Scale of the clean residuals, from the weights of a fit."""
    return float(np.sqrt((fitted.weights * weights) @ residuals**2 / max(fitted.clean @ weights, 1e-300)))


def first_guess(scale: float, contamination: float) -> NoiseFit:
    """A symmetric law with moderate tails."""
    return NoiseFit(scale, 4.0, 1.0, contamination, np.empty(0), np.empty(0))


def _expect(residuals: Array, density: Array, scale: float, degrees: float, skew: float, share: float) -> NoiseFit:
    stretch, squares = _stretched(residuals, scale, skew)
    likely = (1 - share) * _density(squares, scale, degrees, skew)
    clean = likely / (likely + share * density)
    return NoiseFit(scale, degrees, skew, share, clean, clean * (degrees + 1) / (degrees + squares) / stretch**2)


def _choose_law(
    residuals: Array, density: Array, weights: Array, last: NoiseFit, share: float
) -> tuple[float, float, float]:
    """Scale, tails and skew of largest likelihood among the neighbours of the last ones; a change of skew keeps the width."""
    scale, degrees, skew = max(last.scale, TINY_SCALE), last.degrees, last.skew

    def likelihood(scale: float, degrees: float, skew: float) -> float:
        likely = (1 - share) * _density(_stretched(residuals, scale, skew)[1], scale, degrees, skew)
        return float(weights @ np.log(likely + share * density))

    skews = {kappa: scale * (1 + skew) / (1 + kappa) for kappa in _around(SKEWS, skew)}
    best_skew = max(skews, key=lambda kappa: likelihood(skews[kappa], degrees, kappa))
    width = skews[best_skew]
    best_degrees = max(_around(DEGREES, degrees), key=lambda nu: likelihood(width, nu, best_skew))
    return width, best_degrees, best_skew


def _around(choices: tuple[float, ...], last: float) -> tuple[float, ...]:
    """The last choice and its neighbours."""
    place = choices.index(last)
    return choices[max(place - 1, 0) : place + 2]


def _stretched(residuals: Array, scale: float, skew: float) -> tuple[Array, Array]:
    stretch = np.where(residuals > 0, skew, 1.0)
    return stretch, (residuals / (stretch * scale)) ** 2


def _density(squares: Array, scale: float, degrees: float, skew: float) -> Array:
    """Two-piece Student density, given squared standardised residuals."""
    log_peak = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
    density: Array = np.exp(log_peak - (degrees + 1) / 2 * np.log1p(squares / degrees)) * (2 / (1 + skew) / scale)
    return density
