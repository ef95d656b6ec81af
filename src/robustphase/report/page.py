"""One HTML file: the diagnostics as a page that needs no network, no script and no other file.

The page is a jinja2 template (``template.html``, ``style.css``) around plain values (``blocks``) and plots (``figures``). The
template escapes every text; a content policy inside the page forbids scripts and network besides, so that even a mistake there
would stay without effect. Every number that a reader may want to check carries its full value in a ``data-value`` attribute,
under a ``data-key`` that says what it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from robustphase.atomic import write_text
from robustphase.plot.axes import UNWRITABLE
from robustphase.report import summary
from robustphase.report.blocks import Section
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.many import ManyDiagnostics
from robustphase.report.pictures import comparison_section, signal_section
from robustphase.report.provenance import assumption_section, reproduction_section, stages_section
from robustphase.report.samples import groups_section, noise_section, samples_section
from robustphase.report.verdict import checks, errors_section, lede, model_section, tiles, verdict, warning
from robustphase.rows.io.limits import require


def require_report() -> None:
    """Raise an ImportError that names the command, if what draws and writes reports is not installed."""
    require("jinja2", extra="report", purpose="the report")
    require("matplotlib", extra="report", purpose="the report")


def render_report(
    diagnostics: FitDiagnostics | ManyDiagnostics, comparisons: Sequence[Mapping[str, Any]] | None = None
) -> str:
    """The report as HTML; needs the extra ``report``.

    Parameters
    ----------
    diagnostics : FitDiagnostics or ManyDiagnostics
        What to show: one signal, or many of them.
    comparisons : sequence of mapping, optional
        Other methods on the same data of one signal, one mapping each: ``method`` (its name), and as far as known
        ``relative_error``, ``seconds``, ``verdict`` (a few words), ``signal`` (shown where the signal is a picture) and
        ``highlight`` (True for the row that stands out).

    Returns
    -------
    str
        A complete HTML document.
    """
    if isinstance(diagnostics, ManyDiagnostics):
        if comparisons:
            raise ValueError("comparisons with other methods are for one signal; leave them out of a report of many.")
        top = _top_of_many(diagnostics)
    else:
        top = _top(diagnostics) | {"sections": sections(diagnostics, comparisons)}
    page: str = _template().render(name=diagnostics.data_name, style=_style(), **top)
    return page + "\n"


def _top(diagnostics: FitDiagnostics) -> dict[str, Any]:
    return {
        "converged": diagnostics.converged,
        "alarm": not diagnostics.converged,
        "verdict": verdict(diagnostics),
        "lede": lede(diagnostics),
        "warning": warning(diagnostics),
        "tiles": tiles(diagnostics),
        "checks": checks(diagnostics),
    }


def _top_of_many(many: ManyDiagnostics) -> dict[str, Any]:
    found = [*summary.sections(many), groups_section(many), assumption_section(many), reproduction_section(many)]
    return {
        "converged": bool(many.converged.all()),
        "alarm": bool(many.converged.mean() < summary.MOST),
        "verdict": summary.verdict(many),
        "lede": summary.lede(many),
        "warning": summary.warning(many),
        "tiles": summary.tiles(many),
        "checks": summary.checks(many),
        "sections": [one for one in found if one is not None],
    }


def sections(diagnostics: FitDiagnostics, comparisons: Sequence[Mapping[str, Any]] | None = None) -> list[Section]:
    """The parts of a page below its top."""
    found = [
        comparison_section(diagnostics, comparisons) if comparisons else None,
        signal_section(diagnostics),
        errors_section(diagnostics),
        samples_section(diagnostics),
        groups_section(diagnostics),
        noise_section(diagnostics),
        model_section(diagnostics),
        stages_section(diagnostics),
        assumption_section(diagnostics),
        reproduction_section(diagnostics),
    ]
    return [one for one in found if one is not None]


def write_report(
    path: str | os.PathLike[str],
    diagnostics: FitDiagnostics | ManyDiagnostics,
    comparisons: Sequence[Mapping[str, Any]] | None = None,
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


@cache
def _template() -> Any:
    jinja2 = require("jinja2", extra="report", purpose="the report")
    environment = jinja2.Environment(autoescape=True, finalize=_writable, undefined=jinja2.StrictUndefined)
    return environment.from_string(_resource("template.html"))


@cache
def _style() -> str:
    return _resource("style.css")


def _resource(name: str) -> str:
    return files("robustphase.report").joinpath(name).read_text("utf-8")


def _writable(value: Any) -> Any:
    """Text without the characters that no page can hold; markup is left as it is."""
    return UNWRITABLE.sub("\ufffd", value) if type(value) is str else value
