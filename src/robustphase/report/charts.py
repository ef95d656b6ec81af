"""Charts of any data as SVG text, in colours that follow the page: lines, points and histograms.

Each is a function from arrays to one ``<svg>`` element, drawn by matplotlib (extra ``report``); :func:`standalone_svg` makes
a file of it that stands alone. Values that cannot be drawn (NaN, infinities, zero on a logarithmic axis) are left out and counted
in a note, and so are points beyond what an eye can tell apart: at most 3000 marks are drawn, the same ones on every run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.axes import (
    INK,
    MARKS,
    MOST,
    Axes,
    axes_or_new,
    budgets,
    chosen_points,
    chosen_vertices,
    drawable,
    legend,
    logarithmic,
    plain,
)
from robustphase.report.figures import inline_svg

Array = NDArray[Any]
Style = Literal["line", "points", "both"]
Range = tuple[float, float]
Size = tuple[float, float]

#: Colours and marks of series, in order; further ones begin again, with another dash.
SERIES = [MARKS[name] for name in ("kept", "residual", "truth", "norm", "direction", "nonfinite", "model", "start")]
DASHES = ("-", "--", ":", "-.")
#: Margin of a chart that stands alone.
_MARGIN = 10
#: Width and height of a chart, in pixels.
SIZE = (640.0, 360.0)
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


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Attributes
    ----------
    label : str
        Plain text.
    log : bool
        Logarithmic; values that are not positive are left out and counted in a note.
    shown : (float, float), optional
        What to show; what lies outside is left out and counted. Default: everything.
    """

    label: str
    log: bool = False
    shown: Range | None = None


#: Counts of a histogram.
COUNTS = Axis("samples")


def line_chart(
    series: Sequence[Series], *, title: str, x: Axis, y: Axis, note: str | None = None, size: Size = SIZE
) -> str:
    """Lines, points or both over one pair of axes.

    Parameters
    ----------
    series : sequence of Series
        In the order of the legend.
    title : str
        Plain text.
    x, y : Axis
        The axes.
    note : str, optional
        A line below the chart.
    size : (float, float)
        Width and height in pixels; the drawing scales to its place.

    Returns
    -------
    str
        One ``<svg>`` element.
    """
    parts, notes = _cleaned(series, x, y)
    parts, fewer = _thinned(parts)
    notes = [*notes, *fewer, *([note] if note else [])]

    def draw(ax: Axes) -> None:
        axes_or_new(ax)
        for index, one in enumerate(parts):
            _draw_series(ax, index, one)
        for asked, axis, limit in ((x, ax.xaxis, ax.set_xlim), (y, ax.yaxis, ax.set_ylim)):
            if asked.log:
                logarithmic(axis)
            if asked.shown is not None:
                limit(*asked.shown)
        _label(ax, title, x.label, y.label, notes)
        legend(ax)

    return inline_svg(draw, title, _summary(parts, x.label, y.label, notes), size=size)


def scatter_chart(series: Sequence[Series], **options: Any) -> str:
    """Points; a chart of lines whose series are drawn as points unless they ask for both. Options as in `line_chart`."""
    as_points = [s if s.style == "both" else Series(s.name, s.x, s.y, s.low, s.high, "points") for s in series]
    return line_chart(as_points, **options)


def histogram_chart(
    groups: Sequence[tuple[str, Array]],
    *,
    title: str,
    x: Axis,
    y: Axis = COUNTS,
    bins: int = 50,
    curves: Sequence[Series] = (),
    size: Size = SIZE,
) -> str:
    """How values are distributed: the first group as filled bars, further ones as outlines over the same bins.

    Parameters
    ----------
    groups : sequence of (name, values)
        What to count.
    title : str
        Plain text.
    x, y : Axis
        Of the values and of the counts; logarithmic counts are for tails. What counts are shown follows from them.
    bins : int, default=50
        Number of equal ranges.
    curves : sequence of Series
        Lines on top, in units of counts per bin.
    size : (float, float)
        Width and height in pixels.

    Returns
    -------
    str
        One ``<svg>`` element.
    """
    flat = [(name, np.asarray(values, np.float64).ravel()) for name, values in groups]
    clean = [(name, values[drawable(values)]) for name, values in flat]
    together = np.concatenate([values for _, values in clean]) if clean else np.empty(0)
    low, high = x.shown or (float(together.min(initial=np.inf)), float(together.max(initial=-np.inf)))
    if not low < high:
        low, high = (low - 0.5, high + 0.5) if np.isfinite(low) else (0.0, 1.0)
    edges = np.linspace(low, high, bins + 1)
    counts = [np.histogram(values, edges)[0] for _, values in clean]
    lost = sum(values.size for _, values in flat) - together.size
    notes = [f"Too large or missing, so not shown: {_count(lost)}."] if lost else []
    outside = [(name, int(((values < low) | (values > high)).sum())) for name, values in clean]
    if any(count for _, count in outside):
        notes.append("Beyond the range shown: " + ", ".join(f"{n:,} {name}".strip() for name, n in outside if n) + ".")

    def draw(ax: Axes) -> None:
        axes_or_new(ax)
        for index, ((name, _), count) in enumerate(zip(clean, counts, strict=True)):
            look = {"fill": True, "alpha": 0.42} if index == 0 else {"linewidth": 1.5}
            ax.stairs(count, edges, color=SERIES[index % len(SERIES)].colour, label=_name(name), **look)
        for index, curve in enumerate(curves, start=len(clean)):
            _draw_series(ax, index, curve)
        if y.log and any(count.any() for count in counts):
            logarithmic(ax.yaxis)
            ax.set_ylim(0.5, None)
        ax.set_xlim(low, high)
        _label(ax, title, x.label, y.label, notes)
        legend(ax)

    said = "; ".join([*(f"{name}: {values.size} values" for name, values in clean), *notes])
    return inline_svg(draw, title, f"Histogram of {x.label}. {said}", size=size)


def standalone_svg(chart: str) -> str:
    """A chart with its colours and a margin inside, ready to be written to a file of its own."""
    opening, rest = chart.split(">", 1)
    size = _VIEW.search(opening)
    if size is None:
        raise ValueError("standalone_svg needs a chart that one of the functions of this module made.")
    width, height = (float(side) + 2 * _MARGIN for side in size.groups())
    opening = opening.replace(size[0], f'viewBox="{-_MARGIN} {-_MARGIN} {width:g} {height:g}"')
    sheet = files("robustphase.report").joinpath("style.css").read_text("utf-8")
    style = sheet[: sheet.index("figcaption")].replace(":root", "svg")
    ground = f'<rect x="{-_MARGIN}" y="{-_MARGIN}" width="100%" height="100%" style="fill:var(--rp-paper)"/>'
    return f"{opening}><style>{style}</style>{ground}{rest}\n"


def _cleaned(series: Sequence[Series], across: Axis, up: Axis) -> tuple[list[Series], list[str]]:
    """Series without what cannot be drawn, and how much that was."""
    parts, impossible, outside = [], 0, 0
    logs, ranges = (across.log, up.log), (across.shown, up.shown)
    for one in series:
        x, y = (np.asarray(values, np.float64).ravel() for values in (one.x, one.y))
        if x.size != y.size:
            raise ValueError(
                f"series {one.name!r} has {x.size} x values and {y.size} y values; it needs one y for every x."
            )
        bands = [None if part is None else np.asarray(part, np.float64).ravel() for part in (one.low, one.high)]
        if any(band is not None and band.size != x.size for band in bands):
            raise ValueError(f"the band of series {one.name!r} must have {x.size} values, one for every x.")
        possible = drawable(x, log=logs[0]) & drawable(y, log=logs[1])
        within = possible & _inside(x, ranges[0]) & _inside(y, ranges[1])
        impossible += int((~possible & ~(np.isnan(x) | np.isnan(y))).sum())
        outside += int((possible & ~within).sum())
        # A band that leaves a logarithmic axis ends with the data, at the lowest value drawn.
        least = float(y[within].min(initial=np.inf)) if logs[1] else -np.inf
        low, high = (None if band is None else np.where(drawable(band, log=logs[1]), band, y) for band in bands)
        low = None if low is None or bands[0] is None else np.where(bands[0] > 0, low, least) if logs[1] else low
        parts.append(Series(one.name, np.where(within, x, np.nan), np.where(within, y, np.nan), low, high, one.style))
    why = "Too large or not positive" if any(logs) else "Too large"
    notes = [f"{why}, so not shown: {_count(impossible)}."] if impossible else []
    return parts, notes + ([f"Beyond the range shown: {_count(outside)}."] if outside else [])


def _thinned(parts: list[Series]) -> tuple[list[Series], list[str]]:
    counts = [part.x.size for part in parts]
    if sum(counts) <= MOST:
        return parts, []
    result = []
    for part, most in zip(parts, budgets(counts), strict=True):
        chosen = chosen_points(part.x.size, most) if part.style == "points" else chosen_vertices(part.y, most)
        low, high = (None if band is None else band[chosen] for band in (part.low, part.high))
        result.append(Series(part.name, part.x[chosen], part.y[chosen], low, high, part.style))
    fewer = [part.style == "points" for part, less in zip(parts, result, strict=True) if less.x.size < part.x.size]
    how = "chosen at random" if all(fewer) else "peaks kept" if not any(fewer) else "at random, peaks of lines kept"
    return result, [f"{sum(part.x.size for part in result):,} of {sum(counts):,} points drawn, {how}."]


def _draw_series(ax: Axes, index: int, one: Series) -> None:
    mark, dash = SERIES[index % len(SERIES)], DASHES[index // len(SERIES) % len(DASHES)]
    if one.low is not None and one.high is not None:
        if one.style == "points":
            ax.vlines(one.x, one.low, one.high, color=mark.colour, linewidth=1.5)
        else:
            ax.fill_between(one.x, one.low, one.high, color=mark.colour, alpha=0.2, linewidth=0)
    few = one.x.size <= 60
    ax.plot(
        one.x,
        one.y,
        color=mark.colour,
        linestyle="none" if one.style == "points" else dash,
        linewidth=1.6,
        marker=None if one.style == "line" else mark.marker,
        markersize=5 if few else 3,
        markeredgewidth=1.0 if mark.marker in "x+" else 0.0,
        alpha=1.0 if few or one.style != "points" else 0.6,
        label=_name(one.name),
    )


def _label(ax: Axes, title: str, x_label: str, y_label: str, notes: Sequence[str]) -> None:
    ax.figure.suptitle(plain(title), color=INK, fontsize=12, fontweight="bold", x=0.02, ha="left", wrap=True)
    ax.set_xlabel("\n".join(plain(text) for text in (x_label, *notes)), wrap=True)
    ax.set_ylabel(plain(y_label), wrap=True)


def _name(name: str) -> str | None:
    """A name for the legend; one that begins with an underscore would be taken for none."""
    return plain(f"\u200b{name}" if name.startswith("_") else name) or None


def _inside(values: Array, bounds: Range | None) -> Array:
    inside: Array = np.ones(values.shape, bool) if bounds is None else (values >= bounds[0]) & (values <= bounds[1])
    return inside


def _count(number: int) -> str:
    return f"{number:,} value{'' if number == 1 else 's'}"


def _summary(parts: Sequence[Series], x_label: str, y_label: str, notes: Sequence[str]) -> str:
    """What the chart says, for those who do not see it."""
    said = []
    for part in parts:
        y = part.y[np.isfinite(part.y)]
        reach = f"from {y.min():.3g} to {y.max():.3g}" if y.size else "no values"
        said.append(f"{part.name or 'values'}: {y.size} points, {reach}")
    return ". ".join([f"{y_label} against {x_label}", "; ".join(said), *notes])
