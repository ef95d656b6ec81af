"""The noise: residuals beside the model that was fitted to the clean ones, and how it grows with the signal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.axes import MARKS, Axes, axes_or_new, legend, logarithmic, scatter
from robustphase.plot.detector import reach_of
from robustphase.plot.samples import fitted, noise_of, one_signal, samples_of

Array = NDArray[Any]

#: Bins of the histogram; and of the variance curve, with the fewest samples in one.
BINS, STEPS, FEWEST = 60, 24, 25
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
    bins = np.array_split(order, int(np.clip(order.size // FEWEST, 1, STEPS))) if order.size else []
    centres = np.array([np.average(energies[some], weights=weights[some]) for some in bins])
    squares = np.array([np.average(residuals[some] ** 2, weights=weights[some]) for some in bins])
    return centres, np.sqrt(squares)
