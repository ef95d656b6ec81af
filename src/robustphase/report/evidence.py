"""Everything a report shows and a result file keeps, taken from a fitted estimator and its data."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

import robustphase as rp
from robustphase.files import fingerprint
from robustphase.report.law import ROUNDING, NoiseLaw, fit_law

Array = NDArray[Any]

#: Samples with a smaller weight count as rejected, as in ``flag_samples``.
THRESHOLD = 0.5
#: Standard errors need matrices of size n × n; beyond this n they are left out unless asked for.
MOST_UNKNOWNS = 2000
#: Lengths of rows with larger entries are not computed: their squares overflow.
LARGEST_ENTRY = 1e100
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
class Evidence:
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
    weights : ndarray of shape (m,)
        One number per sample: 0 treated as bad, 1 as clean.
    covariate_weights : ndarray of shape (m,)
        What the screening of the covariates left of each sample, before any response was looked at.
    responses, predictions : ndarray of shape (m,)
        ``y`` and ``|A x|² +`` noise mean; predictions of samples that cannot be computed with are NaN.
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
    noise_law : NoiseLaw, optional
        The law that clean residuals follow; None without noise.
    certificate : float
        Radius around the signal, relative to its norm, that the robust gradient vouches for.
    converged : bool
        Whether the last stage settled.
    message : str
        The likely cause and what to try, if it did not.
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
    seed: int | None = None
    noise_law: NoiseLaw | None = None
    standard_errors: Array | None = None
    truth: Array | None = None
    image_shape: tuple[int, int] | None = None
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
        message: str = "",
        standard_errors: bool | None = None,
    ) -> Evidence:
        """Collect the evidence of a fitted estimator.

        Beside a few passes over the data this repeats the screening of the covariates, about half of the work of a fit, to
        tell samples that were rejected for their covariates from those rejected for their response.

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
        message : str
            What the fit warned of.
        standard_errors : bool, optional
            Compute them: True or False. Default: where they are defined and there are at most 2000 unknowns.

        Returns
        -------
        Evidence
        """
        if not hasattr(model, "signal_"):
            raise ValueError("the estimator has not been fitted, so there is nothing to report. Call fit(A, y) first.")
        source = rp.rows.as_source(A)
        responses = np.asarray(y, np.float64).reshape(-1)
        m = source.shape[0]
        if not m == responses.size == model.weights_.size:
            raise ValueError(
                f"the evidence needs the data of the fit, {model.weights_.size} samples, got {m} rows and "
                f"{responses.size} responses. After partial_fit, pass the last batch."
            )
        # A frame keeps its names for the estimator to check; anything else is opened once.
        given = A if hasattr(A, "columns") else source
        predictions = model.predict(given)
        parameters = {name: _plain(value) for name, value in model.get_params().items()}
        seed = _seed(model.random_state)
        last = model.history_[-1]
        return cls(
            signal=model.signal_,
            initial_signal=model.initial_signal_,
            weights=model.weights_,
            covariate_weights=_screening(model, source, responses, 0 if seed is None else seed),
            responses=responses,
            predictions=predictions,
            squared_norms=_squared_norms(source),
            history={name: np.array([getattr(record, name) for record in model.history_]) for name in HISTORY},
            contamination_told=parameters["contamination"],
            contamination_used=float(model.contamination_),
            noise_mean=float(model.noise_mean_),
            noise_scale=float(model.noise_scale_),
            noise_law=_law(model, responses, predictions),
            certificate=float(model.certificate_),
            converged=bool(model.converged_),
            message=message,
            parameters=parameters,
            seed=seed,
            dtype=source.dtype.name,
            versions=_versions(),
            command=command,
            data_name=data_name,
            fingerprint=_fingerprint(source, responses),
            seconds=float(last.seconds),
            passes=int(last.passes),
            standard_errors=_standard_errors(model, given, responses, standard_errors),
            truth=None if truth is None else np.asarray(truth).reshape(-1),
            image_shape=None if image_shape is None else (int(image_shape[0]), int(image_shape[1])),
        )

    def __repr__(self) -> str:
        settled = "converged" if self.converged else "not converged"
        return f"Evidence({self.m} samples, {self.n} unknowns, {int(self.rejected.sum())} rejected, {settled})"

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
        return None if self.truth is None else float(rp.distance(self.signal, self.truth, relative=True))


def _check_shape(name: str, values: Array, shape: tuple[int, ...], what: str) -> None:
    if np.shape(values) != shape:
        raise ValueError(f"{name} has shape {np.shape(values)} but needs {shape}, one number per {what}.")


def _screening(model: rp.RobustPhaseRetrieval, source: rp.rows.RowSource, responses: Array, seed: int) -> Array:
    """Weights of the covariates alone; ones where there are too few samples to screen."""
    if source.shape[0] < source.shape[1]:
        return np.ones(source.shape[0])
    with warnings.catch_warnings():
        # What it may warn of, a design that is not standard normal, the fit has said already.
        warnings.simplefilter("ignore", UserWarning)
        start = rp.spectral_init(
            source,
            responses,
            model.contamination,
            model.noise_mean,
            whiten=model.whiten,
            nonfinite=model.nonfinite,
            random_state=seed,
        )
    return start.weights


def _squared_norms(source: rp.rows.RowSource) -> Array:
    peaks = rp.rows.row_peaks(source)
    extreme = rp.rows.extreme_rows(peaks, limit=min(LARGEST_ENTRY, float(np.finfo(source.dtype).max) ** 0.5 * 1e-2))
    hidden = rp.rows.MaskedRows(source, extreme) if extreme.any() else source
    squares = np.asarray(rp.rows.ScaledRows(hidden).squared_distances(), np.float64)
    return np.where(extreme, np.where(np.isnan(peaks), np.nan, np.inf), squares)


def _law(model: rp.RobustPhaseRetrieval, responses: Array, predictions: Array) -> NoiseLaw | None:
    with np.errstate(invalid="ignore", over="ignore"):
        residuals = responses - predictions
    size = float(np.median(np.abs(predictions[np.isfinite(predictions)])))
    if not model.noise_scale_ > ROUNDING * size:
        return None
    # Only the polish fits a law; the scale of the other ways to fit is a quantile.
    return fit_law(residuals, model.weights_, model.noise_scale_ if model.polish else None)


def _standard_errors(model: rp.RobustPhaseRetrieval, A: Any, y: Any, asked: bool | None) -> Array | None:
    if asked is False or (asked is None and model.signal_.size > MOST_UNKNOWNS):
        return None
    try:
        return model.standard_errors(A, y)
    except ValueError:
        # Complex signals, fits without polish, streams: the message says why, and only those who asked want to read it.
        if asked:
            raise
        return None


def _fingerprint(source: rp.rows.RowSource, responses: Array) -> str:
    try:
        return fingerprint(source, responses)
    except TypeError:
        # Rows on other machines, or seen through a change, cannot be read in order.
        return ""


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return 0
    return int(random_state) if isinstance(random_state, (int, np.integer)) else None


def _plain(value: Any) -> Any:
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


def _versions() -> dict[str, str]:
    return {
        "robustphase": rp.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
