"""How the answer came about and what vouches for it: history, candidates, the errors, the model check, groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase.plot.axes import INK, MARKS, MUTED, Axes, axes_or_new, drawable, legend, logarithmic, plain, scatter
from robustphase.plot.samples import THRESHOLD, fitted, is_many, one_signal, optional
from robustphase.population import distance

Array = NDArray[Any]

#: What a history holds, in words, and whether its axis is logarithmic.
QUANTITIES = {
    "score": ("score: log-likelihood ratio per sample", False),
    "moved": ("movement, relative to the norm", True),
    "gradient_norm": ("length of the robust gradient", True),
    "certificate": ("variance along the worst direction", True),
    "removed": ("share removed by the robust mean", False),
    "candidates": ("candidates", True),
    "passes": ("passes over the data so far", False),
    "seconds": ("seconds so far", False),
}
#: Up to so many stages are named; longer histories are numbered.
FEW_STAGES = 12
#: How the outcome of a check is drawn: as what is kept, and as what is not.
OUTCOMES = {"passed": MARKS["kept"], "worth a look": MARKS["nonfinite"], "fails": MARKS["residual"]}


def history(fit: Any, quantity: str = "moved", *, ax: Axes | None = None) -> Axes:
    """One quantity from stage to stage.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or FitDiagnostics
        Fitted.
    quantity : str, default="moved"
        "score", "moved", "gradient_norm", "certificate", "removed", "candidates", "passes" or "seconds".
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Stages without the quantity, and zeros on a logarithmic axis, are left out.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity must be one of {', '.join(QUANTITIES)}, got {quantity!r}.")
    records = fitted(fit, "history")
    words, log = QUANTITIES[quantity]
    stages, values = _column(records, "stage").tolist(), _column(records, quantity).astype(float)
    ax = axes_or_new(ax)
    seen = drawable(values, log=log)
    mark, steps = MARKS["recovered"], np.arange(1, values.size + 1)
    # A broken line: what lies between two stages is not known.
    ax.plot(steps[seen], values[seen], color=mark.colour, linewidth=0.8, linestyle=":")
    few = values.size <= FEW_STAGES
    ax.plot(
        steps[seen], values[seen], color=mark.colour, linestyle="none", marker=mark.marker, markersize=7 if few else 3
    )
    if log and seen.any():
        logarithmic(ax.yaxis)
    if few:
        ax.set_xticks(steps, [plain(stage) for stage in stages], rotation=30, ha="right")
        ax.set_xlim(0.5, values.size + 0.5)
    ax.set(xlabel="stage" if few else "step", ylabel=words)
    return ax


def _column(records: Any, name: str) -> Array:
    """One field of the records of an estimator, or of the arrays that diagnostics keep."""
    if isinstance(records, Mapping):
        return np.asarray(records[name])
    return np.array([getattr(record, name) for record in records])


def candidates(fit: Any, *, ax: Axes | None = None) -> Axes:
    """The candidates for the signal: how many took part in each stage; of a start, their scores.

    Parameters
    ----------
    fit : RobustPhaseRetrieval, FitDiagnostics or StartResult
        Fitted; or what `robustphase.spectral_init` returned, whose candidates are shown one by one, best first, beside how far
        each is from the best (relative distance up to the sign or phase).
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not hasattr(fit, "scores"):
        return history(fit, "candidates", ax=ax)
    ax = axes_or_new(ax)
    best = fit.candidates[0]
    apart = np.array([distance(one, best, relative=True) for one in fit.candidates])
    scatter(ax, [("recovered", apart[:1], fit.scores[:1]), ("start", apart[1:], fit.scores[1:])])
    for handle, label in zip(ax.lines, ("best", "others"), strict=True):
        handle.set_label(label)
    ax.set(xlabel="distance from the best, relative to its norm", ylabel="score: log-likelihood ratio per sample")
    legend(ax)
    return ax


def certificate(
    fit: Any, *, truth: Any = None, expected_error: float | None = None, index: int = 0, ax: Axes | None = None
) -> Axes:
    """The errors, relative to the norm of the signal, on a logarithmic axis.

    The expected error is what the noise leaves. The certificate is the most that bad samples could have done besides,
    whatever they are. The true error is known only where the truth is.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or FitDiagnostics
        Fitted.
    truth : array-like of shape (n,), optional
        The signal behind simulated data: shows the true error of start and answer.
    expected_error : float, optional
        Root of the summed squared standard errors over the norm of the signal. Diagnostics know theirs.
    index : int, default=0
        Which signal, of several.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    rows = errors_of(fit, truth, expected_error, index)
    ax = axes_or_new(ax)
    for place, (name, value, kind) in enumerate(rows):
        mark = MARKS[kind]
        if np.isfinite(value) and value > 0:
            ax.plot([value], [place], linestyle="none", marker=mark.marker, markersize=9, color=mark.colour, label=name)
        label = f"{100 * value:.3g}%" if np.isfinite(value) else "no bound" if value > 0 else "not known"
        at = value if np.isfinite(value) and value > 0 else 1.0
        ax.annotate(label, (at, place), xytext=(0, 9), textcoords="offset points", ha="center", color=INK)
    seen = [value for _, value, _ in rows if np.isfinite(value) and value > 0] or [1.0]
    ax.set_xlim(min(seen) / 4, 4 * max(*seen, 0.25))
    logarithmic(ax.xaxis)
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    ax.set_ylim(len(rows) - 0.4, -0.8)
    ax.axvline(1.0, color=MUTED, linewidth=1.0, linestyle="--")
    ax.set(xlabel="error over the norm of the signal")
    return ax


def errors_of(
    fit: Any, truth: Any = None, expected_error: float | None = None, index: int = 0
) -> list[tuple[str, float, str]]:
    """Name, value and kind of mark of the errors of a fit, the expected one first."""
    known = optional(fit, "truth") if truth is None else np.asarray(truth).reshape(-1)
    expected = optional(fit, "expected_error") if expected_error is None else expected_error
    rows = [] if expected is None else [("expected, from noise", float(expected), "recovered")]
    rows.append(("certificate, worst case", float(one_signal(fit, fitted(fit, "certificate"), index)), "model"))
    if known is None:
        return rows
    answer, start = fitted(fit, "signal"), fitted(fit, "initial_signal")
    if is_many(fit):
        answer, start = answer[index], start[index]
    # Diagnostics from a file have plain arrays, and know by themselves whether conjugates are the same.
    conjugate = bool(fit.paired) if hasattr(fit, "paired") else "auto"
    far = [float(distance(one, known, relative=True, conjugate=conjugate)) for one in (answer, start)]
    return [*rows, ("true, answer", far[0], "truth"), ("true, start", far[1], "start")]


def model_check(fit: Any, *, index: int = 0, ax: Axes | None = None) -> Axes:
    """The checks that end every fit: what each measured, its limit, and whether it passed.

    Parameters
    ----------
    fit : RobustPhaseRetrieval or FitDiagnostics
        Fitted.
    index : int, default=0
        Which signal, of several.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    checks = fitted(fit, "model_check")
    if isinstance(checks, tuple) and checks and hasattr(checks[0], "checks"):
        checks = checks[index]
    listed = list(getattr(checks, "checks", checks))
    ax = axes_or_new(ax)
    outcomes = ["fails" if check.severe else "worth a look" if check.failed else "passed" for check in listed]
    for name, mark in OUTCOMES.items():
        places = [place for place, outcome in enumerate(outcomes) if outcome == name]
        if places:
            ax.plot(
                np.zeros(len(places)),
                places,
                linestyle="none",
                marker=mark.marker,
                markersize=8,
                color=mark.colour,
                label=name,
            )
    for place, check in enumerate(listed):
        said = f"{check.figure:.3g}, limit {check.threshold:.3g}"
        ax.annotate(said, (0, place), xytext=(12, 0), textcoords="offset points", va="center", color=INK)
    ax.set_yticks(range(len(listed)), [plain(check.name) for check in listed])
    ax.set(xlim=(-0.1, 1.0), ylim=(len(listed) - 0.4, -0.6), xticks=[])
    ax.spines["bottom"].set_visible(False)
    ax.grid(False)
    legend(ax)
    return ax


def groups(fit: Any, *, column: int = 0, ax: Axes | None = None) -> Axes:
    """The groups of samples: how wide their residuals are, and which groups were treated as bad.

    Parameters
    ----------
    fit : RobustPhaseRetrieval
        Fitted with ``groups``.
    column : int, default=0
        Which labels, of several columns of them.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Width of the residuals over that of the noise, one mark per group in the order of ``groups_``; weights, where no group
        stands out and widths were not compared.
    """
    if optional(fit, "group_weights") is None:
        raise ValueError("no groups belong to this fit: pass fit(A, y, groups=labels).")
    names, good, evidence = (optional(fit, name) for name in ("groups", "group_weights", "group_evidence"))
    if isinstance(good, tuple):
        names, good, evidence = names[column], good[column], evidence[column]
    ax = axes_or_new(ax)
    good, places = np.asarray(good), np.arange(len(good))
    heights = good if evidence is None else np.asarray(evidence.widths)
    bad = good < THRESHOLD
    scatter(
        ax, [(name, places[some], heights[some]) for name, some in (("kept", ~bad), ("rejected", bad)) if some.any()]
    )
    if evidence is None:
        ax.set(ylabel="weight of the group: 0 bad, 1 good", ylim=(-0.04, 1.04))
    else:
        ax.axhline(1.0, color=INK, linewidth=1.0, linestyle="--", label="as the noise")
        if heights[np.isfinite(heights)].size and np.all(heights[np.isfinite(heights)] > 0):
            logarithmic(ax.yaxis)
        ax.set(ylabel="width of the residuals over the noise")
    ax.set(xlabel="group")
    if len(good) <= FEW_STAGES:
        ax.set_xticks(places, [plain(name) for name in names])
    legend(ax)
    return ax
