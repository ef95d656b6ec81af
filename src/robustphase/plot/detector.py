"""The samples one by one: measured against predicted, residuals, flags and weights, along the rows or as the detector lies.

All together they show the noise: residuals beside the model that was fitted to the clean ones, and how it grows with the signal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.axes import (
    INK,
    MARKS,
    SIGNED,
    Axes,
    axes_or_new,
    colour_bar,
    legend,
    logarithmic,
    picture,
    scatter,
)
from robustphase.plot.samples import CAUSES, THRESHOLD, Samples, fitted, noise_of, one_signal, samples_of

Array = NDArray[Any]
Shape = tuple[int, int] | tuple[int, int, int]

#: Residuals, in widths of the noise, that a chart shows at least and at most; and the share of the kept ones it must hold.
LEAST_REACH, MOST_REACH, HELD = 5.0, 40.0, 0.998


def predictions(fit: Any, A: Any = None, y: Any = None, *, index: int = 0, ax: Axes | None = None) -> Axes:
    """Measured responses against those that the signal predicts; on the line they are equal.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or FitDiagnostics
        Fitted.
    A, y
        The data of the fit; diagnostics bring theirs along.
    index : int, default=0
        Which signal, of several.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        With as much as the kept samples need; rejected ones outside are counted in the legend.
    """
    found = samples_of(fit, A, y, index)
    ax = axes_or_new(ax)
    kept = (found.codes == 0) & np.isfinite(found.predictions) & np.isfinite(found.responses)
    inside = np.concatenate((found.predictions[kept], found.responses[kept], [0.0]))
    low, high = float(inside.min()), float(inside.max())
    margin = 0.04 * (high - low) or 1.0
    ax.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
    across = np.where(
        (found.predictions >= low - margin) & (found.predictions <= high + margin), found.predictions, np.nan
    )
    scatter(ax, _by_cause(found, across, found.responses), beyond="outside")
    ax.plot([low, high], [low, high], color=INK, linewidth=1.0, linestyle="--", label="equal")
    ax.set(xlabel="predicted", ylabel="measured")
    legend(ax)
    return ax


def residuals(
    fit: Any, A: Any = None, y: Any = None, *, shape: Shape | None = None, index: int = 0, ax: Axes | None = None
) -> Axes:
    """Residuals in widths of the noise: along the rows, or in the geometry of the detector.

    Parameters
    ----------
    fit, A, y, index, ax
        As in `predictions`.
    shape : (int, int) or (int, int, int), optional
        Height and width of the detector whose readings the samples are; or number of frames, height and width: then every pixel
        shows the median modulus of its residuals over the frames.

    Returns
    -------
    matplotlib.axes.Axes
    """
    found = samples_of(fit, A, y, index)
    ax = axes_or_new(ax)
    reach = reach_of(found)
    if shape is None:
        ax.set_ylim(-reach, reach)
        scatter(ax, _by_cause(found, np.arange(found.codes.size), found.deviations), beyond="outside")
        ax.set(xlabel="row", ylabel="residual, in widths of the noise", ylim=(-reach, reach))
        legend(ax)
        return ax
    frames = _frames(found.deviations, shape)
    if len(shape) == 3:
        image = picture(ax, _median(np.abs(frames)), cmap="viridis", vmin=0.0)
        colour_bar(ax, image, f"median |residual| of {len(frames)} frames, in widths of the noise")
    else:
        colour_bar(ax, picture(ax, frames[0], cmap=SIGNED, vmin=-reach, vmax=reach), "residual, in widths of the noise")
    return ax


def flags(
    fit: Any, A: Any = None, y: Any = None, *, shape: Shape | None = None, index: int = 0, ax: Axes | None = None
) -> Axes:
    """Which samples were rejected: their share along the rows, or where they lie on the detector.

    Parameters
    ----------
    fit, A, y, shape, index, ax
        As in `residuals`; over several frames every pixel shows the share of them in which it was rejected. With A and y (or
        diagnostics), shares along the rows are shown for each cause.

    Returns
    -------
    matplotlib.axes.Axes
    """
    weights, codes = _weights_and_codes(fit, A, y, index)
    ax = axes_or_new(ax)
    if shape is not None:
        frames = _frames((weights < THRESHOLD).astype(float), shape)
        image = picture(ax, frames.mean(axis=0), cmap="cividis", vmin=0.0, vmax=1.0)
        colour_bar(ax, image, "rejected" if len(frames) == 1 else f"share of {len(frames)} frames rejected")
        return ax
    edges = stretch_edges(weights.size)
    sizes, middles = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    shares = [
        (name, middles, np.add.reduceat(some, edges[:-1], dtype=np.int64) / sizes)
        for name, some in _rejected(weights, codes)
        if some.any()
    ]
    for name, x, share in shares or [("rejected", middles, np.zeros(sizes.size))]:
        _line(ax, name, x, share)
    ax.set(xlabel="row", ylabel=f"share rejected of about {round(weights.size / sizes.size):,} rows", ylim=(0, None))
    legend(ax)
    return ax


def weights(
    fit: Any, A: Any = None, y: Any = None, *, shape: Shape | None = None, index: int = 0, ax: Axes | None = None
) -> Axes:
    """The weight of every sample: 0 treated as bad, 1 as clean.

    Parameters
    ----------
    fit, A, y, shape, index, ax
        As in `flags`; over several frames every pixel shows its mean weight.

    Returns
    -------
    matplotlib.axes.Axes
    """
    values, codes = _weights_and_codes(fit, A, y, index)
    ax = axes_or_new(ax)
    if shape is not None:
        frames = _frames(values, shape)
        image = picture(ax, frames.mean(axis=0), cmap="cividis", vmin=0.0, vmax=1.0)
        colour_bar(ax, image, "weight" if len(frames) == 1 else f"mean weight of {len(frames)} frames")
        return ax
    rows, kept = np.arange(values.size), values >= THRESHOLD
    groups = [("kept", kept), *_rejected(values, codes)]
    scatter(ax, [(name, rows[some], values[some]) for name, some in groups if some.any()])
    ax.set(xlabel="row", ylabel="weight: 0 bad, 1 clean", ylim=(-0.04, 1.04))
    legend(ax)
    return ax


#: Stretches of rows that are compared, and the fewest rows in one.
STRETCHES, FEWEST = 40, 25


def stretch_edges(m: int) -> NDArray[np.intp]:
    """Edges of the stretches that the rows are cut into: at most forty, of at least 25 rows if there are as many."""
    pieces = int(np.clip(m // FEWEST, 1, STRETCHES))
    return np.linspace(0, m, pieces + 1).astype(np.intp)


def reach_of(found: Samples) -> float:
    """Residuals to show, in widths of the noise: nearly all kept ones."""
    kept = np.abs(found.deviations[(found.codes == 0) & np.isfinite(found.deviations)])
    widest = float(np.quantile(kept, HELD)) if kept.size else 0.0
    return float(np.clip(1.2 * widest, LEAST_REACH, MOST_REACH))


def _weights_and_codes(fit: Any, A: Any, y: Any, index: int) -> tuple[Array, Array | None]:
    """Weights, and the causes of rejection as far as the data are there to tell."""
    if A is None and not hasattr(fit, "responses"):
        return one_signal(fit, fitted(fit, "weights"), index), None
    found = samples_of(fit, A, y, index)
    return found.weights, found.codes


def _rejected(values: Array, codes: Array | None) -> Iterator[tuple[str, Array]]:
    if codes is None:
        yield "rejected", values < THRESHOLD
        return
    yield from ((name, codes == code) for code, name in enumerate(CAUSES) if code > 0)


def _by_cause(found: Samples, x: Array, y: Array) -> Iterator[tuple[str, Array, Array]]:
    for code, name in enumerate(CAUSES):
        some = found.codes == code
        if some.any():
            yield name, x[some], y[some]


def _frames(values: Array, shape: Shape) -> Array:
    """Values as frames of a detector, shape (frames, height, width)."""
    if len(shape) not in (2, 3) or math.prod(shape) != values.size:
        raise ValueError(
            f"shape={tuple(shape)} has {math.prod(shape)} readings but the fit {values.size} samples; give (height, width) or "
            "(frames, height, width) of the detector."
        )
    return values.reshape((-1, *shape[-2:]))


def _median(frames: Array) -> Array:
    """Median over the frames of what is a number; NaN where nothing is."""
    some = np.isfinite(frames).any(axis=0)
    medians: Array = np.full(frames.shape[1:], np.nan)
    medians[some] = np.nanmedian(np.where(np.isfinite(frames), frames, np.nan)[:, some], axis=0)
    return medians


def _line(ax: Axes, name: str, x: Array, y: Array) -> None:
    mark = MARKS[name]
    ax.plot(x, y, color=mark.colour, marker=mark.marker, markersize=4, linewidth=1.3, label=name)


#: Bins of the histogram; and of the variance curve, with the fewest samples in one.
BINS, STEPS, FEWEST_WIDTHS = 60, 24, 25
#: Samples with less weight say nothing about clean residuals.
LEAST_WEIGHT = 0.01


def noise(fit: Any, A: Any = None, y: Any = None, *, index: int = 0, ax: Axes | None = None) -> Axes:
    """Residuals of kept and rejected samples, and the density of the noise model that was fitted.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or FitDiagnostics
        Fitted.
    A, y
        The data of the fit; diagnostics bring theirs along.
    index : int, default=0
        Which signal, of several.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Residuals in widths of the noise; those beyond the range are counted in the legend.
    """
    found = samples_of(fit, A, y, index)
    ax = axes_or_new(ax)
    reach, kept = reach_of(found), found.codes == 0
    edges = np.linspace(-reach, reach, BINS + 1)
    for name, some in (("kept", kept), ("rejected", ~kept)):
        values = found.deviations[some & np.isfinite(found.deviations)]
        beyond = int((np.abs(values) > reach).sum())
        label = f"{name} ({beyond:,} outside)" if beyond else name
        mark, counts = MARKS[name], np.histogram(values, edges)[0]
        if name == "kept":
            ax.stairs(counts, edges, fill=True, color=mark.colour, alpha=0.42, label=label)
        elif values.size:
            ax.stairs(counts, edges, color=mark.colour, linewidth=1.5, label=label)
    model = noise_of(fit, index)
    if model is not None:
        across = np.linspace(-reach, reach, 241)
        scale = one_signal(fit, fitted(fit, "noise_scale"), index)
        per_bin = int(kept.sum()) * (edges[1] - edges[0]) * scale
        ax.plot(
            across,
            per_bin * model.density(scale * across),
            color=MARKS["model"].colour,
            linewidth=1.6,
            label="noise law",
        )
    ax.set(xlabel="residual, in widths of the noise", ylabel="samples per bin", xlim=(-reach, reach))
    legend(ax)
    return ax


def variance(fit: Any, A: Any = None, y: Any = None, *, index: int = 0, ax: Axes | None = None) -> Axes:
    """How the width of the noise grows with the signal: residuals in bins of the prediction, and the fitted curve.

    Parameters
    ----------
    fit, A, y, index, ax
        As in `noise`; the fit must have found noise that depends on the signal (counts, or a variance that grows).

    Returns
    -------
    matplotlib.axes.Axes
        Root mean squares of the residuals, weighted as the fit weighs them, on logarithmic axes where everything is positive.
    """
    model = noise_of(fit, index)
    if not hasattr(model, "variance"):
        raise ValueError(
            "the noise of this fit has the same width everywhere, so there is no curve; robustphase.plot.noise shows it."
        )
    found = samples_of(fit, A, y, index)
    ax = axes_or_new(ax)
    centres, rms = binned_widths(found.energies, found.responses - found.predictions, found.weights)
    scatter(ax, [("kept", centres, rms)])
    low, high = (centres[0], centres[-1]) if centres.size else (0.0, 1.0)
    log = low > 0 and high > 4 * low
    across = np.geomspace(low, high, 200) if log else np.linspace(low, high, 200)
    curve = np.sqrt(model.variance(across))
    ax.plot(across, curve, color=MARKS["model"].colour, linewidth=1.6, label="fitted curve")
    if log and np.all(rms > 0) and np.all(curve > 0):
        logarithmic(ax.xaxis)
        logarithmic(ax.yaxis)
    ax.set(xlabel="predicted |a·x|²", ylabel="width of the residuals")
    legend(ax)
    return ax


def binned_widths(energies: Array, residuals: Array, weights: Array) -> tuple[Array, Array]:
    """Mean energies and weighted root mean square residuals of bins with equally many samples."""
    used = np.flatnonzero((weights > LEAST_WEIGHT) & np.isfinite(energies) & np.isfinite(residuals))
    order = used[np.argsort(energies[used], kind="stable")]
    bins = np.array_split(order, int(np.clip(order.size // FEWEST_WIDTHS, 1, STEPS))) if order.size else []
    centres = np.array([np.average(energies[some], weights=weights[some]) for some in bins])
    squares = np.array([np.average(residuals[some] ** 2, weights=weights[some]) for some in bins])
    return centres, np.sqrt(squares)
