"""The model check: what every fit tests of its own assumptions."""

from __future__ import annotations

from robustphase.report.blocks import Cell, Row, Section, Table, cell
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.words import short_number

NOTE = (
    "Checks that are worth a look do not spoil the answer; where one fails, the fit has not converged and its certificate is "
    'infinite. The page "Can I trust this answer?" of the documentation explains each of them.'
)


def model_section(diagnostics: FitDiagnostics) -> Section | None:
    """Every check with its figure and limit; with likely cause and remedy where it did not pass."""
    if not diagnostics.model_check:
        return None
    rows = [
        Row(
            check.name,
            [
                cell("check-figure", check.figure, short_number(check.figure)),
                cell("check-limit", check.threshold, short_number(check.threshold)),
                Cell("✗ fails" if check.severe else "! worth a look" if check.failed else "✓ passed", words=True),
                Cell(f"{check.cause}. {check.remedy}" if check.failed else "", words=True),
            ],
            ("model", check.name),
            check.failed,
        )
        for check in diagnostics.model_check
    ]
    failed = sum(check.failed for check in diagnostics.model_check)
    caption = f"{len(rows) - failed} of {len(rows)} checks of the model passed."
    table = Table(
        "model", caption, ("check", "figure", "limit", "outcome", "likely cause and what to try"), (3, 4), rows
    )
    return Section("Does the model hold?", table=table, notes=[NOTE])
