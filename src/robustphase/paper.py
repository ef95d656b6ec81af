"""The paper, line by line, under its own names.

Buna and Rebeschini, *Robust Gradient Descent for Phase Retrieval*: Procedures 1 and 3, Algorithms 2 and 4, built from the
pieces of this library. :class:`robustphase.RobustPhaseRetrieval` is what to use on data; this is what to read beside the
paper and to check its theorems with.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from robustphase.descend.robust_gradient import DescentRule, robust_descent
from robustphase.initialise import published_start
from robustphase.population import PairedSignal, paper_step, step_as_published
from robustphase.rows import as_source
from robustphase.rows.source import Array
from robustphase.validation import (
    EXTRAORDINARY,
    Samples,
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

#: A signal longer than the start by this factor will not come back, and its powers soon overflow.
DIVERGED = 1e6
CONFIGURATIONS = ("mean", "covariance")


def procedure_1(
    A: Any,
    y: Any,
    *,
    contamination: float,
    delta: float = 0.01,
    configuration: str = "mean",
    covariance: str = "filter",
    field: str = "auto",
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
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``. The paper's signals are those of their rows; a complex one
        behind real rows is found from two eigenvectors instead of one, and is the same signal as its conjugate.

    Returns
    -------
    ndarray of shape (n,)
        ``x₀``; zero, with a warning, if the estimate of ‖x*‖² is negative.
    """
    return _procedure(_Data(A, y, field), contamination, delta, configuration, covariance, paired=False)


def procedure_3(
    A: Any,
    y: Any,
    *,
    contamination: float,
    delta: float = 0.01,
    configuration: str = "mean",
    covariance: str = "filter",
    field: str = "auto",
) -> Array:
    """Procedure 3: spectral initialisation, unknown noise mean.

    Works on the pairs ``(j, j + m/2)``; parameters and result as in :func:`procedure_1`. The scale estimate, as printed, has
    a variance that grows with n (erratum A5).
    """
    return _procedure(_Data(A, y, field), contamination, delta, configuration, covariance, paired=True)


class _Data(NamedTuple):
    """Covariates, responses and field as they were given."""

    A: Any
    y: Any
    field: str


def _procedure(
    data: _Data, contamination: float, delta: float, configuration: str, covariance: str, *, paired: bool
) -> Array:
    level = float(check_contamination(contamination))
    check_fraction("delta", delta)
    check_choice("configuration", configuration, CONFIGURATIONS)
    check_choice("covariance", covariance, ("filter", "minmax"))
    samples = check_samples(data.A, data.y, nonfinite="drop", field=data.field)
    start = published_start(
        samples,
        contamination=level,
        delta=delta,
        configuration=configuration,
        covariance=covariance,
        paired=paired,
    ).signal
    return start.view(PairedSignal) if samples.paired else start


def algorithm_2(
    x0: Any,
    batches: Iterable[Any],
    *,
    contamination: float,
    delta: float = 0.01,
    mean_estimator: str = "filter",
    random_state: Any = None,
) -> Array:
    """Algorithm 2: robust gradient descent, zero-mean noise.

    With ``η = 128/(981‖x₀‖²)``, for ``t = 0, …, T − 1`` on a fresh batch: ``g ← MeanEstStab({(|aᵀx_t|² − y)(aᵀx_t) a}, ε,
    δ)``, then ``x_{t+1} ← x_t − η g``.

    Parameters
    ----------
    x0 : array-like of shape (n,)
        Start, such as the output of :func:`procedure_1`. Behind real rows a complex one stays complex.
    batches : iterable of (A, y)
        One fresh batch per iteration: :meth:`robustphase.simulate.SampleOracle.batches`, or :func:`split_batches`.
    contamination : float in [0, 0.5)
        ε.
    delta : float, default=0.01
        Confidence parameter δ of each iteration.
    mean_estimator : str, default="filter"
        ``MeanEstStab``: ``"filter"`` or ``"mmw"``; the classical estimators have no such guarantee.
    random_state : int, RandomState or None
        For mean estimators that draw random numbers.

    Returns
    -------
    ndarray of shape (n,)
        ``x_T`` after one step per batch.
    """
    x0 = np.asarray(x0)
    eta = paper_step(x0, noise_mean="zero") if np.any(x0) else 0.0
    level, confidence = float(check_contamination(contamination)), check_fraction("delta", delta)
    rule = DescentRule(level, confidence, mean_estimator, step_size=eta, random_state=random_state)
    return _last_iterate(x0, batches, rule)


def algorithm_4(
    x0: Any,
    batches: Iterable[Any],
    *,
    contamination: float,
    delta: float = 0.01,
    mean_estimator: str = "filter",
    as_published: bool = False,
    random_state: Any = None,
) -> Array:
    """Algorithm 4: robust gradient descent, unknown noise mean.

    As :func:`algorithm_2`, on pairs of samples, ``g ← MeanEstStab({(xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x}, 2ε, δ)``, with the corrected
    step ``η = 25/(136‖x₀‖²)``. ``as_published=True`` takes the published one, ``1024/(1647‖x₀‖²)``, which does not converge
    (erratum A3), and warns.
    """
    x0 = np.asarray(x0)
    if as_published:
        warnings.warn(
            "the step published in Algorithm 4 is too large and ends in a two-cycle (erratum A3).",
            UserWarning,
            stacklevel=2,
        )
    eta = (step_as_published if as_published else paper_step)(x0, noise_mean="unknown") if np.any(x0) else 0.0
    level, confidence = float(check_contamination(contamination)), check_fraction("delta", delta)
    rule = DescentRule(level, confidence, mean_estimator, paired=True, step_size=eta, random_state=random_state)
    return _last_iterate(x0, batches, rule)


def _last_iterate(x0: Array, batches: Iterable[Any], rule: DescentRule) -> Array:
    """``x_T``: one step of the rule for every batch (A, y)."""
    x = x0
    if not np.any(x0):
        warnings.warn(
            "the start is zero, where the gradient vanishes: the descent does not move.", UserWarning, stacklevel=3
        )
        return x
    real_rows = False

    def checked() -> Iterator[Samples]:
        nonlocal real_rows
        for A, y in batches:
            samples = _checked_batch(A, y, x0)
            real_rows = samples.source.dtype.kind != "c"
            yield samples

    for t, step in enumerate(robust_descent(x0, checked(), rule), start=1):
        x = step.signal
        if not np.linalg.norm(x) <= DIVERGED * np.linalg.norm(x0):
            warnings.warn(
                f"the descent diverged: after {t} iterations the signal is {DIVERGED:.0e} times as long as the start. "
                "Likely cause: rows of A that are not standard normal, or a start that is far too short.",
                UserWarning,
                stacklevel=3,
            )
            break
    return x.view(PairedSignal) if real_rows and np.iscomplexobj(x) else x


def _checked_batch(A: Any, y: Any, x0: Array) -> Samples:
    samples = check_samples(A, y, nonfinite="drop", enough=False)
    if x0.shape != (samples.source.shape[1],):
        raise ValueError(
            f"x0 has shape {x0.shape} but A has {samples.source.shape[1]} columns; one entry for each is needed."
        )
    if not 1 / EXTRAORDINARY <= samples.peak <= EXTRAORDINARY:
        raise ValueError(
            f"the entries of A are of the order of {samples.peak:.0e}, and the constant steps of the algorithm are for "
            f"standard normal rows. Divide A by {samples.peak:.0e}."
        )
    return samples


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
