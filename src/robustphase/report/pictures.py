"""Signals made visible: turned to a common sign (phase), as pictures on a common grey scale or as lines.

Phaseless data cannot tell a signal from its negative, so every signal is turned towards the truth where that is known, and
otherwise so that its entries are positive in sum. Answers of other methods to the same data stand beside
it, as pictures and as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase import plot
from robustphase.plot.axes import INK, axes_or_new, legend, scatter
from robustphase.plot.signals import BAND, draw_picture, turned, value_range
from robustphase.report.blocks import Cell, Drawing, Row, Section, Table, cell, percent, seconds_text, short_number
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.figures import SIDE, inline_svg

Array = NDArray[Any]

#: What the colours of a phase mean, in a cyclic map.
PHASES = "red 0, green 2π/3, blue −2π/3"


def shown_signal(diagnostics: FitDiagnostics) -> Array:
    """The recovered signal as the report shows it."""
    return _turned(diagnostics, diagnostics.signal, diagnostics.truth)


def _shown_start(diagnostics: FitDiagnostics) -> Array:
    """The start, turned towards the recovered signal."""
    return _turned(diagnostics, diagnostics.initial_signal, shown_signal(diagnostics))


def _turned(diagnostics: FitDiagnostics, signal: Array, reference: Array | None) -> Array:
    """A signal turned by all that the data leave open: its sign (phase) and, behind real covariates, its conjugate."""
    return turned(signal, reference, paired=diagnostics.paired)


def signal_section(diagnostics: FitDiagnostics) -> Section:
    """The recovered signal, and how it is shown."""
    is_complex = np.iscomplexobj(diagnostics.signal)
    sign = "phase" if is_complex else "sign"
    towards = "towards the truth" if diagnostics.truth is not None else "so that its sum is positive"
    open_too = (
        " and, behind real covariates, whether the signal or its conjugate is meant" if diagnostics.paired else ""
    )
    said = f"Phaseless data leave the {sign} open{open_too}; the signal is shown turned {towards}. "
    if is_complex:
        said += "The colour is the phase; pictures are brighter where the modulus is larger. "
    if diagnostics.image_shape is not None:
        own = ", except for the standard errors" if diagnostics.standard_errors is not None else ""
        said += f"All pictures share one scale{own}."
        return Section("The signal", _pictures(diagnostics), "pictures", notes=[said.strip()])
    if diagnostics.standard_errors is not None:
        said += f"Bands and bars are {BAND} standard errors wide on either side."
    return Section("The signal", _lines(diagnostics), notes=[said.strip()])


def comparison_drawings(diagnostics: FitDiagnostics, signals: Sequence[tuple[str, Array | None, str]]) -> list[Drawing]:
    """Pictures of several signals on the scale of the report: (title, signal, note); nothing for other signals."""
    if diagnostics.image_shape is None:
        return []
    reference = diagnostics.truth if diagnostics.truth is not None else shown_signal(diagnostics)
    ends = limits(diagnostics)
    drawings = []
    for title, signal, note in signals:
        if signal is None:
            continue
        values = np.asarray(signal).reshape(-1)
        if values.size != diagnostics.n:
            raise ValueError(f"the signal of {title!r} has {values.size} entries, the recovered one {diagnostics.n}.")
        shown = _turned(diagnostics, np.nan_to_num(values), reference)
        drawings.append(_picture(diagnostics, title, shown, ends, note))
    return drawings


def limits(diagnostics: FitDiagnostics) -> tuple[float, float]:
    """Ends of the scale that all pictures of a report share."""
    best = diagnostics.truth if diagnostics.truth is not None else shown_signal(diagnostics)
    if np.iscomplexobj(diagnostics.signal):
        return 0.0, value_range(np.abs(best))[1]
    return value_range(np.real(best))


def _pictures(diagnostics: FitDiagnostics) -> list[Drawing]:
    answer, ends = shown_signal(diagnostics), limits(diagnostics)
    named = [("recovered", answer), ("start", _shown_start(diagnostics))]
    if diagnostics.truth is not None:
        named.insert(0, ("truth", diagnostics.truth))
    drawings = [_picture(diagnostics, name, values, ends) for name, values in named]
    if np.iscomplexobj(answer):
        drawings.append(_picture(diagnostics, "recovered (phase)", np.exp(1j * np.angle(answer)), (0.0, 1.0), PHASES))
    if diagnostics.standard_errors is not None:
        errors = diagnostics.standard_errors
        drawings.append(_picture(diagnostics, "standard error", errors, value_range(errors)))
    return drawings


def _picture(
    diagnostics: FitDiagnostics, title: str, values: Array, ends: tuple[float, float], note: str | None = None
) -> Drawing:
    assert diagnostics.image_shape is not None
    height, width = diagnostics.image_shape
    said = f"black {short_number(ends[0])}, white {short_number(ends[1])}" if note is None else note
    if note is None and np.iscomplexobj(values):
        said = f"modulus to {short_number(ends[1])}"
    svg = inline_svg(
        lambda ax: draw_picture(axes_or_new(ax), values.reshape(height, width), ends, scale=False),
        title,
        f"{height} × {width} picture. {said}",
        size=(SIDE, max(SIDE * height / width, 8.0)),
    )
    return Drawing(title, svg, said)


def _lines(diagnostics: FitDiagnostics) -> list[Drawing]:
    title = "Entries of the signal"
    drawn = [Drawing(title, inline_svg(lambda ax: plot.signal(diagnostics, ax=ax), title, f"{diagnostics.n} entries"))]
    if not np.iscomplexobj(diagnostics.signal):
        return [*drawn, _against(diagnostics, np.real)]
    return [*drawn, _against(diagnostics, np.real, ", real part"), _against(diagnostics, np.imag, ", imaginary part")]


def _against(diagnostics: FitDiagnostics, part: Callable[[Array], Array], said: str = "") -> Drawing:
    """A part of every entry against that of the truth, or where that is unknown of the start."""
    answer = shown_signal(diagnostics)
    name = "truth" if diagnostics.truth is not None else "start"
    other = diagnostics.truth if diagnostics.truth is not None else _shown_start(diagnostics)
    x, y = part(np.asarray(other)), part(np.asarray(answer))
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]

    def draw(ax: Any) -> None:
        axes_or_new(ax)
        scatter(ax, [("recovered", x, y)])
        ax.plot(ends, ends, color=INK, linewidth=1.0, linestyle="--", label="equal")
        ax.set(xlabel=name, ylabel="recovered")
        legend(ax)

    title = f"Recovered entries against the {name}{said}"
    return Drawing(title, inline_svg(draw, title, f"{x.size} entries"))


#: What is known of a method; all but the first are optional.
KEYS = ("method", "relative_error", "seconds", "verdict", "signal", "highlight")


def comparison_section(diagnostics: FitDiagnostics, comparisons: Sequence[Mapping[str, Any]]) -> Section:
    """The methods in the order given, one mapping each, with the keys of `KEYS`."""
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
