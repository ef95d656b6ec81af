"""The noise: residuals against the law that clean ones follow."""

from __future__ import annotations

import numpy as np

from robustphase.report.charts import Series, bin_width, histogram_chart, line_chart
from robustphase.report.evidence import Evidence
from robustphase.report.law import NoiseLaw
from robustphase.report.markup import HEIGHT, WIDTH, fact, grid, paragraph, section
from robustphase.report.reasons import deviation
from robustphase.report.svg import escaped, short_number, tag

#: Bins of the histogram; how many scales it reaches at least and at most; the share of kept residuals it must hold.
BINS, LEAST_REACH, MOST_REACH, HELD = 60, 5.0, 40.0, 0.998
#: Samples with less weight say nothing about clean residuals.
LEAST_WEIGHT = 0.01
#: Points drawn at either end of a chart of quantiles, and between.
TAIL, MIDDLE = 300, 700


def noise_section(evidence: Evidence) -> str:
    """The law in words, a histogram, and a chart of quantiles."""
    law = evidence.noise_law
    if law is None:
        scale = short_number(evidence.noise_scale)
        return section(
            "The noise", [paragraph(f"The residuals are roundings (scale {scale}): there is no noise to show.")]
        )
    figures = [_histogram(evidence, law), _quantiles(evidence, law)]
    return section("The noise", [_in_words(law), grid(figures)])


def _in_words(law: NoiseLaw) -> str:
    tails = "normal" if law.degrees > 30 else "heavy" if law.degrees < 8 else "moderately heavy"
    skewed = f"{short_number(max(law.skew, 1 / law.skew))} times wider"
    lean = (
        "symmetric"
        if 0.8 < law.skew < 1.25
        else f"{skewed} above its centre"
        if law.skew > 1
        else f"{skewed} below its centre"
    )
    return tag(
        "p",
        [
            "Clean residuals follow a Student law with scale ",
            fact("law-scale", law.scale, short_number(law.scale)),
            " and ",
            fact("law-degrees", law.degrees, f"{law.degrees:.1f}"),
            escaped(f" degrees of freedom: {tails} tails, {lean}. "),
            "In the chart of quantiles, points on the line mean that the law fits; at the very ends they fall short of it, ",
            "because samples far out have lost weight.",
        ],
    )


def _histogram(evidence: Evidence, law: NoiseLaw) -> str:
    values = deviation(evidence)
    rejected = values[evidence.rejected & np.isfinite(values)]
    kept = values[~evidence.rejected & np.isfinite(values)]
    widest = float(np.quantile(np.abs(kept), HELD)) if kept.size else 0.0
    reach = float(np.clip(1.2 * widest, LEAST_REACH, MOST_REACH))
    across = np.linspace(-reach, reach, 241)
    per_bin = kept.size * bin_width((-reach, reach), BINS) * evidence.noise_scale
    return histogram_chart(
        [("kept", kept), ("rejected", rejected)],
        curves=[Series("noise law", across, per_bin * law.density(law.centre + evidence.noise_scale * across))],
        title="Residuals of the samples",
        x_label="residual, in scales of the noise",
        y_label="samples per bin",
        bins=BINS,
        x_range=(-reach, reach),
        width=WIDTH,
        height=HEIGHT,
    )


def _quantiles(evidence: Evidence, law: NoiseLaw) -> str:
    """Residuals in order, against those that the law expects at their ranks.

    Samples count with their weights, not as kept or rejected: cutting off large residuals would cut off the tails.
    """
    values = deviation(evidence)
    used = np.flatnonzero((evidence.weights > LEAST_WEIGHT) & np.isfinite(values))
    order = used[np.argsort(values[used], kind="stable")]
    weights = evidence.weights[order]
    ranks = (np.cumsum(weights) - 0.5 * weights) / max(float(weights.sum()), 1e-300)
    expected = (law.quantile(ranks) - law.centre) / evidence.noise_scale
    ends = np.array([expected.min(initial=-1.0), expected.max(initial=1.0)])
    # The ends, where a law fails first, are drawn in full.
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
