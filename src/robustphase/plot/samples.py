"""The samples of a fit: what was measured, what is predicted, and why some were rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Why a sample was rejected; codes are positions in this tuple.
CAUSES = ("kept", "nonfinite", "norm", "direction", "residual")
#: Samples with a smaller weight count as rejected, as in ``flag_samples``.
THRESHOLD = 0.5
#: The eighth power of a hundred times a response must be a number, or the fit has dropped it.
RESPONSE_POWER = 8


@dataclass(frozen=True, eq=False)
class Samples:
    """What the plots need of the samples of one signal; all of shape (m,)."""

    weights: Array  # 0 treated as bad, 1 as clean
    #: Measured, without the drift where one was fitted; and expected, NaN or infinite where there is nothing to expect.
    responses: Array
    predictions: Array
    energies: Array  # ``|aᴴx|²``: predictions without any background
    deviations: Array  # Residuals from their centre, in units of the width that the noise has at this prediction
    codes: Array  # int8: positions in `CAUSES`


def fitted(fit: Any, name: str) -> Any:
    """An attribute of a fitted estimator, or of the diagnostics of one, where it has no underscore."""
    for found in (f"{name}_", name):
        if hasattr(fit, found):
            return getattr(fit, found)
    raise ValueError(
        f"{type(fit).__name__} has no {name}_: pass an estimator after fit(A, y), or the diagnostics of one "
        "(robustphase.report.load_result)."
    )


def optional(fit: Any, name: str) -> Any:
    """The same, None where it is missing."""
    return getattr(fit, f"{name}_", getattr(fit, name, None))


def noise_of(fit: Any, index: int = 0) -> Any:
    """The noise model of one signal of a fit, if it has one; that of diagnostics may be a curve."""
    curve = getattr(fit, "noise_curve", None)
    noise = optional(fit, "noise_model") if curve is None else curve
    return None if noise is None else type(noise)(*(np.asarray(one_signal(fit, part, index)) for part in noise))


def one_signal(fit: Any, values: Any, index: int) -> Any:
    """What belongs to one of the signals of a fit, of something whose last axis counts signals; all of it for a single one."""
    if not is_many(fit):
        return values
    found = np.asarray(values)
    # One column of weights may serve all signals.
    return found[..., index if found.shape[-1] > 1 else 0]


def is_many(fit: Any) -> bool:
    """Whether a fit is of several signals."""
    return bool(np.ndim(fitted(fit, "signal")) == 2)


def unusable_responses(responses: Array) -> Array:
    """Which responses the fit has dropped: NaN, infinite, or so large that their powers overflow (boolean, shape (m,))."""
    with np.errstate(over="ignore"):
        flags: Array = ~np.isfinite((100 * np.abs(responses)) ** RESPONSE_POWER)
    return flags


def cause_codes(weights: Array, covariate_weights: Array, responses: Array, predictions: Array) -> NDArray[np.int8]:
    """For every sample the position in `CAUSES`: 0 if it was kept.

    The fit judges in this order, and so do we: numbers that cannot be computed with, covariates of a length that the design
    cannot have, covariates in a direction that holds more rows than the design explains, and last the response.
    """
    unusable = ~np.isfinite(predictions) | unusable_responses(responses)
    codes = np.select(
        [unusable, covariate_weights == 0, covariate_weights < THRESHOLD],
        [1, 2, 3],
        default=4,
    )
    return np.where(weights < THRESHOLD, codes, 0).astype(np.int8)


def samples_of(fit: Any, A: Any = None, y: Any = None, index: int = 0) -> Samples:
    """The samples of one signal of a fit and its data, which diagnostics bring along."""
    weights = one_signal(fit, fitted(fit, "weights"), index)
    if A is None or y is None:
        if not hasattr(fit, "responses"):
            raise ValueError("this plot shows the samples, so it needs the data of the fit: pass A and y as well.")
        responses, predictions, known = fit.responses, fit.predictions, 0.0
    else:
        responses, predictions, known = _measured(fit, A, y, index)
    if responses.shape != weights.shape or predictions.shape != weights.shape:
        raise ValueError(
            f"the fit has {weights.size} samples, but A and y have {predictions.size} and {responses.size}. Pass the data of "
            "the fit; after partial_fit, the last batch."
        )
    rows = one_signal(fit, fitted(fit, "covariate_weights"), index)
    codes = cause_codes(weights, rows, responses, predictions)
    energies = predictions - known - one_signal(fit, fitted(fit, "noise_mean"), index)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        deviations = (responses - predictions - _centre(fit, index)) / _widths(fit, energies, index)
    return Samples(weights, responses, predictions, energies, deviations, codes)


def _measured(fit: Any, A: Any, y: Any, index: int) -> tuple[Array, Array, Any]:
    """Responses, predictions, and the known part of the background."""
    responses = np.asarray(y, np.float64)
    responses = responses.reshape(len(responses), -1)
    drift = optional(fit, "drift")
    if hasattr(drift, "corrected"):
        responses = drift.corrected(responses)
    measured: Array = responses[:, index if responses.shape[1] > 1 else 0]
    known = 0.0 if fit.background is None else np.asarray(fit.background, np.float64).reshape(-1)
    return measured, np.asarray(one_signal(fit, fit.predict(A), index), np.float64) + known, known


def _centre(fit: Any, index: int) -> Any:
    """Where clean residuals are centred; they are taken from predictions, which hold the noise mean."""
    if hasattr(fit, "residual_centre"):
        return fit.residual_centre
    return one_signal(fit, fit.residual_centre_, index) - one_signal(fit, fit.noise_mean_, index)


def _widths(fit: Any, energies: Array, index: int) -> Any:
    """Width of the noise of every sample: a number, or an array where it depends on the signal."""
    noise = noise_of(fit, index)
    if not hasattr(noise, "variance"):
        return one_signal(fit, fitted(fit, "noise_scale"), index)
    return np.sqrt(noise.variance(np.maximum(energies, 0.0)))
