"""The comparison in the README: a few lines of the page of measured figures, ``python -m benchmarks.readme``.

The lines stand between two comments and are those of ``docs/_generated/comparison.md``, digit by digit; rendering that page
writes them too, and ``python -m benchmarks stale`` finds a README that says something else.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.stamp import stamp_of
from benchmarks.store import DOCS
from robustphase.atomic import write_text

PAGE = "_generated/comparison.md"
README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- figures of docs/_generated/comparison.md -->", "<!-- end of figures -->"
#: Methods that are shown, and shares of bad samples.
METHODS = {
    "robustphase": "**robustphase**",
    "cauchy_least_squares": "Cauchy least squares (SciPy)",
    "median_reshaped_wirtinger_flow": "median reshaped Wirtinger flow",
    "truncated_wirtinger_flow": "truncated Wirtinger flow",
    "wirtinger_flow": "Wirtinger flow",
}
LEVELS = ("0.05", "0.1", "0.2")


def comparison(page: str) -> str:
    """The lines for a README from the text of the page."""
    found = {(row[0], row[1]): row for row in map(_cells, page.splitlines()) if len(row) > 5}
    missing = [f"{method} at {level}" for method in METHODS for level in LEVELS if (method, level) not in found]
    if missing:
        raise ValueError(f"{PAGE} has no line for {missing[0]}; measure it: python -m benchmarks comparison")
    head = [f"survived, {float(level):.0%} bad" for level in LEVELS]
    middle = f"{float(LEVELS[1]):.0%} bad"
    lines = [
        ["", *head, f"median error / oracle's, {middle}", f"worst, {middle}"],
        ["---"] * (len(LEVELS) + 3),
    ]
    for method, name in METHODS.items():
        survived = [re.sub(r" \(.*", "", found[method, level][2]) for level in LEVELS]
        lines.append([name, *survived, *found[method, LEVELS[1]][3:5]])
    stamp = stamp_of(page)
    said = f"{stamp}\n\n" if stamp else ""
    return said + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(readme: str, page: str) -> str:
    """A README with the lines of the page between its two comments."""
    begin, end = readme.index(BEGIN) + len(BEGIN), readme.index(END)
    return f"{readme[:begin]}\n\n{comparison(page)}\n\n{readme[end:]}"


def fill() -> None:
    """Write the README anew if its lines are not those of the page."""
    text = README.read_text("utf-8")
    new = filled(text, (DOCS / PAGE).read_text("utf-8"))
    if new != text:
        write_text(README, new)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []


if __name__ == "__main__":
    fill()
