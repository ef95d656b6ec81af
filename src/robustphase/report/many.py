"""The diagnostics of many signals behind the same rows: figures of each of them, and a few in detail."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import robustphase as rp
from robustphase.estimator.certifying import certified_levels
from robustphase.plot.many import expected_errors
from robustphase.plot.samples import THRESHOLD, noise_of
from robustphase.report.collecting import (
    GroupWidths,
    as_fitted,
    check_columns,
    data_fingerprint,
    facts_of,
    require_fitted,
)
from robustphase.report.diagnostics import CheckRecord, FitDiagnostics, check_records

Array = NDArray[Any]

#: Signals that are shown in detail, unless somebody asks for others.
DETAILED = 4
#: Attributes of the estimator with one number per signal.
PER_SIGNAL = ("contamination", "noise_mean", "noise_scale", "certificate", "converged")
#: What is kept of every flagged reading.
FLAGGED = ("responses", "predictions", "covariate_weights")
#: Attributes with a column per signal, and others of the kind that standard errors need.
COLUMNS = ("weights_", "residual_weights_", "covariate_weights_", "_probabilities", "_scores", "_slopes")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ManyDiagnostics:
    """What a fit of many signals has to show for itself.

    Attributes
    ----------
    signal, initial_signal : ndarray of shape (p, n)
        The estimates and where they started, each up to a global sign (phase).
    weights : ndarray of shape (m, p)
        One number per reading: 0 treated as bad, 1 as clean.
    row_weights : ndarray of shape (m,)
        One number per row of ``A``, from all signals together.
    contamination, noise_mean, noise_scale, certificate, converged : ndarray of shape (p,)
        As of the estimator, of each signal.
    expected_error : ndarray of shape (p,)
        What the noise leaves, relative to the norm of the signal: a figure of the model check, NaN where it has none.
    flagged_responses, flagged_predictions, flagged_covariate_weights : ndarray of shape (k,)
        Of the readings with a weight below one half, row by row.
    check_names : ndarray of shape (c,)
        Names of the checks of the model.
    check_failed, check_severe : ndarray of bool, shape (p, c)
        Which of them failed for each signal, and which spoil its answer.
    details : mapping of int to FitDiagnostics
        Everything about some of the signals, by their number.
    pattern_shape, frame_shape : tuple of int
        How a signal is a picture, ``(n,)`` if it is none; and how the signals lie on a detector, ``(p,)`` if they do not.
    groups, group_weights, group_widths, contamination_told, dtype, fingerprint, seconds, passes, parameters, versions, message, \
seed, command, data_name
        As in `FitDiagnostics`.
    """

    signal: Array
    initial_signal: Array
    weights: Array
    row_weights: Array
    contamination: Array
    noise_mean: Array
    noise_scale: Array
    certificate: Array
    converged: Array
    expected_error: Array
    flagged_responses: Array
    flagged_predictions: Array
    flagged_covariate_weights: Array
    check_names: Array
    check_failed: Array
    check_severe: Array
    details: Mapping[int, FitDiagnostics]
    pattern_shape: tuple[int, ...]
    frame_shape: tuple[int, ...]
    contamination_told: float | str
    dtype: str
    fingerprint: str
    seconds: float
    passes: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    groups: Array | None = None
    group_weights: Array | None = None
    group_widths: Array | None = None
    seed: int | None = None
    command: str | None = None
    data_name: str | None = None

    def __post_init__(self) -> None:
        signals, rows, checks = (self.p,), (self.m,), (self.p, len(self.check_names))
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys((*PER_SIGNAL, "expected_error"), signals)
        shapes |= {"weights": rows + signals, "row_weights": rows, "initial_signal": self.signal.shape}
        shapes |= {"check_failed": checks, "check_severe": checks}
        shapes |= {f"flagged_{name}": (int(self.flagged.sum()),) for name in FLAGGED}
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has shape {np.shape(getattr(self, name))} but needs {shape}.")
        for name, size in (("pattern_shape", self.n), ("frame_shape", self.p)):
            if math.prod(getattr(self, name)) != size:
                raise ValueError(f"{name}={getattr(self, name)} must hold {size} entries.")
        if any(not 0 <= index < self.p for index in self.details):
            raise ValueError(f"details must be of signals from 0 to {self.p - 1}, got {list(self.details)}.")

    @classmethod
    def of(
        cls,
        model: rp.RobustPhaseRetrieval,
        A: Any,
        y: Any,
        *,
        image_shape: tuple[int, int] | None = None,
        frame_shape: tuple[int, ...] | None = None,
        detailed: int | tuple[int, ...] = DETAILED,
    ) -> ManyDiagnostics:
        """Collect the diagnostics of an estimator that was fitted to many signals.

        Nothing is fitted again: one pass over the data for the predictions, and up to three for every signal in detail.

        Parameters
        ----------
        model : RobustPhaseRetrieval
            Fitted to several columns of responses.
        A, y
            The data of the fit.
        image_shape : (int, int), optional
            Show signals as pictures of this height and width.
        frame_shape : tuple of int, optional
            Height and width of the detector whose pixels the signals belong to. Default: that of frames of ``y``.
        detailed : int or tuple of int, default=4
            How many signals to show in detail, the worst of every kind of trouble first; or which.

        Returns
        -------
        ManyDiagnostics
        """
        require_fitted(model)
        if model.signal_.ndim != 2:
            raise ValueError("the fit is of one signal; robustphase.report.FitDiagnostics.of(model, A, y) collects it.")
        source, read = rp.rows.as_source(A), np.asarray(y, np.float64)
        frame = read.shape[1:] if frame_shape is None else tuple(int(side) for side in frame_shape)
        read = read.reshape(len(read), -1)
        (m, p), n = model.weights_.shape, model.signal_.shape[1]
        if read.shape != (m, p) or source.shape[0] != m:
            raise ValueError(
                f"diagnostics need the data of the fit, {m} samples of {p} signals, got {source.shape[0]} rows and responses of "
                f"shape {np.shape(y)}."
            )
        check_columns(model, A, source)
        responses, flagged = as_fitted(model, read), model.weights_ < THRESHOLD
        per_signal: dict[str, Any] = {name: np.asarray(getattr(model, f"{name}_")) for name in PER_SIGNAL}
        tested: Any = model.model_check_
        checks = [check_records(one) for one in tested]
        names = list(dict.fromkeys(check.name for one in checks for check in one))
        found = cls(
            signal=np.asarray(model.signal_),
            initial_signal=np.asarray(model.initial_signal_),
            weights=model.weights_,
            row_weights=model.row_weights_,
            **per_signal,
            expected_error=expected_errors(model),
            flagged_responses=responses[flagged],
            flagged_predictions=model.predict(source)[flagged],
            flagged_covariate_weights=np.broadcast_to(model.covariate_weights_, (m, p))[flagged],
            check_names=np.array(names, dtype=np.str_),
            check_failed=_table(checks, names, "failed"),
            check_severe=_table(checks, names, "severe"),
            details={},
            pattern_shape=(n,) if image_shape is None else (int(image_shape[0]), int(image_shape[1])),
            frame_shape=frame,
            fingerprint=data_fingerprint(source, read),
            **facts_of(model, source),
        )
        which = found.worst(detailed) if isinstance(detailed, int) else list(detailed)
        details = {
            int(index): FitDiagnostics.collect(
                one_of(model, index),
                source,
                responses[:, index],
                image_shape=found.image_shape,
                fingerprint=found.fingerprint,
            )
            for index in which
        }
        return replace(found, details=details)

    def from_where(
        self, data_name: str | None = None, *, command: str | None = None, message: str = ""
    ) -> ManyDiagnostics:
        """The same, knowing where the data came from, what was typed, and what the fit warned of."""
        details = {index: one.from_where(data_name, command=command) for index, one in self.details.items()}
        return replace(self, data_name=data_name, command=command, message=message, details=details)

    def __repr__(self) -> str:
        settled = int(self.converged.sum())
        return f"ManyDiagnostics({self.p} signals of {self.n} unknowns, {self.m} samples, {settled} converged)"

    @property
    def p(self) -> int:
        """Number of signals."""
        return int(self.signal.shape[0])

    @property
    def n(self) -> int:
        """Number of unknowns of each."""
        return int(self.signal.shape[1])

    @property
    def m(self) -> int:
        """Number of samples."""
        return int(self.weights.shape[0])

    @property
    def flagged(self) -> Array:
        """Which readings have a weight below one half (boolean, shape (m, p))."""
        flags: Array = self.weights < THRESHOLD
        return flags

    @property
    def bad_rows(self) -> Array:
        """Which rows are bad for all signals (boolean, shape (m,))."""
        flags: Array = self.row_weights < THRESHOLD
        return flags

    @property
    def image_shape(self) -> tuple[int, int] | None:
        """Height and width, where the signals are pictures."""
        return (self.pattern_shape[0], self.pattern_shape[1]) if len(self.pattern_shape) == 2 else None

    @property
    def detector_shape(self) -> tuple[int, int] | None:
        """Height and width, where the signals belong to the pixels of a detector."""
        return (self.frame_shape[0], self.frame_shape[1]) if len(self.frame_shape) == 2 else None

    @property
    def contamination_used(self) -> float:
        """The level used or found, in the median of the signals."""
        return float(np.median(self.contamination))

    @property
    def certified_level(self) -> float:
        """The contamination that certificates allow for, in the median of the signals."""
        return float(certified_levels(self.contamination_told, self.contamination_used))

    @property
    def group_evidence(self) -> GroupWidths | None:
        """What the samples say of their groups, where some stand out."""
        return None if self.group_widths is None else GroupWidths(self.group_widths)

    @property
    def standard_errors(self) -> None:
        """Only of signals in detail."""
        return

    @property
    def order(self) -> NDArray[np.intp]:
        """The signals from the one that needs a look most: not converged, severe checks, then by their expected error."""
        error = np.where(np.isnan(self.expected_error), np.inf, self.expected_error)
        by = (np.arange(self.p), -error, -self.check_failed.sum(axis=1), -self.check_severe.sum(axis=1), self.converged)
        return np.lexsort(by)

    def worst(self, count: int) -> list[int]:
        """The signals that need a look most, one for every set of failed checks first: one trouble shall not hide others."""
        order = self.order
        _, first = np.unique(self.check_failed[order], axis=0, return_index=True)
        chosen = [*np.sort(first), *np.setdiff1d(np.arange(self.p), first)][:count]
        return [int(index) for index in order[np.sort(chosen)]] if chosen else []


def one_of(model: rp.RobustPhaseRetrieval, index: int) -> rp.RobustPhaseRetrieval:
    """The estimator as if it had been fitted to one of its signals; of groups and drift, which are of all, it knows nothing."""
    one = copy.copy(model)
    for name in ("signal_", "initial_signal_", *(f"{name}_" for name in PER_SIGNAL), "residual_centre_"):
        setattr(one, name, getattr(model, name)[index])
    for name in COLUMNS:
        values = getattr(model, name)
        # One column may serve all signals.
        setattr(one, name, None if values is None else values[:, index if values.shape[1] > 1 else 0])
    one.noise_model_ = noise_of(model, index)
    tested: Any = model.model_check_
    one.model_check_ = tested[index]
    one._doubted = ", ".join(check.name for check in tested[index].checks if check.severe)
    for name in ("drift_", "groups_", "group_weights_", "group_evidence_", "row_weights_"):
        if hasattr(one, name):
            delattr(one, name)
    return one


def _table(checks: list[tuple[CheckRecord, ...]], names: list[str], outcome: str) -> Array:
    found = np.zeros((len(checks), len(names)), bool)
    for row, one in enumerate(checks):
        for check in one:
            found[row, names.index(check.name)] = getattr(check, outcome)
    return found
