"""Nothing imports upward, nothing imports in a circle, and everything can be imported."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import robustphase

ROOT = Path(robustphase.__file__).parent

PUBLIC = {"baselines", "estimator", "means", "paper", "population", "rows", "simulate", "testing", "__version__"}

# What every room may need and none owns: it touches none of them.
FOR_ALL = {"atomic", "constants", "formatting", "options", "ordering"}

# Which rooms each room may touch, besides itself and what is for all.
MAY_TOUCH = {
    "population": set(),
    "rows": set(),
    "validation": {"rows"},
    "means": {"rows", "validation"},
    "spectra": {"rows", "means", "validation"},
    "statistics": {"rows", "means", "spectra", "validation"},
    "likelihood": set(),
    "problem": {"rows", "likelihood"},
    "initialise": {"rows", "means", "spectra", "population", "likelihood", "problem", "validation"},
    "descend": {"rows", "means", "population", "likelihood", "problem", "validation"},
    "recover": {"rows", "means", "population", "likelihood", "problem", "initialise", "descend", "validation"},
    "estimator": {
        "rows",
        "means",
        "population",
        "likelihood",
        "problem",
        "initialise",
        "descend",
        "recover",
        "validation",
    },
    "paper": {"rows", "population", "initialise", "descend", "validation"},
    "simulate": {"rows", "population"},
    "baselines": {"rows", "population", "initialise", "validation"},
    "testing": {"rows"},
    "files": {"rows"},
    # The rooms on top use what every user has.
    "experiments": PUBLIC,
    "plot": {"population", "rows"},
    "report": PUBLIC | {"files", "experiments", "plot"},
    "cli": PUBLIC | {"files", "experiments", "report"},
}
#: Rooms that may ``import robustphase`` itself: it opens them later, on demand.
ABOVE_THE_PACKAGE = {"files", "experiments", "report", "cli"}

#: A function with more parameters than this wants an object for some of them.
MOST_PARAMETERS = 7
#: scikit-learn asks a constructor to name every parameter of the estimator.
MAY_TAKE_MORE = {"robustphase.estimator.estimator.RobustPhaseRetrieval.__init__"}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def names_imported_by(path: Path) -> Iterator[str]:
    """Full names of what a module takes from the package, also inside functions and for types only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import would escape this test"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "robustphase")


def module_of(name: str) -> str:
    return name if name in MODULES else name.rpartition(".")[0]


def test_imports_go_down_and_never_in_a_circle():
    upward, graph = [], {}
    for module, path in MODULES.items():
        names = set(names_imported_by(path))
        # The package itself gathers what it offers, and is loaded before any module whoever asks.
        graph[module] = {module_of(name) for name in names} - {"robustphase"}
        if module == "robustphase":
            continue
        room = module.split(".")[1]
        allowed = {room} if room in FOR_ALL else MAY_TOUCH[room] | FOR_ALL | {room}
        for name in names:
            parts = name.split(".")
            if parts[1] not in allowed if len(parts) > 1 else room not in ABOVE_THE_PACKAGE:
                upward.append(f"{module} imports {name}")
    assert not upward
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # graphlib lists every module before those that import it.
        raise AssertionError("imports in a circle: " + " imports ".join(reversed(error.args[1]))) from None


def functions_of(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions of a module with their full names, also methods and functions inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}.{node.name}", node
        inside = f"{prefix}.{node.name}" if hasattr(node, "name") and hasattr(node, "body") else prefix
        yield from functions_of(node, inside)


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Names of the parameters that a caller fills in."""
    given = function.args
    names = [
        each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if each
    ]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def test_only_the_constructor_of_the_estimator_takes_more_than_seven_parameters():
    found = {
        name
        for module, path in MODULES.items()
        for name, function in functions_of(ast.parse(path.read_text(encoding="utf-8")), module)
        if len(parameters_of(function)) > MOST_PARAMETERS
    }
    assert found == MAY_TAKE_MORE


def test_every_module_can_be_imported():
    for module in MODULES:
        importlib.import_module(module)
