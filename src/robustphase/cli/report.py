"""``robustphase report``: a page to look at, from the result of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from robustphase.cli.app import as_command, as_request, file_option, flag, general_options
from robustphase.cli.fit_outcome import write_flagged
from robustphase.cli.options import flagged_table, shown_shapes
from robustphase.cli.outputs import check_distinct, check_outputs, note_written
from robustphase.cli.terminal import screen, shown
from robustphase.report import FitDiagnostics, ManyDiagnostics, load_result, write_report

OUTPUT = "Output"


@dataclass(frozen=True)
class ReportRequest:
    """What ``robustphase report`` is asked for."""

    result: Path
    out: Path | None
    flagged: Path | None
    image_shape: tuple[int, int] | None
    detector_shape: tuple[int, ...] | None
    overwrite: bool

    @property
    def page(self) -> Path:
        """Where the page goes."""
        return Path(f"{self.result.stem}.html") if self.out is None else self.out

    def check_outputs(self) -> None:
        """Refuse to write over the result or twice to one place, or where nothing can be written."""
        check_distinct(**{"RESULT": self.result, "--out": self.page, "--flagged": self.flagged})
        check_outputs(self.page, self.flagged, overwrite=self.overwrite)


@as_command("report", example="robustphase report result.npz --out report.html --flagged bad.csv")
@click.argument("result", metavar="RESULT", type=click.Path(path_type=Path))
@file_option(
    OUTPUT,
    "--out",
    metavar="REPORT.html",
    help="Where the report goes. Default: the name of RESULT with .html at its end, in the current folder.",
)
@flagged_table(OUTPUT)
@shown_shapes(OUTPUT)
@flag(OUTPUT, "--overwrite", help="Write over files that are there already.")
@general_options
def report(**options: Any) -> None:
    """Write a report to look at from the result of a fit.

    RESULT is a file that robustphase fit has written, for one signal or many. The report is one file that needs no network; the
    data are not needed any more.
    """
    asked = as_request(ReportRequest, options)
    asked.check_outputs()
    see = screen()
    diagnostics = load_result(asked.result)
    if asked.image_shape is not None:
        diagnostics = _as_picture(diagnostics, asked.image_shape)
    if asked.detector_shape is not None:
        if not isinstance(diagnostics, FitDiagnostics):
            raise click.UsageError(
                "--detector-shape is for the samples of one signal; those of many bring theirs along."
            )
        diagnostics = replace(diagnostics, detector_shape=asked.detector_shape)
    write_report(asked.page, diagnostics)
    note_written(asked.page)
    see.say(f"report: {shown(asked.page)}")
    if asked.flagged is not None:
        count = write_flagged(asked.flagged, diagnostics)
        see.say(f"{count} samples treated as bad: {shown(asked.flagged)}")


def _as_picture(
    diagnostics: FitDiagnostics | ManyDiagnostics, shape: tuple[int, int]
) -> FitDiagnostics | ManyDiagnostics:
    """The same diagnostics, of signals that are pictures."""
    if isinstance(diagnostics, FitDiagnostics):
        return replace(diagnostics, image_shape=shape)
    details = {index: replace(one, image_shape=shape) for index, one in diagnostics.details.items()}
    return replace(diagnostics, pattern_shape=shape, details=details)
