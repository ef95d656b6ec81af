"""The files that ``robustphase fit`` writes: the result of one signal or of several, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import robustphase as rp
from robustphase.atomic import writing
from robustphase.cli.app import (
    Failure,
    command_line,
    sentence,
    warnings_said,
)
from robustphase.cli.fit_request import FitRequest
from robustphase.cli.outputs import note_written
from robustphase.cli.terminal import screen, shown
from robustphase.files import (
    StoredSamples,
)
from robustphase.report import FitDiagnostics, save_result, write_report

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
