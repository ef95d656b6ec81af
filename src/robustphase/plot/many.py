"""Many signals at once: how a figure of them is distributed, or lies on the detector; and the rows that are bad for all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.axes import MARKS, Axes, axes_or_new, colour_bar, drawable, legend, logarithmic, picture, scatter
from robustphase.plot.samples import THRESHOLD, fitted, is_many, optional

Array = NDArray[Any]

#: What there is to know of every signal, in words, and whether its axis is logarithmic.
FIGURES = {
    "expected_error": ("expected error over the norm", True),
    "certificate": ("certificate: largest error over the norm", True),
    "rejected": ("share of the samples rejected", False),
    "contamination": ("contamination used", False),
    "noise_scale": ("noise scale", True),
    "noise_mean": ("background", False),
}
#: The check of the model that holds the expected error.
EXPECTED = "expected error"
#: Bars of a histogram, at most.
BARS = 40


def distribution(
    fit: Any, figure: str = "expected_error", *, shape: tuple[int, int] | None = None, ax: Axes | None = None
) -> Axes:
    """How a figure is distributed over many signals, or how it lies on the detector.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or ManyDiagnostics
        Fitted to several signals.
    figure : str, default="expected_error"
        "expected_error", "certificate", "rejected", "contamination", "noise_scale" or "noise_mean".
    shape : (int, int), optional
        Height and width of the detector whose pixels the signals belong to: a map, with signals that did not converge crossed
        out. Default: a histogram.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Signals without the figure, or with an infinite one, are counted below the axis, and missing from a map; columns that
        hold no signal at all have none.
    """
    if figure not in FIGURES:
        raise ValueError(f"figure must be one of {', '.join(FIGURES)}, got {figure!r}.")
    values, converged = figure_of(fit, figure), np.asarray(fitted(fit, "converged"), bool)
    words, log = FIGURES[figure]
    if shape is not None:
        return _map(axes_or_new(ax), values, converged, shape, words)
    ax = axes_or_new(ax)
    seen = drawable(values, log=log)
    edges = _edges(values[seen], log)
    for name, some in (("kept", converged), ("rejected", ~converged)):
        if (seen & some).any():
            counts, _ = np.histogram(values[seen & some], edges)
            label = "converged" if name == "kept" else "not converged"
            ax.stairs(counts, edges, fill=name == "kept", color=MARKS[name].colour, linewidth=1.5, label=label)
    if log:
        logarithmic(ax.xaxis)
    missing = int((~seen).sum())
    more = f"\nnot drawn: {missing:,} without a finite one" if missing else ""
    ax.set(xlabel=words + more, ylabel="signals", ylim=(0, None))
    ax.yaxis.get_major_locator().set_params(integer=True)
    legend(ax)
    return ax


def rows(fit: Any, *, ax: Axes | None = None) -> Axes:
    """The rows that many signals share: the share of the signals for which each was rejected, and which are bad for all.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or ManyDiagnostics
        Fitted to several signals.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    _require_many(fit)
    shares = (np.asarray(fitted(fit, "weights")) < THRESHOLD).mean(axis=1)
    bad, places = np.asarray(fitted(fit, "row_weights")) < THRESHOLD, np.arange(shares.size)
    ax = axes_or_new(ax)
    ax.set_ylim(-0.04, 1.04)
    groups = [(name, places[some], shares[some]) for name, some in (("kept", ~bad), ("rejected", bad)) if some.any()]
    scatter(ax, groups)
    ax.set(xlabel="row", ylabel="share of the signals that reject it")
    legend(ax)
    return ax


def figure_of(fit: Any, figure: str) -> Array:
    """A figure of every signal, shape (p,); NaN for columns that hold no signal at all, such as those of dead pixels."""
    _require_many(fit)
    if figure == "rejected":
        values = (np.asarray(fitted(fit, "weights")) < THRESHOLD).mean(axis=0)
    else:
        values = expected_errors(fit) if figure == "expected_error" else np.asarray(fitted(fit, figure), np.float64)
    return np.where(np.any(fitted(fit, "signal"), axis=1), values, np.nan)


def expected_errors(fit: Any) -> Array:
    """What the noise leaves of every signal relative to its norm, shape (p,); NaN where nothing has said so, or there is none."""
    known = optional(fit, "expected_error")
    if known is not None:
        return np.asarray(known, np.float64)
    found = ([c.figure for c in one.checks if c.name == EXPECTED] for one in fitted(fit, "model_check"))
    errors = np.array([float(figures[0]) if figures else np.nan for figures in found])
    return np.where(np.any(fitted(fit, "signal"), axis=1), errors, np.nan)


def _require_many(fit: Any) -> None:
    if not is_many(fit):
        raise ValueError("this plot compares many signals, and the fit is of one; fit(A, Y) with one column for each.")


def _edges(values: Array, log: bool) -> Array:
    """Edges of the bars: as many as the values ask for, equally wide on their axis."""
    if not values.size:
        return np.array([0.1, 1.0]) if log else np.array([0.0, 1.0])
    on_axis = np.log10(values) if log else values
    bars = int(np.clip(math.isqrt(4 * values.size), 5, BARS))
    edges: Array = np.histogram_bin_edges(on_axis, bars)
    if log:
        # Powers of logarithms are rounded, and the ends would fall out.
        edges = 10.0**edges
        edges[0], edges[-1] = min(edges[0], values.min()), max(edges[-1], values.max())
    return edges


def _map(ax: Axes, values: Array, converged: Array, shape: tuple[int, int], words: str) -> Axes:
    if len(shape) != 2 or math.prod(shape) != values.size:
        raise ValueError(
            f"shape={tuple(shape)} has {math.prod(shape)} pixels but the fit {values.size} signals; give (height, width) of the "
            "detector."
        )
    image = picture(ax, np.where(drawable(values), values, np.nan).reshape(shape), cmap="cividis")
    across, down = np.flatnonzero(~converged) % shape[1], np.flatnonzero(~converged) // shape[1]
    mark = MARKS["rejected"]
    ax.plot(across, down, linestyle="none", marker=mark.marker, markersize=5, color=mark.colour)
    colour_bar(ax, image, words)
    return ax
