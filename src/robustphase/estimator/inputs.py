"""From what scikit-learn's users pass to what the library computes with.

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

from robustphase.rows import OperatorRows, RowSource, as_source
from robustphase.rows.opening import as_array
from robustphase.rows.operators import is_operator
from robustphase.rows.source import Array
from robustphase.validation import Samples


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


def check_operator_use(estimator: Any, samples: Samples, *, method: str = "fit") -> None:
    """Refuse what a linear operator cannot give: everything that looks at single rows."""
    if not isinstance(samples.source, OperatorRows):
        return
    refused = (
        (method != "fit", f"{method} takes arrays: a batch is screened row by row. Fit the whole operator"),
        (samples.responses.ndim == 2, "many signals share a screening of rows. Fit the columns of y one by one"),
        (estimator.whiten, "whiten=True estimates the covariance of rows. Pass whiten=False"),
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


def open_responses(y: Any) -> Array:
    """Responses as a one-dimensional array; numbers are checked later."""
    values = y if _holds_numbers(y) else _as_numbers(y, "y")
    values = np.asarray(values)
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
