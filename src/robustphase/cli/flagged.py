"""The samples that a fit treated as bad, as a table for a spreadsheet."""

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
from robustphase.cli.outputs import note_written
from robustphase.report import FitDiagnostics

Array = NDArray[Any]
#: Samples with a smaller weight are in the table, as in ``flag_samples``.
THRESHOLD = 0.5
#: The columns for one signal; for several, that of the signal stands after the sample.
COLUMNS = ("sample", "response", "predicted", "residual", "weight", "covariate_weight")


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
