"""What all plots share: axes, legends, and points that are not too many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.downsampling import MOST, budgets, chosen_points
from robustphase.plot.palette import GRID, INK, MARKS, MUTED
from robustphase.rows.io.limits import require

Array = NDArray[Any]
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
        ax.legend(handles, labels, labelcolor=INK, handletextpad=0.4, columnspacing=1.2, **placed)


def scatter(ax: Axes, groups: Iterable[tuple[str, Array, Array]], *, beyond: str = "") -> None:
    """Points of several kinds, each under the name of its mark; at most 3000, the same ones on every run.

    Parameters
    ----------
    ax : Axes
        Where to draw; the limits of the axes, if they are set, stay.
    groups : iterable of (name, x, y)
        Points; those that are not finite are left out.
    beyond : str
        What to call points outside the limits of the axes, which are then counted in the legend.
    """
    kept = [(name, np.asarray(x, float), np.asarray(y, float)) for name, x, y in groups]
    finite = [np.isfinite(x) & np.isfinite(y) for _, x, y in kept]
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
    return ax.imshow(values, interpolation="nearest", **options)


def colour_bar(ax: Axes, image: Any, label: str) -> Any:
    """The scale of a picture, beside it."""
    bar = ax.figure.colorbar(image, ax=ax, label=label, fraction=0.046, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelcolor=MUTED)
    bar.ax.yaxis.label.set_color(MUTED)
    return bar
