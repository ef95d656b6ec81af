"""The noise: residuals against the noise model that was fitted to the clean ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from robustphase.estimator import NoiseModel
from robustphase.report.charts import Series, bin_width, histogram_chart, line_chart
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.markup import HEIGHT, WIDTH, fact, grid, paragraph, percent, section
from robustphase.report.rejection_causes import deviation
from robustphase.report.svg import escaped, short_number, tag

#: Bins of the histogram; how many scales it reaches at least and at most; the share of kept residuals it must hold.
BINS, LEAST_REACH, MOST_REACH, HELD = 60, 5.0, 40.0, 0.998
#: Samples with less weight say nothing about clean residuals.
LEAST_WEIGHT = 0.01
#: Points drawn at either end of a chart of quantiles, and between.
TAIL, MIDDLE = 300, 700
#: What is said of residuals that have no noise model to be held against.
WITHOUT_MODEL = (
    "No noise model belongs to this fit that all samples share: it is fitted by the last step of the engine, and neither by "
    "streams nor where the noise depends on the signal."
)


def noise_section(diagnostics: FitDiagnostics) -> str:
    """The noise model in words, a histogram, and a chart of quantiles."""
    noise = diagnostics.noise_model
    if diagnostics.noiseless:
        scale = short_number(diagnostics.noise_scale)
        return section(
            "The noise", [paragraph(f"The residuals are roundings (scale {scale}): there is no noise to show.")]
        )
    if noise is None:
        return section("The noise", [paragraph(WITHOUT_MODEL), grid([_histogram(diagnostics, None)])])
    figures = [_histogram(diagnostics, noise), _quantiles(diagnostics, noise)]
    return section("The noise", [_in_words(noise), grid(figures)])


def noise_quantiles(noise: NoiseModel, probabilities: ArrayLike) -> NDArray[np.float64]:
    """Clean residuals, counted from their centre, that are exceeded with probability one minus these."""
    p = np.asarray(probabilities, np.float64)
    degrees, skew = float(noise.degrees), float(noise.skews)
    below = 1 / (1 + skew)
    lower = stdtrit(degrees, np.minimum(p * (1 + skew) / 2, 0.5))
    upper = stdtrit(degrees, np.maximum(0.5 + (p - below) * (1 + skew) / (2 * skew), 0.5))
    return np.asarray(noise.scales * np.where(p < below, lower, skew * upper), np.float64)


def _in_words(noise: NoiseModel) -> str:
    scale, degrees, skew = float(noise.scales), float(noise.degrees), float(noise.skews)
    tails = "normal" if degrees > 30 else "heavy" if degrees < 8 else "moderately heavy"
    skewed = f"{short_number(max(skew, 1 / skew))} times wider"
    lean = (
        "symmetric" if 0.8 < skew < 1.25 else f"{skewed} above its centre" if skew > 1 else f"{skewed} below its centre"
    )
    return tag(
        "p",
        [
            "Clean residuals follow a Student law with scale ",
            fact("law-scale", scale, short_number(scale)),
            " and ",
            fact("law-degrees", degrees, f"{degrees:.1f}"),
            escaped(f" degrees of freedom: {tails} tails, {lean}. "),
            *_beside(noise),
            "In the chart of quantiles, points on the line mean that the law fits; at the very ends they may leave it, ",
            "because samples far out may be noise or bad, and count for both in part.",
        ],
    )


def _beside(noise: NoiseModel) -> list[str]:
    """The share of bad samples that the law was fitted beside: what it explains, tails need not. Old files do not hold it."""
    share = float(noise.mixing)
    if not np.isfinite(share):
        return []
    return ["It was fitted beside a share of ", fact("law-mixing", share, percent(share)), " bad samples. "]


def _histogram(diagnostics: FitDiagnostics, noise: NoiseModel | None) -> str:
    values = deviation(diagnostics)
    rejected = values[diagnostics.rejected & np.isfinite(values)]
    kept = values[~diagnostics.rejected & np.isfinite(values)]
    widest = float(np.quantile(np.abs(kept), HELD)) if kept.size else 0.0
    reach = float(np.clip(1.2 * widest, LEAST_REACH, MOST_REACH))
    across = np.linspace(-reach, reach, 241)
    curves = []
    if noise is not None:
        per_bin = kept.size * bin_width((-reach, reach), BINS) * diagnostics.noise_scale
        curves = [Series("noise law", across, per_bin * noise.density(diagnostics.noise_scale * across))]
    return histogram_chart(
        [("kept", kept), ("rejected", rejected)],
        curves=curves,
        title="Residuals of the samples",
        x_label="residual, in scales of the noise",
        y_label="samples per bin",
        bins=BINS,
        x_range=(-reach, reach),
        width=WIDTH,
        height=HEIGHT,
    )


def _quantiles(diagnostics: FitDiagnostics, noise: NoiseModel) -> str:
    """Residuals in order, against those that the noise model expects at their ranks.

    Samples count with their weights, not as kept or rejected: cutting off large residuals would cut off the tails.
    """
    values = deviation(diagnostics)
    used = np.flatnonzero((diagnostics.weights > LEAST_WEIGHT) & np.isfinite(values))
    order = used[np.argsort(values[used], kind="stable")]
    weights = diagnostics.weights[order]
    ranks = (np.cumsum(weights) - 0.5 * weights) / max(float(weights.sum()), 1e-300)
    expected = noise_quantiles(noise, ranks) / diagnostics.noise_scale
    ends = np.array([expected.min(initial=-1.0), expected.max(initial=1.0)])
    # The ends, where a model fails first, are drawn in full.
    middle = np.linspace(TAIL, max(order.size - TAIL, TAIL), MIDDLE).astype(int)
    drawn = np.unique(np.concatenate((np.arange(TAIL), middle, np.arange(order.size - TAIL, order.size))))
    drawn = drawn[(drawn >= 0) & (drawn < order.size)]
    return line_chart(
        [Series("samples", expected[drawn], values[order[drawn]], style="points"), Series("the law", ends, ends)],
        note=f"{drawn.size:,} of {order.size:,} points drawn, all at the ends." if drawn.size < order.size else None,
        title="Quantiles of the residuals",
        x_label="what the noise law expects, in scales",
        y_label="what the samples show, in scales",
        width=WIDTH,
        height=HEIGHT,
    )
