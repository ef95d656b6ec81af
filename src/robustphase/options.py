"""Options: what a function takes by keyword beside the parameters of its signature.

A ``TypedDict`` names them and their types, for all functions that are told the same, and one constant holds the defaults. Such
a function takes ``**options`` of that type, and :func:`with_defaults` refuses what is none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any, TypeVar, cast

Options = TypeVar("Options", bound=Mapping[str, Any])


def with_defaults(defaults: Options, options: Options, function: Callable[..., Any]) -> Options:
    """The options that a function was given, and the defaults of the others; a TypeError for what it does not take."""
    unknown = next((name for name in options if name not in defaults), None)
    if unknown is not None:
        named = [each.name for each in signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
        known = [*named, *defaults]
        hint = "".join(f" Did you mean {name!r}?" for name in get_close_matches(unknown, known, n=1))
        raise TypeError(
            f"{function.__name__}() got an unexpected keyword argument {unknown!r}.{hint} It takes {', '.join(known)}."
        )
    return cast(Options, {**defaults, **options})
