"""Verdicts as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from robustphase.experiments.reproduce.verdict import Verdict


def write_page(verdicts: Sequence[Verdict], *, heading: str = "") -> str:
    """The verdicts as a table in Markdown, which a page of the documentation includes.

    Parameters
    ----------
    verdicts : sequence of Verdict
        As :func:`robustphase.experiments.reproduce.reproduce` returns them.
    heading : str, optional
        What to say about the run above the table.
    """
    lines = [
        f"{heading} {_summary(verdicts)}".strip(),
        "",
        "| claim | what is claimed | what was measured | interval | verdict | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        cells = (_title(verdict), *map(_text, (verdict.statement, verdict.measured, verdict.interval)), _said(verdict))
        lines.append(f"| {' | '.join(cells)} | {verdict.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def _summary(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.verdict for verdict in verdicts)
    seconds = sum(verdict.seconds for verdict in verdicts)
    processor = sum(float(verdict.data.get("processor_seconds", 0.0)) for verdict in verdicts)
    return (
        f"Of {len(verdicts)} statements {counts['holds']} hold, {counts['erratum']} are errata that the measurement confirms, "
        f"and {counts['fails']} fail. The run took {seconds / 60:.1f} minutes, and {processor / 60:.1f} minutes of processor "
        "time."
    )


def _title(verdict: Verdict) -> str:
    return f"**{_text(verdict.claim)}**" + (f", {_text(verdict.part)}" if verdict.part else "")


def _said(verdict: Verdict) -> str:
    if verdict.erratum is None:
        return verdict.verdict
    # Entries of class A have anchors of their own, misprints share one.
    anchor = verdict.erratum.lower() if verdict.erratum.startswith("A") else "class-b"
    return f"erratum [{verdict.erratum}](errata.md#{anchor})"


def _text(text: str) -> str:
    """Plain text in a cell of a table: asterisks, bars and brackets mean themselves."""
    for sign in "\\*|<[]_`$":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
