"""The three errors of a fit: what each of them means, side by side."""

from __future__ import annotations

from robustphase import plot
from robustphase.plot.course import errors_of
from robustphase.report.blocks import Drawing, Section
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.figures import WIDTH, inline_svg
from robustphase.report.words import percent

EXPLAINED = {
    "expected": "What the noise alone leaves: repeat the measurement, and answers differ by about this much. It says nothing of "
    "bad samples that pass for clean ones.",
    "certificate": "The most that is possible if the stated share of samples is bad, whatever they are. It is a guarantee, not a "
    "forecast: errors are usually several times smaller.",
    "true": "The distance to the truth, known in simulations only. Real data do not tell it.",
}


def errors_section(diagnostics: FitDiagnostics) -> Section:
    """A chart of the errors, and what they mean."""
    rows = errors_of(diagnostics)
    title = "Error, relative to the norm of the signal"
    said = "; ".join(f"{name}: {percent(value)}" for name, value, _ in rows)
    size = (WIDTH, 90 + 44 * len(rows))
    chart = Drawing(title, inline_svg(lambda ax: plot.certificate(diagnostics, ax=ax), title, said, size=size))
    kinds = [kind for kind in EXPLAINED if any(name.startswith(kind) for name, _, _ in rows)]
    return Section(
        "How far off it may be",
        [chart],
        items=[f"{kind.capitalize()}{'' if kind == 'certificate' else ' error'}. {EXPLAINED[kind]}" for kind in kinds],
    )
