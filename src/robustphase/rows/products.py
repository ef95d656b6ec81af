"""What a block is multiplied with: projections of its rows, and sums of them.

The products run in the type of the block; what comes of a projection is double precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget
from robustphase.rows.operators import OperatorBlock
from robustphase.rows.source import Array
from robustphase.rows.threads import scratch

DOUBLE = (np.dtype(np.float64), np.dtype(np.complex128))


@dataclass(frozen=True)
class ProductOptions:
    """Constants of products, which move answers by roundings alone."""

    long_rows: int = budget(
        64,
        "entries of a row from which on an inner product for each is faster than a product with the matrix of all, where rows "
        "come from memory",
    )
    in_cache: int = budget(1 << 23, "bytes of all rows up to which they stay in cache")
    as_they_are: int = budget(
        1_000_000,
        "multiplications up to which OpenBLAS takes matrices as they are; of larger ones it makes copies in another order first, "
        "which for few columns takes longer than the product",
    )
    fewest_rows: int = budget(16, "fewest rows of such a product")


PRODUCTS = ProductOptions()


def project_block(block: Array | OperatorBlock, vectors: Array) -> Array:
    """``B V`` in double precision."""
    if vectors.ndim == 2 and vectors.shape[1] == 1:
        # A matrix-vector product reads the block once at full speed; a matrix product with one column does not.
        return project_block(block, vectors[:, 0])[:, np.newaxis]
    product = multiply_block(block, vectors if isinstance(block, OperatorBlock) else in_type_of(block, vectors))
    return product if product.dtype in DOUBLE else product.astype(np.result_type(product, np.float64))


def multiply_block(block: Array | OperatorBlock, vectors: Array) -> Array:
    """``B V`` in the precision of both."""
    if isinstance(block, OperatorBlock):
        return block.project(vectors)
    # Whatever a user's rows hold, it is not here that anybody is warned of it.
    with np.errstate(over="ignore", invalid="ignore"):
        if vectors.dtype.kind == "c" and block.dtype.kind != "c":
            return _joined(_times_columns(block, split_parts(vectors)), vectors.ndim)
        if vectors.ndim == 2:
            return _times_columns(block, vectors)
        if block.dtype == vectors.dtype and _long_from_memory(block):
            return _row_by_row(block, vectors)
        product: Array = np.dot(block, vectors)
    return product


def _times_columns(block: Array, vectors: Array) -> Array:
    """``B V``, a few rows at a time where that spares copies of them.

    Where each vector is in a piece of its own instead of every entry of all of them, some processors take up to twice as long.
    """
    count, step, columns = len(block), _rows_at_a_time(block, vectors), np.ascontiguousarray(vectors)
    if not step:
        whole: Array = np.dot(block, columns)
        return whole
    product = np.empty((count, columns.shape[1]), block.dtype)
    for low in range(0, count, step):
        np.dot(block[low : low + step], columns, out=product[low : low + step])
    return product


def _columns_times(coefficients: Array, block: Array) -> Array:
    """``Cᵀ B``, a few rows at a time as well."""
    step = _rows_at_a_time(block, coefficients)
    if not step:
        whole: Array = np.dot(coefficients.T, block)
        return whole
    total: Array = np.dot(coefficients[:step].T, block[:step])
    for low in range(step, len(block), step):
        total += np.dot(coefficients[low : low + step].T, block[low : low + step])
    return total


def _rows_at_a_time(block: Array, columns: Array) -> int:
    """How many rows at a time are faster than all of them; none if they are not."""
    (count, n), k = block.shape, columns.shape[1]
    step = PRODUCTS.as_they_are // max(n * k, 1)
    few = PRODUCTS.fewest_rows <= step < count and block.dtype == columns.dtype and block.dtype.kind != "c"
    return step if few else 0


def _long_from_memory(block: Array) -> bool:
    """Whether the rows are long, and those of the array that they are a part of too many to be in cache."""
    whole = block if block.base is None else block.base
    return (
        block.shape[1] >= PRODUCTS.long_rows
        and block.strides[1] == block.itemsize
        and getattr(whole, "nbytes", PRODUCTS.in_cache + 1) > PRODUCTS.in_cache
    )


def _row_by_row(block: Array, vector: Array) -> Array:
    """``B v`` as one inner product for each row.

    That reads rows in the order in which they lie in memory, and reached its full speed, where products of a matrix with a vector
    go through several rows at once, and reached half of it. In cache these are up to twice as fast.
    """
    products: Array = np.vecdot(vector.conj(), block)
    return products


def adjoint_block(block: Array | OperatorBlock, coefficients: Array) -> Array:
    """``Bᴴ C``: coefficients (b,) or (b, k), result (n,) or (n, k)."""
    if coefficients.ndim == 2 and coefficients.shape[1] == 1:
        return adjoint_block(block, coefficients[:, 0])[:, np.newaxis]
    if isinstance(block, OperatorBlock):
        return block.adjoint(coefficients)
    coefficients = in_type_of(block, coefficients)
    if coefficients.dtype.kind == "c" and block.dtype.kind != "c":
        return _joined(_columns_times(split_parts(coefficients), block).T, coefficients.ndim)
    if coefficients.ndim == 2 and coefficients.dtype.kind != "c":
        return _columns_times(coefficients, block).T
    # (Cᴴ B)ᴴ conjugates only the small factors; Bᴴ would copy the block.
    row_major: Array = np.dot(coefficients.conj().T, block)
    return row_major.conj().T


def split_parts(values: Array) -> Array:
    """Real and imaginary parts side by side, shape (n, 2k): real rows times complex vectors need no complex rows."""
    columns = np.ascontiguousarray(values.reshape(len(values), -1))
    parts: Array = columns.view(columns.real.dtype)
    return parts


def _joined(parts: Array, ndim: int) -> Array:
    """Complex numbers of parts that stand side by side."""
    contiguous = np.ascontiguousarray(parts)
    values: Array = contiguous.view(np.result_type(contiguous.dtype, np.complex64))
    return values[:, 0] if ndim == 1 else values


def in_type_of(block: Array, values: Array) -> Array:
    """Values in the block's precision, complex if either is."""
    if values.dtype is block.dtype:
        return values
    dtype = np.result_type(block.dtype, np.complex64) if values.dtype.kind == "c" else block.dtype
    return values.astype(dtype, copy=False)


def abs2(values: Array) -> Array:
    """``|v|²`` without the square root that ``abs`` takes."""
    squares: Array = values.real**2 + values.imag**2 if values.dtype.kind == "c" else values * values
    return squares


def in_single_precision(block: Array) -> Array:
    """The block in single precision, in memory that the next block of this thread overwrites.

    Rows of an operator come as they are: their products follow the precision of the vectors, where the operator allows.
    """
    if isinstance(block, OperatorBlock):
        return block
    single = np.dtype(np.complex64 if block.dtype.kind == "c" else np.float32)
    if block.dtype == single:
        return block
    rounded = scratch("single", block.shape, single)
    rounded[...] = block
    return rounded
