"""The passes over a source: projections, weighted sums, and the fused passes that read a block once.

The rows of ``A`` are the ``aᴴ`` (for real data simply the ``aᵀ``), so ``A V`` holds the inner products ``aᴴ v`` and
``Aᴴ C`` sums the vectors ``c a``. Projections, coefficients and sums are double precision whatever the type of ``A``;
only the two products (:mod:`robustphase.rows.products`) run in the type of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from robustphase.rows.blocked import MIN_BLOCK_ROWS, MemoryRows
from robustphase.rows.operators import OperatorBlock
from robustphase.rows.products import abs2, adjoint_block, project_block
from robustphase.rows.source import Array, Kernel, Parts, RowSource
from robustphase.rows.threads import scratch

#: Numbers of one array of a slice: a handful of such arrays fit the cache of a core.
NUMBERS = 1 << 16


def in_slices(kernel: Kernel, columns: int) -> Kernel:
    """The same kernel, on slices of each block, for results with this many columns per row.

    What is done to every number of a large array is done at the speed of memory, and a kernel does a few dozen such things.
    """
    step = max(MIN_BLOCK_ROWS, NUMBERS // max(columns, 1))

    def sliced(*arrays: Array) -> Parts:
        count = arrays[0].shape[0]
        # A slice of an operator costs as much as the whole.
        if count <= step or isinstance(arrays[0], OperatorBlock):
            return kernel(*arrays)
        parts = [kernel(*(array[low : low + step] for array in arrays)) for low in range(0, count, step)]
        sums = tuple(np.sum(values, axis=0) for values in zip(*(part.sums for part in parts), strict=True))
        rows = tuple(np.concatenate(values) for values in zip(*(part.rows for part in parts), strict=True))
        return Parts(sums, rows)

    return sliced


def project(source: RowSource, vectors: Array) -> Array:
    """Projections ``A V``.

    Parameters
    ----------
    source : RowSource
        The rows of ``A``.
    vectors : ndarray of shape (n,) or (n, k)
        Directions.

    Returns
    -------
    ndarray of shape (m,) or (m, k)
    """
    return source.reduce(lambda block: Parts(rows=(project_block(block, vectors),))).rows[0]


def project_rows(source: RowSource, vectors: Array, indices: Array) -> Array:
    """Projections of a few rows, in the order of ``indices`` (distinct), shape (len(indices), k): one pass."""
    slots, count = np.full(source.shape[0], -1), len(indices)
    slots[indices] = np.arange(count)

    def kernel(block: Array, slot: Array) -> Parts:
        chosen = slot >= 0
        picked = np.zeros((count, vectors.shape[1]), np.result_type(block.dtype, vectors.dtype, np.float64))
        picked[slot[chosen]] = project_block(block[chosen], vectors)
        return Parts(sums=(picked,))

    return source.reduce(kernel, (slots,)).sums[0]


def adjoint(source: RowSource, coefficients: Array) -> Array:
    """Weighted sums of the rows, ``Aᴴ C``.

    Parameters
    ----------
    source : RowSource
        The rows of ``A``.
    coefficients : ndarray of shape (m,) or (m, k)
        One coefficient per sample and sum.

    Returns
    -------
    ndarray of shape (n,) or (n, k)
    """
    return source.reduce(lambda block, c: Parts(sums=(adjoint_block(block, c),)), (coefficients,)).sums[0]


def rows_at(source: RowSource, indices: Array) -> Array:
    """A few rows of the source, in the order of ``indices`` (distinct), shape (k, n): one pass."""
    slots, count = np.full(source.shape[0], -1), len(indices)
    slots[indices] = np.arange(count)

    def kernel(block: Array, slot: Array) -> Parts:
        picked = np.zeros((count, block.shape[1]), block.dtype)
        picked[slot[slot >= 0]] = block[slot >= 0]
        return Parts(sums=(picked,))

    return source.reduce(kernel, (slots,)).sums[0]


def row_peaks(source: RowSource) -> Array:
    """Largest absolute entry of every row (for complex rows, of its real and imaginary parts): one pass.

    An entry of 1e150 squares to more than a double can hold, and one NaN spoils every sum it enters: the largest entry
    tells both without multiplying anything. NaN where a row holds a NaN, infinite where it holds an infinity, and no warning for
    either.
    """
    return source.reduce(lambda block: Parts(rows=(_peaks(block),))).rows[0]


class RowLook(NamedTuple):
    """A first look: the largest absolute entry of each row (m,), which have imaginary parts (m,), and a few rows (k, n)."""

    peaks: Array
    turned: Array
    some: Array


def look_at_rows(source: RowSource, indices: Array) -> RowLook:
    """Peaks as in :func:`row_peaks`, imaginary parts, and the rows of these distinct indices, in their order: one pass."""
    slots, count, in_memory = np.full(source.shape[0], -1), len(indices), isinstance(source, MemoryRows)
    slots[indices] = np.arange(count)

    def kernel(block: Array, slot: Array) -> Parts:
        turned = np.any(block.imag, axis=1) if block.dtype.kind == "c" else np.zeros(len(block), bool)
        picked = np.zeros((0 if in_memory else count, block.shape[1]), block.dtype)
        if not in_memory:
            picked[slot[slot >= 0]] = block[slot >= 0]
        return Parts(sums=(picked,), rows=(_peaks(block), turned))

    # Sums of NaN and infinities, which rows that are looked at may hold, are none of anybody's business here.
    with np.errstate(invalid="ignore"):
        parts = source.reduce(kernel, (slots,))
    some = source.array[indices].astype(source.dtype, copy=False) if isinstance(source, MemoryRows) else parts.sums[0]
    return RowLook(parts.rows[0], parts.rows[1], some)


def _peaks(block: Array) -> Array:
    real = np.ascontiguousarray(block).view(block.real.dtype) if np.iscomplexobj(block) else block
    sizes = np.abs(real, out=scratch("sizes", real.shape, real.dtype))
    peaks: Array = sizes.max(axis=1).astype(np.float64)
    return peaks


def extreme_rows(peaks: Array, *, limit: float) -> Array:
    """Which rows must not enter any product: NaN, infinite, or with an entry beyond ``limit`` (boolean, shape (m,))."""
    # Written so that NaN, which compares false with everything, counts as extreme.
    return ~(peaks <= limit)


class Sweep(NamedTuple):
    """Result of a fused pass.

    Attributes
    ----------
    total : ndarray of shape (n,) or (n, k)
        ``Aᴴ C``.
    projections : ndarray of shape (m,) or (m, k)
        ``A V``, kept because the second product needed them anyway.
    """

    total: Array
    projections: Array


def sweep(source: RowSource, vectors: Array, rule: Callable[..., Array], per_row: Sequence[Array] = ()) -> Sweep:
    """Project, turn projections into coefficients, and sum: ``Aᴴ rule(A V, ...)`` in one pass.

    Parameters
    ----------
    source : RowSource
        The rows of ``A``.
    vectors : ndarray of shape (n,) or (n, k)
        Directions ``V``.
    rule : callable
        ``rule(projections, *per_row) -> coefficients``, on the samples of one block.
    per_row : sequence of ndarray
        Per-sample arrays that the rule needs.
    """

    def kernel(block: Array, *values: Array) -> Parts:
        projections = project_block(block, vectors)
        return Parts(sums=(adjoint_block(block, rule(projections, *values)),), rows=(projections,))

    parts = source.reduce(kernel, per_row)
    return Sweep(parts.sums[0], parts.rows[0])


def squared_loss_gradient(source: RowSource, responses: Array, signal: Array, weights: Array | None = None) -> Sweep:
    """Weighted mean of the loss gradients ``(|aᴴx|² − y)(aᴴx) a``: the sample version of Lemma E.1.

    Parameters
    ----------
    source : RowSource
        The covariates.
    responses : ndarray of shape (m,)
        ``y``.
    signal : ndarray of shape (n,) or (n, k)
        Where to take the gradient; several points share the pass.
    weights : ndarray of shape (m,), optional
        Weights of the samples; they are normalised to sum to one. Default: equal.

    Returns
    -------
    Sweep
        The gradient and the projections ``A x``.
    """
    shares = _shares(weights, source.shape[0])

    def rule(s: Array, y: Array, share: Array) -> Array:
        coefficients: Array = (share * (abs2(s).T - y)).T * s
        return coefficients

    return sweep(source, signal, rule, (responses, shares))


def paired_loss_gradient(source: RowSource, responses: Array, signal: Array, weights: Array | None = None) -> Sweep:
    """Weighted mean of the paired loss gradients ``(xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x``, without making ``b`` or ``c``.

    With ``b, c = (a ± a')/√2`` and ``υ = (y − y')/2`` it equals ``½[(s² − y) − (s'² − y')](s a − s' a')``,
    where ``s = aᵀx`` and ``s' = a'ᵀx``: both members of a pair are read once, together.

    Parameters
    ----------
    source : RowSource
        The covariates; row ``j`` is paired with row ``j + m // 2``. An odd last row is not used.
    responses : ndarray of shape (m,)
        ``y``, in the order of the rows.
    signal : ndarray of shape (n,)
        Where to take the gradient.
    weights : ndarray of shape (m // 2,), optional
        Weights of the pairs; they are normalised to sum to one. Default: equal.

    Returns
    -------
    Sweep
        The gradient, and the projections of both members, shape (m // 2, 2).
    """
    pairs = source.shape[0] // 2
    shares = _shares(weights, pairs)

    def kernel(top: Array, bottom: Array, y: Array, y_other: Array, share: Array) -> Parts:
        s, s_other = project_block(top, signal), project_block(bottom, signal)
        half_gap = 0.5 * share * ((abs2(s) - y) - (abs2(s_other) - y_other))
        total = adjoint_block(top, half_gap * s) - adjoint_block(bottom, half_gap * s_other)
        return Parts(sums=(total,), rows=(np.stack((s, s_other), axis=1),))

    parts = source.reduce(kernel, (responses[:pairs], responses[pairs : 2 * pairs], shares), pairing=2)
    return Sweep(parts.sums[0], parts.rows[0])


def _shares(weights: Array | None, count: int) -> Array:
    if weights is None:
        return np.full(count, 1.0 / count)
    shares: Array = weights / weights.sum()
    return shares
