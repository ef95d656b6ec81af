"""The one step from stored rows to the pages of docs/_generated.

A page is put together from the rows of its benchmark: by ``render`` of the benchmark's module where it has one, line by line
otherwise. Figures of different engines are not put into one page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from benchmarks import readme
from benchmarks.markdown import put_together, taken_apart
from benchmarks.registry import BENCHMARKS, owner_of
from benchmarks.stamp import Stamp, stamped
from benchmarks.store import DOCS, Row, keep, stored
from robustphase.atomic import write_text


class MixedEnginesError(ValueError):
    """Rows of one page were measured with different engines."""


def one_stamp(page: str, rows: Sequence[Mapping[str, Any]]) -> Stamp:
    """The stamp of a page; refuses if its rows are of different engines."""
    own = [row for row in rows if row["engine"]]
    engines = {row["engine"]: row["commit"] for row in own}
    if len(engines) > 1:
        named = ", ".join(f"{engine} (commit {commit})" for engine, commit in engines.items())
        raise MixedEnginesError(
            f"{page} has rows of {len(engines)} engines: {named}. They do not belong into one table; "
            f"measure the page again: python -m benchmarks {owner_of(page).name}"
        )
    newest = max(own, key=lambda row: row["date"])
    return Stamp(newest["commit"], newest["date"], newest["engine"])


def page_text(page: str, rows: Sequence[Row]) -> str:
    """The text of a page below its stamp."""
    render = getattr(import_module(f"benchmarks.{owner_of(page).name}"), "render", None)
    return render(page, rows) if render is not None else put_together(rows)


def render_page(page: str) -> bool:
    """Write a page from the store; whether there was something to write."""
    rows = [row for row in stored(owner_of(page).name) if row.get("page") == page]
    if not any(row["engine"] for row in rows):
        return False
    write_text(DOCS / page, stamped(page_text(page, rows), one_stamp(page, rows)))
    if page == readme.PAGE:
        readme.fill()
    return True


def render_all(names: Iterable[str] = ()) -> None:
    """Write the pages of some benchmarks, or of all."""
    for name in names or BENCHMARKS:
        for page in BENCHMARKS[name].pages:
            print(f"{page}: {'written' if render_page(page) else 'nothing is stored'}")


def publish(page: str, text: str, *, part: str = "", **common: Any) -> None:
    """Store a page of Markdown line by line, with what is common to its lines (``seeds``, for one), and write it."""
    keep(owner_of(page).name, page, [common | row for row in taken_apart(text)], part=part)
    render_page(page)


def publish_rows(page: str, rows: Iterable[Mapping[str, Any]], *, part: str = "", foreign: bool = False) -> None:
    """Store rows of figures of a page, for its benchmark's ``render``, and write it."""
    keep(owner_of(page).name, page, rows, part=part, foreign=foreign)
    render_page(page)
