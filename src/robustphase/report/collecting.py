"""What diagnostics take from a fitted estimator and its data: of one signal and of many in the same way, and what only one has.

First the estimator and its data are checked; then :func:`facts_of` collects what is true of the whole fit, however many signals
it has: parameters, software, costs and groups. Of one signal every row and its prediction, the noise and standard errors are
looked at besides.
"""

from __future__ import annotations

import platform
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

import robustphase as rp
from robustphase.estimator import NoiseModel
from robustphase.estimator.standard_errors import errors_of_fit
from robustphase.files import fingerprint
from robustphase.rows.products import abs2, project_block

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


#: Standard errors need matrices of size n × n; beyond this n they are left out unless asked for.
MOST_UNKNOWNS = 2000
#: Rows with a larger squared length have no length and no prediction: what is computed with them overflows.
LARGEST_SQUARE = 1e200
#: A scale below this share of the size of the responses is rounding, not noise.
ROUNDING = 1e-9


class RowFigures(NamedTuple):
    """Of every row whether it cannot be computed with, ``‖a‖²``, and ``|aᴴx|²``; all of shape (m,)."""

    extreme: Array
    squared_norms: Array
    energies: Array


def row_figures(source: rp.rows.RowSource, signal: Array) -> RowFigures:
    """Lengths and predictions of all rows, and which rows have none: one pass."""

    def kernel(block: Array) -> rp.rows.Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.vecdot(block, block).real.astype(np.float64)
        # Written so that NaN, which compares false with everything, counts as extreme.
        extreme = ~(norms <= LARGEST_SQUARE)
        if extreme.any():
            norms = np.where(extreme & ~np.isnan(norms), np.inf, norms)
            block = np.where(extreme[:, np.newaxis], 0, block)
        return rp.rows.Parts(rows=(extreme, norms, abs2(project_block(block, signal))))

    return RowFigures(*source.reduce(kernel).rows)


def is_rounding(scale: float, predictions: Array) -> bool:
    """Whether residuals of this scale are roundings of these predictions."""
    usable = np.abs(predictions[np.isfinite(predictions)])
    return not scale > ROUNDING * (float(np.median(usable)) if usable.size else 0.0)


def fitted_noise(model: rp.RobustPhaseRetrieval, predictions: Array) -> NoiseModel | None:
    """The noise model that all samples share, where one was fitted."""
    # Without the last step of the engine, in a stream, or from a start of zero no noise model was fitted.
    fitted = model.polish and model.batches_seen_ == 1 and np.any(model.initial_signal_)
    if not fitted or is_rounding(model.noise_scale_, predictions):
        return None
    # Noise that depends on the signal has no width that all samples share.
    return model.noise_model_ if isinstance(model.noise_model_, NoiseModel) else None


def standard_errors_of(
    model: rp.RobustPhaseRetrieval, source: rp.rows.RowSource, responses: Array, unusable: Array, asked: bool | None
) -> Array | None:
    """Standard errors of the entries of the signal; if nobody ``asked``, only where they are defined and cheap."""
    if asked is False or (asked is None and model.signal_.size > MOST_UNKNOWNS):
        return None
    if unusable.any():
        source, responses = rp.rows.MaskedRows(source, unusable), np.where(unusable, 0.0, responses)
    try:
        # The rows were looked at a moment ago; the public method would do so again.
        return None if model._doubted else errors_of_fit(model, source, responses)
    except ValueError:
        # Complex signals, fits without polish, streams: the message says why, and only those who asked want to read it.
        if asked:
            raise
        return None
