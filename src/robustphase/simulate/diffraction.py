"""Coded diffraction: a picture seen through random masks, each time by the intensity of its Fourier transform.

The measurements of a lensless microscope with a modulator in front of the sample (Candès, Li and Soltanolkotabi, *Phase
retrieval from coded diffraction patterns*, 2015). With L masks and n pixels there are m = L n detector readings
``y = |F(d x)|²``, one product with the covariates costs L fast Fourier transforms instead of L n² multiplications, and its
rows are never made.
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
