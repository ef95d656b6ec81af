"""Ptychography: a picture seen through a probe at many places, each time by the intensity of its Fourier transform.

The scan of a lensless microscope: at position j the probe P lights a patch of the object x, and the detector reads
``y = |F(P · patch_j(x))|²``, one frame of as many readings as the probe has pixels. Frames overlap, which is what determines the
object; pixels that no frame lights are not determined at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse.linalg import LinearOperator

Array = NDArray[Any]

#: Frames of one block of rows: enough for the transforms to be fast, few enough for several threads.
FRAMES = 8


class Ptychography(LinearOperator):
    """Fourier transforms of lit patches as a linear operator of shape (frames · pixels of the probe, pixels of the object).

    Parameters
    ----------
    probe : array of shape (height, width)
        The complex field that lights a patch.
    positions : array of int, shape (frames, 2)
        Row and column of the upper left corner of every patch in the object.
    object_shape : tuple of int, optional
        Height and width of the object; by default just large enough for all patches.

    Attributes
    ----------
    frames : ndarray of int, shape (m,)
        Frame of every reading: the labels to pass as ``groups``.
    column_energies : ndarray of shape (n,)
        Energy of every column, ``Σ_j |a_ji|²``: the light that each pixel of the object gets.
    row_blocks : tuple of Ptychography
        The operators of a few frames each; their rows, one below the other, are the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> scan = rp.simulate.Ptychography(np.ones((4, 4)), [(0, 0), (0, 2), (2, 0), (2, 2)])
    >>> scan.shape, scan.object_shape
    ((64, 36), (6, 6))
    >>> scan.column_energies.max()
    np.float64(4.0)
    >>> rp.testing.dot_test(rp.rows.as_source(scan))
    """

    def __init__(self, probe: Any, positions: Any, object_shape: tuple[int, int] | None = None) -> None:
        probe = np.asarray(probe, np.complex128)
        corners = np.asarray(positions)
        if probe.ndim != 2 or probe.size == 0:
            raise ValueError(f"probe must be a picture of shape (height, width), got shape {probe.shape}.")
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) == 0 or corners.dtype.kind not in "iu":
            raise ValueError(
                f"positions must hold a row and a column for every frame, whole numbers, got shape {corners.shape} and "
                f"dtype {corners.dtype}. Round them, for example np.rint(positions).astype(int)."
            )
        needed = corners.max(axis=0) + probe.shape
        height, width = needed if object_shape is None else object_shape
        if corners.min() < 0 or (needed > (height, width)).any():
            raise ValueError(
                f"the patches reach from {tuple(corners.min(axis=0))} to {tuple(needed)}, beyond the object of shape "
                f"{(height, width)}. Shift the positions, or pass a larger object_shape."
            )
        self.probe, self.positions, self.object_shape = probe, corners, (int(height), int(width))
        super().__init__(np.complex128, (len(corners) * probe.size, int(height) * int(width)))  # type: ignore[call-arg]

    @property
    def frames(self) -> Array:
        """Frame of every reading."""
        return np.repeat(np.arange(len(self.positions)), self.probe.size)

    @property
    def column_energies(self) -> Array:
        """Light that each pixel of the object gets."""
        light, lit = np.zeros(self.object_shape), np.abs(self.probe) ** 2
        for patch in self._patches():
            light[patch] += lit
        return light.reshape(-1)

    @property
    def row_blocks(self) -> tuple[Ptychography, ...]:
        """The operators of a few frames each."""
        parts = range(0, len(self.positions), FRAMES)
        return tuple(Ptychography(self.probe, self.positions[low : low + FRAMES], self.object_shape) for low in parts)

    def _patches(self) -> list[tuple[slice, slice]]:
        height, width = self.probe.shape
        return [(slice(row, row + height), slice(column, column + width)) for row, column in self.positions.tolist()]

    def _matvec(self, x: Array) -> Array:
        picture = np.reshape(x, self.object_shape)
        exits = np.stack([picture[patch] for patch in self._patches()]) * self.probe
        spectra: Array = fft.fft2(exits, norm="ortho", overwrite_x=True)
        return spectra.reshape(-1)

    def _rmatvec(self, x: Array) -> Array:
        exits = fft.ifft2(np.reshape(x, (len(self.positions), *self.probe.shape)), norm="ortho")
        exits *= self.probe.conj()
        total = np.zeros(self.object_shape, exits.dtype)
        for patch, part in zip(self._patches(), exits, strict=True):
            total[patch] += part
        return total.reshape(-1)
