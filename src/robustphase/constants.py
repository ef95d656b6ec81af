"""Numbers that steer the engine, each with its kind and its reason.

A stage keeps its numbers in one frozen dataclass, and every field says what kind of number it is: *derived* from the model or
from a stated error rate, *numeric* (a tolerance, a guard against rounding), a *budget* of work, or *empirical*, chosen because it
worked. The last ones are what a reader should doubt; :func:`constants` lists them, and the documentation shows what happens when
each of them is halved and doubled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, fields, is_dataclass
from typing import Any, NamedTuple

#: Smallest normal number: a divisor that is never zero.
TINY = sys.float_info.min
KINDS = ("derived", "numeric", "budget", "empirical")


class Constant(NamedTuple):
    """A number of the engine: its dotted name, kind, value and reason."""

    name: str
    kind: str
    value: Any
    reason: str


def derived(value: Any, reason: str) -> Any:
    """A field whose default follows from the model or from a stated error rate."""
    return _tagged(value, "derived", reason)


def numeric(value: Any, reason: str) -> Any:
    """A field that guards against rounding, or says when an iteration is over."""
    return _tagged(value, "numeric", reason)


def budget(value: Any, reason: str) -> Any:
    """A field that limits work: more of it never hurts the answer."""
    return _tagged(value, "budget", reason)


def empirical(value: Any, reason: str) -> Any:
    """A field whose default was chosen by experience."""
    return _tagged(value, "empirical", reason)


def constants(options: Any, prefix: str = "") -> Iterator[Constant]:
    """All constants of nested options, in the order in which they are written down."""
    for part in fields(options):
        value, name = getattr(options, part.name), f"{prefix}{part.name}"
        if is_dataclass(value):
            yield from constants(value, f"{name}.")
        else:
            yield Constant(name, part.metadata["kind"], value, part.metadata["reason"])


@contextmanager
def varied(options: Any, **changes: Any) -> Iterator[None]:
    """Other values for some constants of a stage, for the length of an experiment in this process."""
    before = {name: getattr(options, name) for name in changes}
    try:
        for name, value in changes.items():
            # Frozen for everybody else: whoever looks at the constants of a stage should find them as they are written.
            object.__setattr__(options, name, value)
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(options, name, value)


def _tagged(value: Any, kind: str, reason: str) -> Any:
    return field(default=value, metadata={"kind": kind, "reason": reason})
