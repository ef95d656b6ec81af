"""What the diagnostics of one signal and of many take from a fitted estimator in the same way.

First the estimator and its data are checked; then :func:`facts_of` collects what is true of the whole fit, however many signals
it has: parameters, software, costs and groups.
"""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

import robustphase as rp
from robustphase.files import fingerprint

Array = NDArray[Any]


class GroupWidths(NamedTuple):
    """Widths of the residuals of the groups over that of the noise."""

    widths: Array


def require_fitted(model: rp.RobustPhaseRetrieval) -> None:
    """Refuse an estimator that has nothing to show."""
    if not hasattr(model, "signal_"):
        raise ValueError("the estimator has not been fitted, so there is nothing to report. Call fit(A, y) first.")


def check_columns(model: rp.RobustPhaseRetrieval, A: Any, source: rp.rows.RowSource) -> None:
    """Refuse columns in another order, which would give other predictions; only a data frame can tell."""
    validate_data(model, A if hasattr(A, "columns") else source, reset=False, skip_check_array=True)


def as_fitted(model: rp.RobustPhaseRetrieval, responses: Array) -> Array:
    """Responses (m, p) as the fit saw them: without a background that was known, and a drift that was fitted."""
    if model.background is not None:
        responses = responses - np.asarray(model.background, np.float64).reshape(-1, 1)
    drift = getattr(model, "drift_", None)
    return responses if drift is None else np.asarray(drift.corrected(responses), np.float64)


def data_fingerprint(source: rp.rows.RowSource, responses: Array) -> str:
    """A hash of the data; empty where the rows cannot be read in order."""
    try:
        return fingerprint(source, responses)
    except TypeError:
        # Rows on other machines, or seen through a change, cannot be read in order.
        return ""


def facts_of(model: rp.RobustPhaseRetrieval, source: rp.rows.RowSource) -> dict[str, Any]:
    """What is true of the whole fit, under the names that diagnostics give it."""
    parameters = {name: _plain_value(value) for name, value in model.get_params().items()}
    last = model.history_[-1]
    return {
        "contamination_told": parameters["contamination"],
        "parameters": parameters,
        "seed": _seed_of(model.random_state),
        "dtype": source.dtype.name,
        "versions": software_versions(),
        "seconds": float(last.seconds),
        "passes": int(last.passes),
        **_groups_of(model),
    }


def software_versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "robustphase": rp.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _groups_of(model: rp.RobustPhaseRetrieval) -> dict[str, Any]:
    """Names, weights and widths of the groups of all columns of labels."""
    if not hasattr(model, "group_weights_"):
        return {}
    columns: list[Any] = [model.groups_, model.group_weights_, model.group_evidence_]
    if not isinstance(columns[1], tuple):
        columns = [(column,) for column in columns]
    several = len(columns[1]) > 1
    names = [f"{i}: {name}" if several else str(name) for i, column in enumerate(columns[0]) for name in column]
    sizes = [len(column) for column in columns[1]]
    widths = [np.full(size, np.nan) if one is None else one.widths for one, size in zip(columns[2], sizes, strict=True)]
    compared = any(one is not None for one in columns[2])
    return {
        "groups": np.array(names),
        "group_weights": np.concatenate(columns[1]),
        "group_widths": np.concatenate(widths) if compared else None,
    }


def _seed_of(random_state: Any) -> int | None:
    """The seed of a fit; None if it came from a random state that is gone."""
    if random_state is None:
        return 0
    return int(random_state) if isinstance(random_state, (int, np.integer)) else None


def _plain_value(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return f"array of shape {np.shape(value)}"
    return type(value).__name__
