"""What a page is made of, as plain values: the template turns them into markup, and escapes every text on the way.

Numbers are written for people, with what they are in full at hand for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


def short_number(value: float) -> str:
    """A number for people: whole ones in full, others with three digits, exponents only far from one."""
    if not np.isfinite(value):
        return {"nan": "–", "inf": "∞", "-inf": "−∞"}[str(float(value))]
    if float(value).is_integer() and abs(value) < 1e7:
        written = f"{value:,.0f}"
    elif 1e-3 <= abs(value) < 1e5:
        written = f"{value:,.{max(2 - int(np.floor(np.log10(abs(value)))), 0)}f}"
    else:
        mantissa, exponent = f"{value:.2e}".split("e")
        written = f"{mantissa}e{int(exponent)}"
    return written.replace("-", "−")


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


def exact(value: Any) -> str:
    """A value with all its digits; nothing for None."""
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


class Fact(NamedTuple):
    """A number with its full value at hand, under a key that says what it is."""

    key: str
    shown: str
    value: str


class Tile(NamedTuple):
    """One of the numbers at the top of the page."""

    name: str
    fact: Fact
    below: str
    first_below: Fact | None = None


class Drawing(NamedTuple):
    """A chart or picture: its heading, one ``<svg>`` element, and a line below."""

    title: str
    svg: Any
    note: str = ""


class Cell(NamedTuple):
    """A cell of a table: text, its full value under a key, and whether it holds words."""

    shown: str
    key: str = ""
    value: str = ""
    words: bool = False


class Row(NamedTuple):
    """A line of a table: its heading, its cells, a ``data-`` attribute with its value, and whether it stands out."""

    head: str
    cells: Sequence[Cell]
    data: tuple[str, str] | None = None
    ours: bool = False


class Table(NamedTuple):
    """A table: its ``data-table`` name, what it shows, titles of the columns, those that hold words, and its lines."""

    key: str
    caption: str
    head: Sequence[str]
    words: Sequence[int]
    rows: Sequence[Row]


class Section(NamedTuple):
    """A part of the page under its heading.

    ``kind`` is the class of the grid of drawings: "charts", "pictures" or "pictures small".
    """

    title: str
    drawings: Sequence[Drawing] = ()
    kind: str = "charts"
    intro: Sequence[Any] = ()
    table: Table | None = None
    second: Table | None = None
    notes: Sequence[str] = ()
    items: Sequence[str] = ()
    facts: Sequence[tuple[str, Fact]] = ()
    code: str = ""
    parameters: str = ""


def fact(key: str, value: Any, shown: str) -> Fact:
    """A number with its full value at hand."""
    return Fact(key, shown, exact(value))


def cell(key: str, value: Any, shown: str) -> Cell:
    """The same in a table."""
    return Cell(shown, key, exact(value))
