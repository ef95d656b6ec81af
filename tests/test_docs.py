"""What the pages show runs, and what the docstrings promise holds."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import robustphase

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def modules() -> list[str]:
    return ["robustphase", *(m.name for m in pkgutil.walk_packages(robustphase.__path__, "robustphase."))]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))], ids=lambda p: p.name
)
def test_the_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text("utf-8")):
        exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_is_documented():
    missing = [name for name in robustphase.__all__ if name != "__version__" and not getattr(robustphase, name).__doc__]
    assert not missing


ROWS = re.findall(
    r"^\| (.+?) \| `(robustphase\.[\w.]+)` \| `([\w./:]+)` \|$",
    (ROOT / "docs" / "paper_map.md").read_text("utf-8"),
    re.M,
)


def find(dotted: str) -> object:
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(f"{dotted} does not exist")


@pytest.mark.parametrize(("statement", "function", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_the_map_of_the_paper_leads_to_what_exists(statement, function, test):
    assert callable(find(function))
    path, _, name = test.partition("::")
    assert f"def {name}" in (ROOT / path).read_text("utf-8")
