"""Fail if the API reference that was built leaves out what the package offers.

``python docs/check_reference.py docs/_build/html/objects.inv`` reads the inventory that Sphinx writes: one line per documented
object. Names that only lead to another entry are not counted.
"""

from __future__ import annotations

import sys
import zlib
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from types import ModuleType

import robustphase

#: Fewer documented Python objects than this mean that pages were not rendered.
FEWEST = 200
#: The page of this class is that of rows.DataError, the same class.
ELSEWHERE = {"robustphase.files.DataError"}


def documented(inventory: Path) -> tuple[set[str], set[str]]:
    """Full names of the Python objects in the inventory, and those among them that only lead to another."""
    # Four lines of head, then packed lines: name, domain:role, priority (-1 for other names of an object), page, title.
    packed = inventory.read_bytes().split(b"\n", 4)[4]
    lines = [line.split(" ") for line in zlib.decompress(packed).decode("utf-8").splitlines()]
    python = [(name, priority) for name, role, priority, *_ in lines if role.startswith("py:")]
    return {name for name, _ in python}, {name for name, priority in python if priority == "-1"}


def offered(module: ModuleType) -> set[str]:
    """Full names of the functions and classes that a module and the modules it lists offer, methods included."""
    names: set[str] = set()
    for name, thing in members(module):
        full = f"{module.__name__}.{name}"
        if isinstance(thing, ModuleType):
            names |= {full} | offered(import_module(full))
        elif isinstance(thing, type):
            # An earlier name of a class leads to its page, where the methods are.
            own = vars(thing) if thing.__name__ == name else {}
            methods = (key for key, value in own.items() if isfunction(value) and value.__doc__)
            names |= {full, *(f"{full}.{method}" for method in methods if not method.startswith("_"))}
        elif isfunction(thing):
            names.add(full)
    return names


def members(module: ModuleType) -> list[tuple[str, object]]:
    """What a module lists; where it lists nothing, what is defined in it."""
    if hasattr(module, "__all__"):
        return [(name, getattr(module, name)) for name in module.__all__]
    own = ((name, thing) for name, thing in vars(module).items() if not name.startswith("_"))
    return [(name, thing) for name, thing in own if getattr(thing, "__module__", None) == module.__name__]


def main(inventory: Path) -> None:
    """Compare, and say what is missing."""
    found, aliases = documented(inventory)
    missing = sorted(offered(robustphase) - found - ELSEWHERE)
    count = len(found - aliases)
    print(f"{count} Python objects in the API reference")
    if missing:
        sys.exit(f"the API reference leaves out {', '.join(missing)}: see docs/api.md and docs/_templates.")
    if count < FEWEST:
        sys.exit(f"the API reference has fewer than {FEWEST} entries: see docs/conf.py and docs/_templates.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
