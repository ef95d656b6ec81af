"""How the answer came about: error, score, movement and certificate from stage to stage."""

from __future__ import annotations

import numpy as np

from robustphase.report.charts import Series, bar_chart, line_chart
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.markup import HEIGHT, WIDTH, cell, grid, paragraph, percent, seconds_text, section, table
from robustphase.report.svg import escaped, short_number, tag

#: Up to so many stages are named in charts; longer histories are drawn as lines, and listed with a gap.
FEW_STAGES, LISTED = 12, 16
#: What is drawn of a history: its key, title, unit, and whether its axis is logarithmic.
DRAWN = (
    ("score", "Score", "per sample", False),
    ("moved", "How far the signal moved", "relative to its norm", True),
    ("gradient_norm", "Length of the robust gradient", "in units of the data", True),
    ("certificate", "Variance along the worst direction", "in units of the data", True),
)
COLUMNS = ("candidates", "score", "moved", "gradient_norm", "certificate", "removed", "passes", "seconds")


def stages_section(diagnostics: FitDiagnostics) -> str:
    """Charts and a table of the stages."""
    note = (
        "The score is the mean log-likelihood ratio against no signal at all: larger is better. The certificate of a stage is "
        "the variance of the gradients along their worst direction, after the robust mean removed the share shown beside it."
    )
    figures = [_error_chart(diagnostics), *_stage_charts(diagnostics)]
    return section("How it got there", [grid(figures), _stage_table(diagnostics), paragraph(note, "note")])


def _error_chart(diagnostics: FitDiagnostics) -> str:
    rows = [("certificate (worst case)", diagnostics.certificate)]
    if diagnostics.expected_error is not None:
        rows.insert(0, ("expected from noise", diagnostics.expected_error))
    if diagnostics.truth is not None and diagnostics.true_error is not None:
        start = diagnostics.distance_of(diagnostics.initial_signal)
        rows = [("start, true", start), ("answer, true", diagnostics.true_error), *rows]
    return bar_chart(
        [name for name, _ in rows],
        [value for _, value in rows],
        formatted=[percent(value) for _, value in rows],
        title="Error, relative to the norm of the signal",
        value_label="share of the norm",
        highlight=[1] if diagnostics.truth is not None else [0],
        width=WIDTH,
    )


def _stage_charts(diagnostics: FitDiagnostics) -> list[str]:
    names = [f"{i} {stage}" for i, stage in enumerate(diagnostics.history["stage"], start=1)]
    charts = []
    for key, title, unit, log in DRAWN:
        values = np.asarray(diagnostics.history[key], np.float64)
        seen = np.flatnonzero(np.isfinite(values))
        if (seen.size if not log else int((values[seen] > 0).sum())) < 2:
            continue
        if values.size <= FEW_STAGES:
            chart = bar_chart(
                [names[i] for i in seen],
                values[seen],
                title=f"{title}, by stage",
                value_label=unit + (", logarithmic" if log else ""),
                log=log,
                width=WIDTH,
            )
        else:
            chart = line_chart(
                [Series("", np.arange(1, values.size + 1), values, style="both")],
                title=f"{title}, by step",
                x_label="step",
                y_label=unit,
                log_y=log,
                width=WIDTH,
                height=HEIGHT,
            )
        charts.append(chart)
    return charts


def _stage_table(diagnostics: FitDiagnostics) -> str:
    stages = diagnostics.history["stage"]
    count, half = len(stages), LISTED // 2
    listed = list(range(count)) if count <= LISTED else [*range(half), *range(count - half, count)]
    lines = []
    for i in listed:
        if count > LISTED and i == count - half:
            gap = f"{count - len(listed)} more steps"
            lines.append(tag("tr", tag("td", escaped(gap), colspan=len(COLUMNS) + 1, class_="words note")))
        cells = [tag("th", escaped(f"{i + 1} {stages[i]}"), scope="row")]
        for name in COLUMNS:
            value = diagnostics.history[name][i].item()
            cells.append(cell(name, value, _shown(name, value)))
        lines.append(tag("tr", cells, data_stage=i))
    head = ("stage", "candidates", "score", "moved", "gradient", "certificate", "removed", "passes", "time")
    return table(head, lines, "history", caption="Every stage of the fit.")


def _shown(name: str, value: float) -> str:
    if name == "seconds":
        return seconds_text(value)
    return percent(value) if name == "removed" and np.isfinite(value) else short_number(value)
