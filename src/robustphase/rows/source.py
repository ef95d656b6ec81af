"""The abstract row source: a shape, a dtype, and a reduction over row blocks.

An algorithm hands a *kernel* to :meth:`RowSource.reduce`. The kernel sees one block of rows together with the matching
slices of the per-sample vectors, and returns two kinds of results: *sums*, added up over all blocks, and *rows*, one
entry per sample, put back in order. That is all a pass ever needs, so a source may hold its rows in memory, on disk
or on other machines without any caller noticing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustphase.rows.watching import onlooker, watched_by

Array = NDArray[Any]

#: The types that passes compute in.
NATIVE_DTYPES = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.complex64, np.complex128))


class Parts(NamedTuple):
    """What a kernel returns for one block, and what a reduction returns for all of them.

    Attributes
    ----------
    sums : tuple of ndarray
        Contributions that are added over the blocks, in double precision.
    rows : tuple of ndarray
        Values per sample: the first axis runs over the samples of the block (of the source, after the reduction).
    """

    sums: tuple[Array, ...] = ()
    rows: tuple[Array, ...] = ()


Kernel = Callable[..., Parts]
"""``kernel(*blocks, *per_row_slices) -> Parts``; one block for each member of a pair."""


@dataclass(frozen=True)
class InBulk:
    """A kernel that takes many small steps for few numbers per row, and so wants few, large blocks.

    Threads wait for the interpreter between two steps. Where the steps are many that costs more than a block that has half
    left the cache before its second product; sources that hold their rows in memory heed it.
    """

    kernel: Kernel

    def __call__(self, *arrays: Array) -> Parts:
        """The kernel itself."""
        return self.kernel(*arrays)


class RowSource(ABC):
    """Rows of a matrix ``A`` (m × n) that can be swept in blocks.

    Subclasses implement :meth:`_reduce`; sources that can read any range of rows inherit it from
    :class:`robustphase.rows.blocked.BlockedRows`.

    Attributes
    ----------
    shape : tuple of int
        ``(m, n)``.
    dtype : numpy.dtype
        float32, float64, complex64 or complex128: the type the blocks arrive in.
    passes : int
        How many sweeps have been made so far.
    pattern_shape : tuple of int
        Shape of the pattern that a row is, such as ``(height, width)``, where the rows come from a file that tells; else empty.
    on_disk : bool
        Whether rows are read from a file whenever they are needed.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    passes: int = 0
    pattern_shape: tuple[int, ...] = ()
    on_disk: bool = False

    def reduce(self, kernel: Kernel, per_row: Sequence[Array] = (), *, pairing: int = 1) -> Parts:
        """Run ``kernel`` on every block of rows and combine the parts: one pass.

        Parameters
        ----------
        kernel : callable
            ``kernel(*blocks, *slices) -> Parts``. It must be pure: blocks are visited in any order, on several threads.
        per_row : sequence of ndarray
            Per-sample arrays; the kernel gets the slice that belongs to its block. With ``pairing=k`` they have
            ``m // k`` entries.
        pairing : int, default=1
            How many rows the kernel sees together: row ``j`` with row ``j + stride`` and so on, where the stride is
            ``m // pairing``. The paper pairs its samples so, two and two. Rows left over at the end are not visited.

        Returns
        -------
        Parts
            Sums over all blocks, and per-sample values in order.
        """
        stride = self.shape[0] // pairing
        for position, values in enumerate(per_row):
            if values.shape[0] != stride:
                msg = f"per_row[{position}] has {values.shape[0]} entries, the source has {stride} samples to sweep"
                raise ValueError(msg)
        self._count_pass()
        watcher = onlooker()
        if watcher is None:
            return self._reduce(kernel, per_row, pairing)
        # Rows that wrap others make their pass over those: it is one all the same.
        with watched_by(None):
            parts = self._reduce(kernel, per_row, pairing)
        watcher.passed()
        return parts

    def take(self, indices: Array) -> Array:
        """Rows of increasing ``indices``, shape (k, n): counted as one pass."""
        self._count_take()
        return self._take(indices)

    def take_pieces(self, indices: Array, rows: int) -> Iterator[Array]:
        """The same, so many rows at a time: all of them are one pass."""
        self._count_take()
        for low in range(0, indices.size, rows):
            yield self._take(indices[low : low + rows])

    def _count_take(self) -> None:
        self._count_pass()

    def _take(self, indices: Array) -> Array:
        # A linear operator has no single rows to tell, and nobody asks it: pilots are for rows that can be looked at.
        raise NotImplementedError(f"{type(self).__name__} cannot tell single rows.")

    @abstractmethod
    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], pairing: int) -> Parts:
        """Visit every block once; see :meth:`reduce`."""

    def _count_pass(self) -> None:
        self.passes += 1

    def __repr__(self) -> str:
        m, n = self.shape
        return f"{type(self).__name__}({m} x {n}, {self.dtype.name})"


def add_sums(totals: tuple[Array, ...], parts: tuple[Array, ...]) -> tuple[Array, ...]:
    """Add ``parts`` to ``totals`` in place and in double precision; empty totals mean zero."""
    if not totals:
        return tuple(np.array(part, dtype=np.result_type(part, np.float64)) for part in parts)
    for total, part in zip(totals, parts, strict=True):
        total += part
    return totals
