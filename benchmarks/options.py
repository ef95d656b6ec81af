"""One convention for the command lines of benchmarks: every keyword of ``run`` is an option of the same name.

``python -m benchmarks recovery --seeds 3 --settings 0 4`` calls ``run(seeds=3, settings=(0, 4))``. Kinds come from the
defaults: a number, a word, a flag, a path, or several of these for a tuple.
"""

from __future__ import annotations

import inspect
from argparse import ArgumentParser, BooleanOptionalAction, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from typing import Any


def parser_of(run: Callable[..., object], name: str) -> ArgumentParser:
    """The parser of the options of a benchmark."""
    module = inspect.getmodule(run)
    parser = ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=inspect.getdoc(module),
        formatter_class=RawDescriptionHelpFormatter,
    )
    for parameter in inspect.signature(run).parameters.values():
        parser.add_argument("--" + parameter.name.replace("_", "-"), **_kind(parameter.default))
    return parser


def _kind(default: Any) -> dict[str, Any]:
    shown = {
        "default": default,
        "help": f"default: {' '.join(map(str, default)) if isinstance(default, tuple) else default}",
    }
    if isinstance(default, bool):
        return {**shown, "action": BooleanOptionalAction}
    if isinstance(default, tuple):
        return {**shown, "nargs": "+", "type": type(default[0])}
    return {**shown, "type": type(default)}


def call(run: Callable[..., object], name: str, arguments: Sequence[str] = ()) -> None:
    """Run a benchmark with options as they stand on a command line."""
    asked = vars(parser_of(run, name).parse_args(list(arguments)))
    run(**{key: tuple(value) if isinstance(value, list) else value for key, value in asked.items()})
