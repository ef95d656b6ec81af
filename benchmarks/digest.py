"""A digest of the engine: what the sources of some rooms do, whatever their words.

A page of figures is true as long as the code it speaks of is the same. The digest is a hash over the syntax trees of the source
files of its rooms, without docstrings, comments and the reasons of constants, so that words may change; formatting and the
version of Python do not enter either. No repository is needed.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import robustphase as rp

#: The package that benchmarks measure.
PACKAGE = Path(rp.__file__).parent
#: Calls whose second argument is a reason in words.
REASONED = ("derived", "numeric", "budget", "empirical")


def read_sources(package: Path) -> dict[str, bytes]:
    """Source files by their place below the package."""
    return {file.relative_to(package).as_posix(): file.read_bytes() for file in sorted(package.rglob("*.py"))}


#: Read when a benchmark begins: what changes on disk while it runs is not what it measures.
SOURCES = read_sources(PACKAGE)


def files_of(rooms: Iterable[str], sources: Iterable[str] | None = None) -> tuple[str, ...]:
    """Source files of some rooms.

    A room is a folder with all that is below it (``recover``), a folder alone (``rows/*``) or a file (``problem.py``); a leading
    ``!`` takes a room out again. What is to be taken out may be gone; what is to be there may not.
    """
    known, chosen = sorted(SOURCES if sources is None else sources), set[str]()
    for room in rooms:
        found = {name for name in known if _inside(name, room.removeprefix("!"))}
        if not found and not room.startswith("!"):
            raise ValueError(f"no source file is in the room {room!r}: see the rooms in benchmarks/registry.py")
        chosen = chosen - found if room.startswith("!") else chosen | found
    return tuple(sorted(chosen))


def _inside(name: str, room: str) -> bool:
    if room.endswith("/*"):
        return name.rpartition("/")[0] == room.removesuffix("/*")
    return name == room or name.startswith(f"{room}/")


def engine_digest(rooms: Iterable[str], sources: dict[str, bytes] | None = None) -> str:
    """Twelve hexadecimal digits that change with the code of the rooms."""
    texts = SOURCES if sources is None else sources
    hashed = hashlib.sha256()
    for name in files_of(rooms, texts):
        hashed.update(f"{name} {code_digest(texts[name])}\n".encode())
    return hashed.hexdigest()[:12]


@cache
def code_digest(source: bytes) -> str:
    """Digest of one source file."""
    return hashlib.sha256("".join(_dump(ast.parse(source))).encode()).hexdigest()


def _dump(node: object) -> Iterator[str]:
    """A syntax tree as text; ``ast.dump`` differs between versions of Python, for one in how it shows empty fields."""
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(_without_words(node)):
            if value is not None and value != []:
                yield f" {name}="
                yield from _dump(value)
        yield ")"
    elif isinstance(node, list):
        yield "["
        for part in node:
            yield from _dump(part)
        yield "]"
    else:
        yield repr(node)


def _without_words(node: ast.AST) -> ast.AST:
    """The node without its docstring, or without the reason of a constant."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REASONED:
        node.args = node.args[:1]
    return node
