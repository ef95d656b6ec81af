"""The paper, line by line, under its own names.

Buna and Rebeschini, *Robust Gradient Descent for Phase Retrieval*: Procedures 1 and 3, Algorithms 2 and 4, built from the
pieces of this library. :class:`robustphase.RobustPhaseRetrieval` is what to use on data; this is what to read beside the
paper and to check its theorems with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from robustphase.descend import printed_descent
from robustphase.initialise import printed_start
from robustphase.rows import as_source
from robustphase.rows.source import Array
from robustphase.validation import (
    check_choice,
    check_contamination,
    check_fraction,
    check_responses,
    check_samples,
)

__all__ = [
    "algorithm_2",
    "algorithm_4",
    "iterations_for",
    "pair_samples",
    "procedure_1",
    "procedure_3",
    "split_batches",
]

CONFIGURATIONS = ("mean", "covariance")


def procedure_1(
    A: Any,
    y: Any,
    *,
    contamination: float,
    delta: float = 0.01,
    configuration: str = "mean",
    covariance: str = "filter",
) -> Array:
    """Procedure 1: spectral initialisation, zero-mean noise.

    Parameters
    ----------
    A : array-like of shape (m, n)
        Covariates.
    y : array-like of shape (m,)
        Responses.
    contamination : float in [0, 0.5)
        ε.
    delta : float, default=0.01
        Confidence parameter δ.
    configuration : {"mean", "covariance"}
        ``MeanEstStab`` on the columns of ``y a aᵀ`` (Theorem 3.1), or ``CovEst`` of ``y a`` (Theorem 3.2).
    covariance : {"filter", "minmax"}
        ``CovEst``: the computable one, or (n ≤ 20) the estimator of Proposition 2.2 itself.

    Returns
    -------
    ndarray of shape (n,)
        ``x₀``; zero, with a warning, if the estimate of ‖x*‖² is negative.
    """
    return _procedure(A, y, contamination, delta, configuration, covariance, paired=False)


def procedure_3(
    A: Any,
    y: Any,
    *,
    contamination: float,
    delta: float = 0.01,
    configuration: str = "mean",
    covariance: str = "filter",
) -> Array:
    """Procedure 3: spectral initialisation, unknown noise mean.

    Works on the pairs ``(j, j + m/2)``; parameters and result as in :func:`procedure_1`. The scale estimate, as printed, has
    a variance that grows with n (erratum A5).
    """
    return _procedure(A, y, contamination, delta, configuration, covariance, paired=True)


def _procedure(
    A: Any, y: Any, contamination: float, delta: float, configuration: str, covariance: str, *, paired: bool
) -> Array:
    level = float(check_contamination(contamination))
    check_fraction("delta", delta)
    check_choice("configuration", configuration, CONFIGURATIONS)
    check_choice("covariance", covariance, ("filter", "minmax"))
    samples = check_samples(A, y, nonfinite="drop")
    return printed_start(
        samples.source,
        samples.responses,
        contamination=level,
        delta=delta,
        configuration=configuration,
        covariance=covariance,
        paired=paired,
        dropped=samples.dropped,
    ).signal


def algorithm_2(
    x0: Any,
    batches: Iterable[Any],
    *,
    contamination: float,
    delta: float = 0.01,
    mean_estimator: str = "filter",
    printed: bool = False,
    random_state: Any = None,
) -> Array:
    """Algorithm 2: robust gradient descent, zero-mean noise.

    Parameters
    ----------
    x0 : array-like of shape (n,)
        Start, such as the output of :func:`procedure_1`.
    batches : iterable of (A, y)
        One fresh batch per iteration: :meth:`robustphase.simulate.SampleOracle.batches`, or :func:`split_batches`.
    contamination : float in [0, 0.5)
        ε.
    delta : float, default=0.01
        Confidence parameter δ of each iteration.
    mean_estimator : str, default="filter"
        ``MeanEstStab``: ``"filter"`` or ``"mmw"``; the classical estimators have no such guarantee.
    printed : bool, default=False
        Take the step as printed. For Algorithm 2 it is the same.
    random_state : int, RandomState or None
        For mean estimators that draw random numbers.

    Returns
    -------
    ndarray of shape (n,)
        ``x_T`` after one step per batch.
    """
    return _algorithm(x0, batches, contamination, delta, mean_estimator, printed, random_state, paired=False)


def algorithm_4(
    x0: Any,
    batches: Iterable[Any],
    *,
    contamination: float,
    delta: float = 0.01,
    mean_estimator: str = "filter",
    printed: bool = False,
    random_state: Any = None,
) -> Array:
    """Algorithm 4: robust gradient descent, unknown noise mean.

    As :func:`algorithm_2`, on pairs of samples, with the corrected step 25/(136‖x₀‖²). ``printed=True`` takes the printed one,
    which does not converge (erratum A3), and warns.
    """
    return _algorithm(x0, batches, contamination, delta, mean_estimator, printed, random_state, paired=True)


def _algorithm(
    x0: Any,
    batches: Iterable[Any],
    contamination: float,
    delta: float,
    mean_estimator: str,
    printed: bool,
    random_state: Any,
    *,
    paired: bool,
) -> Array:
    return printed_descent(
        np.asarray(x0),
        batches,
        contamination=float(check_contamination(contamination)),
        delta=check_fraction("delta", delta),
        mean_estimator=mean_estimator,
        paired=paired,
        printed=printed,
        random_state=random_state,
    ).signal


def pair_samples(A: Any, y: Any) -> tuple[Array, Array, Array]:
    """The data set of equation (8): ``b = (a + a')/√2``, ``c = (a − a')/√2``, ``υ = (y − y')/2`` for pairs (j, j + m/2).

    Only for reading along: the library never makes ``b`` and ``c``. An odd last sample is left out.
    """
    rows, responses = _arrays(A, y)
    pairs = len(responses) // 2
    top, bottom = rows[:pairs], rows[pairs : 2 * pairs]
    upsilon: Array = (responses[:pairs] - responses[pairs : 2 * pairs]) / 2
    return (top + bottom) / np.sqrt(2), (top - bottom) / np.sqrt(2), upsilon


def split_batches(A: Any, y: Any, T: int) -> Iterator[tuple[Array, Array]]:
    """Cut one sample into ``T`` disjoint batches of equal size, for data that cannot be drawn afresh."""
    rows, responses = _arrays(A, y)
    size = len(responses) // T if T >= 1 else 0
    if size == 0:
        raise ValueError(f"T must be between 1 and the number of samples, {len(responses)}, got {T}.")
    for t in range(T):
        yield rows[t * size : (t + 1) * size], responses[t * size : (t + 1) * size]


def _arrays(A: Any, y: Any) -> tuple[Array, Array]:
    """Covariates and responses that belong together, as they are."""
    source = as_source(A)
    check_responses(y, source.shape[0])
    return np.asarray(A), np.asarray(y)


def iterations_for(signal_to_noise: float, *, constant: float = 4.0, contraction: float = 0.87) -> int:
    """T for which optimisation and statistical error are of one order: ``log(C‖x*‖²/σ) / log(1/q)`` (Remark 3.5).

    The remark prints the logarithm of σ/‖x*‖² (erratum A11). ``contraction`` is the factor per step in the proof of
    Theorem 3.3, and ``constant`` accounts for the statistical error being a fraction of σ/‖x*‖².
    """
    if not signal_to_noise > 0:
        raise ValueError(f"signal_to_noise must be positive, got {signal_to_noise!r}.")
    return max(1, int(np.ceil(np.log(max(constant * signal_to_noise, 1.0)) / np.log(1 / contraction))))
