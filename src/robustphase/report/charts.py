"""Charts as SVG text, without JavaScript, in colours that follow the page.

Five forms: lines, scattered points, histograms, bars and pictures. Each is a function from arrays to one ``<svg>`` element;
its colours are CSS variables, so the page around it decides on light or dark, and :func:`standalone_svg` makes a file of it
that stands alone. Values that cannot be drawn (NaN, infinities, zero on a logarithmic axis) are left out and counted in a
note, and so are points beyond what an eye can tell apart: at most 3000 marks are drawn, the same ones on every run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.downsampling import MOST, budgets, chosen_points, chosen_vertices
from robustphase.report.axes import SIDE, Axes, Key, Scale, build_axes, colour_class, dash, header, svg, text
from robustphase.report.png import data_uri, grey_levels
from robustphase.report.style import CHART_CSS, palette_css
from robustphase.report.svg import number, points, short_number, shortened, tag, text_width
from robustphase.report.ticks import Axis, domain, drawable

Array = NDArray[Any]
Style = Literal["line", "points", "both"]
Range = tuple[float, float]

#: Point sizes: large while there are few.
_LARGE, _SMALL, _FEW = 5.0, 3.0, 60
#: Margin of a chart that stands alone.
_MARGIN = 10
_VIEW = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')


@dataclass(frozen=True, eq=False)
class Series:
    """Named data for a chart of lines or points.

    Attributes
    ----------
    name : str
        For the legend; an empty name has no entry.
    x, y : ndarray of shape (k,)
        Coordinates. NaN makes a gap.
    low, high : ndarray of shape (k,), optional
        A band around a line, error bars around points.
    style : {"line", "points", "both"}
        Form of the marks.
    """

    name: str
    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None
    style: Style = "line"


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A series as far as it can be drawn."""

    name: str
    index: int
    style: Style
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    dashes: str | None


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    x_range: Range | None = None,
    y_range: Range | None = None,
    note: str | None = None,
    width: float = 640,
    height: float = 360,
) -> str:
    """Lines, points or both over one pair of axes.

    Parameters
    ----------
    series : sequence of Series
        In the order of the legend.
    title, x_label, y_label : str
        Plain text.
    log_x, log_y : bool, default=False
        Logarithmic axes; values that are not positive are left out and counted in a note.
    x_range, y_range : (float, float), optional
        What to show; what lies outside is left out and counted. Default: everything.
    note : str, optional
        A line below the chart.
    width, height : float
        In pixels; the drawing scales to its place.

    Returns
    -------
    str
        One ``<svg>`` element.
    """
    drawn, notes = _drawable(series, log_x, log_y, x_range, y_range)
    notes += [note] if note else []
    x_low, x_high = x_range or domain(_joined([d.x for d in drawn]), log=log_x)
    tall = [part for d in drawn for part in (d.y, d.low, d.high) if part is not None]
    y_low, y_high = y_range or domain(_joined(tall), log=log_y)
    keys = [Key(d.name, d.index, d.style, d.dashes) for d in drawn]
    axes = build_axes(
        title,
        Scale(x_low, x_high, log_x, x_label),
        Scale(y_low, y_high, log_y, y_label),
        keys if len(keys) > 1 else [],
        notes,
        width,
        height,
    )
    # Bands first, so that no line is hidden behind the band of another.
    large = max((d.x.size for d in drawn), default=0) <= _FEW
    body = "".join(_band(d, axes) for d in drawn) + "".join(_marks(d, axes, large) for d in drawn)
    return svg(axes.markup + body, title, _summary(drawn, x_label, y_label, notes), width, height)


def scatter_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    x_range: Range | None = None,
    y_range: Range | None = None,
    note: str | None = None,
    width: float = 640,
    height: float = 360,
) -> str:
    """Points; a chart of lines whose series are drawn as points unless they ask for both. Parameters as in `line_chart`."""
    as_points = [s if s.style == "both" else Series(s.name, s.x, s.y, s.low, s.high, "points") for s in series]
    return line_chart(
        as_points,
        title=title,
        x_label=x_label,
        y_label=y_label,
        log_x=log_x,
        log_y=log_y,
        x_range=x_range,
        y_range=y_range,
        note=note,
        width=width,
        height=height,
    )


def histogram_chart(
    groups: Sequence[tuple[str, Array]],
    *,
    title: str,
    x_label: str,
    y_label: str = "samples",
    bins: int = 50,
    x_range: Range | None = None,
    curves: Sequence[Series] = (),
    log_y: bool = False,
    width: float = 640,
    height: float = 360,
) -> str:
    """How values are distributed: the first group as filled bars, further ones as outlines over the same bins.

    Parameters
    ----------
    groups : sequence of (name, values)
        What to count.
    title, x_label, y_label : str
        Plain text.
    bins : int, default=50
        Number of equal ranges.
    x_range : (float, float), optional
        What to show; values outside are counted in a note. Default: everything.
    curves : sequence of Series
        Lines on top, in units of counts per bin; `bin_width` helps to scale a density.
    log_y : bool, default=False
        Logarithmic counts, for tails.
    width, height : float
        In pixels.

    Returns
    -------
    str
        One ``<svg>`` element.
    """
    clean = [(name, _finite(values)) for name, values in groups]
    low, high = x_range or domain(_joined([values for _, values in clean]))
    edges = np.linspace(low, high, bins + 1)
    counts = [np.histogram(values, edges)[0].astype(np.float64) for _, values in clean]
    notes = _histogram_notes(groups, clean, low, high)
    tops = _joined([*counts, *(np.asarray(curve.y, np.float64) for curve in curves)])
    floor, top = (0.5, max(2.0 * float(tops.max(initial=1.0)), 2.0)) if log_y else domain(tops, from_zero=True)
    drawn, _ = _drawable(curves, False, log_y, (low, high), (floor, top))
    drawn = [replace(curve, index=len(clean) + i) for i, curve in enumerate(drawn)]
    keys = [Key(name, i, "bar" if i == 0 else "line") for i, (name, _) in enumerate(clean)]
    keys += [Key(curve.name, curve.index, curve.style, curve.dashes) for curve in drawn]
    axes = build_axes(
        title,
        Scale(low, high, False, x_label),
        Scale(floor, top, log_y, y_label),
        keys if len(keys) > 1 else [],
        notes,
        width,
        height,
    )
    body = "".join(_outline(i, np.maximum(count, floor), edges, axes) for i, count in enumerate(counts))
    body += "".join(_band(curve, axes) + _marks(curve, axes) for curve in drawn)
    parts = [f"{name}: {values.size} values" for name, values in clean]
    summary = f"Histogram of {x_label}. " + "; ".join([*parts, *notes])
    return svg(axes.markup + body, title, summary, width, height)


def bin_width(x_range: Range, bins: int) -> float:
    """Width of a histogram's bins: a density times the count and this is the expected count per bin."""
    return (x_range[1] - x_range[0]) / bins


def bar_chart(
    labels: Sequence[str],
    values: Sequence[float] | Array,
    *,
    title: str,
    value_label: str,
    low: Sequence[float] | Array | None = None,
    high: Sequence[float] | Array | None = None,
    formatted: Sequence[str] | None = None,
    log: bool = False,
    highlight: Sequence[int] | None = None,
    width: float = 640,
    row_height: float = 24,
) -> str:
    """Horizontal bars, one per label, with their values written at the end.

    Parameters
    ----------
    labels : sequence of str
        From top to bottom.
    values : sequence of float
        Lengths of the bars; those that are not finite (or not positive on a logarithmic scale) are written, not drawn.
    title, value_label : str
        Plain text.
    low, high : sequence of float, optional
        Ends of an interval around each value.
    formatted : sequence of str, optional
        How to write the values. Default: whole numbers in full, others with three digits.
    log : bool, default=False
        Logarithmic scale. Bars then begin at the left edge, which is not zero; only their ends can be compared.
    highlight : sequence of int, optional
        Bars in the accent colour; the others are grey. Default: all of them.
    width, row_height : float
        In pixels.

    Returns
    -------
    str
        One ``<svg>`` element.
    """
    lengths = np.asarray(values, np.float64)
    if len(labels) != lengths.size:
        raise ValueError(f"{len(labels)} labels for {lengths.size} bars; each bar needs exactly one.")
    ends = [np.asarray(end, np.float64) for end in (low, high) if end is not None]
    written = [short_number(value) for value in lengths.tolist()] if formatted is None else list(formatted)
    names = [shortened(str(label), 0.45 * width) for label in labels]
    heading, top = header(title, [], width)
    margin = 16 + max((text_width(name) for name in names), default=0.0)
    room = 12 + max((text_width(label) for label in written), default=0.0)
    first, last = domain(_joined([lengths, *ends]), log=log, from_zero=not log)
    axis = Axis(first, last, margin, max(width - room, margin + 20), log)
    base = axis.start if log else axis.at(0.0)
    seen = drawable(lengths, log=log)
    parts = [heading]
    for i, (name, value, label) in enumerate(zip(names, lengths.tolist(), written, strict=True)):
        middle = top + (i + 0.5) * row_height
        colour = 0 if highlight is None or i in highlight else 7
        parts.append(text("rp-ink", margin - 8, middle + 4, name, anchor="end"))
        end = axis.at(value) if seen[i] else base
        if seen[i]:
            x, w = min(base, end), max(abs(end - base), 1.0)
            parts.append(
                _rectangle(f"rp-solid {colour_class(colour)}", x, middle - 0.32 * row_height, w, 0.64 * row_height)
            )
        reach = max(base, end)
        if low is not None and high is not None and seen[i]:
            a, b = axis(np.array([ends[0][i], ends[1][i]])).tolist()
            parts.append(f'<path class="rp-whisker" d="M{number(a)} {number(middle)}H{number(b)}"/>')
            reach = max(reach, b)
        parts.append(text("", reach + 6, middle + 4, label))
    height = top + len(names) * row_height + 26
    parts.append(text("", margin, height - 10, shortened(value_label, width - margin - SIDE)))
    summary = "; ".join(f"{name}: {label}" for name, label in zip(labels, written, strict=True))
    return svg("".join(parts), title, f"{value_label}. {summary}", width, height)


def image_chart(
    array: Array,
    *,
    title: str,
    low: float | None = None,
    high: float | None = None,
    note: str | None = None,
    width: float = 240,
) -> str:
    """A greyscale picture, one square per entry.

    Parameters
    ----------
    array : ndarray of shape (h, w)
        Real values; black is ``low``, white is ``high``.
    title : str
        Plain text.
    low, high : float, optional
        Ends of the grey scale. Default: the smallest and the largest value.
    note : str, optional
        Line below the picture. Default: what black and white mean.
    width : float
        In pixels; the height follows.

    Returns
    -------
    str
        One ``<svg>`` element.
    """
    picture = np.asarray(array, np.float64)
    if picture.ndim != 2 or 0 in picture.shape:
        raise ValueError(f"a picture needs two dimensions, got an array of shape {np.shape(array)}.")
    finite = _finite(picture)
    black = float(finite.min(initial=np.inf)) if low is None else low
    white = float(finite.max(initial=-np.inf)) if high is None else high
    if not np.isfinite(black) or not np.isfinite(white):
        black, white = 0.0, 1.0
    said = f"black {short_number(black)}, white {short_number(white)}" if note is None else note
    heading, top = header(title, [], width)
    side = width - 2 * SIDE
    tall = side * picture.shape[0] / picture.shape[1]
    image = tag(
        "image",
        href=data_uri(grey_levels(picture, black, white)),
        x=SIDE,
        y=float(top),
        width=float(side),
        height=float(tall),
        preserveAspectRatio="none",
    )
    body = heading + image + (text("rp-note", SIDE, top + tall + 16, shortened(said, side, 11.0)) if said else "")
    size = f"{picture.shape[0]} × {picture.shape[1]} picture"
    return svg(body, title, f"{size}. {said}", width, top + tall + (24 if said else 8), widest=1.0)


def standalone_svg(chart: str) -> str:
    """A chart with its colours and a margin inside, ready to be written to a file of its own."""
    opening, rest = chart.split(">", 1)
    size = _VIEW.search(opening)
    if size is None:
        raise ValueError("standalone_svg needs a chart that one of the functions of this module made.")
    width, height = float(size[1]), float(size[2])
    box = f"{-_MARGIN} {-_MARGIN} {number(width + 2 * _MARGIN)} {number(height + 2 * _MARGIN)}"
    opening = opening.replace(size[0], f'viewBox="{box}"')
    style = tag("style", palette_css("svg") + CHART_CSS)
    ground = f'<rect x="{-_MARGIN}" y="{-_MARGIN}" width="100%" height="100%" style="fill:var(--rp-paper)"/>'
    return f"{opening}>{style}{ground}{rest}\n"


def _drawable(
    series: Sequence[Series], log_x: bool, log_y: bool, x_range: Range | None, y_range: Range | None
) -> tuple[list[_Drawn], list[str]]:
    """What can be drawn of each series, downsampled, and what was left out."""
    drawn, outside, impossible = [], 0, 0
    for index, one in enumerate(series):
        x, y = (np.asarray(values, np.float64).ravel() for values in (one.x, one.y))
        if x.size != y.size:
            raise ValueError(
                f"series {one.name!r} has {x.size} x values and {y.size} y values; it needs one y for every x."
            )
        bands = [None if part is None else np.asarray(part, np.float64).ravel() for part in (one.low, one.high)]
        if any(band is not None and band.size != x.size for band in bands):
            raise ValueError(f"the band of series {one.name!r} must have {x.size} values, one for every x.")
        possible = drawable(x, log=log_x) & drawable(y, log=log_y)
        within = possible & _inside(x, x_range) & _inside(y, y_range)
        impossible += int((~possible & ~(np.isnan(x) | np.isnan(y))).sum())
        outside += int((possible & ~within).sum())
        low, high = bands
        if low is not None and high is not None:
            # A band that leaves a logarithmic axis ends with the data, at the lowest value drawn.
            least = float(y[within].min(initial=np.inf)) if log_y else -np.inf
            low = np.where((low > 0) | (not log_y), low, least)
            if y_range is not None:
                low, high = np.clip(low, *y_range), np.clip(high, *y_range)
        if one.style == "points":
            x, y = x[within], y[within]
            low, high = (None if band is None else band[within] for band in (low, high))
        else:
            y = np.where(within, y, np.nan)
        drawn.append(_Drawn(one.name, index, one.style, x, y, low, high, dash(index)))
    notes = []
    if impossible:
        why = "Too large or not positive" if log_x or log_y else "Too large"
        notes.append(f"{why}, so not shown: {_count(impossible, 'value')}.")
    if outside:
        notes.append(f"Beyond the range shown: {_count(outside, 'value')}.")
    downsampled, said = _downsampled(drawn)
    return downsampled, notes + said


def _downsampled(drawn: list[_Drawn]) -> tuple[list[_Drawn], list[str]]:
    counts = [d.x.size for d in drawn]
    if sum(counts) <= MOST:
        return drawn, []
    result = []
    for d, most in zip(drawn, budgets(counts), strict=True):
        chosen = chosen_points(d.x.size, most) if d.style == "points" else chosen_vertices(d.y, most)
        low, high = (None if band is None else band[chosen] for band in (d.low, d.high))
        result.append(replace(d, x=d.x[chosen], y=d.y[chosen], low=low, high=high))
    shown = sum(d.x.size for d in result)
    fewer = [d.style == "points" for d, r in zip(drawn, result, strict=True) if r.x.size < d.x.size]
    how = "chosen at random" if all(fewer) else "peaks kept" if not any(fewer) else "at random, peaks of lines kept"
    return result, [f"{shown:,} of {sum(counts):,} points drawn, {how}."]


def _marks(d: _Drawn, axes: Axes, large: bool = False) -> str:
    colour, seen = colour_class(d.index), np.isfinite(d.y)
    x, y = axes.x(np.where(seen, d.x, axes.x.low)), axes.y(np.where(seen, d.y, axes.y.low))
    parts = []
    if d.style != "points":
        paths = "".join("M" + "L".join(points(x[run], y[run])) for run in _runs(seen))
        parts.append(tag("path", class_=f"rp-line {colour}", stroke_dasharray=d.dashes, d=paths))
    if d.style != "line":
        dots = "".join(f"M{pair}h0" for pair in points(x[seen], y[seen]))
        size, opacity = (_LARGE, "1") if large else (_SMALL, "0.55")
        parts.append(tag("path", class_=f"rp-points {colour}", stroke_width=size, stroke_opacity=opacity, d=dots))
    return "".join(parts)


def _band(d: _Drawn, axes: Axes) -> str:
    if d.low is None or d.high is None:
        return ""
    seen = np.isfinite(d.y) & np.isfinite(d.low) & np.isfinite(d.high)
    x = axes.x(np.where(seen, d.x, axes.x.low))
    low, high = (axes.y(np.where(seen, band, axes.y.low)) for band in (d.low, d.high))
    colour = colour_class(d.index)
    if d.style == "points":
        bars = zip(x[seen].tolist(), low[seen].tolist(), high[seen].tolist(), strict=True)
        path = "".join(f"M{number(a)} {number(b)}V{number(c)}" for a, b, c in bars)
        return tag("path", class_=f"rp-line {colour}", d=path)
    shapes = []
    for run in _runs(seen):
        outline = points(np.concatenate((x[run], x[run][::-1])), np.concatenate((high[run], low[run][::-1])))
        shapes.append("M" + "L".join(outline) + "Z")
    return tag("path", class_=f"rp-band {colour}", d="".join(shapes))


def _outline(index: int, counts: NDArray[np.float64], edges: NDArray[np.float64], axes: Axes) -> str:
    """The contour of a histogram: filled for the first group."""
    x, y, floor = axes.x(edges).tolist(), axes.y(counts).tolist(), axes.y.start
    path = f"M{number(x[0])} {number(floor)}"
    path += "".join(f"V{number(level)}H{number(right)}" for level, right in zip(y, x[1:], strict=True))
    path += f"V{number(floor)}" + ("Z" if index == 0 else "")
    return tag("path", class_=f"{'rp-bar' if index == 0 else 'rp-step'} {colour_class(index)}", d=path)


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    return tag("rect", class_=kind, x=float(x), y=float(y), width=float(width), height=float(height))


def _runs(seen: NDArray[np.bool_]) -> list[slice]:
    """Stretches without gaps."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], seen, [False])).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _inside(values: NDArray[np.float64], bounds: Range | None) -> NDArray[np.bool_]:
    if bounds is None:
        return np.ones(values.shape, bool)
    return (values >= bounds[0]) & (values <= bounds[1])


def _finite(values: Array) -> NDArray[np.float64]:
    flat = np.asarray(values, np.float64).ravel()
    return flat[drawable(flat)]


def _joined(parts: Sequence[Array]) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(part, np.float64).ravel() for part in parts]) if parts else np.empty(0)


def _count(number_of: int, what: str) -> str:
    return f"{number_of:,} {what}{'' if number_of == 1 else 's'}"


def _histogram_notes(
    groups: Sequence[tuple[str, Array]], clean: Sequence[tuple[str, Array]], low: float, high: float
) -> list[str]:
    notes = []
    lost = sum(np.size(values) for _, values in groups) - sum(values.size for _, values in clean)
    if lost:
        notes.append(f"Too large or missing, so not shown: {_count(lost, 'value')}.")
    beyond = [(name, int(((values < low) | (values > high)).sum())) for name, values in clean]
    if any(count for _, count in beyond):
        named = ", ".join(f"{count:,} {name}".strip() for name, count in beyond if count)
        notes.append(f"Beyond the range shown: {named}.")
    return notes


def _summary(drawn: Sequence[_Drawn], x_label: str, y_label: str, notes: Sequence[str]) -> str:
    """What the chart says, for those who do not see it."""
    parts = []
    for d in drawn:
        y = d.y[np.isfinite(d.y)]
        reach = f"from {y.min():.3g} to {y.max():.3g}" if y.size else "no values"
        parts.append(f"{d.name or 'values'}: {y.size} points, {reach}")
    return ". ".join([f"{y_label} against {x_label}", "; ".join(parts), *notes])
