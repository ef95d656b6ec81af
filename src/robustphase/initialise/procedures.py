"""Procedures 1 and 3 of the paper: spectral starts from robust means, or from the spectrum of a robust covariance.

Two departures, both of which the paper allows. The covariance configuration needs only a leading eigenvector, so it
computes that (Remark 3.4 there): the estimator of the covariance itself is not computable beyond small dimensions, where
``covariance="minmax"`` uses it. And the pairs of Procedure 3 are never made: ``υ b`` is a sum of two scaled rows, and
``bᵀc = (‖a‖² − ‖a'‖²)/2`` needs only norms.

A complex signal ``u + iv`` behind real rows, in the phase in which u and v are orthogonal, is beyond the paper: matrices have two
eigenvectors that stand out then, u and v, and the difference of their eigenvalues tells that of the squared lengths::

    E[y a aᵀ] = ‖x‖² I + 2 (uuᵀ + vvᵀ)           2 (‖u‖² − ‖v‖²)
    E[υ b cᵀ] = uuᵀ + vvᵀ                          ‖u‖² − ‖v‖²
    E[y² a aᵀ]                             12 ‖x‖² (‖u‖² − ‖v‖²)
    E[υ² b bᵀ]                              2 ‖x‖² (‖u‖² − ‖v‖²)
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.means.estimate import confident_level
from robustphase.means.filter import filter_mean
from robustphase.means.simultaneous import column_means
from robustphase.rows import MemoryRows, RowSource, ScaledRows
from robustphase.rows.source import Array
from robustphase.spectra import robust_covariance
from robustphase.spectra.leading import leading_direction
from robustphase.validation import Samples

#: Least share of a complex signal behind real rows in its smaller part: from zero no descent leaves the real signals.
LEAST_PART = 0.01


@dataclass(frozen=True)
class PublishedStart:
    """Outcome of Procedure 1 or 3.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        ``x₀``; zero if the estimate of ‖x*‖² came out negative.
    direction : ndarray of shape (n,)
        Its direction, a unit vector; complex where a complex signal stands behind real rows.
    squared_norm : float
        The estimate of ‖x*‖².
    weights : ndarray
        Weights of the samples (Procedure 1) or of the pairs (Procedure 3) in the direction estimate.
    """

    signal: Array
    direction: Array
    squared_norm: float
    weights: Array


def published_start(
    samples: Samples,
    *,
    contamination: float,
    delta: float,
    configuration: str = "mean",
    covariance: str = "filter",
    paired: bool = False,
) -> PublishedStart:
    """Procedure 1, or with ``paired`` Procedure 3.

    Parameters
    ----------
    samples : Samples
        The covariates and ``y``. Dropped samples, which read as zero because they cannot be computed with, count as
        contaminated.
    contamination : float
        ε, of the samples; pairing doubles it, which is done here.
    delta : float
        Confidence parameter.
    configuration : {"mean", "covariance"}
        Robust means of the columns of ``y a aᵀ`` (``υ b cᵀ``), or the covariance of ``y a`` (``υ b``).
    covariance : {"filter", "minmax"}
        The estimator of the covariance configuration.
    paired : bool, default=False
        Unknown noise mean: work on differences of samples.

    Returns
    -------
    PublishedStart
    """
    source, responses, unusable = samples.source, samples.responses, samples.dropped
    n = source.shape[1]
    count = source.shape[0] // 2 if paired else source.shape[0]
    # A pair needs both of its samples.
    spoilt = unusable[:count] | unusable[count : 2 * count] if paired else unusable
    if spoilt.all():
        raise ValueError(
            f"none of the {count} pairs of samples (j, j + m // 2) can be used: one of each holds NaN, infinite or overflowing "
            f"entries, or there is only one sample. At least {4 * n} good pairs are needed."
        )
    epsilon = min(2 * contamination, 0.49) if paired else contamination
    differences = _half_differences(responses) if paired else responses

    if configuration == "mean":
        # Each of the n means may fail with probability δ/(2n).
        columns = column_means(source, responses, epsilon, paired=paired, delta=delta / (2 * n), dropped=unusable)
        leading, weights = top_eigenvectors(columns.matrix), columns.weights
    else:
        view = _paired_view(source, differences) if paired else ScaledRows(source, responses)
        level = confident_level(epsilon, delta, count)
        leading, weights = _covariance_directions(view, level, covariance, ~spoilt, both=samples.paired)

    numbers = differences * _inner_b_c(source) if paired else responses
    scale = filter_mean(
        ScaledRows(MemoryRows(numbers[:, np.newaxis])),
        confident_level(epsilon, delta, count),
        dropped=spoilt,
        strict=True,
    )
    squared_norm = float(scale.location[0])
    direction = leading.vectors[:, 0]
    if samples.paired:
        unit = {"mean": 1.0 if paired else 2.0, "covariance": (2.0 if paired else 12.0) * squared_norm}[configuration]
        direction = complex_pair(leading, unit * squared_norm)
    if squared_norm < 0:
        warnings.warn(
            f"the robust mean of the responses is {squared_norm:.3g} < 0, so the procedure returns zero, as printed. "
            "Likely causes: noise with a negative mean (use the unknown-mean procedure), or too few samples.",
            UserWarning,
            stacklevel=3,
        )
        return PublishedStart(np.zeros_like(direction), direction, squared_norm, weights)
    return PublishedStart(np.sqrt(squared_norm) * direction, direction, squared_norm, weights)


class Leading(NamedTuple):
    """At most two leading eigenvectors (n, k), largest eigenvalue first, and the eigenvalues (k,)."""

    vectors: Array
    values: Array


def top_eigenvectors(matrix: Array) -> Leading:
    """Leading eigenvectors of the Hermitian part of a matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.conj().T) / 2)
    return Leading(vectors[:, :-3:-1], values[:-3:-1])


def complex_pair(leading: Leading, unit: float) -> Array:
    """``√s₁ v₁ + i √s₂ v₂`` of length one, with ``s₁ + s₂ = 1``; ``unit`` is the difference of the eigenvalues where s₂ = 0."""
    vectors, values = leading
    if vectors.shape[1] < 2 or not unit > 0:
        return vectors[:, 0] + 0j
    difference = float(np.clip((values[0] - values[1]) / unit, 0.0, 1 - 2 * LEAST_PART))
    pair: Array = np.sqrt((1 + difference) / 2) * vectors[:, 0] + 1j * np.sqrt((1 - difference) / 2) * vectors[:, 1]
    return pair


def _covariance_directions(
    view: ScaledRows, level: float | str, covariance: str, usable: Array, *, both: bool
) -> tuple[Leading, Array]:
    """The leading eigenvector, or both, and weights of the points."""
    if covariance == "minmax":
        points = view.columns(slice(None))[usable]
        estimate = robust_covariance(points, level, "minmax", assume_centered=True)
        return top_eigenvectors(estimate.covariance), usable.astype(np.float64)
    result = leading_direction(view, level, usable=usable, strict=True)
    vectors = result.vectors[:, :2].conj()
    if not both:
        return Leading(vectors[:, :1], result.values[:1]), result.weights
    # The filter has seen winsorised points; these are the variances of the points that it kept.
    energies = np.abs(view.inner(vectors)[result.weights > 0]) ** 2
    return Leading(vectors, energies.mean(axis=0)), result.weights


def _half_differences(responses: Array) -> Array:
    """``υ = (y − y')/2`` of the pairs (j, j + m // 2)."""
    pairs = responses.size // 2
    halves: Array = (responses[:pairs] - responses[pairs : 2 * pairs]) / 2
    return halves


def _paired_view(source: RowSource, upsilon: Array) -> ScaledRows:
    """The points ``υ b = υ (a + a')/√2``."""
    scale = np.zeros(source.shape[0])
    # A paired view takes differences, so the second members get the opposite sign.
    scale[: upsilon.size], scale[upsilon.size : 2 * upsilon.size] = upsilon, -upsilon
    return ScaledRows(source, scale / np.sqrt(2), paired=True)


def _inner_b_c(source: RowSource) -> Array:
    """``bᵀc = (‖a‖² − ‖a'‖²)/2`` of the pairs."""
    return _half_differences(ScaledRows(source).squared_distances())
