"""Sources seen through a change of each block: rows hidden, turned, or seen from another origin.

A wrapper composes its change with the kernel, so it works on any source, wherever the rows live.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from threading import local

import numpy as np

from robustphase.rows.source import Array, Kernel, Parts, RowSource


class WrappedRows(RowSource):
    """A source whose blocks are changed before a kernel sees them.

    Subclasses give the change, and the per-sample arrays (length m) that it needs.
    """

    _needs: tuple[Array, ...] = ()

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.shape, self.dtype = source.shape, source.dtype
        self._scratch = local()

    @abstractmethod
    def _change(self, block: Array, room: Array, *needs: Array) -> Array:
        """The block as the kernel shall see it: written to ``room``, or ``block`` itself if nothing changes."""

    def _room(self, strand: int, block: Array) -> Array:
        """Memory for a changed block, kept by each thread.

        Asking the system for it anew for every block costs more than the arithmetic on the block.
        """
        rooms: dict[int, Array] = self._scratch.__dict__.setdefault("rooms", {})
        if strand not in rooms or rooms[strand].shape[0] < block.shape[0]:
            rooms[strand] = np.empty_like(block, order="C")
        return rooms[strand][: block.shape[0]]

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], strands: int) -> Parts:
        count = self.shape[0] // strands
        needs = [array[strand * count : (strand + 1) * count] for strand in range(strands) for array in self._needs]
        width = len(self._needs)

        def on_changed(*arguments: Array) -> Parts:
            blocks, rest = arguments[:strands], arguments[strands:]
            changed = [
                self._change(block, self._room(strand, block), *rest[strand * width : (strand + 1) * width])
                for strand, block in enumerate(blocks)
            ]
            return kernel(*changed, *rest[strands * width :])

        return self.source.reduce(on_changed, [*needs, *per_row], strands=strands)


class MaskedRows(WrappedRows):
    """Another source with the rows marked in ``hidden`` replaced by zeros.

    A weight of zero is not enough to silence a row that holds an infinity, since ``0 · ∞`` is not a number.

    Parameters
    ----------
    source : RowSource
        The rows.
    hidden : ndarray of bool, shape (m,)
        True for the rows to hide.
    """

    def __init__(self, source: RowSource, hidden: Array) -> None:
        super().__init__(source)
        if hidden.shape != (source.shape[0],):
            raise ValueError(f"hidden must have one flag per row, shape ({source.shape[0]},), got {hidden.shape}")
        self.hidden = hidden.astype(bool)
        self._needs = (self.hidden,)

    def _change(self, block: Array, room: Array, *needs: Array) -> Array:
        (hidden,) = needs
        if not hidden.any():
            return block
        np.copyto(room, block)
        room[hidden] = 0
        return room


class TransformedRows(WrappedRows):
    """Another source with every row multiplied by a matrix from the right: ``A M``.

    Parameters
    ----------
    source : RowSource
        The rows.
    matrix : ndarray of shape (n, n)
        The matrix, such as one that whitens the rows.
    """

    def __init__(self, source: RowSource, matrix: Array) -> None:
        super().__init__(source)
        n = source.shape[1]
        if matrix.shape != (n, n):
            raise ValueError(f"matrix must have shape ({n}, {n}), got {matrix.shape}")
        self.matrix = np.ascontiguousarray(matrix, source.dtype)

    def _change(self, block: Array, room: Array, *needs: Array) -> Array:
        return np.dot(block, self.matrix, out=room)


class ShiftedRows(WrappedRows):
    """Another source with ``origin`` subtracted from every row.

    Data far from zero loses digits when it is centred after the products; subtracting a point near its middle first
    costs one more touch of a cached block and keeps them all.

    Parameters
    ----------
    source : RowSource
        The rows.
    origin : ndarray of shape (n,)
        What to subtract from each row.
    """

    def __init__(self, source: RowSource, origin: Array) -> None:
        super().__init__(source)
        if origin.shape != (source.shape[1],):
            raise ValueError(f"origin must have one number per column, shape ({source.shape[1]},), got {origin.shape}")
        self.origin = origin.astype(source.dtype, copy=False)

    def _change(self, block: Array, room: Array, *needs: Array) -> Array:
        np.subtract(block, self.origin, out=room)
        return room
