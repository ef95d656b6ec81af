"""Tables and pages in Markdown: written from cells, and taken apart into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def line(cells: Iterable[object]) -> str:
    """One line of a table; numbers with three digits."""
    return "| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table, with a newline at its end."""
    names = list(head)
    return "\n".join([line(names), "|" + "---|" * len(names), *map(line, rows)]) + "\n"


def counted(count: int, thing: str) -> str:
    """A number of things: ``1 seed``, ``3 seeds``."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def taken_apart(text: str) -> Iterator[dict[str, Any]]:
    """The blocks of a page in order: prose as ``text``, a table as its ``head`` and then one row with ``cells`` for each line."""
    for number, block in enumerate(re.split(r"\n{2,}", text.strip("\n"))):
        lines = block.split("\n")
        if len(lines) > 1 and re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", lines[1]):
            yield {"block": number, "head": _cells(lines[0])}
            for one in lines[2:]:
                yield {"block": number, "cells": _cells(one)}
        else:
            yield {"block": number, "text": block}


def _cells(text: str) -> list[str]:
    inner = text.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", inner)]


def put_together(rows: Iterable[Mapping[str, Any]]) -> str:
    """The page whose blocks these rows are."""
    written: list[str] = []
    before = None
    for row in rows:
        if before is not None and row["block"] != before:
            written.append("")
        before = row["block"]
        if "text" in row:
            written.append(row["text"])
        else:
            written.append(line(row.get("head") or row["cells"]))
        if "head" in row:
            written.append("|" + "---|" * len(row["head"]))
    return "\n".join(written) + "\n"
