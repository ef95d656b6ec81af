"""A small copy of the samples for searches that pass over them dozens of times.

Candidates are sought and compared in single precision, and often in a half of the samples. Rows as they were given are read whole
by every pass, rounded, and multiplied with weights of zero. A copy of those that count, rounded once, is a quarter as large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget
from robustphase.problem import Problem
from robustphase.rows import MemoryRows, OperatorRows, RowSource
from robustphase.rows.source import Array


@dataclass(frozen=True)
class CopyOptions:
    """Constants of the copies."""

    most_bytes: int = budget(1 << 28, "bytes of a copy, a quarter of a gibibyte; larger ones are not made")
    piece_bytes: int = budget(
        1 << 24, "bytes of rows that are in memory at a time, not yet rounded, while they are copied"
    )


COPY = CopyOptions()


def search_copy(problem: Problem) -> Problem:
    """The problem of the samples that have a weight, with rows in memory and in single precision: one pass.

    As it is, where rows cannot be looked at or memory has no room for them. Groups of rows are forgotten: no search asks for
    them.
    """
    used = np.flatnonzero((problem.weights > 0).any(axis=1))
    rows = _rounded_copy(problem.source, used)
    if rows is None:
        return problem
    return problem._replace(
        source=rows,
        responses=problem.responses[used],
        weights=problem.weights[used],
        density=problem.density[used],
        groupings=(),
    )


def _rounded_copy(source: RowSource, indices: Array) -> MemoryRows | None:
    """Rows of increasing indices in single precision; None where there is no room, or no row can be looked at."""
    single = np.dtype(np.complex64 if source.dtype.kind == "c" else np.float32)
    n = source.shape[1]
    if isinstance(source, OperatorRows) or indices.size * n * single.itemsize > COPY.most_bytes:
        return None
    copy, low = np.empty((indices.size, n), single), 0
    step = max(1, COPY.piece_bytes // (n * source.dtype.itemsize))
    try:
        for piece in source.take_pieces(indices, step):
            copy[low : low + len(piece)] = piece
            low += len(piece)
    except NotImplementedError:
        # A user's own rows may only be swept.
        return None
    return MemoryRows(copy)
