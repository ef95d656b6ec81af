"""The figures of the README are those of the page that they are taken from."""

from __future__ import annotations

import pytest
from benchmarks import readme, stale, store


def page_of(survived: str, stamp: str = "") -> str:
    lines = [
        f"| {method} | {level} | {survived} of 82 (99%) | 0.88 | 1.06 | 0.1 | 1.3 |  |"
        for method in readme.METHODS
        for level in readme.LEVELS
    ]
    return f"{stamp}| method | contamination | survived | median ratio | worst ratio |\n" + "\n".join(lines) + "\n"


EMPTY = f"Words.\n\n{readme.BEGIN}\n{readme.END}\n\nMore.\n"


def test_the_readme_says_what_the_page_says():
    text = readme.README.read_text("utf-8")
    page = (store.DOCS / readme.PAGE).read_text("utf-8")
    assert readme.filled(text, page) == text, "python -m benchmarks.readme writes the figures of the page"


def test_lines_are_copied_with_the_stamp_and_nothing_else_changes():
    stamp = "Measured on commit abc1234, 2026-11-17, engine 0123456789ab.\n\n"
    text = readme.filled(EMPTY, page_of("81", stamp))
    assert text.startswith("Words.\n")
    assert text.endswith("More.\n")
    assert stamp in text
    assert "| **robustphase** | 81 of 82 | 81 of 82 | 81 of 82 | 0.88 | 1.06 |" in text
    assert readme.filled(text, page_of("7")) == readme.filled(EMPTY, page_of("7"))


def test_a_page_without_a_method_is_refused():
    with pytest.raises(ValueError, match=r"no line for robustphase at 0\.05"):
        readme.comparison("| method |\n")


def test_other_figures_in_the_readme_are_found(docs):
    (docs / readme.PAGE).write_text(page_of("81"), encoding="utf-8")
    beside = docs.parent / "README.md"
    beside.write_text(readme.filled(EMPTY, page_of("81")), encoding="utf-8")
    assert list(stale.other_figures(docs)) == []
    assert list(stale.typed_tables(docs)) == []
    beside.write_text(readme.filled(EMPTY, page_of("80")), encoding="utf-8")
    assert [problem.where for problem in stale.other_figures(docs)] == ["README.md"]
