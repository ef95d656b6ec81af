"""Procedures 1 and 3 of the paper: spectral starts from robust means, or from the spectrum of a robust covariance.

Two departures, both of which the paper allows. The covariance configuration needs only a leading eigenvector, so it
computes that (Remark 3.4 there): the estimator of the covariance itself is not computable beyond small dimensions, where
``covariance="minmax"`` uses it. And the pairs of Procedure 3 are never made: ``υ b`` is a sum of two scaled rows, and
``bᵀc = (‖a‖² − ‖a'‖²)/2`` needs only norms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from robustphase.means.estimate import confident_level
from robustphase.means.filter import filter_mean
from robustphase.means.simultaneous import column_means
from robustphase.rows import MemoryRows, RowSource, ScaledRows
from robustphase.rows.source import Array
from robustphase.spectra import robust_covariance
from robustphase.spectra.leading import leading_direction
from robustphase.validation import Samples


@dataclass(frozen=True)
class PublishedStart:
    """Outcome of Procedure 1 or 3.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        ``x₀``; zero if the estimate of ‖x*‖² came out negative.
    direction : ndarray of shape (n,)
        Its direction, a unit vector.
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
        direction, weights = top_eigenvector(columns.matrix), columns.weights
    else:
        view = _paired_view(source, differences) if paired else ScaledRows(source, responses)
        direction, weights = _covariance_direction(view, confident_level(epsilon, delta, count), covariance, ~spoilt)

    numbers = differences * _inner_b_c(source) if paired else responses
    scale = filter_mean(
        ScaledRows(MemoryRows(numbers[:, np.newaxis])),
        confident_level(epsilon, delta, count),
        dropped=spoilt,
        strict=True,
    )
    squared_norm = float(scale.location[0])
    if squared_norm < 0:
        warnings.warn(
            f"the robust mean of the responses is {squared_norm:.3g} < 0, so the procedure returns zero, as printed. "
            "Likely causes: noise with a negative mean (use the unknown-mean procedure), or too few samples.",
            UserWarning,
            stacklevel=3,
        )
        return PublishedStart(np.zeros_like(direction), direction, squared_norm, weights)
    return PublishedStart(np.sqrt(squared_norm) * direction, direction, squared_norm, weights)


def top_eigenvector(matrix: Array) -> Array:
    """Leading eigenvector of the Hermitian part of a matrix."""
    vector: Array = np.linalg.eigh((matrix + matrix.conj().T) / 2)[1][:, -1]
    return vector


def _covariance_direction(view: ScaledRows, level: float | str, covariance: str, usable: Array) -> tuple[Array, Array]:
    if covariance == "minmax":
        points = view.columns(slice(None))[usable]
        estimate = robust_covariance(points, level, "minmax", assume_centered=True)
        return top_eigenvector(estimate.covariance), usable.astype(np.float64)
    result = leading_direction(view, level, usable=usable, strict=True)
    return result.vector.conj(), result.weights


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
