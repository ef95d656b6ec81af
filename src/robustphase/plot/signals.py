"""The signal: as a line, as a picture, and with its phase as a colour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.axes import CYCLIC, GREY, MARKS, Axes, axes_or_new, colour_bar, legend, picture, scatter
from robustphase.plot.samples import fitted, is_many, optional
from robustphase.population import PairedSignal
from robustphase.rows.io.limits import require

Array = NDArray[Any]

#: Standard errors to either side of the band; 95 in a hundred intervals hold the truth.
BAND = 1.96
#: Signals with fewer entries show them one by one.
FEW = 80
#: Grey scales end where all but this share of the entries lie, so that one wild entry does not make the rest grey.
BEYOND = 0.002
#: A sum of entries below this share of their moduli is zero but for rounding.
ROUNDING = 1e-9


def turned(signal: Array, reference: Array | None = None, *, paired: bool = False) -> Array:
    """The signal with the sign (phase) that brings it closest to a reference, or that makes its sum positive.

    With ``paired``, it stands behind real rows, and is its conjugate where that is closer.
    """
    if paired and reference is not None and abs(np.sum(signal * reference)) > abs(np.vdot(signal, reference)):
        signal = np.conj(signal)
    inner = np.sum(signal) if reference is None else np.vdot(signal, reference)
    if reference is None and abs(inner) <= ROUNDING * np.abs(signal).sum():
        # A sum of zero says nothing; the largest entry decides.
        inner = np.conj(signal[np.argmax(np.abs(signal))]) if signal.size else 1.0
    elif reference is None:
        inner = np.conj(inner)
    size = abs(inner)
    phase = inner / size if size > 0 else 1.0
    return signal * phase


def value_range(values: Array) -> tuple[float, float]:
    """Ends of a grey scale that a few wild entries do not decide."""
    low, high = np.quantile(values, (BEYOND, 1 - BEYOND)).tolist()
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def signal(
    fit: Any,
    *,
    truth: Any = None,
    shape: tuple[int, int] | None = None,
    part: str = "signal",
    index: int = 0,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The recovered signal.

    Phaseless data cannot tell a signal from its negative (or from any other phase), so it is shown turned towards the truth
    where that is given, and otherwise so that its sum is positive. Complex signals show their modulus, coloured by their phase
    in a cyclic map; as a picture, the brightness is the modulus.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or FitDiagnostics
        Fitted.
    truth : array-like of shape (n,), optional
        The signal behind simulated data; shown beside entries, and what pictures are turned to.
    shape : (int, int), optional
        Show a picture of this height and width.
    part : {"signal", "initial_signal", "truth", "standard_errors"}, default="signal"
        What to show of the fit.
    index : int, default=0
        Which signal, of several.
    limits : (float, float), optional
        Ends of the scale of a picture. Default: those of the values, but for a few wild ones.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    known = optional(fit, "truth") if truth is None else np.asarray(truth).reshape(-1)
    errors = None if is_many(fit) or callable(optional(fit, "standard_errors")) else optional(fit, "standard_errors")
    values = _part(fit, part, known, errors, index)
    if part == "standard_errors":
        known = None
    ax = axes_or_new(ax)
    if shape is not None:
        _check_shape(shape, values.size)
        draw_picture(ax, values.reshape(shape), limits)
    elif np.iscomplexobj(values):
        _draw_phases(ax, values)
    else:
        _draw_entries(ax, part, values, known, errors if part == "signal" else None)
    return ax


def _part(fit: Any, part: str, known: Array | None, errors: Array | None, index: int) -> Array:
    """The values that a part of a fit has, turned as they are shown."""
    if part not in ("signal", "initial_signal", "truth", "standard_errors"):
        raise ValueError(f'part must be "signal", "initial_signal", "truth" or "standard_errors", got {part!r}.')
    if part == "truth":
        if known is None:
            raise ValueError('part="truth" needs the truth: pass truth=.')
        return known
    if part == "standard_errors":
        if errors is None:
            raise ValueError(
                "no standard errors belong to this fit; robustphase.report.FitDiagnostics.of computes them where it can."
            )
        return errors
    paired = isinstance(fitted(fit, "signal"), PairedSignal) or bool(getattr(fit, "paired", False))
    found, start = (np.asarray(fitted(fit, name)) for name in ("signal", "initial_signal"))
    if found.ndim == 2:
        found, start = found[index], start[index]
    answer = turned(found, known, paired=paired)
    return answer if part == "signal" else turned(start, answer, paired=paired)


def _check_shape(shape: tuple[int, int], size: int) -> None:
    if len(shape) != 2 or shape[0] * shape[1] != size:
        raise ValueError(
            f"shape={tuple(shape)} must be a height and a width whose product is {size}, the entries there are."
        )


def draw_picture(ax: Axes, values: Array, limits: tuple[float, float] | None, *, scale: bool = True) -> None:
    """A picture of real values in grey; of complex ones in the colour of the phase, whose scale may stand beside it."""
    if not np.iscomplexobj(values):
        low, high = limits or value_range(values)
        picture(ax, values, cmap=GREY, vmin=low, vmax=high)
        return
    modulus, phase = np.abs(values), np.angle(values)
    low, high = limits or (0.0, value_range(modulus)[1])
    brightness = np.clip((modulus - low) / max(high - low, np.finfo(float).tiny), 0.0, 1.0)
    colours = _phase_colours(phase)
    colours[..., :3] *= brightness[..., np.newaxis]
    picture(ax, colours)
    if scale:
        _phase_bar(ax)


def _draw_phases(ax: Axes, values: Array) -> None:
    entries, modulus = np.arange(values.size), np.abs(values)
    ax.vlines(entries, 0, modulus, colors=_phase_colours(np.angle(values)), linewidth=1.0 if values.size > FEW else 2.0)
    if values.size <= FEW:
        ax.scatter(entries, modulus, c=_phase_colours(np.angle(values)), s=22, zorder=3)
    ax.set(xlabel="entry", ylabel="modulus", ylim=(0, None))
    _phase_bar(ax)


def _draw_entries(ax: Axes, part: str, values: Array, known: Array | None, errors: Array | None) -> None:
    entries = np.arange(values.size)
    name = {"signal": "recovered", "initial_signal": "start", "truth": "truth"}.get(part, "recovered")
    mark = MARKS[name]
    if errors is not None:
        label = f"{BAND} standard errors"
        if values.size <= FEW:
            ax.vlines(
                entries, values - BAND * errors, values + BAND * errors, color=mark.colour, linewidth=1.2, label=label
            )
        else:
            low, high = values - BAND * errors, values + BAND * errors
            ax.fill_between(entries, low, high, color=mark.colour, alpha=0.2, linewidth=0, label=label)
    if values.size > FEW:
        ax.plot(entries, values, color=mark.colour, linewidth=1.2, label=name)
    else:
        scatter(ax, [(name, entries, values)])
    if known is not None and part != "truth":
        scatter(ax, [("truth", entries, np.real(known))])
    ax.set(xlabel="entry", ylabel="standard error" if part == "standard_errors" else "value")
    legend(ax)


def _phase_colours(phase: Array) -> Array:
    maps = require("matplotlib", extra="plot", purpose="plotting").colormaps
    colours: Array = maps[CYCLIC](np.mod(phase / (2 * np.pi), 1.0))
    return colours


def _phase_bar(ax: Axes) -> None:
    mappable = require("matplotlib.cm", extra="plot", purpose="plotting").ScalarMappable
    scale = mappable(cmap=CYCLIC)
    scale.set_clim(0.0, 2 * np.pi)
    bar = colour_bar(ax, scale, "phase")
    bar.set_ticks([0, np.pi, 2 * np.pi], labels=["0", "π", "2π"])
