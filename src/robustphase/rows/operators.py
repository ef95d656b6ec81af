"""Rows that are never made: a linear operator as a row source.

Transforms, convolutions and stacks of masks know how to multiply with a vector, and with their adjoint, far faster than any
matrix could; nobody can look at their rows. A pass needs no more than these two products, so an operator is a source whose
kernel sees one block for all rows, an :class:`OperatorBlock`, on which the products of a pass are those of the operator.
What looks at single rows, the screening of covariates above all, cannot work here and says so.

Operators that are stacks of smaller ones may say so by an attribute ``row_blocks``, the operators whose rows, one below the
other, are theirs. Then the kernel sees one of them at a time, with arrays that fit into the cache, on several threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from robustphase.rows.source import NATIVE_DTYPES, Array, Kernel, Parts, RowSource, add_sums
from robustphase.rows.threads import allowed_threads, run_in_threads, single_threaded_blas

#: Relative disagreement of the two products of an operator that is not rounding any more: in roundings of its type, at most.
ROUNDINGS, LARGEST_DISAGREEMENT = 1e5, 0.01
#: Random vectors from which the size of the rows is estimated.
PROBES = 4
#: Largest product that can be computed with further: its eighth power is a number.
LARGEST_PRODUCT = 1e36


def is_operator(thing: Any) -> bool:
    """Whether something multiplies vectors without being an array: SciPy's ``LinearOperator``, PyLops' own, or the like."""
    return callable(getattr(thing, "matvec", None)) and hasattr(thing, "shape") and not isinstance(thing, np.ndarray)


class OperatorBlock:
    """Rows of an operator as a kernel sees them: two products, and nothing to look at.

    The operator has ``matvec`` and ``rmatvec``; ``matmat`` and ``rmatmat`` are used where they exist. All rows, or those
    chosen, are multiplied with ``factor``.
    """

    ndim = 2

    def __init__(
        self, operator: Any, dtype: np.dtype[Any], factor: float = 1.0, chosen: slice | Array | None = None
    ) -> None:
        self._operator, self._factor, self._chosen = operator, factor, chosen
        m, n = operator.shape
        rows = int(m) if chosen is None else int(np.arange(m)[chosen].size)
        self.shape, self.dtype = (rows, int(n)), dtype

    def project(self, vectors: Array) -> Array:
        """``B V`` in the precision that the operator gives: vectors (n,) or (n, k)."""
        # The vectors are scaled and not the products: they are fewer, and ours.
        scaled = vectors if self._factor == 1 else _as_kind(vectors, self._factor) * vectors
        product = _products(self._operator, ("matvec", "matmat"), scaled, self.dtype.kind != "c")
        return product if self._chosen is None else product[self._chosen]

    def adjoint(self, coefficients: Array) -> Array:
        """``Bᴴ C``: coefficients (b,) or (b, k)."""
        if self._chosen is not None:
            everywhere = np.zeros((self._operator.shape[0], *coefficients.shape[1:]), coefficients.dtype)
            everywhere[self._chosen] = coefficients
            coefficients = everywhere
        product = _products(self._operator, ("rmatvec", "rmatmat"), coefficients, self.dtype.kind != "c")
        return product if self._factor == 1 else _as_kind(product, self._factor) * product

    def __getitem__(self, chosen: slice | Array) -> OperatorBlock:
        if isinstance(chosen, tuple) or self._chosen is not None:
            self._refuse()
        return OperatorBlock(self._operator, self.dtype, self._factor, chosen)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TypeError(
            "this needs single rows of A, and a linear operator has none to look at. Pass an array instead, for a small "
            "operator such as A @ np.eye(A.shape[1]), or use what needs products only: RobustPhaseRetrieval.fit with "
            'init="auto" and step="newton".'
        )


def _as_kind(values: Array, factor: float) -> Any:
    """The factor as a number that does not make single precision double."""
    return values.real.dtype.type(factor)


def _products(operator: Any, names: tuple[str, str], vectors: Array, real: bool) -> Array:
    """Products with one vector, or with several: together where the operator can, else one after the other.

    An operator that says it is real need not take complex vectors: it gets their parts.
    """
    if real and vectors.dtype.kind == "c":
        parts = [_products(operator, names, np.ascontiguousarray(part), real) for part in (vectors.real, vectors.imag)]
        joined = np.empty(parts[0].shape, np.result_type(parts[0].dtype, np.complex64))
        joined.real, joined.imag = parts
        return joined
    one, several = names
    if vectors.ndim == 1:
        return np.asarray(getattr(operator, one)(vectors)).reshape(-1)
    together = getattr(operator, several, None)
    if callable(together):
        return np.asarray(together(vectors))
    columns = [np.asarray(getattr(operator, one)(column)).reshape(-1) for column in vectors.T]
    return np.stack(columns, axis=1)


class OperatorRows(RowSource):
    """A linear operator as a row source.

    Parameters
    ----------
    operator : object
        A :class:`scipy.sparse.linalg.LinearOperator`, a PyLops operator, or anything with ``shape``, ``dtype``, ``matvec``
        and ``rmatvec``. Its dtype says whether rows and signal are complex. Its ``row_blocks``, if it has any, must bear
        being used by several threads at once.
    threads : int, optional
        Threads over ``row_blocks``; by default as many as BLAS is allowed to use at the time of the pass.
    factor : float, default=1
        Number that all rows are multiplied with.
    """

    def __init__(self, operator: Any, *, threads: int | None = None, factor: float = 1.0) -> None:
        self.operator, self.threads, self.factor = operator, threads, factor
        self.shape = _shape_of(operator)
        if not callable(getattr(operator, "rmatvec", None)):
            raise TypeError(_no_adjoint(operator))
        self.dtype = _dtype_of(operator, self.shape[1])
        parts = tuple(getattr(operator, "row_blocks", None) or (operator,))
        self._edges = np.cumsum([0, *(int(part.shape[0]) for part in parts)])
        if self._edges[-1] != self.shape[0]:
            raise ValueError(
                f"the row_blocks of the operator have {self._edges[-1]} rows together, the operator has {self.shape[0]}."
            )
        self._blocks = [OperatorBlock(part, self.dtype, factor) for part in parts]
        self._origin: OperatorRows | None = None

    def rescaled(self, factor: float) -> OperatorRows:
        """The same rows, all multiplied with a number; its passes count here too."""
        other = OperatorRows(self.operator, threads=self.threads, factor=factor * self.factor)
        other.passes, other._origin = self.passes, self
        return other

    def mean_square(self, *, seed: int = 0) -> float:
        """Mean of ``|a_ji|²`` over all entries, by Hutchinson's estimate ``E‖Az‖² = ‖A‖²`` with random signs: one pass."""
        signs = np.random.default_rng(seed).choice((-1.0, 1.0), (self.shape[1], PROBES))

        def kernel(block: OperatorBlock) -> Parts:
            product = block.project(signs)
            return Parts(sums=(np.array(np.vdot(product, product).real),))

        return float(self.reduce(kernel).sums[0]) / (self.shape[0] * self.shape[1] * PROBES)

    def column_energies(self, *, seed: int = 0) -> Array:
        """Energy ``Σ_j |a_ji|²`` of every column: as the operator says, or probed with random signs, one pass.

        The probes estimate the diagonal of ``AᴴA`` by ``E z̄ (AᴴA z)`` (Bekas, Kokiopoulou and Saad, 2007): exactly where it is a
        diagonal matrix, as in ptychography, and with an error of about ``sqrt(n/(m·probes))`` for unrelated rows.
        """
        given = getattr(self.operator, "column_energies", None)
        if given is not None:
            energies = np.asarray(given, np.float64).reshape(-1)
            if energies.size != self.shape[1] or not (np.isfinite(energies).all() and (energies >= 0).all()):
                raise ValueError(
                    f"column_energies of the operator must hold {self.shape[1]} finite numbers that are zero or positive."
                )
            return self.factor**2 * energies
        signs = np.random.default_rng(seed).choice((-1.0, 1.0), (self.shape[1], PROBES))
        images = self.reduce(lambda block: Parts(sums=(block.adjoint(block.project(signs)),))).sums[0]
        probed: Array = np.maximum((signs * images).real.mean(axis=1), 0.0)
        return probed

    def examine(self, *, seed: int = 0) -> None:
        """Refuse an operator whose products cannot be right: a dot test with one random vector on either side.

        Raises
        ------
        TypeError
            If there is no adjoint.
        ValueError
            If products have the wrong shape or type, are not finite, or the adjoint is not that of the forward product.
        """
        rng = np.random.default_rng(seed)
        u, v = rng.standard_normal(self.shape[1]), rng.standard_normal(self.shape[0])
        if self.dtype.kind == "c":
            u, v = u + 1j * rng.standard_normal(u.size), v + 1j * rng.standard_normal(v.size)
        # What is not a number is told below, in better words than a warning has.
        with np.errstate(all="ignore"):
            forward = self._examined("matvec", self.operator.matvec(u), self.shape[0])
            try:
                backward = self._examined("rmatvec", self.operator.rmatvec(v), self.shape[1])
            except (NotImplementedError, AttributeError) as error:
                raise TypeError(_no_adjoint(self.operator)) from error
        largest = float(max(np.abs(forward).max(), np.abs(backward).max()))
        if not (largest == 0 or 1 / LARGEST_PRODUCT <= largest <= LARGEST_PRODUCT):
            wrong = "large" if largest > 1 else "small"
            raise ValueError(
                f"the products of A reach {largest:.1e} for a random vector, too {wrong} to compute with, and rows of an "
                "operator cannot be dropped. Divide A by its scale, or restrict it to rows that are right."
            )
        left, right = np.vdot(v, forward), np.vdot(backward, u)
        size = float(np.linalg.norm(forward) * np.linalg.norm(v))
        types = [product.dtype if product.dtype.kind in "fc" else np.float64 for product in (forward, backward)]
        precision = max(float(np.finfo(kind).eps) for kind in (self.dtype, *types))
        if abs(left - right) > min(ROUNDINGS * precision, LARGEST_DISAGREEMENT) * size:
            raise ValueError(
                f"the products of A are not adjoint to each other: <v, A u> is {left:.6g} but <Aᴴ v, u> is {right:.6g} for "
                "random u and v. Check rmatvec: it must multiply with the conjugate transpose, including all scales."
            )

    def _examined(self, name: str, given: Any, count: int) -> Array:
        """A product, if it can be one."""
        product: Array = np.asarray(given).reshape(-1)
        if product.size != count:
            raise ValueError(f"{name} of A gives {product.size} numbers, expected {count} for shape {self.shape}.")
        if product.dtype.kind == "c" and self.dtype.kind != "c":
            raise ValueError(
                f"A has dtype {self.dtype} but {name} gives complex numbers. Give the operator a complex dtype; the signal "
                "is then complex too."
            )
        bad = ~np.isfinite(product)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"{name} of A gives NaN or infinite numbers for a random vector ({int(bad.sum())} of {count}, first: entry "
                f"{first}). Rows of an operator cannot be dropped; mend it, or restrict it to rows that are finite."
            )
        return product

    def _count_pass(self) -> None:
        super()._count_pass()
        if self._origin is not None:
            self._origin._count_pass()

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], pairing: int) -> Parts:
        if pairing > 1:
            # Pairs reach across the blocks, so each is the whole operator with most of its products left out.
            stride = self.shape[0] // pairing
            whole = OperatorBlock(self.operator, self.dtype, self.factor)
            parts = kernel(*(whole[k * stride : (k + 1) * stride] for k in range(pairing)), *per_row)
            return Parts(add_sums((), parts.sums), tuple(np.asarray(values) for values in parts.rows))
        found: list[Parts | None] = [None] * len(self._blocks)

        def sweep_blocks(stretch: tuple[int, int]) -> tuple[Array, ...]:
            totals: tuple[Array, ...] = ()
            for index in range(*stretch):
                start, stop = self._edges[index], self._edges[index + 1]
                parts = kernel(self._blocks[index], *(values[start:stop] for values in per_row))
                totals = add_sums(totals, parts.sums)
                found[index] = Parts(rows=tuple(np.asarray(values) for values in parts.rows))
            return totals

        threads = min(self.threads or allowed_threads(), len(self._blocks))
        edges = np.linspace(0, len(self._blocks), threads + 1).astype(int)
        with single_threaded_blas():
            sums = run_in_threads(sweep_blocks, [(int(low), int(high)) for low, high in pairwise(edges)])
        totals: tuple[Array, ...] = ()
        for part in sums:
            totals = add_sums(totals, part)
        return Parts(totals, self._joined([part.rows for part in found if part is not None]))

    def _joined(self, rows: list[tuple[Array, ...]]) -> tuple[Array, ...]:
        """Per-sample results of all blocks, one below the other; columns in one piece, as products come."""
        if len(rows) == 1:
            return rows[0]
        joined = []
        for pieces in zip(*rows, strict=True):
            whole = np.empty((self.shape[0], *pieces[0].shape[1:]), pieces[0].dtype, order="F")
            for piece, (start, stop) in zip(pieces, pairwise(self._edges), strict=True):
                whole[start:stop] = piece
            joined.append(whole)
        return tuple(joined)


def _shape_of(operator: Any) -> tuple[int, int]:
    shape = tuple(int(size) for size in operator.shape)
    if len(shape) != 2:
        raise ValueError(f"an operator has a shape (samples, unknowns), got {shape}.")
    if 0 in shape:
        raise ValueError(f"A is empty: shape {shape}. At least one row and one column are needed.")
    return shape[0], shape[1]


def _dtype_of(operator: Any, n: int) -> np.dtype[Any]:
    declared = getattr(operator, "dtype", None)
    dtype = np.asarray(operator.matvec(np.zeros(n))).dtype if declared is None else np.dtype(declared)
    dtype = np.result_type(dtype, np.float32) if dtype.kind in "fciub" else dtype
    if dtype not in NATIVE_DTYPES:
        raise TypeError(f"A must hold numbers in single or double precision, got an operator of dtype {dtype}.")
    return dtype


def _no_adjoint(operator: Any) -> str:
    return (
        f"A is an operator ({type(operator).__name__}) without an adjoint: its rmatvec is not defined. Every step of a fit "
        "sums rows, which is a product with the conjugate transpose. Define rmatvec (for scipy, "
        "LinearOperator(shape, matvec=..., rmatvec=..., dtype=...)); rp.testing.dot_test checks it."
    )
