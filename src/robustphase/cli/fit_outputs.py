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
from robustphase.report import FitDiagnostics, ManyDiagnostics, save_result, write_report

Array = NDArray[Any]

#: The columns for one signal; for several, that of the signal stands after the sample.
COLUMNS = ("sample", "response", "predicted", "residual", "weight", "covariate_weight")


def keep_result(
    asked: FitRequest,
    model: rp.RobustPhaseRetrieval,
    rows: rp.rows.RowSource,
    samples: StoredSamples,
    responses: Array,
) -> FitDiagnostics | ManyDiagnostics:
    """Write the result, with what a report shows of it."""
    with screen().watching("looking back", lambda: "what was rejected and why"):
        diagnostics = _diagnostics(asked, model, rows, samples, responses)
    save_result(asked.result, diagnostics)
    return diagnostics


def _diagnostics(
    asked: FitRequest,
    model: rp.RobustPhaseRetrieval,
    rows: rp.rows.RowSource,
    samples: StoredSamples,
    responses: Array,
) -> FitDiagnostics | ManyDiagnostics:
    shape = samples.pattern_shape
    known: dict[str, Any] = {
        "data_name": shown(asked.data),
        "command": command_line(),
        "image_shape": asked.image_shape or ((shape[0], shape[1]) if len(shape) == 2 else None),
        "message": warnings_said(),
    }
    if responses.ndim == 2:
        return ManyDiagnostics.of(model, rows, responses, frame_shape=samples.frame_shape, **known)
    return FitDiagnostics.of(model, rows, responses, truth=samples.truth, detector_shape=asked.detector_shape, **known)


def keep_report(report: Path, diagnostics: FitDiagnostics | ManyDiagnostics, out: Path) -> None:
    """Write the report; a failure leaves the result as it is."""
    try:
        write_report(report, diagnostics)
    except Exception as error:
        raise Failure(f"the report was not written: {sentence(error)} The result is safe in {shown(out)}.") from error
    note_written(report)


def write_flagged(path: Path, diagnostics: FitDiagnostics | ManyDiagnostics) -> int:
    """Write the bad samples, in their order, and return how many there are; samples and signals count from 0."""
    if isinstance(diagnostics, ManyDiagnostics):
        return _write_flagged_of_many(path, diagnostics)
    flagged = np.flatnonzero(diagnostics.rejected)
    columns = (
        diagnostics.responses,
        diagnostics.predictions,
        diagnostics.residuals,
        diagnostics.weights,
        diagnostics.covariate_weights,
    )
    _write(path, COLUMNS, ([int(row), *(float(values[row]) for values in columns)] for row in flagged))
    return int(flagged.size)


def _write_flagged_of_many(path: Path, many: ManyDiagnostics) -> int:
    """One line for every bad reading."""
    samples, signals = np.nonzero(many.flagged)
    columns = (
        many.flagged_responses,
        many.flagged_predictions,
        many.flagged_responses - many.flagged_predictions,
        many.weights[many.flagged],
        many.flagged_covariate_weights,
    )
    lines = ([int(row), int(k), *values] for row, k, *values in zip(samples, signals, *columns, strict=True))
    _write(path, (COLUMNS[0], "signal", *COLUMNS[1:]), ([*line[:2], *map(float, line[2:])] for line in lines))
    return int(samples.size)


def _write(path: Path, names: tuple[str, ...], lines: Iterator[list[Any]]) -> None:
    with writing(path) as handle:
        text = io.TextIOWrapper(handle, encoding="ascii", newline="")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(names)
        table.writerows(lines)
        text.detach()
    note_written(path)
