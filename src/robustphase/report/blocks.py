"""What a page is made of, as plain values: the template turns them into markup, and escapes every text on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from robustphase.report.words import exact


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
