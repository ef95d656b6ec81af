"""How the answer came about: score, movement, gradient and certificate from stage to stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robustphase import plot
from robustphase.plot.axes import drawable
from robustphase.plot.course import FEW_STAGES, QUANTITIES
from robustphase.report.blocks import Cell, Drawing, Row, Section, Table, cell
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.figures import inline_svg
from robustphase.report.words import percent, seconds_text, short_number

#: So many stages are listed; of more, the first and the last.
LISTED = 16
#: What is drawn of a history, and its title.
DRAWN = {
    "score": "Score",
    "moved": "How far the signal moved",
    "gradient_norm": "Length of the robust gradient",
    "certificate": "Variance along the worst direction",
}
COLUMNS = ("candidates", "score", "moved", "gradient_norm", "certificate", "removed", "passes", "seconds")
NOTE = (
    "The score is the mean log-likelihood ratio against no signal at all: larger is better. The certificate of a stage is "
    "the variance of the gradients along their worst direction, after the robust mean removed the share shown beside it."
)


def stages_section(diagnostics: FitDiagnostics) -> Section:
    """Charts and a table of the stages."""
    return Section("How it got there", _charts(diagnostics), table=_table(diagnostics), notes=[NOTE])


def _charts(diagnostics: FitDiagnostics) -> list[Drawing]:
    drawings = []
    for key, words in DRAWN.items():
        values = np.asarray(diagnostics.history[key], np.float64)
        seen = values[drawable(values, log=QUANTITIES[key][1])]
        if seen.size < 2:
            continue
        title = f"{words}, by {'stage' if values.size <= FEW_STAGES else 'step'}"
        said = f"{seen.size} values from {short_number(seen.min())} to {short_number(seen.max())}"
        drawings.append(Drawing(title, inline_svg(_drawer(diagnostics, key), title, said)))
    return drawings


def _drawer(diagnostics: FitDiagnostics, key: str) -> Callable[[Any], Any]:
    return lambda ax: plot.history(diagnostics, key, ax=ax)


def _table(diagnostics: FitDiagnostics) -> Table:
    stages = diagnostics.history["stage"]
    count, half = len(stages), LISTED // 2
    listed = list(range(count)) if count <= LISTED else [*range(half), *range(count - half, count)]
    rows = []
    for i in listed:
        if count > LISTED and i == count - half:
            rows.append(Row(f"{count - len(listed)} more steps", [Cell("")] * len(COLUMNS)))
        values = [(name, diagnostics.history[name][i].item()) for name in COLUMNS]
        cells = [cell(name, value, _shown(name, value)) for name, value in values]
        rows.append(Row(f"{i + 1} {stages[i]}", cells, ("stage", str(i))))
    head = ("stage", "candidates", "score", "moved", "gradient", "certificate", "removed", "passes", "time")
    return Table("history", "Every stage of the fit.", head, (), rows)


def _shown(name: str, value: float) -> str:
    if name == "seconds":
        return seconds_text(value)
    return percent(value) if name == "removed" and np.isfinite(value) else short_number(value)
