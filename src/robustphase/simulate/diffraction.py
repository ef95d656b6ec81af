"""A picture seen by the intensity of its Fourier transform: through random masks, or through a probe at many places.

Both are measurements of a lensless microscope, linear operators whose rows are never made.

*Coded diffraction*: a modulator stands in front of the sample (Candès, Li and Soltanolkotabi, *Phase retrieval from coded
diffraction patterns*, 2015). With L masks and n pixels there are m = L n detector readings ``y = |F(d x)|²``, and one product
with the covariates costs L fast Fourier transforms instead of L n² multiplications.

*Ptychography*: a scan. At position j the probe P lights a patch of the object x, and the detector reads
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

#: Kinds of random masks.
MASKS = ("octanary", "phases")


class CodedDiffraction(LinearOperator):
    """Fourier transforms of a masked picture as a linear operator of shape (L n, n), for complex signals.

    The transform is not normalised and masks have mean square one, so that readings are of the size of ``‖x‖²``, as with
    complex Gaussian covariates.

    Parameters
    ----------
    picture_shape : tuple of int
        Height and width of the picture; signals are its pixels, row by row.
    masks : int or array of shape (L, height, width), default=8
        How many random masks to draw, or the masks themselves.
    kind : {"octanary", "phases"}, default="octanary"
        ``"octanary"``: one of 1, −1, i, −i times √½ with probability 0.8 or √3 with probability 0.2, as in the paper; their
        fourth moment is that of complex normal variables. ``"phases"``: phases only, as modulators without losses make.
    seed : int, default=0
        For the masks.
    workers : int, optional
        Threads of one product; by default what :func:`scipy.fft.set_workers` says. A fit takes one mask at a time, on as many
        threads as it may use, whatever stands here.

    Attributes
    ----------
    masks : ndarray of shape (L, height, width)
        The masks.
    row_blocks : tuple of CodedDiffraction
        The operator of each mask alone; their rows, one below the other, are the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> patterns = rp.simulate.CodedDiffraction((8, 8), masks=3)
    >>> patterns.shape
    (192, 64)
    >>> readings = np.abs(patterns @ np.ones(64)) ** 2
    >>> rp.testing.dot_test(rp.rows.as_source(patterns))
    """

    def __init__(
        self,
        picture_shape: tuple[int, int],
        masks: int | Array = 8,
        *,
        kind: str = "octanary",
        seed: int = 0,
        workers: int | None = None,
    ) -> None:
        height, width = (int(side) for side in picture_shape)
        if height < 1 or width < 1:
            raise ValueError(f"picture_shape must be a height and a width of at least one pixel, got {picture_shape}.")
        if isinstance(masks, (int, np.integer)):
            masks = random_masks(int(masks), (height, width), kind=kind, seed=seed)
        masks = np.asarray(masks, np.complex128)
        if masks.ndim != 3 or masks.shape[1:] != (height, width) or masks.shape[0] == 0:
            raise ValueError(f"masks must have shape (L, {height}, {width}) with L >= 1, got {masks.shape}.")
        self.picture_shape, self.masks, self.workers = (height, width), masks, workers
        # Rows of single precision are asked for where speed matters more than digits.
        self._rounded = masks.astype(np.complex64)
        super().__init__(np.complex128, (masks.size, height * width))  # type: ignore[call-arg]

    @property
    def row_blocks(self) -> tuple[CodedDiffraction, ...]:
        """The operator of each mask alone."""
        return tuple(CodedDiffraction(self.picture_shape, mask[np.newaxis], workers=1) for mask in self.masks)

    def _masks_for(self, values: Array) -> Array:
        return self._rounded if values.dtype in (np.complex64, np.float32) else self.masks

    def _matvec(self, x: Array) -> Array:
        pictures = self._masks_for(x) * np.reshape(x, self.picture_shape)
        spectra: Array = fft.fft2(pictures, workers=self.workers, overwrite_x=True)
        return spectra.reshape(-1)

    def _rmatvec(self, x: Array) -> Array:
        # The conjugate transpose of the transform is its inverse without the division by n.
        pictures = fft.ifft2(np.reshape(x, self.masks.shape), norm="forward", workers=self.workers)
        total: Array = np.einsum("lij,lij->ij", self._masks_for(x).conj(), pictures)
        return total.reshape(-1)

    def _matmat(self, X: Array) -> Array:
        return _column_by_column(self._matvec, X, self.shape[0])

    def _rmatmat(self, X: Array) -> Array:
        return _column_by_column(self._rmatvec, X, self.shape[1])


def _column_by_column(product: Any, vectors: Array, count: int) -> Array:
    """Products with columns; each column of the result in one piece, as the transforms make it."""
    single = vectors.dtype in (np.complex64, np.float32)
    products = np.empty((count, vectors.shape[1]), np.complex64 if single else np.complex128, order="F")
    for index, vector in enumerate(vectors.T):
        products[:, index] = product(np.ascontiguousarray(vector))
    return products


def random_masks(count: int, picture_shape: tuple[int, int], *, kind: str = "octanary", seed: int = 0) -> Array:
    """Random masks of mean square one, shape (count, height, width); see :class:`CodedDiffraction`."""
    if count < 1:
        raise ValueError(f"masks must be at least one, got {count}.")
    if kind not in MASKS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, MASKS))}, got {kind!r}.")
    rng = np.random.default_rng(seed)
    shape = (count, *picture_shape)
    if kind == "phases":
        phases: Array = np.exp(2j * np.pi * rng.random(shape))
        return phases
    turns = np.array([1, -1, 1j, -1j])[rng.integers(4, size=shape)]
    sizes = np.where(rng.random(shape) < 0.8, np.sqrt(0.5), np.sqrt(3.0))
    masks: Array = turns * sizes
    return masks


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
