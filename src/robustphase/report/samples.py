"""The samples: which were rejected, why, and where they stand among the rows; and the groups, where there are any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robustphase import plot
from robustphase.plot.samples import THRESHOLD
from robustphase.report.blocks import Cell, Drawing, Row, Section, Table, cell, short_number
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.figures import inline_svg
from robustphase.report.many import ManyDiagnostics
from robustphase.report.rejection_causes import MEANING, counts, worst_samples

#: Groups that are listed: the bad ones that look worst, and so many of the others.
LISTED_GROUPS, LISTED_OTHERS = 20, 3


def samples_section(diagnostics: FitDiagnostics) -> Section:
    """Causes of rejection, charts along the rows, and the samples farthest off."""
    found = counts(diagnostics)
    said = ", ".join(f"{count:,} {name}" for name, count in found.items() if count) or "none rejected"
    draw = {
        "Weight of every sample": lambda ax: plot.weights(diagnostics, ax=ax),
        "Share rejected along the rows": lambda ax: plot.flags(diagnostics, ax=ax),
        "Measured against predicted": lambda ax: plot.predictions(diagnostics, ax=ax),
        "Residuals along the rows": lambda ax: plot.residuals(diagnostics, ax=ax),
    }
    drawings = [Drawing(title, inline_svg(one, title, said)) for title, one in draw.items()]
    drawings += _on_the_detector(diagnostics, said)
    worst = worst_table(diagnostics)
    notes = [] if worst is not None else ["No sample was rejected."]
    return Section("The samples", drawings, table=_cause_table(diagnostics.m, found), second=worst, notes=notes)


def _on_the_detector(diagnostics: FitDiagnostics, said: str) -> list[Drawing]:
    """Residuals and flags where the samples were read, if that is known."""
    shape: Any = diagnostics.detector_shape
    if shape is None:
        return []
    draw = {"Rejected, on the detector": lambda ax: plot.flags(diagnostics, shape=shape, ax=ax)}
    if not diagnostics.noiseless:
        # Residuals are measured in widths of the noise.
        draw["Residuals, on the detector"] = lambda ax: plot.residuals(diagnostics, shape=shape, ax=ax)
    return [Drawing(title, inline_svg(one, title, said)) for title, one in draw.items()]


def groups_section(diagnostics: FitDiagnostics | ManyDiagnostics) -> Section | None:
    """The groups that stand out, where samples were said to belong together."""
    names, weights = diagnostics.groups, diagnostics.group_weights
    if names is None or weights is None:
        return None
    bad = int((weights < THRESHOLD).sum())
    said = f"{bad:,} of {weights.size:,} groups were treated as bad."
    if diagnostics.group_widths is None:
        # The chart shows weights where there are no widths to show.
        title, widths = "Weight of every group", np.full(weights.size, np.nan)
        of_widths = "the widths of their residuals were not compared"
    else:
        title, widths = "Width of the residuals of every group", diagnostics.group_widths
        of_widths = "the width of their residuals is over that of the noise"
    drawings = [Drawing(title, inline_svg(lambda ax: plot.groups(diagnostics, ax=ax), title, said))]
    order = np.lexsort((np.arange(weights.size), -np.nan_to_num(widths), weights))[
        : min(bad + LISTED_OTHERS, LISTED_GROUPS)
    ]
    rows = [
        Row(
            str(names[i]),
            [
                cell("group-weight", weights[i], f"{weights[i]:.3f}"),
                cell("group-width", widths[i], short_number(float(widths[i]))),
                Cell("treated as bad" if weights[i] < THRESHOLD else "kept", words=True),
            ],
            ("group", str(names[i])),
        )
        for i in order.tolist()
    ]
    caption = f"{said} The {len(rows)} that look worst; {of_widths}."
    table = Table("groups", caption, ("group", "weight", "width", "verdict"), (3,), rows)
    return Section("The groups", drawings, second=table)


def _cause_table(samples: int, found: Mapping[str, int]) -> Table:
    rows = [
        Row(name, [Cell(MEANING[name], words=True), cell(f"reason-{name}", count, f"{count:,}")])
        for name, count in found.items()
    ]
    kept = samples - sum(found.values())
    said = f"Why samples were rejected. {kept:,} of {samples:,} were kept."
    return Table("reasons", said, ("reason", "what it means", "samples"), (1,), rows)


def worst_table(diagnostics: FitDiagnostics) -> Table | None:
    """The rejected samples farthest off."""
    samples = worst_samples(diagnostics)
    if not samples:
        return None
    rows = [
        Row(
            str(sample.row),
            [
                Cell(sample.cause, words=True),
                cell("weight", sample.weight, f"{sample.weight:.3f}"),
                cell("length", sample.length, short_number(sample.length)),
                cell("response", sample.response, short_number(sample.response)),
                cell("prediction", sample.prediction, short_number(sample.prediction)),
                cell("deviation", sample.deviation, short_number(sample.deviation)),
            ],
            ("row", str(sample.row)),
        )
        for sample in samples
    ]
    head = ("row", "reason", "weight", "‖a‖/√n", "response", "prediction", "residual / scale")
    caption = f"The {len(samples)} rejected samples farthest off, some of every reason. Rows count from 0."
    return Table("worst", caption, head, (1,), rows)
