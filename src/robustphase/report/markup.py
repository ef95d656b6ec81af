"""Building blocks of the page: sections, grids of figures, tables, and numbers that carry their full value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from robustphase.report.svg import escaped, short_number, tag

#: Size of the charts: two beside each other on a desk, one below the other on a phone.
WIDTH, HEIGHT = 460, 300


def section(title: str, content: Iterable[str]) -> str:
    """A part of the page under its heading."""
    return tag("section", [tag("h2", escaped(title)), *content])


def paragraph(text: str, kind: str | None = None) -> str:
    """A paragraph of plain text."""
    return tag("p", escaped(text), class_=kind)


def grid(figures: Sequence[str], kind: str = "charts") -> str:
    """Figures side by side as far as the page is wide enough."""
    return tag("div", [tag("figure", figure) for figure in figures], class_=f"grid {kind}") if figures else ""


def table(head: Sequence[str], lines: Iterable[str], key: str, *, words: Sequence[int] = (), caption: str) -> str:
    """A table that scrolls inside its own frame where the page is narrow.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    lines : iterable of str
        Rows, as markup.
    key : str
        What the table is called in ``data-table``.
    words : sequence of int
        Columns that hold words and are aligned to the left, beside the first one.
    caption : str
        What the table shows.
    """
    titles = [
        tag("th", escaped(title), scope="col", class_="words" if i == 0 or i in words else None)
        for i, title in enumerate(head)
    ]
    inner = tag("thead", tag("tr", titles)) + tag("tbody", lines)
    frame = tag(
        "div",
        tag("table", inner, data_table=key),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
    # Above the frame and not inside it, so that it does not scroll away.
    return paragraph(caption, "caption") + frame


def fact(key: str, value: Any, shown: str) -> str:
    """A number with its full value at hand."""
    return tag("span", escaped(shown), data_key=key, data_value=exact(value))


def cell(key: str, value: Any, shown: str) -> str:
    """The same in a table."""
    return tag("td", escaped(shown), data_key=key, data_value=exact(value))


def exact(value: Any) -> str:
    """A value with all its digits; nothing for None."""
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def percent(share: float) -> str:
    """A share for people: one decimal, two digits below one percent."""
    value = 100 * share
    if not 0 < abs(value) < 1000:
        return short_number(value) + ("%" if np.isfinite(value) else "")
    return f"{value:.1f}".removesuffix(".0") + "%" if abs(value) >= 0.95 else f"{value:.2g}%"


def seconds_text(seconds: float | None) -> str:
    """A time for people."""
    if seconds is None or not np.isfinite(seconds):
        return "–"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
