"""What the sources import is declared, in the list where the user will look for it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import robustphase

SOURCES = Path(robustphase.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
#: Distributions that are imported under another name.
MODULES = {"scikit-learn": "sklearn"}


def packages(requirements: list[str]) -> set[str]:
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in requirements]
    return {MODULES.get(name, name) for name in names}


CORE = packages(PROJECT["dependencies"])
EXTRAS = {extra: packages(listed) for extra, listed in PROJECT["optional-dependencies"].items()}


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.AST]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCES.rglob("*.py"))}


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"robustphase"}


def asked_for(tree: ast.AST) -> set[tuple[str, str]]:
    """Packages that are imported on demand, with the extra that a user without them is told to install."""
    return {
        (node.args[0].value.split(".")[0], keyword.value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require"
        for keyword in node.keywords
        if keyword.arg == "extra"
    }


def test_every_import_is_a_dependency(trees):
    found = {(path, name) for path, tree in trees.items() for name in imported(tree)}
    command_line = SOURCES / "cli"
    undeclared = {
        (path.name, name)
        for path, name in found
        if name not in (CORE | EXTRAS["cli"] if path.is_relative_to(command_line) else CORE)
    }
    assert not undeclared
    assert {name for _, name in found} >= CORE, "a dependency that nothing imports"


def test_every_package_imported_on_demand_is_in_the_extra_that_is_named(trees):
    found = {pair for tree in trees.values() for pair in asked_for(tree)}
    assert {package for package, _ in found} >= {
        "h5py",
        "zarr",
        "pyarrow",
        "tifffile",
        "dask",
        "distributed",
        "cloudpickle",
    }
    assert not {(package, extra) for package, extra in found if package not in EXTRAS[extra]}


def test_every_requirement_has_a_lower_bound(case):
    for listed in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]:
        with case(listed):
            assert not [line for line in listed if ">=" not in line and not line.startswith("robustphase[")]


def test_the_version_stands_in_one_place():
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert re.fullmatch(r"\d+\.\d+\.\d+", robustphase.__version__)


def test_changelog_and_citation_name_the_version_and_one_date():
    root = Path(__file__).parents[1]
    heading = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    citation = (root / "CITATION.cff").read_text("utf-8")
    assert heading is not None
    assert heading[1] == robustphase.__version__
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == robustphase.__version__
    assert re.search(r'^date-released: "(.+)"$', citation, re.MULTILINE)[1] == heading[2]


def test_the_source_archive_lists_everything_that_the_repository_has_at_its_top():
    root = Path(__file__).parents[1]
    listed = set(
        tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["sdist"][
            "include"
        ]
    )
    wanted = {
        "src",
        "tests",
        "docs",
        "benchmarks",
        "examples",
        ".ci",
        "Makefile",
        "constraints.txt",
        "CONTRIBUTING.md",
        "CITATION.cff",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
    }
    assert wanted <= listed
    assert not [name for name in listed if not (root / name).exists()]


def test_every_pin_has_a_hash_and_the_set_up_asks_for_it():
    root = Path(__file__).parents[1]
    pins = (root / "constraints.txt").read_text("utf-8").replace("\\\n", " ").splitlines()
    pins = [pin for pin in pins if pin.strip() and not pin.startswith("#")]
    assert len(pins) > 20
    for pin in pins:
        assert re.fullmatch(r"[\w.-]+==\S+( +--hash=sha256:[0-9a-f]{64})+", pin), pin[:60]
    makefile = (root / "Makefile").read_text("utf-8")
    installs = [line for line in makefile.splitlines() if line.startswith(("HASHED", "\t$(PIP) install"))]
    fetching = [
        line for line in installs if "--no-index" not in line and "--upgrade pip" not in line and "[all]" not in line
    ]
    assert fetching
    assert all("--require-hashes" in line for line in fetching)
