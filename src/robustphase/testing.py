"""Checks for users who bring their own row source."""

from __future__ import annotations

import numpy as np

from robustphase.rows import RowSource, adjoint, project, sweep

__all__ = ["dot_test"]


def dot_test(source: RowSource, *, vectors: int = 3, seed: int = 0, rtol: float | None = None) -> None:
    """Check that a source's two products are adjoint: ``⟨A u, v⟩ = ⟨u, Aᴴ v⟩`` for random ``u`` and ``v``.

    Also checks that the fused pass agrees with the two separate ones.

    Parameters
    ----------
    source : RowSource
        The source to test.
    vectors : int, default=3
        How many vectors go through each product together.
    seed : int, default=0
        Seed of the random vectors.
    rtol : float, optional
        Relative tolerance; by default a few hundred roundings of the source's type.

    Raises
    ------
    AssertionError
        With the two values that should agree.
    """
    m, n = source.shape
    rng = np.random.default_rng(seed)
    tolerance = rtol if rtol is not None else 300 * float(np.finfo(source.dtype).eps)
    u, v = rng.standard_normal((n, vectors)), rng.standard_normal((m, vectors))
    if source.dtype.kind == "c":
        u, v = u + 1j * rng.standard_normal(u.shape), v + 1j * rng.standard_normal(v.shape)

    forward, backward = project(source, u), adjoint(source, v)
    # The inner products may cancel: the sizes of the factors set the scale of the error.
    scale = np.linalg.norm(forward, axis=0) * np.linalg.norm(v, axis=0)
    left, right = np.vecdot(v.T, forward.T), np.vecdot(backward.T, u.T)
    _agree("<v, A u> and <A^H v, u>", left, right, tolerance * scale)

    fused = sweep(source, u, lambda s, c: s * c, (v,)).total
    separate = adjoint(source, forward * v)
    _agree("A^H(A u * v) fused and in two passes", fused, separate, tolerance * np.linalg.norm(separate, axis=0))


def _agree(what: str, left: np.ndarray, right: np.ndarray, allowed: np.ndarray) -> None:
    if not (np.abs(left - right) <= allowed).all():
        raise AssertionError(f"{what} differ: {left} against {right}, allowed difference {allowed}")
