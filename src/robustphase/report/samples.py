"""The samples: which were rejected, why, and where they stand among the rows; the groups, where there are any; and the noise.

The noise is shown by residuals against the model that was fitted to the clean ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from robustphase import plot
from robustphase.estimator import NoiseModel
from robustphase.plot.axes import MARKS, axes_or_new, legend, scatter
from robustphase.plot.detector import LEAST_WEIGHT
from robustphase.plot.samples import THRESHOLD
from robustphase.report.blocks import Cell, Drawing, Row, Section, Table, cell, fact, percent, short_number
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.figures import inline_svg
from robustphase.report.many import ManyDiagnostics
from robustphase.report.rejection_causes import MEANING, counts, deviation, worst_samples

#: Groups that are listed: the bad ones that look worst, and so many of the others.
LISTED_GROUPS, LISTED_OTHERS = 20, 3


def samples_section(diagnostics: FitDiagnostics) -> Section:
    """Causes of rejection, charts along the rows, and the samples farthest off."""
    found = counts(diagnostics)
    said = ", ".join(f"{count:,} {name}" for name, count in found.items() if count) or "none rejected"
    draw = {
        "Weight of every sample": lambda ax: plot.weights(diagnostics, ax=ax),
        "Share rejected along the rows": lambda ax: plot.flags(diagnostics, ax=ax),
        "Measured against predicted": lambda ax: plot.predictions(diagnostics, ax=ax),
        "Residuals along the rows": lambda ax: plot.residuals(diagnostics, ax=ax),
    }
    drawings = [Drawing(title, inline_svg(one, title, said)) for title, one in draw.items()]
    drawings += _on_the_detector(diagnostics, said)
    worst = worst_table(diagnostics)
    notes = [] if worst is not None else ["No sample was rejected."]
    return Section("The samples", drawings, table=_cause_table(diagnostics.m, found), second=worst, notes=notes)


def _on_the_detector(diagnostics: FitDiagnostics, said: str) -> list[Drawing]:
    """Residuals and flags where the samples were read, if that is known."""
    shape: Any = diagnostics.detector_shape
    if shape is None:
        return []
    draw = {"Rejected, on the detector": lambda ax: plot.flags(diagnostics, shape=shape, ax=ax)}
    if not diagnostics.noiseless:
        # Residuals are measured in widths of the noise.
        draw["Residuals, on the detector"] = lambda ax: plot.residuals(diagnostics, shape=shape, ax=ax)
    return [Drawing(title, inline_svg(one, title, said)) for title, one in draw.items()]


def groups_section(diagnostics: FitDiagnostics | ManyDiagnostics) -> Section | None:
    """The groups that stand out, where samples were said to belong together."""
    names, weights = diagnostics.groups, diagnostics.group_weights
    if names is None or weights is None:
        return None
    bad = int((weights < THRESHOLD).sum())
    said = f"{bad:,} of {weights.size:,} groups were treated as bad."
    if diagnostics.group_widths is None:
        # The chart shows weights where there are no widths to show.
        title, widths = "Weight of every group", np.full(weights.size, np.nan)
        of_widths = "the widths of their residuals were not compared"
    else:
        title, widths = "Width of the residuals of every group", diagnostics.group_widths
        of_widths = "the width of their residuals is over that of the noise"
    drawings = [Drawing(title, inline_svg(lambda ax: plot.groups(diagnostics, ax=ax), title, said))]
    order = np.lexsort((np.arange(weights.size), -np.nan_to_num(widths), weights))[
        : min(bad + LISTED_OTHERS, LISTED_GROUPS)
    ]
    rows = [
        Row(
            str(names[i]),
            [
                cell("group-weight", weights[i], f"{weights[i]:.3f}"),
                cell("group-width", widths[i], short_number(float(widths[i]))),
                Cell("treated as bad" if weights[i] < THRESHOLD else "kept", words=True),
            ],
            ("group", str(names[i])),
        )
        for i in order.tolist()
    ]
    caption = f"{said} The {len(rows)} that look worst; {of_widths}."
    table = Table("groups", caption, ("group", "weight", "width", "verdict"), (3,), rows)
    return Section("The groups", drawings, second=table)


def _cause_table(samples: int, found: Mapping[str, int]) -> Table:
    rows = [
        Row(name, [Cell(MEANING[name], words=True), cell(f"reason-{name}", count, f"{count:,}")])
        for name, count in found.items()
    ]
    kept = samples - sum(found.values())
    said = f"Why samples were rejected. {kept:,} of {samples:,} were kept."
    return Table("reasons", said, ("reason", "what it means", "samples"), (1,), rows)


def worst_table(diagnostics: FitDiagnostics) -> Table | None:
    """The rejected samples farthest off."""
    samples = worst_samples(diagnostics)
    if not samples:
        return None
    rows = [
        Row(
            str(sample.row),
            [
                Cell(sample.cause, words=True),
                cell("weight", sample.weight, f"{sample.weight:.3f}"),
                cell("length", sample.length, short_number(sample.length)),
                cell("response", sample.response, short_number(sample.response)),
                cell("prediction", sample.prediction, short_number(sample.prediction)),
                cell("deviation", sample.deviation, short_number(sample.deviation)),
            ],
            ("row", str(sample.row)),
        )
        for sample in samples
    ]
    head = ("row", "reason", "weight", "‖a‖/√n", "response", "prediction", "residual / scale")
    caption = f"The {len(samples)} rejected samples farthest off, some of every reason. Rows count from 0."
    return Table("worst", caption, head, (1,), rows)


#: Points drawn at either end of a chart of quantiles, and between.
TAIL, MIDDLE = 300, 700
#: What is said of residuals that have no noise model to be held against.
WITHOUT_MODEL = (
    "No noise model belongs to this fit that all samples share: it is fitted by the last step of the engine, and neither by "
    "streams nor where the noise depends on the signal."
)


def noise_section(diagnostics: FitDiagnostics) -> Section:
    """The noise model in words, a histogram, a chart of quantiles, and how the noise grows with the signal."""
    if diagnostics.noiseless:
        scale = short_number(diagnostics.noise_scale)
        said = f"The residuals are roundings (scale {scale}): there is no noise to show."
        return Section("The noise", intro=[[said]])
    title = "Residuals of the samples"
    histogram = Drawing(
        title, inline_svg(lambda ax: plot.noise(diagnostics, ax=ax), title, "Kept and rejected samples")
    )
    if diagnostics.noise_curve is not None:
        title = "How the noise grows with the signal"
        curve = Drawing(
            title, inline_svg(lambda ax: plot.variance(diagnostics, ax=ax), title, "Residuals and fitted curve")
        )
        return Section("The noise", [histogram, curve], intro=[_curve_in_words(diagnostics.noise_curve)])
    if diagnostics.noise_model is None:
        return Section("The noise", [histogram], intro=[[WITHOUT_MODEL]])
    drawings = [histogram, _quantiles(diagnostics, diagnostics.noise_model)]
    return Section("The noise", drawings, intro=[_in_words(diagnostics.noise_model)])


def noise_quantiles(noise: NoiseModel, probabilities: ArrayLike) -> NDArray[np.float64]:
    """Clean residuals, counted from their centre, that are exceeded with probability one minus these."""
    p = np.asarray(probabilities, np.float64)
    degrees, skew = float(noise.degrees), float(noise.skews)
    below = 1 / (1 + skew)
    lower = stdtrit(degrees, np.minimum(p * (1 + skew) / 2, 0.5))
    upper = stdtrit(degrees, np.maximum(0.5 + (p - below) * (1 + skew) / (2 * skew), 0.5))
    return np.asarray(noise.scales * np.where(p < below, lower, skew * upper), np.float64)


def _in_words(noise: NoiseModel) -> list[Any]:
    scale, degrees, skew = float(noise.scales), float(noise.degrees), float(noise.skews)
    tails = "normal" if degrees > 30 else "heavy" if degrees < 8 else "moderately heavy"
    skewed = f"{short_number(max(skew, 1 / skew))} times wider"
    lean = (
        "symmetric" if 0.8 < skew < 1.25 else f"{skewed} above its centre" if skew > 1 else f"{skewed} below its centre"
    )
    return [
        "Clean residuals follow a Student law with scale ",
        fact("law-scale", scale, short_number(scale)),
        " and ",
        fact("law-degrees", degrees, f"{degrees:.1f}"),
        f" degrees of freedom: {tails} tails, {lean}. ",
        *_beside(noise),
        "In the chart of quantiles, points on the line mean that the law fits; at the very ends they may leave it, "
        "because samples far out may be noise or bad, and count for both in part.",
    ]


def _curve_in_words(curve: Any) -> list[Any]:
    if curve.kind == "poisson":
        return [
            "The readings are counts: their variance is their mean, with a dark count of ",
            fact("law-read", float(curve.read), short_number(float(curve.read))),
            ". ",
            *_beside(curve),
        ]
    return [
        "The variance of a clean reading with the energy e = |a·x|² is ",
        fact("law-read", float(curve.read), short_number(float(curve.read))),
        " + ",
        fact("law-shot", float(curve.shot), short_number(float(curve.shot))),
        " e + ",
        fact("law-relative", float(curve.relative), short_number(float(curve.relative))),
        " e². ",
        *_beside(curve),
    ]


def _beside(noise: Any) -> list[Any]:
    """The share of bad samples that the law was fitted beside: what it explains, tails need not. Old files do not hold it."""
    share = float(noise.mixing)
    if not np.isfinite(share):
        return []
    return ["It was fitted beside a share of ", fact("law-mixing", share, percent(share)), " bad samples. "]


def _quantiles(diagnostics: FitDiagnostics, noise: NoiseModel) -> Drawing:
    """Residuals in order, against those that the noise model expects at their ranks.

    Samples count with their weights, not as kept or rejected: cutting off large residuals would cut off the tails.
    """
    values = deviation(diagnostics)
    used = np.flatnonzero((diagnostics.weights > LEAST_WEIGHT) & np.isfinite(values))
    order = used[np.argsort(values[used], kind="stable")]
    weights = diagnostics.weights[order]
    ranks = (np.cumsum(weights) - 0.5 * weights) / max(float(weights.sum()), 1e-300)
    expected = noise_quantiles(noise, ranks) / diagnostics.noise_scale
    ends = [float(expected.min(initial=-1.0)), float(expected.max(initial=1.0))]
    # The ends, where a model fails first, are drawn in full.
    middle = np.linspace(TAIL, max(order.size - TAIL, TAIL), MIDDLE).astype(int)
    drawn = np.unique(np.concatenate((np.arange(TAIL), middle, np.arange(order.size - TAIL, order.size))))
    drawn = drawn[(drawn >= 0) & (drawn < order.size)]

    def draw(ax: Any) -> None:
        axes_or_new(ax)
        scatter(ax, [("kept", expected[drawn], values[order[drawn]])])
        ax.plot(ends, ends, color=MARKS["model"].colour, linewidth=1.4, label="the noise law")
        ax.set(xlabel="what the noise law expects, in scales", ylabel="what the samples show, in scales")
        legend(ax)

    title = "Quantiles of the residuals"
    note = f"{drawn.size:,} of {order.size:,} points drawn, all at the ends." if drawn.size < order.size else ""
    return Drawing(title, inline_svg(draw, title, f"{order.size} residuals against their quantiles"), note)
