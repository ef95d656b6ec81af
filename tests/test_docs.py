"""What the pages show runs, and what the docstrings promise holds."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
from tests.processes import forking_dask

import robustphase

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def modules_with_examples() -> list[str]:
    folder = Path(robustphase.__file__).parent
    paths = [path for path in sorted(folder.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
    return [".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__") for path in paths]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))], ids=lambda p: p.name
)
@pytest.mark.usefixtures("sketched", "in_one_process", "forked_probes")
def test_the_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    with forking_dask():
        for block in BLOCK.findall(page.read_text("utf-8")):
            exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_in_docstrings_hold(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_every_public_name_is_documented():
    missing = [name for name in robustphase.__all__ if name != "__version__" and not getattr(robustphase, name).__doc__]
    assert not missing


ROW = re.compile(r"^\| (.+?) \| `(robustphase\.[\w.]+)` \| `([\w./:]+)` \|$")


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


def test_the_map_of_the_paper_leads_to_what_exists():
    lines = (ROOT / "docs" / "paper_map.md").read_text("utf-8").splitlines()
    _heading, _rule, *rows = (line for line in lines if line.startswith("|"))
    assert rows
    for row in rows:
        found = ROW.match(row)
        assert found, f"cannot be read: {row}"
        _statement, function, test = found.groups()
        assert callable(find(function)), function
        path, _, name = test.partition("::")
        # A row that names a whole file points at all of its tests.
        wanted = rf"^def {name}\(" if name else r"^def test_"
        assert re.search(wanted, (ROOT / path).read_text("utf-8"), re.M), test


INCLUDE = re.compile(r"^```\{include\} (_generated/\S+)$", re.MULTILINE)


def test_every_page_of_figures_is_shown_and_every_shown_one_is_there():
    docs = ROOT / "docs"
    shown = {name for page in docs.glob("*.md") for name in INCLUDE.findall(page.read_text("utf-8"))}
    assert shown == {f"_generated/{path.name}" for path in (docs / "_generated").glob("*.md")}
