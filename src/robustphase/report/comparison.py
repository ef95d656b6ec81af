"""Other methods on the same data, as pictures and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustphase.report.blocks import Cell, Row, Section, Table, cell
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.pictures import comparison_drawings
from robustphase.report.words import percent, seconds_text

#: What is known of a method; all but the first are optional.
KEYS = ("method", "relative_error", "seconds", "verdict", "signal", "highlight")


def comparison_section(diagnostics: FitDiagnostics, comparisons: Sequence[Mapping[str, Any]]) -> Section:
    """The methods in the order given.

    Parameters
    ----------
    diagnostics : FitDiagnostics
        Of the report.
    comparisons : sequence of mapping
        One per method, with the keys of `KEYS`.
    """
    _check(comparisons)
    pictures = [(str(row["method"]), row.get("signal"), _said(row)) for row in comparisons]
    if diagnostics.truth is not None:
        pictures.insert(0, ("truth", diagnostics.truth, "what there is to find"))
    lines = [
        Row(
            str(row["method"]),
            [
                cell("relative_error", row.get("relative_error"), _error(row)),
                cell("seconds", row.get("seconds"), seconds_text(row.get("seconds"))),
                Cell(str(row.get("verdict", "")), words=True),
            ],
            ("method", str(row["method"])),
            bool(row.get("highlight")),
        )
        for row in comparisons
    ]
    head = ("method", "relative error", "time", "verdict")
    caption = "The same data for every method; the error is the distance to the truth, relative to its norm."
    table = Table("comparison", caption, head, (3,), lines)
    return Section("Beside other methods", comparison_drawings(diagnostics, pictures), "pictures small", table=table)


def _check(comparisons: Sequence[Mapping[str, Any]]) -> None:
    for position, row in enumerate(comparisons):
        unknown = sorted(set(row) - set(KEYS))
        if unknown or "method" not in row:
            wrong = f"unknown keys: {', '.join(unknown)}" if unknown else "no method"
            raise ValueError(f"comparisons[{position}] has {wrong}. Known keys are {', '.join(KEYS)}.")


def _error(row: Mapping[str, Any]) -> str:
    error = row.get("relative_error")
    return "–" if error is None else percent(float(error))


def _said(row: Mapping[str, Any]) -> str:
    return "" if row.get("relative_error") is None else f"error {_error(row)}"
