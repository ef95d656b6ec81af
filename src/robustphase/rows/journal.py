"""Rows whose passes are remembered, so that a run that was cut off can be lived through again without them.

A fit is a deterministic function of what its passes over ``A`` return. Whoever keeps those results keeps the whole state of the
fit: repeat it, answer the passes already made from memory, and it arrives where it was, in the time that everything but the
passes takes. No algorithm needs to know, and the answer is the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from robustphase.rows.calls import call_digest
from robustphase.rows.source import Array, Kernel, Parts, RowSource


class Journal(Protocol):
    """Where results of passes are kept, by the number of the pass and a digest of what it asked for."""

    def recall(self, number: int, call: str) -> Parts | None:
        """The result of pass ``number`` (0, 1, ...), in arrays of the caller's own; None if it must be made."""

    def record(self, number: int, call: str, parts: Parts) -> None:
        """Keep the result of a pass; the caller may change the arrays afterwards."""


class JournalledRows(RowSource):
    """Another source whose passes are looked up in a journal first, and kept there when they had to be made.

    The passes must come in the same order in every run, so do not sweep such a source from several threads.

    Parameters
    ----------
    source : RowSource
        The rows.
    journal : Journal
        What has been made already.

    Attributes
    ----------
    recalled : int
        How many of the passes so far came from the journal.
    """

    def __init__(self, source: RowSource, journal: Journal) -> None:
        self.source, self.journal = source, journal
        self.shape, self.dtype = source.shape, source.dtype
        self.recalled = 0
        self._next = 0

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], strands: int) -> Parts:
        number, call = self._next, call_digest(kernel, per_row, strands)
        parts = self.journal.recall(number, call)
        if parts is not None:
            self.recalled += 1
        else:
            parts = self.source.reduce(kernel, per_row, strands=strands)
            self.journal.record(number, call, parts)
        # Counted only now: a pass that fails, and is made again by the same process, keeps its number.
        self._next = number + 1
        return parts
