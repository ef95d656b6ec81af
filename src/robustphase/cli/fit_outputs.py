"""The files that ``robustphase fit`` writes: the result of one signal or of several, the report, and a table of bad samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import robustphase as rp
from robustphase.atomic import writing
from robustphase.cli.app import Failure, command_line, sentence, warnings_said
from robustphase.cli.fit_request import FitRequest
from robustphase.cli.outputs import note_written
from robustphase.cli.terminal import screen, shown
from robustphase.files import StoredSamples
from robustphase.report import FitDiagnostics, save_result, write_report

Array = NDArray[Any]

#: What tells files of several signals from those of one.
FORMAT = "robustphase signals"
#: Attributes of the estimator that are kept, without the underscore at their end.
KEPT = (
    "signal",
    "initial_signal",
    "weights",
    "row_weights",
    "contamination",
    "noise_mean",
    "noise_scale",
    "certificate",
    "converged",
)
#: Samples with a smaller weight are in the table, as in ``flag_samples``.
THRESHOLD = 0.5
#: The columns for one signal; for several, that of the signal stands after the sample.
COLUMNS = ("sample", "response", "predicted", "residual", "weight", "covariate_weight")


def save_many(path: Path, model: rp.RobustPhaseRetrieval, samples: StoredSamples, command: str) -> None:
    """Write the answers as an ``.npz`` archive of plain arrays, whole or not at all.

    ``signal`` has one row for every signal; ``pattern_shape`` and ``frame_shape`` say how to show one as a picture, and how the
    signals lie in a frame.
    """
    arrays: dict[str, Any] = {name: np.asarray(getattr(model, f"{name}_")) for name in KEPT}
    arrays |= {"format": np.array(FORMAT), "command": np.array(command)}
    for name in ("pattern_shape", "frame_shape"):
        arrays[name] = np.array(getattr(samples, name), np.int64)
    with writing(path) as handle:
        np.savez_compressed(handle, **arrays)


def keep_result(
    asked: FitRequest,
    model: rp.RobustPhaseRetrieval,
    rows: rp.rows.RowSource,
    samples: StoredSamples,
    responses: np.ndarray[Any, Any],
) -> FitDiagnostics | None:
    """Write the result; of one signal also what a report shows of it."""
    if responses.ndim == 2:
        save_many(asked.result, model, samples, command_line())
        return None
    with screen().watching("looking back", lambda: "what was rejected and why"):
        diagnostics = _diagnostics(asked, model, rows, samples, responses)
    save_result(asked.result, diagnostics)
    return diagnostics


def _diagnostics(
    asked: FitRequest,
    model: rp.RobustPhaseRetrieval,
    rows: rp.rows.RowSource,
    samples: StoredSamples,
    responses: np.ndarray[Any, Any],
) -> FitDiagnostics:
    shape = samples.pattern_shape
    return FitDiagnostics.of(
        model,
        rows,
        responses,
        data_name=shown(asked.data),
        command=command_line(),
        truth=samples.truth,
        image_shape=asked.image_shape or ((shape[0], shape[1]) if len(shape) == 2 else None),
        message=warnings_said(),
    )


def keep_report(report: Path, diagnostics: FitDiagnostics, out: Path) -> None:
    """Write the report; a failure leaves the result as it is."""
    try:
        write_report(report, diagnostics)
    except Exception as error:
        raise Failure(f"the report was not written: {sentence(error)} The result is safe in {shown(out)}.") from error
    note_written(report)


def write_flagged(path: Path, diagnostics: FitDiagnostics) -> int:
    """Write the bad samples of one signal, in their order, and return how many there are. Samples count from 0."""
    flagged = np.flatnonzero(diagnostics.weights < THRESHOLD)
    columns = (
        diagnostics.responses,
        diagnostics.predictions,
        diagnostics.responses - diagnostics.predictions,
        diagnostics.weights,
        diagnostics.covariate_weights,
    )
    _write(path, COLUMNS, ([int(row), *(float(values[row]) for values in columns)] for row in flagged))
    return int(flagged.size)


def write_flagged_of_many(path: Path, model: rp.RobustPhaseRetrieval, rows: rp.rows.RowSource, responses: Array) -> int:
    """The same for several signals: one line for every bad reading, of which samples and signals count from 0."""
    predictions = model.predict(rows)
    samples, signals = np.nonzero(model.weights_ < THRESHOLD)
    trusted = np.broadcast_to(model.covariate_weights_, model.weights_.shape)
    columns = (responses, predictions, responses - predictions, model.weights_, trusted)
    lines = (
        [int(row), int(signal), *(float(values[row, signal]) for values in columns)]
        for row, signal in zip(samples, signals, strict=True)
    )
    _write(path, (COLUMNS[0], "signal", *COLUMNS[1:]), lines)
    return int(samples.size)


def _write(path: Path, names: tuple[str, ...], lines: Iterator[list[Any]]) -> None:
    with writing(path) as handle:
        text = io.TextIOWrapper(handle, encoding="ascii", newline="")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(names)
        table.writerows(lines)
        text.detach()
    note_written(path)
