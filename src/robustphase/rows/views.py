"""Clouds of points that are scaled rows: what robust means work on.

Every vector the paper averages is a row of ``A`` times a number, or a difference of two such:

* gradients: ``c_j a_j`` with ``c = (|s|² − y) s``;
* paired gradients: ``c_j a_j − c'_j a'_j``;
* Procedure 1, covariance configuration: ``y_j a_j``.

So a cloud is a source and a vector of scales. Its passes (sums, inner products, covariance times vectors, squared
distances, selected columns) each sweep ``A`` once and make nothing of its size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robustphase.rows.products import abs2, adjoint_block, project_block
from robustphase.rows.source import Array, Parts, RowSource


class ScaledRows:
    """The points ``p_j = c_j a_j``, where ``a_jᴴ`` is row ``j`` of the source; or differences of two of them.

    Parameters
    ----------
    source : RowSource
        The rows.
    scale : ndarray of shape (m,), optional
        The numbers ``c``. Default: ones, the rows themselves.
    paired : bool, default=False
        Points ``p_j = c_j a_j − c_k a_k`` with ``k = j + m // 2``, one for every pair.

    Attributes
    ----------
    shape : tuple of int
        Number of points and their dimension.
    """

    def __init__(self, source: RowSource, scale: Array | None = None, *, paired: bool = False) -> None:
        self.source = source
        self.paired = paired
        pairing = 2 if paired else 1
        count = source.shape[0] // pairing
        self.shape = (count, source.shape[1])
        self.dtype = source.dtype if scale is None else np.result_type(source.dtype, scale.dtype)
        if scale is None:
            scale = np.ones(source.shape[0])
        if scale.shape != (source.shape[0],):
            raise ValueError(f"scale must have one number per row, shape ({source.shape[0]},), got {scale.shape}")
        self._scales = (scale[:count], -scale[count : 2 * count]) if paired else (scale,)

    def _reduce(self, kernel: Callable[..., Parts], per_point: tuple[Array, ...] = ()) -> Parts:
        """One pass in which the kernel sees blocks of points and slices of ``per_point``."""
        pairing = len(self._scales)

        def on_blocks(*arguments: Array) -> Parts:
            blocks, scales, rest = arguments[:pairing], arguments[pairing : 2 * pairing], arguments[2 * pairing :]
            return kernel(_PointBlock(blocks, scales), *rest)

        return self.source.reduce(on_blocks, (*self._scales, *per_point), pairing=pairing)

    def scaled(self, factor: Array) -> ScaledRows:
        """The view with its points multiplied by one number each, shape (count,)."""
        scale = np.concatenate([part * factor for part in self._scales])
        if self.paired:
            # The second members hold their scales with the minus sign of the difference.
            scale[self.shape[0] :] *= -1
            scale = np.concatenate((scale, np.zeros(self.source.shape[0] - scale.size)))
        return ScaledRows(self.source, scale, paired=self.paired)

    def mean(self, weights: Array | None = None) -> Array:
        """Weighted mean ``Σ w_j p_j / Σ w_j``, shape (n,)."""
        shares = np.full(self.shape[0], 1.0 / self.shape[0]) if weights is None else weights / weights.sum()
        return self.total(shares)

    def total(self, coefficients: Array) -> Array:
        """Sums ``Σ_j p_j C_j``: coefficients (count,) or (count, k), result (n,) or (n, k)."""
        return self._reduce(lambda points, c: Parts(sums=(points.total(c),)), (coefficients,)).sums[0]

    def inner(self, vectors: Array) -> Array:
        """Inner products ``p_jᴴ V``, shape (count,) or (count, k)."""
        return self._reduce(lambda points: Parts(rows=(points.inner(vectors),))).rows[0]

    def covariance_times(self, weights: Array, mean: Array, vectors: Array) -> tuple[Array, Array]:
        """Weighted centred covariance times a block of vectors, and the centred inner products, in one pass.

        Parameters
        ----------
        weights : ndarray of shape (count,)
            Weights; they are normalised to sum to one.
        mean : ndarray of shape (n,)
            The centre, usually the weighted mean.
        vectors : ndarray of shape (n, k)
            Directions ``V``.

        Returns
        -------
        product : ndarray of shape (n, k)
            ``Σ w_j (p_j − μ)(p_j − μ)ᴴ V / Σ w_j``.
        projections : ndarray of shape (count, k)
            ``(p_j − μ)ᴴ V``.
        """
        centre = mean.conj() @ vectors

        def kernel(points: _PointBlock, share: Array) -> Parts:
            deviations = points.inner(vectors) - centre
            weighted = share[:, np.newaxis] * deviations
            return Parts(sums=(points.total(weighted), weighted.sum(axis=0)), rows=(deviations,))

        parts = self._reduce(kernel, (weights / weights.sum(),))
        product, drift = parts.sums
        return product - np.outer(mean, drift), parts.rows[0]

    def squared_distances(self, centre: Array | None = None) -> Array:
        """``‖p_j − centre‖²`` for every point; default centre: zero.

        The square is expanded, so digits are lost when the centre is much farther away than the points are apart: move
        the origin with :class:`ShiftedRows` first.
        """

        def kernel(points: _PointBlock) -> Parts:
            squares = points.squared_norms()
            if centre is not None:
                squares = squares - 2.0 * points.inner(centre).real + np.vdot(centre, centre).real
            return Parts(rows=(np.maximum(squares, 0.0),))

        return self._reduce(kernel).rows[0]

    def columns(self, chosen: slice | Array) -> Array:
        """Coordinates ``chosen`` of every point, shape (count, len(chosen)): for medians, a few columns at a time."""
        return self._reduce(lambda points: Parts(rows=(points.values(chosen),))).rows[0]


class _PointBlock:
    """The points of one block: rows of each member of the pairs with their signed scales."""

    def __init__(self, blocks: tuple[Array, ...], scales: tuple[Array, ...]) -> None:
        self._members = tuple(zip(blocks, scales, strict=True))

    def total(self, coefficients: Array) -> Array:
        """``Σ_j p_j C_j`` over the block."""
        parts = [adjoint_block(block, (coefficients.T * scale).T) for block, scale in self._members]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def inner(self, vectors: Array) -> Array:
        """``p_jᴴ V`` for the points of the block."""
        parts = [(project_block(block, vectors).T * scale.conj()).T for block, scale in self._members]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def squared_norms(self) -> Array:
        """``‖p_j‖²`` for the points of the block."""
        squares: Array = sum(np.vecdot(block, block).real * abs2(scale) for block, scale in self._members)
        if len(self._members) == 2:
            (top, top_scale), (bottom, bottom_scale) = self._members
            squares = squares + 2.0 * (np.vecdot(bottom, top) * top_scale.conj() * bottom_scale).real
        return squares

    def values(self, chosen: slice | Array = slice(None)) -> Array:
        """The points themselves, one per row: as large as the block, so it stays in cache."""
        parts = [scale[:, np.newaxis] * block[:, chosen].conj() for block, scale in self._members]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]
