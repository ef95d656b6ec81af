"""From what scikit-learn's users pass to rows: arrays and frames are checked by scikit-learn, stored rows are opened."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from robustphase.rows import OperatorRows, RowSource, as_source
from robustphase.rows.operators import is_operator

#: Packages whose arrays are read block by block.
STORED = ("h5py", "zarr", "dask")


def open_points(estimator: Any, X: Any, *, reset: bool) -> RowSource:
    """Rows of ``X``, real and dense; notes (or compares) the number and names of the features on the estimator."""
    if not _is_stored(X):
        checked = validate_data(
            estimator, X, reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=2 if reset else 1
        )
        return as_source(checked, name="X")
    source = as_source(X, name="X")
    if source.dtype.kind == "c":
        raise ValueError("Complex data not supported: X holds complex numbers. Use robust_covariance or robust_mean.")
    validate_data(estimator, source, reset=reset, skip_check_array=True)
    return source


def _is_stored(X: Any) -> bool:
    if isinstance(X, OperatorRows) or is_operator(X):
        raise TypeError("X is a linear operator, whose rows nobody can look at. Pass an array.")
    if isinstance(X, (RowSource, str, os.PathLike, np.memmap)):
        return True
    # A dask frame has columns, and scikit-learn knows what to do with frames.
    return type(X).__module__.split(".")[0] in STORED and not hasattr(X, "columns")
