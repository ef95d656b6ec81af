"""Nothing imports upward."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import robustphase

ROOT = Path(robustphase.__file__).parent

PUBLIC = {"baselines", "estimator", "means", "paper", "population", "rows", "simulate", "testing", "__version__"}

# Words for a person: nothing of the library in it, so all may touch it.
EVERYBODY = {"formatting"}

# Which rooms each room may touch, besides itself.
MAY_TOUCH = {
    "formatting": set(),
    "population": set(),
    "rows": set(),
    "validation": {"rows"},
    "means": {"rows", "validation"},
    "spectra": {"rows", "means", "validation"},
    "likelihood": set(),
    "initialise": {"rows", "means", "spectra", "population", "likelihood", "validation"},
    "descend": {"rows", "means", "population", "likelihood", "validation"},
    "recover": {"rows", "means", "population", "likelihood", "initialise", "descend", "validation"},
    "estimator": {"rows", "means", "population", "initialise", "descend", "recover", "validation"},
    "paper": {"rows", "initialise", "descend", "validation"},
    "simulate": {"rows", "population"},
    "baselines": {"rows", "population", "initialise", "validation"},
    "testing": {"rows"},
    "files": {"rows"},
    # The rooms on top use what every user has.
    "experiments": PUBLIC | {"files"},
    "report": PUBLIC | {"files", "experiments"},
    "cli": PUBLIC | {"files", "experiments", "report"},
}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def rooms_imported_by(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("robustphase"):
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("robustphase.")}
    return rooms


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_rooms_below_it(path):
    room = room_of(path)
    assert rooms_imported_by(path) - {room} - EVERYBODY <= MAY_TOUCH[room]
