"""From the figures behind a verdict to a drawing."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.experiments.reproduce import Verdict
from robustphase.report import Series, line_chart, standalone_svg


def drawing(verdict: Verdict) -> str:
    """The chart of a verdict as an SVG file.

    Parameters
    ----------
    verdict : Verdict
        With ``data["figure"]``, as the experiments fill it.

    Returns
    -------
    str
        A complete SVG document.
    """
    figure: dict[str, Any] = dict(verdict.data["figure"])
    said = verdict.verdict if verdict.erratum is None else f"erratum {verdict.erratum}"
    chart = line_chart(
        [_series(line) for line in figure["series"]],
        title=figure["title"],
        x_label=figure["x_label"],
        y_label=figure["y_label"],
        log_x=figure["log_x"],
        log_y=figure["log_y"],
        note=f"{verdict.name}: {said}",
    )
    return standalone_svg(chart)


def _series(line: dict[str, Any]) -> Series:
    low, high = (None if line[key] is None else np.asarray(line[key]) for key in ("low", "high"))
    return Series(line["name"], np.asarray(line["x"]), np.asarray(line["y"]), low, high, line["style"])
