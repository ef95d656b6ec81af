"""Everything of a chart but its marks: title, legend, axes, ticks, notes.

The height of the title and of the legend, and the width of the tick labels, are known before the plot area is placed, so
nothing can overlap; ticks whose labels would collide are given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustphase.report.style import COLOURS
from robustphase.report.svg import escaped, number, shortened, tag, text_width, wrapped
from robustphase.report.ticks import Axis, log_ticks, nice_ticks, tick_labels

_LINE = 16.0
#: Size of titles, a little more than what it is, because bold letters are wider.
_TITLE = 15.5
#: Room at the top and the bottom, and at the sides: the page around a chart has margins of its own.
_EDGE, SIDE = 8.0, 2.0
#: Pixels that a tick may take: as many ticks as fit, at most.
_TICK_ACROSS, _TICK_DOWN = 64.0, 34.0
#: Space between two labels of an axis.
_APART = 8.0
_DASHES = (None, "6 3", "2 3", "9 3 2 3")


class Key(NamedTuple):
    """One entry of a legend: a name, the number of the series, the form of its marks, and their dashes."""

    name: str
    number: int
    mark: str
    dashes: str | None = None


class Scale(NamedTuple):
    """What an axis shows: its range, whether it is logarithmic, and its label."""

    low: float
    high: float
    log: bool
    label: str


@dataclass(frozen=True)
class Axes:
    """Axes to draw on, and the markup around them.

    Attributes
    ----------
    x, y : Axis
        From values to pixels.
    markup : str
        Title, legend, grid, axes and notes.
    """

    x: Axis
    y: Axis
    markup: str


def colour_class(index: int) -> str:
    """The CSS class that carries the colour of a series."""
    return f"rp-s{index % COLOURS}"


def dash(index: int) -> str | None:
    """Dashes of a series, so that colour is not the only difference: solid, then four patterns in turn."""
    return _DASHES[index % len(_DASHES)]


def build_axes(
    title: str, x: Scale, y: Scale, keys: Sequence[Key], notes: Sequence[str], width: float, height: float
) -> Axes:
    """Lay out a chart of the given size."""
    heading, top = header(title, keys, width)
    labels = [text("rp-note", SIDE, height - _EDGE - 13 * i, note) for i, note in enumerate(_note_lines(notes, width))]
    bottom = height - 42 - 13 * len(labels)
    top += _LINE if y.label else 4.0
    if bottom - top < 40:
        raise ValueError(f"height={height:g} leaves no room for the plot; {height + 40 - (bottom - top):.0f} would do.")
    y_axis = Axis(y.low, y.high, bottom, top, y.log)
    y_ticks, y_labels = _ticks_down(y_axis)
    left = SIDE + 6 + max((text_width(label) for label in y_labels), default=20.0)
    x_axis = Axis(x.low, x.high, left, width - 14, x.log)
    parts = [heading]
    if y.label:
        parts.append(text("", SIDE, top - 10, shortened(y.label, width - 2 * SIDE)))
    for pixel, label in zip(y_axis(y_ticks).tolist(), y_labels, strict=True):
        parts.append(f'<path class="rp-grid" d="M{number(x_axis.start)} {number(pixel)}H{number(x_axis.end)}"/>')
        parts.append(text("", left - 6, pixel + 4, label, anchor="end"))
    parts.append(f'<path class="rp-axis" d="M{number(x_axis.start)} {number(bottom)}H{number(x_axis.end)}"/>')
    for pixel, label in _labels_across(x_axis, width):
        parts.append(f'<path class="rp-axis" d="M{number(pixel)} {number(bottom)}v4"/>')
        parts.append(text("", pixel, bottom + 17, label, anchor="middle"))
    middle = (x_axis.start + x_axis.end) / 2
    parts.append(text("", middle, bottom + 34, shortened(x.label, 2 * (width - middle - SIDE)), anchor="middle"))
    return Axes(x_axis, y_axis, "".join([*parts, *labels]))


def header(title: str, keys: Sequence[Key], width: float) -> tuple[str, float]:
    """Title and legend, and how far down they reach."""
    parts, y = [], _EDGE + 6.0
    for line in wrapped(title, width - 2 * SIDE, _TITLE) if title else []:
        parts.append(text("rp-title", SIDE, y + 4, line))
        y += _LINE + 2
    shown = [key for key in keys if key.name]
    x = SIDE
    for key in shown:
        name = shortened(key.name, width - 60)
        indent = 14.0 if key.mark == "points" else 26.0
        advance = indent + text_width(name) + 14
        if x > SIDE and x + advance - 14 > width - SIDE:
            x, y = SIDE, y + _LINE
        parts.append(_swatch(key, x, y))
        parts.append(text("", x + indent, y + 4, name))
        x += advance
    return "".join(parts), y + (_LINE + 2 if shown else 0.0)


def text(kind: str, x: float, y: float, content: str, *, anchor: str | None = None) -> str:
    """One line of text."""
    return tag("text", escaped(content), class_=kind or None, x=float(x), y=float(y), text_anchor=anchor)


def svg(body: str, title: str, summary: str, width: float, height: float, *, widest: float = 1.25) -> str:
    """The element around a chart, which names itself to those who do not see it, and grows by a factor ``widest`` at most."""
    label = ". ".join(part.rstrip(".") for part in (title, summary) if part)
    return tag(
        "svg",
        tag("title", escaped(title)) + body,
        xmlns="http://www.w3.org/2000/svg",
        class_="rp-chart",
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=label,
        style=f"max-width:{number(widest * width)}px",
    )


def _swatch(key: Key, x: float, y: float) -> str:
    kind = colour_class(key.number)
    if key.mark == "bar":
        return f'<rect class="rp-bar {kind}" x="{number(x)}" y="{number(y - 5)}" width="20" height="10"/>'
    if key.mark == "points":
        return f'<path class="rp-points {kind}" stroke-width="6" d="M{number(x + 4)} {number(y)}h0"/>'
    line = tag("path", class_=f"rp-line {kind}", stroke_dasharray=key.dashes, d=f"M{number(x)} {number(y)}h20")
    if key.mark == "both":
        line += f'<path class="rp-points {kind}" stroke-width="6" d="M{number(x + 10)} {number(y)}h0"/>'
    return line


def _note_lines(notes: Sequence[str], width: float) -> list[str]:
    """Last line first, as they are stacked from the bottom."""
    return [line for note in notes for line in wrapped(note, width - 2 * SIDE, 11.0)][::-1]


def _ticks_down(axis: Axis) -> tuple[NDArray[np.float64], list[str]]:
    most = max(int(abs(axis.end - axis.start) / _TICK_DOWN), 2)
    ticks = (log_ticks if axis.log else nice_ticks)(axis.low, axis.high, most)
    return ticks, tick_labels(ticks, log=axis.log)


def _labels_across(axis: Axis, width: float) -> list[tuple[float, str]]:
    """As many ticks as have room for their labels beside each other and inside the chart."""
    for most in range(max(int((axis.end - axis.start) / _TICK_ACROSS), 2), 1, -1):
        ticks = (log_ticks if axis.log else nice_ticks)(axis.low, axis.high, most)
        labels = tick_labels(ticks, log=axis.log)
        pixels, halves = axis(ticks), np.array([text_width(label) / 2 for label in labels])
        if ticks.size < 2 or (np.diff(pixels) >= halves[1:] + halves[:-1] + _APART).all():
            break
    inside = (pixels - halves >= 0) & (pixels + halves <= width)
    shown = [(float(p), label) for p, label, fits in zip(pixels, labels, inside, strict=True) if fits]
    collide = any(
        right - left < text_width(a) / 2 + text_width(b) / 2 + _APART for (left, a), (right, b) in pairwise(shown)
    )
    return shown[:1] if collide else shown
