"""What all plots share: one colour and mark for every kind of thing, axes, legends, and points that are not too many.

In every picture a kind of thing has the same colour and shape, so that neither alone has to be told. Where an eye could not tell
marks apart there are fewer of them, the same ones on every run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustphase.rows.io.limits import require


class Mark(NamedTuple):
    """How a kind of thing is drawn."""

    colour: str
    marker: str


INK, MUTED, GRID = "#19212b", "#566170", "#dfe4ea"

#: What there is to see. The causes of rejection are those of ``samples.CAUSES``.
MARKS = {
    "kept": Mark("#0a6c89", "o"),
    "residual": Mark("#b3470f", "x"),
    "norm": Mark("#7a4aa5", "^"),
    "direction": Mark("#a8324a", "s"),
    "nonfinite": Mark("#7d6310", "+"),
    "truth": Mark("#3c7a34", "D"),
    "start": Mark("#626b76", "v"),
    "model": Mark("#3757b5", "*"),
}
#: Where the cause of a rejection is not known, it has the most frequent one's mark.
MARKS["rejected"] = MARKS["residual"]
#: The answer is made of what was kept.
MARKS["recovered"] = MARKS["kept"]

#: Colour maps of pictures, phases and numbers with a sign; that of phases is cyclic and leaves the brightness to the modulus.
GREY, CYCLIC, SIGNED = "gray", "hsv", "RdBu_r"


#: Most marks drawn in one chart.
MOST = 3000
_SEED = 20260101


def chosen_points(count: int, most: int) -> NDArray[np.intp]:
    """Indices of at most ``most`` of ``count`` points, a random choice with a fixed seed, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(_SEED).choice(count, max(most, 1), replace=False))


def chosen_vertices(y: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Indices of at most ``most`` vertices of a line that keep its peaks: the extremes of consecutive stretches.

    Points that are not finite, which are gaps of the line, are kept only where a stretch holds nothing else.
    """
    if y.size <= most:
        return np.arange(y.size)
    stretches = np.array_split(np.arange(y.size), max(most // 4, 1))
    kept: list[int] = []
    for stretch in stretches:
        finite = stretch[np.isfinite(y[stretch])]
        inner = (
            [int(stretch[0])]
            if finite.size == 0
            else [int(finite[np.argmin(y[finite])]), int(finite[np.argmax(y[finite])])]
        )
        kept.extend((int(stretch[0]), *inner, int(stretch[-1])))
    return np.unique(np.array(kept, np.intp))


def budgets(counts: list[int], most: int = MOST) -> list[int]:
    """Shares of ``most`` for several sets of marks: small sets stay whole, the large ones share what is left."""
    shares = [0] * len(counts)
    left, waiting = most, sorted(range(len(counts)), key=lambda i: counts[i])
    for position, i in enumerate(waiting):
        shares[i] = min(counts[i], left // (len(waiting) - position))
        left -= shares[i]
    return shares


Array = NDArray[Any]
#: Larger values cannot be drawn: axes compute with their squares.
LARGEST = 1e150
#: A logarithmic axis over fewer decades has ticks as a plain one.
NARROW = 0.8
#: Characters that no SVG file can hold, and lone surrogates, which undecodable file names hold.
UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
#: A ``matplotlib.axes.Axes``; the package is optional, and its types are as well.
Axes = Any


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure; with the look of the plots in either case."""
    if ax is None:
        pyplot = require("matplotlib.pyplot", extra="plot", purpose="plotting")
        _, ax = pyplot.subplots(layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(colors=MUTED, labelcolor=MUTED)
    ax.xaxis.label.set_color(MUTED)
    ax.yaxis.label.set_color(MUTED)
    ax.grid(True, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def drawable(values: Array, *, log: bool = False) -> NDArray[np.bool_]:
    """Which values have a place on an axis."""
    flags: NDArray[np.bool_] = np.abs(values) <= LARGEST
    return flags & (values > 1 / LARGEST) if log else flags


def plain(text: object) -> str:
    """Text from outside, which is neither a formula nor unwritable."""
    return UNWRITABLE.sub("\ufffd", str(text)).replace("$", r"\$")


def logarithmic(axis: Any) -> None:
    """Make an axis logarithmic, with ticks that are written out near one and as powers far from it."""
    ticker = require("matplotlib.ticker", extra="plot", purpose="plotting")
    across = axis is axis.axes.xaxis
    (axis.axes.set_xscale if across else axis.axes.set_yscale)("log")
    low, high = axis.get_view_interval()
    if not 0 < low < high:
        # Nothing that has a logarithm: an empty axis.
        low, high = 0.1, 1.0
        (axis.axes.set_xlim if across else axis.axes.set_ylim)(low, high)
    decades = float(np.log10(high) - np.log10(low))
    if decades < NARROW:
        # Powers of ten and their 2 and 5 fold could leave a single tick, or none.
        axis.set_major_locator(ticker.MaxNLocator(5, steps=(1, 2, 5, 10)))
    else:
        axis.set_major_locator(ticker.LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0), numticks=7))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(_written))


def _written(value: float, _: object) -> str:
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    power = "10" + str(int(exponent)).translate(_POWERS)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def legend(ax: Axes, **options: Any) -> None:
    """A legend, where there is more than one thing to tell apart or to be said; above the data, which it would hide."""
    handles, labels = ax.get_legend_handles_labels()
    if len(handles) > 1 or any("(" in label for label in labels):
        placed = {
            "loc": "lower left",
            "bbox_to_anchor": (0.0, 1.0),
            "ncols": 2,
            "frameon": False,
            "fontsize": "small",
        } | options
        ax.legend(handles, labels, labelcolor=INK, markerscale=1.8, handletextpad=0.4, columnspacing=1.2, **placed)


def scatter(ax: Axes, groups: Iterable[tuple[str, Array, Array]], *, beyond: str = "") -> None:
    """Points of several kinds, each under the name of its mark; at most 3000, the same ones on every run.

    Points that are not finite, or too large for any axis, are left out. Limits of the axes, if they are set, stay; points
    outside are then counted in the legend under the name ``beyond``.
    """
    kept = [(name, np.asarray(x, float), np.asarray(y, float)) for name, x, y in groups]
    finite = [drawable(x) & drawable(y) for _, x, y in kept]
    shares = budgets([int(some.sum()) for some in finite], MOST)
    low, high = ax.get_ylim()
    few = sum(int(some.sum()) for some in finite) <= 60
    for (name, x, y), some, most in zip(kept, finite, shares, strict=True):
        x, y = x[some], y[some]
        drawn = chosen_points(x.size, most)
        said = [f"{drawn.size:,} of {x.size:,} drawn"] if drawn.size < x.size else []
        outside = int(((y < low) | (y > high)).sum()) if beyond else 0
        said += [f"{outside:,} {beyond}"] if outside else []
        label = f"{name} ({', '.join(said)})" if said else name
        mark = MARKS[name]
        ax.plot(
            x[drawn],
            y[drawn],
            linestyle="none",
            marker=mark.marker,
            markersize=6 if few else 3,
            color=mark.colour,
            alpha=1.0 if few else 0.6,
            markeredgewidth=1.0 if mark.marker in "x+" else 0.0,
            label=label,
        )


def picture(ax: Axes, values: Array, **options: Any) -> Any:
    """A picture on bare axes, pixel by pixel; what imshow returns."""
    ax.grid(False)
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ("bottom", "left"):
        ax.spines[side].set_visible(False)
    return ax.imshow(values, interpolation="none", **options)


def colour_bar(ax: Axes, image: Any, label: str) -> Any:
    """The scale of a picture, beside it."""
    bar = ax.figure.colorbar(image, ax=ax, label=label, fraction=0.046, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelcolor=MUTED)
    bar.ax.yaxis.label.set_color(MUTED)
    return bar
