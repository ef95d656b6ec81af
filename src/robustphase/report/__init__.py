"""Reports: what a recovery found, on one page that a person can read, and in one file that a program can.

Three steps, each usable alone. :class:`FitDiagnostics` collects what a fit has to show for itself, and fits nothing again, and so
does :class:`ManyDiagnostics` for many signals;
:func:`save_result` and :func:`load_result` keep it in an ``.npz`` file; :func:`write_report` turns it into one self-contained
HTML file, with the plots of :mod:`robustphase.plot` (``pip install 'robustphase[report]'``). The charts (``charts``) are plain
SVG and serve other pages too.
"""

from robustphase.report.charts import (
    Axis,
    Series,
    histogram_chart,
    line_chart,
    scatter_chart,
    standalone_svg,
)
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.many import ManyDiagnostics
from robustphase.report.page import render_report, require_report, write_report
from robustphase.report.results import ResultFileError, load_result, save_result

#: The earlier name of :class:`FitDiagnostics`.
Evidence = FitDiagnostics

__all__ = [
    "Axis",
    "Evidence",
    "FitDiagnostics",
    "ManyDiagnostics",
    "ResultFileError",
    "Series",
    "histogram_chart",
    "line_chart",
    "load_result",
    "render_report",
    "require_report",
    "save_result",
    "scatter_chart",
    "standalone_svg",
    "write_report",
]
