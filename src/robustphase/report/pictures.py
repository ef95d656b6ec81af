"""Signals made visible: turned to a common sign (phase), as pictures on a common grey scale or as lines.

Phaseless data cannot tell a signal from its negative, so every signal is turned towards the truth where that is known, and
otherwise so that its entries are positive in sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.signals import BAND, BEYOND, FEW, turned
from robustphase.report.charts import Series, image_chart, line_chart
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.markup import HEIGHT, WIDTH, grid, paragraph, section

Array = NDArray[Any]


def shown_signal(diagnostics: FitDiagnostics) -> Array:
    """The recovered signal as the report shows it."""
    return turned(diagnostics.signal, diagnostics.truth, paired=diagnostics.paired)


def signal_section(diagnostics: FitDiagnostics) -> str:
    """The recovered signal, and how it is shown."""
    sign = "phase" if np.iscomplexobj(diagnostics.signal) else "sign"
    towards = "towards the truth" if diagnostics.truth is not None else "so that its sum is positive"
    open_too = (
        " and, behind real covariates, whether the signal or its conjugate is meant" if diagnostics.paired else ""
    )
    said = f"Phaseless data leave the {sign} open{open_too}; the signal is shown turned {towards}. "
    if diagnostics.image_shape is not None:
        own = ", except for the phase" if np.iscomplexobj(diagnostics.signal) else ""
        own = ", except for the standard errors" if diagnostics.standard_errors is not None else own
        said += f"All pictures share one grey scale{own}."
    elif diagnostics.standard_errors is not None:
        said += f"Bands and bars are {BAND} standard errors wide on either side."
    kind = "charts" if diagnostics.image_shape is None else "pictures"
    return section("The signal", [grid(signal_figures(diagnostics), kind), paragraph(said.strip(), "note")])


def signal_figures(diagnostics: FitDiagnostics) -> list[str]:
    """The recovered signal beside its start and, where it is known, the truth."""
    return _pictures(diagnostics) if diagnostics.image_shape is not None else _lines(diagnostics)


def comparison_figures(diagnostics: FitDiagnostics, signals: Sequence[tuple[str, Array | None, str]]) -> list[str]:
    """Pictures of several signals on the grey scale of the report: (title, signal, note); nothing for other signals."""
    if diagnostics.image_shape is None:
        return []
    reference = diagnostics.truth if diagnostics.truth is not None else shown_signal(diagnostics)
    low, high = grey_range(diagnostics)
    figures = []
    for title, signal, note in signals:
        if signal is None:
            continue
        values = np.asarray(signal).reshape(-1)
        if values.size != diagnostics.n:
            raise ValueError(f"the signal of {title!r} has {values.size} entries, the recovered one {diagnostics.n}.")
        picture = _visible(turned(np.nan_to_num(values), reference)).reshape(diagnostics.image_shape)
        figures.append(image_chart(picture, title=title, low=low, high=high, note=note, width=200))
    return figures


def grey_range(diagnostics: FitDiagnostics) -> tuple[float, float]:
    """Ends of the grey scale that all pictures of a report share."""
    best = _visible(diagnostics.truth if diagnostics.truth is not None else shown_signal(diagnostics))
    low, high = np.quantile(best, (BEYOND, 1 - BEYOND)).tolist()
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _visible(signal: Array) -> Array:
    return np.abs(signal) if np.iscomplexobj(signal) else signal


def _pictures(diagnostics: FitDiagnostics) -> list[str]:
    assert diagnostics.image_shape is not None
    modulus = " (modulus)" if np.iscomplexobj(diagnostics.signal) else ""
    answer = shown_signal(diagnostics)
    named: list[tuple[str, Array]] = [
        (f"recovered{modulus}", answer),
        (f"start{modulus}", turned(diagnostics.initial_signal, answer)),
    ]
    if diagnostics.truth is not None:
        named.insert(0, (f"truth{modulus}", diagnostics.truth))
    low, high = grey_range(diagnostics)
    shape = diagnostics.image_shape
    figures = [image_chart(_visible(s).reshape(shape), title=name, low=low, high=high) for name, s in named]
    if np.iscomplexobj(diagnostics.signal):
        phase = np.angle(answer).reshape(shape)
        figures.append(image_chart(phase, title="recovered (phase)", low=-np.pi, high=np.pi, note="black −π, white π"))
    if diagnostics.standard_errors is not None:
        figures.append(image_chart(diagnostics.standard_errors.reshape(shape), title="standard error"))
    return figures


def _lines(diagnostics: FitDiagnostics) -> list[str]:
    entries, answer = np.arange(diagnostics.n), shown_signal(diagnostics)
    style: Any = "points" if diagnostics.n <= FEW else "line"
    parts = [("", np.real)] if not np.iscomplexobj(answer) else [("real part", np.real), ("imaginary part", np.imag)]
    figures = []
    for name, part in parts:
        values = part(answer)
        low = high = None
        if diagnostics.standard_errors is not None:
            low, high = values - BAND * diagnostics.standard_errors, values + BAND * diagnostics.standard_errors
        series = [Series("recovered", entries, values, low, high, style)]
        if diagnostics.truth is not None:
            series.append(Series("truth", entries, part(diagnostics.truth), style="points"))
        title = "Entries of the signal" + (f", {name}" if name else "")
        figures.append(line_chart(series, title=title, x_label="entry", y_label="value", width=WIDTH, height=HEIGHT))
    return figures if len(figures) > 1 else [*figures, _against(diagnostics, answer)]


def _against(diagnostics: FitDiagnostics, answer: Array) -> str:
    """Entry by entry against the truth, or where that is unknown against the start."""
    known = diagnostics.truth is not None
    other = diagnostics.truth if diagnostics.truth is not None else turned(diagnostics.initial_signal, answer)
    ends = np.array([min(other.min(), answer.min()), max(other.max(), answer.max())])
    name = "truth" if known else "start"
    return line_chart(
        [Series("entries", other, answer, style="points"), Series("equal", ends, ends)],
        title=f"Recovered entries against the {name}",
        x_label=name,
        y_label="recovered",
        width=WIDTH,
        height=HEIGHT,
    )
