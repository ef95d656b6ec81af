"""The samples: which were rejected, why, and where they stand among the rows."""

from __future__ import annotations

import numpy as np

from robustphase.plot.samples import CAUSES
from robustphase.report.charts import Series, line_chart, scatter_chart
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.markup import HEIGHT, WIDTH, cell, fact, grid, paragraph, section, table
from robustphase.report.rejection_causes import MEANING, counts, rejection_causes, stretch_edges, worst_samples
from robustphase.report.svg import escaped, short_number, tag


def samples_section(diagnostics: FitDiagnostics) -> str:
    """Causes of rejection, charts along the rows, and the samples farthest off."""
    figures = [_weights_chart(diagnostics), _share_chart(diagnostics)]
    return section("The samples", [_cause_table(diagnostics), grid(figures), _worst_table(diagnostics)])


def _cause_table(diagnostics: FitDiagnostics) -> str:
    found = counts(diagnostics)
    most = max(*found.values(), 1)
    lines = []
    for name, count in found.items():
        cells = [
            tag("th", escaped(name), scope="row"),
            tag("td", escaped(MEANING[name]), class_="words"),
            tag("td", fact(f"reason-{name}", count, f"{count:,}")),
            tag("td", tag("span", "", class_="meter", style=f"width:{100 * count / most:.1f}%"), class_="bar"),
        ]
        lines.append(tag("tr", cells))
    kept = diagnostics.m - sum(found.values())
    said = f"Why samples were rejected. {kept:,} of {diagnostics.m:,} were kept."
    return table(("reason", "what it means", "samples", ""), lines, "reasons", words=(1,), caption=said)


def _weights_chart(diagnostics: FitDiagnostics) -> str:
    codes, rows = rejection_causes(diagnostics), np.arange(diagnostics.m)
    series = [
        Series(name, rows[codes == code], diagnostics.weights[codes == code])
        for code, name in enumerate(CAUSES)
        if code == 0 or (codes == code).any()
    ]
    return scatter_chart(
        series,
        title="Weight of every sample",
        x_label="row",
        y_label="weight: 0 treated as bad, 1 as clean",
        y_range=(-0.04, 1.04),
        width=WIDTH,
        height=HEIGHT,
    )


def _share_chart(diagnostics: FitDiagnostics) -> str:
    edges = stretch_edges(diagnostics)
    sizes, middles, codes = np.diff(edges), (edges[1:] + edges[:-1]) / 2, rejection_causes(diagnostics)
    series = [
        Series(name, middles, np.add.reduceat(codes == code, edges[:-1], dtype=np.int64) / sizes)
        for code, name in enumerate(CAUSES)
        if code > 0 and (codes == code).any()
    ]
    if not series:
        series = [Series("rejected", middles, np.zeros(sizes.size))]
    top = max(*(float(one.y.max()) * 1.08 for one in series), 0.05)
    only = f", {series[0].name} only" if len(series) == 1 else ""
    return line_chart(
        series,
        title=f"Share rejected along the rows{only}",
        x_label="row",
        y_label=f"share of about {round(diagnostics.m / sizes.size):,} neighbours",
        y_range=(0.0, top),
        width=WIDTH,
        height=HEIGHT,
    )


def _worst_table(diagnostics: FitDiagnostics) -> str:
    samples = worst_samples(diagnostics)
    if not samples:
        return paragraph("No sample was rejected.")
    lines = [
        tag(
            "tr",
            [
                tag("th", escaped(sample.row), scope="row"),
                tag("td", escaped(sample.cause), class_="words"),
                cell("weight", sample.weight, f"{sample.weight:.3f}"),
                cell("length", sample.length, short_number(sample.length)),
                cell("response", sample.response, short_number(sample.response)),
                cell("prediction", sample.prediction, short_number(sample.prediction)),
                cell("deviation", sample.deviation, short_number(sample.deviation)),
            ],
            data_row=sample.row,
        )
        for sample in samples
    ]
    head = ("row", "reason", "weight", "‖a‖/√n", "response", "prediction", "residual / scale")
    caption = f"The {len(samples)} rejected samples farthest off, some of every reason. Rows count from 0."
    return table(head, lines, "worst", words=(1,), caption=caption)
