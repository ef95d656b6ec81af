"""From what scikit-learn's users pass to what the library computes with: parameters and data.

Lists, data frames, objects that hold numbers and column vectors are taken as they come; what cannot be used is refused in
the words that scikit-learn's users know. Everything else, such as the hunt for infinities, is :mod:`robustphase.validation`.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from robustphase.initialise.standardise import STANDARD
from robustphase.initialise.start import METHODS as STARTS
from robustphase.initialise.start import check_whiten
from robustphase.means import METHODS as MEAN_ESTIMATORS
from robustphase.recover.drift import DRIFTS
from robustphase.recover.law.answers import NOISES, Detector
from robustphase.recover.law.engine import LAW_ENGINE
from robustphase.rows import OperatorRows, RowSource, as_source
from robustphase.rows.opening import as_array
from robustphase.rows.operators import is_operator
from robustphase.rows.source import Array
from robustphase.validation import (
    FIELDS,
    NONFINITE,
    Samples,
    check_choice,
    check_contamination,
    check_fraction,
    check_samples,
)


def open_rows(A: Any) -> RowSource:
    """Covariates as a row source."""
    if isinstance(A, RowSource):
        return A
    if isinstance(A, (str, os.PathLike)) or is_operator(A):
        return as_source(A)
    if issparse(A):
        raise TypeError(
            "Sparse data was passed for A, but dense data is required: a sensing vector is standard normal and has no "
            "zeros to leave out. Use A.toarray() to convert it to a dense array."
        )
    if not _holds_numbers(A):
        A = _as_numbers(A, "A")
    shape = tuple(np.shape(A))
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead: A has shape {shape}. Reshape your data, using "
            "A.reshape(-1, 1) if it has a single feature or A.reshape(1, -1) if it is a single sample."
        )
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(f"A is empty: Found array with 0 {what} (shape={shape}) while a minimum of 1 is required.")
    return as_source(A)


def check_data(
    estimator: Any,
    A: Any,
    y: Any,
    *,
    reset: bool,
    enough: bool = True,
    source: RowSource | None = None,
    many: bool = False,
) -> Samples:
    """Covariates and responses as samples; notes (or compares) the number and names of the features on the estimator.

    They are noted if ``reset``. Fewer samples than a fit needs are refused if ``enough``, several columns of responses unless
    ``many``. ``source`` holds the covariates where they are open already.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: one response for every row of A."
        )
    source = open_rows(A) if source is None else source
    # Only the engine asks for standard rows; the paper's steps take them as they are.
    looking = estimator.whiten == "auto" and estimator.step == "newton" and estimator.batches == 1
    samples = check_samples(
        source,
        open_responses(y),
        nonfinite=estimator.nonfinite,
        enough=enough,
        many=many,
        field=estimator.field,
        look=STANDARD.rows if looking else 0,
    )
    check_features(estimator, A, source, reset=reset)
    return samples


def check_features(estimator: Any, A: Any, source: RowSource, *, reset: bool) -> None:
    """Note (or compare) the number and names of the features, read from the frame or else from the opened rows."""
    validate_data(estimator, A if hasattr(A, "columns") else source, reset=reset, skip_check_array=True)


def check_operator_use(estimator: Any, samples: Samples, *, method: str = "fit") -> None:
    """Refuse what a linear operator cannot give: everything that looks at single rows."""
    if not isinstance(samples.source, OperatorRows):
        return
    refused = (
        (method != "fit", f"{method} takes arrays: a batch is screened row by row. Fit the whole operator"),
        (samples.responses.ndim == 2, "many signals share a screening of rows. Fit the columns of y one by one"),
        (estimator.whiten is True, "whiten=True estimates the covariance of rows. Pass whiten=False"),
        (estimator.step != "newton", f'step={estimator.step!r} needs robust means of rows. Pass step="newton"'),
        (estimator.batches != 1, f"batches={estimator.batches} cuts out rows. Pass batches=1"),
        (
            isinstance(estimator.init, str) and estimator.init != "auto",
            f'init={estimator.init!r} is for rows of a Gaussian design. Pass init="auto" or a starting point',
        ),
    )
    for wrong, why in refused:
        if wrong:
            raise ValueError(f"A is a linear operator, whose rows nobody can look at; {why}, or pass A as an array.")


def check_stream_use(estimator: Any) -> None:
    """Refuse what the steps of a stream of batches would leave out without a word."""
    refused = (
        (estimator.saturation is not None, "saturation", "readings at the ceiling would count as what they show"),
        (estimator.background is not None, "background", "it belongs to the rows of one batch"),
        (estimator.drift is not None, "drift", "it goes over all rows in their order"),
    )
    for wrong, what, why in refused:
        if wrong:
            raise ValueError(
                f"partial_fit knows additive noise only, and {what}= is about how all samples of a fit were read: {why}. "
                "Fit all samples at once, or correct the responses of every batch before."
            )


def check_groups_use(estimator: Any) -> None:
    """Refuse groups where nothing weighs them."""
    refused = (
        (estimator.step != "newton", f"step={estimator.step!r}", 'step="newton"'),
        (estimator.batches != 1, f"batches={estimator.batches}", "batches=1"),
        (not estimator.polish, "polish=False", "polish=True"),
    )
    for wrong, what, right in refused:
        if wrong:
            raise ValueError(f"groups are weighed by the likelihood fit, and {what} does without it. Use {right}.")


def check_many_use(estimator: Any) -> None:
    """Refuse what only a single signal can have."""
    refused = (
        (estimator.step != "newton", f"step={estimator.step!r}", '"newton"'),
        (estimator.batches != 1, f"batches={estimator.batches}", "1"),
        (not isinstance(estimator.init, str) or estimator.init != "auto", "an init of your own", '"auto"'),
        (not estimator.polish, "polish=False", "True"),
        (estimator.mean_estimator != "filter", f"mean_estimator={estimator.mean_estimator!r}", '"filter"'),
    )
    for wrong, what, right in refused:
        if wrong:
            raise ValueError(
                f"y has several columns, one signal each, and {what} works for one signal at a time. Use {right}, or fit the "
                "columns one by one."
            )


def check_batches(batches: int, m: int, n: int) -> None:
    """Refuse batches with fewer samples than unknowns."""
    if m // batches < n:
        raise ValueError(
            f"batches={batches} leaves {m // batches} samples in each, fewer than the {n} unknowns. "
            f"Use at most {m // n} batches."
        )


def open_responses(y: Any) -> Array:
    """Responses as a one-dimensional array; numbers are checked later."""
    values = y if _holds_numbers(y) else _as_numbers(y, "y")
    values = as_array(values, name="y")
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values[:, 0]
    return values


def _holds_numbers(data: Any) -> bool:
    kind = getattr(getattr(data, "dtype", None), "kind", "O")
    # Data frames have no dtype of their own; the columns of one may be anything.
    return kind in "fciub" and hasattr(data, "shape")


def _as_numbers(data: Any, name: str) -> Array:
    """A NumPy array of numbers, from lists, frames and arrays of objects."""
    array = as_array(data, name=name)
    if array.dtype.kind in "fciub":
        return array
    if array.dtype.kind != "O":
        raise ValueError(
            f"{name} must hold numbers, got dtype {array.dtype}. Convert it, for example {name}.astype(float)."
        )
    try:
        converted: Array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers: {error}") from error
    return converted


def check_parameters(estimator: Any) -> float | str:
    """Refuse what no fit could use; return the contamination."""
    level = check_contamination(estimator.contamination, allow_auto=True)
    if isinstance(estimator.init, str):
        check_choice("init", estimator.init, STARTS)
    for name, choices in (
        ("noise_mean", ("zero", "unknown")),
        ("mean_estimator", tuple(MEAN_ESTIMATORS)),
        ("step", ("newton", "paper")),
        ("nonfinite", NONFINITE),
        ("field", FIELDS),
        ("noise", NOISES),
    ):
        check_choice(name, getattr(estimator, name), choices)
    check_whiten(estimator.whiten)
    if estimator.drift not in DRIFTS:
        raise ValueError(f'drift must be None or "auto", got {estimator.drift!r}.')
    check_fraction("delta", estimator.delta)
    for name in ("batches", "max_iter"):
        value = getattr(estimator, name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a positive whole number, got {value!r}.")
    tol = estimator.tol
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.integer, np.floating)) or not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a number that is zero or positive, such as 1e-6, got {tol!r}.")
    return level


def read_by(estimator: Any, samples: Samples) -> tuple[Samples, Detector]:
    """Samples without their known background; and what is known of how they were read."""
    y = samples.responses
    if estimator.noise == "poisson":
        usable = y[~samples.dropped]
        share = float(np.mean((usable >= 0) & (usable == np.rint(usable))))
        if share < LAW_ENGINE.whole:
            raise ValueError(
                f'noise="poisson" is for counts, but {1 - share:.0%} of the responses are negative or not whole numbers. '
                'Divide by the gain of the detector if it is known, or pass noise="auto".'
            )
    censored = offsets = None
    if estimator.saturation is not None:
        if estimator.step != "newton" or estimator.batches != 1:
            raise ValueError(
                "saturation= is for the likelihood fit: robust gradients would take readings at the ceiling for what they show. "
                'Use step="newton" and batches=1.'
            )
        limits = np.asarray(estimator.saturation, np.float64)
        limits = limits[:, np.newaxis] if limits.ndim == 1 and y.ndim == 2 else limits
        if limits.ndim > y.ndim or (limits.ndim and limits.shape[0] != y.shape[0]) or not (limits > 0).all():
            raise ValueError(
                f"saturation must be a positive number or one for every response (shape {y.shape}), got shape {limits.shape}."
            )
        reached = (y >= limits) & ~samples.dropped
        censored = _as_columns(reached) if reached.any() else None
    if estimator.background is not None:
        known = np.asarray(estimator.background, np.float64)
        if known.shape != y.shape[:1] or not np.isfinite(known).all():
            raise ValueError(
                f"background must hold one finite number for every row of A ({y.shape[0]}), got shape {known.shape}."
            )
        offsets = known[:, np.newaxis]
        y = np.where(samples.dropped, 0.0, (_as_columns(y) - offsets).reshape(y.shape))
        samples = samples._replace(responses=y)
    return samples, Detector(estimator.noise, censored, offsets, drifting=estimator.drift is not None)


def _as_columns(values: Array) -> Array:
    return values.reshape(len(values), -1)


def check_start(init: Any, samples: Samples) -> Array | None:
    """The starting point, if one was given."""
    if isinstance(init, str):
        return None
    source = samples.source
    start, n = np.asarray(init), source.shape[1]
    if start.shape != (n,) or start.dtype.kind not in "fciub":
        raise ValueError(
            f"init must be one of {', '.join(map(repr, STARTS))} or an array of {n} numbers, one per column of A, "
            f"got an array of shape {start.shape} and dtype {start.dtype}."
        )
    if start.dtype.kind == "c" and source.dtype.kind != "c" and not samples.paired:
        raise ValueError('init is complex but A is real. Pass init.real, or field="complex".')
    if samples.paired and not np.any(start.imag):
        raise ValueError(
            'field="complex" behind real rows, but init is real: from there no step leads to an imaginary part. Pass a complex '
            'init, or init="auto".'
        )
    if not np.isfinite(start).all() or not np.any(start):
        raise ValueError("init must be finite and not zero: at zero the gradient vanishes and there is no way to go.")
    return start.astype(np.result_type(source.dtype, np.complex128 if samples.paired else np.float64))


def as_seed(random_state: Any) -> int:
    """A seed for NumPy's generators; None is as good as 0, so that fits repeat."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    raise ValueError(f"random_state must be None, a whole number or a numpy RandomState, got {random_state!r}.")
