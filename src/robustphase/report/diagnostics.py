"""Everything a report shows and a result file keeps, taken from a fitted estimator and its data."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

import robustphase as rp
from robustphase.estimator import CurvedNoise, NoiseModel
from robustphase.files import fingerprint
from robustphase.plot.samples import THRESHOLD, unusable_responses
from robustphase.rows.passes import abs2, project_block

Array = NDArray[Any]

#: Standard errors need matrices of size n × n; beyond this n they are left out unless asked for.
MOST_UNKNOWNS = 2000
#: Rows with a larger squared length have no length and no prediction: what is computed with them overflows.
LARGEST_SQUARE = 1e200
#: A scale below this share of the size of the responses is rounding, not noise.
ROUNDING = 1e-9
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


class GroupWidths(NamedTuple):
    """Widths of the residuals of the groups over that of the noise."""

    widths: Array


class CheckRecord(NamedTuple):
    """A check of the model: what it measured, its limit, whether that failed or spoils the answer, and what to do."""

    name: str
    figure: float
    threshold: float
    failed: bool
    severe: bool
    cause: str
    remedy: str


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

    @classmethod
    def of(
        cls,
        model: rp.RobustPhaseRetrieval,
        A: Any,
        y: Any,
        *,
        data_name: str | None = None,
        command: str | None = None,
        truth: Any = None,
        image_shape: tuple[int, int] | None = None,
        detector_shape: tuple[int, ...] | None = None,
        message: str = "",
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
        data_name, command : str, optional
            Where the data came from, and what was typed.
        truth : array-like of shape (n,), optional
            The signal, where it is known.
        image_shape : (int, int), optional
            Show the signal as a picture of this height and width.
        detector_shape : tuple of int, optional
            Show residuals and flags as the detector lies: its height and width, or frames, height and width. Default: the shape
            of y, where that is one of frames.
        message : str
            What the fit warned of.
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
            data_name=data_name,
            command=command,
            truth=None if truth is None else np.asarray(truth).reshape(-1),
            image_shape=None if image_shape is None else (int(image_shape[0]), int(image_shape[1])),
            detector_shape=_detector(np.shape(y) if detector_shape is None else detector_shape, given=detector_shape),
            message=message,
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
        figures = _row_figures(source, model.signal_)
        unusable = figures.extreme | unusable_responses(responses)
        predictions = np.where(figures.extreme, np.nan, figures.energies + model.noise_mean_)
        parameters = {name: plain_value(value) for name, value in model.get_params().items()}
        last = model.history_[-1]
        return cls(
            signal=model.signal_,
            initial_signal=model.initial_signal_,
            weights=model.weights_,
            covariate_weights=model.covariate_weights_,
            responses=responses,
            predictions=predictions,
            squared_norms=figures.squared_norms,
            history={name: np.array([getattr(record, name) for record in model.history_]) for name in HISTORY},
            contamination_told=parameters["contamination"],
            contamination_used=float(model.contamination_),
            noise_mean=float(model.noise_mean_),
            noise_scale=float(model.noise_scale_),
            # Residuals are taken from predictions, which hold the noise mean.
            residual_centre=float(model.residual_centre_ - model.noise_mean_),
            noise_model=_fitted_noise(model, predictions),
            certificate=float(model.certificate_),
            converged=bool(model.converged_),
            failed_checks=_failed_checks(model),
            model_check=check_records(model.model_check_),
            noise_curve=model.noise_model_ if isinstance(model.noise_model_, CurvedNoise) else None,
            **groups_of(model),
            parameters=parameters,
            seed=seed_of(model.random_state),
            dtype=source.dtype.name,
            versions=software_versions(),
            seconds=float(last.seconds),
            passes=int(last.passes),
            standard_errors=_standard_errors(model, source, responses, unusable, standard_errors),
            **known,
        )

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


def _check_shape(name: str, values: Array, shape: tuple[int, ...], what: str) -> None:
    if np.shape(values) != shape:
        raise ValueError(f"{name} has shape {np.shape(values)} but needs {shape}, one number per {what}.")


def is_rounding(scale: float, predictions: Array) -> bool:
    """Whether residuals of this scale are roundings of these predictions."""
    usable = np.abs(predictions[np.isfinite(predictions)])
    return not scale > ROUNDING * (float(np.median(usable)) if usable.size else 0.0)


class _RowFigures(NamedTuple):
    """Of every row whether it cannot be computed with, ``‖a‖²``, and ``|aᴴx|²``; all of shape (m,)."""

    extreme: Array
    squared_norms: Array
    energies: Array


def _row_figures(source: rp.rows.RowSource, signal: Array) -> _RowFigures:
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

    return _RowFigures(*source.reduce(kernel).rows)


def _fitted_noise(model: rp.RobustPhaseRetrieval, predictions: Array) -> NoiseModel | None:
    # Without the last step of the engine, in a stream, or from a start of zero no noise model was fitted.
    fitted = model.polish and model.batches_seen_ == 1 and np.any(model.initial_signal_)
    if not fitted or is_rounding(model.noise_scale_, predictions):
        return None
    # Noise that depends on the signal has no width that all samples share.
    return model.noise_model_ if isinstance(model.noise_model_, NoiseModel) else None


def check_records(checks: Any) -> tuple[CheckRecord, ...]:
    """The checks of a model as plain values."""
    return tuple(
        CheckRecord(c.name, float(c.figure), float(c.threshold), bool(c.failed), bool(c.severe), c.cause, c.remedy)
        for c in checks.checks
    )


def groups_of(model: rp.RobustPhaseRetrieval) -> dict[str, Any]:
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


def _failed_checks(model: rp.RobustPhaseRetrieval) -> dict[str, str]:
    """Name and finding of every check of the model that failed; of one signal."""
    checks: Any = model.model_check_
    return {
        check.name: f"{check.figure:.3g}, limit {check.threshold:.3g}: {check.cause}. {check.remedy}"
        for check in checks.failed
    }


def _standard_errors(
    model: rp.RobustPhaseRetrieval, source: rp.rows.RowSource, responses: Array, unusable: Array, asked: bool | None
) -> Array | None:
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


def data_fingerprint(source: rp.rows.RowSource, responses: Array) -> str:
    """A hash of the data; empty where the rows cannot be read in order."""
    try:
        return fingerprint(source, responses)
    except TypeError:
        # Rows on other machines, or seen through a change, cannot be read in order.
        return ""


def seed_of(random_state: Any) -> int | None:
    """The seed of a fit; None if it came from a random state that is gone."""
    if random_state is None:
        return 0
    return int(random_state) if isinstance(random_state, (int, np.integer)) else None


def plain_value(value: Any) -> Any:
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


def software_versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "robustphase": rp.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
