"""Sources seen through a change of each block: rows hidden, turned, in another unit, or seen from another origin.

A wrapper composes its change with the kernel, so it works on any source, wherever the rows live. The composed kernel holds what
the change needs and not the wrapper, so that it can be sent to where the rows are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from threading import local

import numpy as np

from robustphase.rows.source import Array, Kernel, Parts, RowSource

Change = Callable[..., Array]
"""``change(block, room, *needs)``: the block as the kernel shall see it, written to ``room``, or the block itself."""


class WrappedRows(RowSource):
    """A source whose blocks are changed before a kernel sees them.

    Subclasses give the change, and the per-sample arrays (length m) that it needs.
    """

    _needs: tuple[Array, ...] = ()

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.shape, self.dtype, self.on_disk = source.shape, source.dtype, source.on_disk
        self._rooms = _Rooms()

    @abstractmethod
    def _change(self) -> Change:
        """How a block is changed; the function must not refer to the source."""

    def _take(self, indices: Array) -> Array:
        block = self.source._take(indices)
        return self._change()(block, np.empty_like(block), *(need[indices] for need in self._needs))

    def _count_take(self) -> None:
        super()._count_take()
        self.source._count_take()

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], pairing: int) -> Parts:
        stride = self.shape[0] // pairing
        needs = [array[member * stride : (member + 1) * stride] for member in range(pairing) for array in self._needs]
        width, change, rooms = len(self._needs), self._change(), self._rooms

        def on_changed(*arguments: Array) -> Parts:
            blocks, rest = arguments[:pairing], arguments[pairing:]
            changed = [
                change(block, rooms.of(member, block), *rest[member * width : (member + 1) * width])
                for member, block in enumerate(blocks)
            ]
            return kernel(*changed, *rest[pairing * width :])

        return self.source.reduce(on_changed, [*needs, *per_row], pairing=pairing)


class _Rooms:
    """Memory for changed blocks, kept by each thread.

    Asking the system for it anew for every block costs more than the arithmetic on the block.
    """

    def __init__(self) -> None:
        self._local = local()

    def of(self, member: int, block: Array) -> Array:
        """Room for one block, of each member of a pair; what is in it does not matter."""
        rooms: dict[int, Array] = self._local.__dict__.setdefault("rooms", {})
        if member not in rooms or rooms[member].shape[0] < block.shape[0]:
            rooms[member] = np.empty_like(block, order="C")
        return rooms[member][: block.shape[0]]

    def __reduce__(self) -> tuple[type[_Rooms], tuple[()]]:
        # What threads keep here means nothing in another process.
        return _Rooms, ()


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

    def _change(self) -> Change:
        return _hide


def _hide(block: Array, room: Array, hidden: Array) -> Array:
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

    def _change(self) -> Change:
        return partial(_turn, self.matrix)


def _turn(matrix: Array, block: Array, room: Array) -> Array:
    return np.dot(block, matrix, out=room)


class StretchedRows(WrappedRows):
    """Another source with every row multiplied by one number along a direction and by another across it.

    Parameters
    ----------
    source : RowSource
        The rows.
    unit : ndarray of shape (n,)
        The direction, of length one: the component of a row along it is ``row @ unit``.
    across, along : float
        The two numbers.
    """

    def __init__(self, source: RowSource, unit: Array, across: float, along: float) -> None:
        super().__init__(source)
        if unit.shape != (source.shape[1],):
            raise ValueError(f"unit must have one number per column, shape ({source.shape[1]},), got {unit.shape}")
        self.unit, self.across, self.along = unit.astype(source.dtype), across, along

    def _change(self) -> Change:
        return partial(_stretch, self.unit, self.across, self.along)


def _stretch(unit: Array, across: float, along: float, block: Array, room: Array) -> Array:
    number = block.real.dtype.type
    # The part along the direction is taken out and put back: its size may be many times what is left.
    components = np.dot(block, unit)[:, np.newaxis]
    np.multiply(components, unit.conj(), out=room)
    np.subtract(block, room, out=room)
    room *= number(across)
    room += components * (number(along) * unit.conj())
    return room


class RealRows(WrappedRows):
    """The real parts of rows that are complex in type alone.

    Parameters
    ----------
    source : RowSource
        Complex rows.
    """

    def __init__(self, source: RowSource) -> None:
        super().__init__(source)
        self.dtype = np.dtype(source.dtype.type(0).real.dtype)

    def _change(self) -> Change:
        return _real_part


def _real_part(block: Array, room: Array) -> Array:
    real: Array = room.view(block.real.dtype)[:, : block.shape[1]]
    np.copyto(real, block.real)
    return real


class RescaledRows(WrappedRows):
    """Another source with every row divided by one number.

    Parameters
    ----------
    source : RowSource
        The rows.
    size : float
        What to divide by.
    """

    def __init__(self, source: RowSource, size: float) -> None:
        super().__init__(source)
        if not 0 < size < np.inf:
            raise ValueError(f"size must be a positive finite number, got {size}")
        self.size = size

    def _change(self) -> Change:
        return partial(_divide, self.size)


def _divide(size: float, block: Array, room: Array) -> Array:
    # The number in the precision of the block, so that single precision stays single.
    np.divide(block, block.real.dtype.type(size), out=room)
    return room


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

    def _change(self) -> Change:
        return partial(_shift, self.origin)


def _shift(origin: Array, block: Array, room: Array) -> Array:
    return np.subtract(block, origin, out=room)
