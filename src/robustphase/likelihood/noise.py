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
    scale, degrees, skew, share = last.scale, last.degrees, last.skew, last.contamination
    scale, degrees, skew = _choose_law(residuals, density, weights, max(scale, TINY_SCALE), degrees, skew, share)
    for _ in range(2):
        fitted = _expect(residuals, density, max(scale, TINY_SCALE), degrees, skew, share)
        scale = float(np.sqrt((fitted.weights * weights) @ residuals**2 / max(fitted.clean @ weights, 1e-300)))
        share = float(np.clip(weights @ (1 - fitted.clean), LEAST, max(most, LEAST)))
    return _expect(residuals, density, max(scale, TINY_SCALE), degrees, skew, share)


def first_guess(scale: float, contamination: float) -> NoiseFit:
    """A symmetric law with moderate tails."""
    return NoiseFit(scale, 4.0, 1.0, contamination, np.empty(0), np.empty(0))


def _expect(residuals: Array, density: Array, scale: float, degrees: float, skew: float, share: float) -> NoiseFit:
    stretch, squares = _stretched(residuals, scale, skew)
    likely = (1 - share) * _density(squares, scale, degrees, skew)
    clean = likely / (likely + share * density)
    return NoiseFit(scale, degrees, skew, share, clean, clean * (degrees + 1) / (degrees + squares) / stretch**2)


def _choose_law(
    residuals: Array, density: Array, weights: Array, scale: float, degrees: float, skew: float, share: float
) -> tuple[float, float, float]:
    """Skew, then tails, of largest likelihood among the neighbours of the last ones; a change of skew keeps the width."""

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
