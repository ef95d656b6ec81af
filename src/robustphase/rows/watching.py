"""Somebody who looks on while passes are made, and may ask for an end.

Every pass goes through :meth:`RowSource.reduce <robustphase.rows.source.RowSource.reduce>`, so that is where the onlooker is
told; a pass over rows that wrap others counts once. The stages of an algorithm tell what they have finished and the answers that
they have so far, and know nothing of who listens. Onlookers belong to the context that set
them: fits in other threads are not theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from numpy.typing import NDArray


class Onlooker(Protocol):
    """Who is told of the passes; what it raises ends the algorithm."""

    def passed(self) -> None:
        """A pass has been made."""

    def finished(self, stage: str) -> None:
        """A stage has ended."""

    def found(self, signals: NDArray[Any]) -> None:
        """There are answers, one in every column; better ones may follow."""


_onlooker: ContextVar[Onlooker | None] = ContextVar("onlooker", default=None)


@contextmanager
def watched_by(onlooker: Onlooker | None) -> Iterator[None]:
    """Tell this one of everything inside the block; None is nobody."""
    token = _onlooker.set(onlooker)
    try:
        yield
    finally:
        _onlooker.reset(token)


def onlooker() -> Onlooker | None:
    """Who is looking on, if anybody is."""
    return _onlooker.get()


def tell_finished(stage: str) -> None:
    """Say that a stage has ended."""
    if (who := _onlooker.get()) is not None:
        who.finished(stage)


def tell_found(signals: NDArray[Any]) -> None:
    """Say what the answers are so far, one in every column."""
    if (who := _onlooker.get()) is not None:
        who.found(signals)
