"""What only the diagnostics of one signal look at: every row and its prediction, the noise, standard errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import robustphase as rp
from robustphase.estimator import NoiseModel
from robustphase.rows.passes import abs2, project_block

Array = NDArray[Any]

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
        return None if model._doubted else model._standard_errors(source, responses)
    except ValueError:
        # Complex signals, fits without polish, streams: the message says why, and only those who asked want to read it.
        if asked:
            raise
        return None
