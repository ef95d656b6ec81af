"""Everything a report shows and a result file keeps, taken from a fitted estimator and its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import robustphase as rp
from robustphase.estimator import CurvedNoise, NoiseModel
from robustphase.estimator.certifying import certified_levels
from robustphase.plot.samples import THRESHOLD, unusable_responses
from robustphase.report.collecting import (
    GroupWidths,
    as_fitted,
    check_columns,
    data_fingerprint,
    facts_of,
    fitted_noise,
    is_rounding,
    require_fitted,
    row_figures,
    standard_errors_of,
)


class CheckRecord(NamedTuple):
    """A check of the model: what it measured, its limit, whether that failed or spoils the answer, and what to do."""

    name: str
    figure: float
    threshold: float
    failed: bool
    severe: bool
    cause: str
    remedy: str


def check_records(checks: Any) -> tuple[CheckRecord, ...]:
    """The checks of one signal (``model_check_``)."""
    return tuple(
        CheckRecord(c.name, float(c.figure), float(c.threshold), bool(c.failed), bool(c.severe), c.cause, c.remedy)
        for c in checks.checks
    )


def failed_checks(checks: Any) -> dict[str, str]:
    """Name and finding of every check of one signal that failed."""
    return {
        check.name: f"{check.figure:.3g}, limit {check.threshold:.3g}: {check.cause}. {check.remedy}"
        for check in checks.failed
    }


Array = NDArray[Any]

#: What is kept of every stage: the fields of the estimator's history.
HISTORY = (
    "stage",
    "moved",
    "gradient_norm",
    "certificate",
    "removed",
    "score",
    "candidates",
    "passes",
    "seconds",
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FitDiagnostics:
    """What a fit has to show for itself.

    Attributes
    ----------
    signal, initial_signal : ndarray of shape (n,)
        The estimate and where it started, up to a global sign (phase).
    standard_errors : ndarray of shape (n,), optional
        Of the entries of the signal, where they could be computed.
    truth : ndarray of shape (n,), optional
        The signal behind simulated data.
    image_shape : (int, int), optional
        Height and width, where the signal is a picture.
    detector_shape : tuple of int, optional
        Height and width of the detector whose readings the samples are, or frames, height and width.
    weights : ndarray of shape (m,)
        One number per sample: 0 treated as bad, 1 as clean.
    covariate_weights : ndarray of shape (m,)
        Weight of every row alone, whatever its response.
    responses, predictions : ndarray of shape (m,)
        ``y``, without a background that was known and a drift that was fitted, and ``|A x|² +`` noise mean; predictions of
        samples that cannot be computed with are NaN.
    squared_norms : ndarray of shape (m,)
        ``‖a‖²`` of every row; NaN or infinite where it is not a number.
    history : mapping of str to ndarray
        One array per field of the estimator's records, one entry per stage or step.
    contamination_told : float or "auto"
        What the fit was told.
    contamination_used : float
        The level it used or found.
    noise_mean, noise_scale : float
        The background, and the scale of clean residuals.
    residual_centre : float
        Where clean residuals are centred: the peak of the noise model, which for skewed noise is not their mean.
    noise_model : NoiseModel, optional
        The model of the clean residuals that was fitted along with the signal; None without noise, and where the fit had none
        (``polish=False``, after ``partial_fit``).
    certificate : float
        Radius around the signal, relative to its norm, that the robust gradient vouches for.
    converged : bool
        Whether the last stage settled.
    message : str
        The likely cause and what to try, if it did not.
    failed_checks : mapping of str to str
        Names of the checks of the model that failed, and what was found, its likely cause and what to try.
    model_check : tuple of CheckRecord
        Every check of the model; empty in files that were written before they were kept.
    noise_curve : CurvedNoise, optional
        The model of noise that depends on the signal, where one was fitted.
    groups, group_weights, group_widths : ndarray of shape (G,), optional
        With groups: their names, their probabilities to be good, and the widths of their residuals over that of the noise, where
        some stand out. Of several columns of labels, all, one after the other.
    parameters : dict
        Parameters of the estimator, as plain values.
    seed : int, optional
        Seed of the fit; None if it came from a random state that is gone.
    dtype : str
        Type of the covariates.
    versions : dict
        Versions of the software.
    command : str, optional
        What was typed.
    data_name : str, optional
        Where the data came from.
    fingerprint : str
        SHA-256 of the data, as `robustphase.files.fingerprint` computes it; empty where the rows are out of its reach.
    seconds : float
        Time of the fit.
    passes : int
        Sweeps over the data.
    """

    signal: Array
    initial_signal: Array
    weights: Array
    covariate_weights: Array
    responses: Array
    predictions: Array
    squared_norms: Array
    history: Mapping[str, Array]
    contamination_told: float | str
    contamination_used: float
    noise_mean: float
    noise_scale: float
    certificate: float
    converged: bool
    dtype: str
    fingerprint: str
    seconds: float
    passes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    failed_checks: Mapping[str, str] = field(default_factory=dict)
    model_check: tuple[CheckRecord, ...] = ()
    noise_curve: CurvedNoise | None = None
    groups: Array | None = None
    group_weights: Array | None = None
    group_widths: Array | None = None
    seed: int | None = None
    residual_centre: float = 0.0
    noise_model: NoiseModel | None = None
    standard_errors: Array | None = None
    truth: Array | None = None
    image_shape: tuple[int, int] | None = None
    detector_shape: tuple[int, ...] | None = None
    command: str | None = None
    data_name: str | None = None

    def __post_init__(self) -> None:
        for name in ("covariate_weights", "responses", "predictions", "squared_norms"):
            _check_shape(name, getattr(self, name), self.weights.shape, "sample")
        for name in ("initial_signal", "standard_errors", "truth"):
            values = getattr(self, name)
            if values is not None:
                _check_shape(name, values, self.signal.shape, "entry of the signal")
        if set(self.history) != set(HISTORY) or len({values.shape for values in self.history.values()}) > 1:
            raise ValueError(f"history must hold arrays of one length under the names {', '.join(HISTORY)}.")
        if self.image_shape is not None and math.prod(self.image_shape) != self.n:
            height, width = self.image_shape
            raise ValueError(
                f"image_shape={self.image_shape} has {height * width} pixels but the signal {self.n} entries."
            )
        shape = self.detector_shape
        if shape is not None and (len(shape) not in (2, 3) or math.prod(shape) != self.m):
            raise ValueError(
                f"detector_shape={shape} has {math.prod(shape)} readings but the fit {self.m} samples; give (height, width) or "
                "(frames, height, width)."
            )

    @property
    def certified_level(self) -> float:
        """The contamination that the certificate allows for."""
        return float(certified_levels(self.contamination_told, self.contamination_used))

    @classmethod
    def of(
        cls,
        model: rp.RobustPhaseRetrieval,
        A: Any,
        y: Any,
        *,
        truth: Any = None,
        image_shape: tuple[int, int] | None = None,
        detector_shape: tuple[int, ...] | None = None,
        standard_errors: bool | None = None,
    ) -> FitDiagnostics:
        """Collect the diagnostics of a fitted estimator.

        Nothing is fitted again: one pass over the data for lengths and predictions, and two for standard errors.

        Parameters
        ----------
        model : RobustPhaseRetrieval
            Fitted.
        A, y
            The data of the fit; of the last batch, after ``partial_fit``.
        truth : array-like of shape (n,), optional
            The signal, where it is known.
        image_shape : (int, int), optional
            Show the signal as a picture of this height and width.
        detector_shape : tuple of int, optional
            Show residuals and flags as the detector lies: its height and width, or frames, height and width. Default: the shape
            of y, where that is one of frames.
        standard_errors : bool, optional
            Compute them: True or False. Default: where they are defined and there are at most 2000 unknowns.

        Returns
        -------
        FitDiagnostics
        """
        require_fitted(model)
        if model.signal_.ndim == 2:
            raise ValueError(
                f"the fit is of {len(model.signal_)} signals; robustphase.report.ManyDiagnostics.of(model, A, y) collects the "
                "diagnostics of all of them."
            )
        source = rp.rows.as_source(A)
        read = np.asarray(y, np.float64).reshape(-1)
        m = source.shape[0]
        if not m == read.size == model.weights_.size:
            raise ValueError(
                f"diagnostics need the data of the fit, {model.weights_.size} samples, got {m} rows and "
                f"{read.size} responses. After partial_fit, pass the last batch."
            )
        check_columns(model, A, source)
        return cls.collect(
            model,
            source,
            as_fitted(model, read[:, np.newaxis])[:, 0],
            truth=None if truth is None else np.asarray(truth).reshape(-1),
            image_shape=None if image_shape is None else (int(image_shape[0]), int(image_shape[1])),
            detector_shape=_detector(np.shape(y) if detector_shape is None else detector_shape, given=detector_shape),
            standard_errors=standard_errors,
            fingerprint=data_fingerprint(source, read),
        )

    @classmethod
    def collect(
        cls,
        model: rp.RobustPhaseRetrieval,
        source: rp.rows.RowSource,
        responses: Array,
        *,
        standard_errors: bool | None = None,
        **known: Any,
    ) -> FitDiagnostics:
        """The same, from rows and responses that have been checked; ``known`` is what the model does not know."""
        figures = row_figures(source, model.signal_)
        unusable = figures.extreme | unusable_responses(responses)
        predictions = np.where(figures.extreme, np.nan, figures.energies + model.noise_mean_)
        return cls(
            signal=model.signal_,
            initial_signal=model.initial_signal_,
            weights=np.asarray(model.weights_),
            covariate_weights=np.asarray(model.covariate_weights_),
            responses=responses,
            predictions=predictions,
            squared_norms=figures.squared_norms,
            history={name: np.array([getattr(record, name) for record in model.history_]) for name in HISTORY},
            contamination_used=float(model.contamination_),
            noise_mean=float(model.noise_mean_),
            noise_scale=float(model.noise_scale_),
            # Residuals are taken from predictions, which hold the noise mean.
            residual_centre=float(model.residual_centre_ - model.noise_mean_),
            noise_model=fitted_noise(model, predictions),
            certificate=float(model.certificate_),
            converged=bool(model.converged_),
            failed_checks=failed_checks(model.model_check_),
            model_check=check_records(model.model_check_),
            noise_curve=model.noise_model_ if isinstance(model.noise_model_, CurvedNoise) else None,
            standard_errors=standard_errors_of(model, source, responses, unusable, standard_errors),
            **facts_of(model, source),
            **known,
        )

    def from_where(
        self, data_name: str | None = None, *, command: str | None = None, message: str = ""
    ) -> FitDiagnostics:
        """The same, knowing where the data came from, what was typed, and what the fit warned of."""
        return replace(self, data_name=data_name, command=command, message=message)

    def __repr__(self) -> str:
        settled = "converged" if self.converged else "not converged"
        return f"FitDiagnostics({self.m} samples, {self.n} unknowns, {int(self.rejected.sum())} rejected, {settled})"

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return int(self.signal.size)

    @property
    def m(self) -> int:
        """Number of samples."""
        return int(self.weights.size)

    @property
    def residuals(self) -> Array:
        """Responses minus predictions, shape (m,); NaN where a sample cannot be computed with."""
        with np.errstate(invalid="ignore", over="ignore"):
            difference: Array = self.responses - self.predictions
        return difference

    @property
    def noiseless(self) -> bool:
        """Whether the residuals of clean samples are roundings."""
        return is_rounding(self.noise_scale, self.predictions)

    @property
    def group_evidence(self) -> GroupWidths | None:
        """What the samples say of their groups, where some stand out."""
        return None if self.group_widths is None else GroupWidths(self.group_widths)

    @property
    def rejected(self) -> Array:
        """Which samples have a weight below one half (boolean, shape (m,))."""
        flags: Array = self.weights < THRESHOLD
        return flags

    @property
    def expected_error(self) -> float | None:
        """Root of the summed squared standard errors, relative to the norm of the signal: the error due to noise."""
        norm = float(np.linalg.norm(self.signal))
        if self.standard_errors is None or norm == 0:
            return None
        return float(np.linalg.norm(self.standard_errors)) / norm

    @property
    def true_error(self) -> float | None:
        """Distance to the truth relative to its norm, where the truth is known."""
        return None if self.truth is None else self._distance_of(self.signal)

    @property
    def paired(self) -> bool:
        """Whether a complex signal stands behind real rows, where its conjugate is the same signal."""
        return np.iscomplexobj(self.signal) and not self.dtype.startswith("c")

    def _distance_of(self, signal: Array) -> float:
        """Distance of a signal to the truth, relative to its norm."""
        assert self.truth is not None
        return float(rp.distance(signal, self.truth, relative=True, conjugate=self.paired))


def _detector(shape: tuple[int, ...], *, given: Any) -> tuple[int, ...] | None:
    """A shape in plain numbers; none where that of the responses is one column or row."""
    if given is None and (len(shape) not in (2, 3) or min(shape[-2:]) < 2):
        return None
    return tuple(int(side) for side in shape)


def _check_shape(name: str, values: Array, shape: tuple[int, ...], what: str) -> None:
    if np.shape(values) != shape:
        raise ValueError(f"{name} has shape {np.shape(values)} but needs {shape}, one number per {what}.")
