"""One HTML file: the diagnostics as a page that needs no network, no script and no other file.

Text from outside is escaped where it becomes markup (``svg``); a content policy inside the page forbids scripts and network
besides, so that even a mistake there would stay without effect. Every number that a reader may want to check carries its full
value in a ``data-value`` attribute, under a ``data-key`` that says what it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from robustphase.atomic import write_text
from robustphase.report.comparison import comparison_section
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.noise import noise_section
from robustphase.report.pictures import signal_section
from robustphase.report.provenance import assumption_section, reproduction_section
from robustphase.report.samples import samples_section
from robustphase.report.stages import stages_section
from robustphase.report.style import CHART_CSS, PAGE_CSS, palette_css
from robustphase.report.summary import summary_section
from robustphase.report.svg import escaped, tag

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render_report(diagnostics: FitDiagnostics, comparisons: Sequence[Mapping[str, Any]] | None = None) -> str:
    """The report as HTML.

    Parameters
    ----------
    diagnostics : FitDiagnostics
        What to show.
    comparisons : sequence of mapping, optional
        Other methods on the same data, one mapping each: ``method`` (its name), and as far as known ``relative_error``,
        ``seconds``, ``verdict`` (a few words), ``signal`` (shown where the signal is a picture) and ``highlight`` (True for
        the row that stands out).

    Returns
    -------
    str
        A complete HTML document.
    """
    parts = [
        summary_section(diagnostics),
        comparison_section(diagnostics, comparisons) if comparisons else "",
        signal_section(diagnostics),
        stages_section(diagnostics),
        samples_section(diagnostics),
        noise_section(diagnostics),
        assumption_section(diagnostics),
        reproduction_section(diagnostics),
    ]
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(_POLICY)}">',
        '<link rel="icon" href="data:,">',
        tag("title", escaped(f"robustphase: {diagnostics.data_name or 'report'}")),
        tag("style", palette_css() + CHART_CSS + PAGE_CSS),
    ]
    body = tag("main", "\n".join(part for part in parts if part))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{chr(10).join(head)}\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def write_report(
    path: str | os.PathLike[str], diagnostics: FitDiagnostics, comparisons: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Write the report to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to; the customary ending is ``.html``. A file that is there is replaced.
    diagnostics, comparisons
        As in `render_report`.
    """
    write_text(path, render_report(diagnostics, comparisons))
