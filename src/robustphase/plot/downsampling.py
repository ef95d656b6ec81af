"""Fewer marks where an eye could not tell them apart; the same ones on every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Most marks drawn in one chart.
MOST = 3000
_SEED = 20260101


def chosen_points(count: int, most: int) -> NDArray[np.intp]:
    """Indices of at most ``most`` of ``count`` points, a random choice with a fixed seed, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(_SEED).choice(count, max(most, 1), replace=False))


def chosen_vertices(y: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Indices of at most ``most`` vertices of a line that keep its peaks: the extremes of consecutive stretches.

    Points that are not finite, which are gaps of the line, are kept only where a stretch holds nothing else.
    """
    if y.size <= most:
        return np.arange(y.size)
    stretches = np.array_split(np.arange(y.size), max(most // 4, 1))
    kept: list[int] = []
    for stretch in stretches:
        finite = stretch[np.isfinite(y[stretch])]
        inner = (
            [int(stretch[0])]
            if finite.size == 0
            else [int(finite[np.argmin(y[finite])]), int(finite[np.argmax(y[finite])])]
        )
        kept.extend((int(stretch[0]), *inner, int(stretch[-1])))
    return np.unique(np.array(kept, np.intp))


def budgets(counts: list[int], most: int = MOST) -> list[int]:
    """Shares of ``most`` for several sets of marks: small sets stay whole, the large ones share what is left.

    Parameters
    ----------
    counts : list of int
        Sizes of the sets.
    most : int
        Marks in all.
    """
    shares = [0] * len(counts)
    left, waiting = most, sorted(range(len(counts)), key=lambda i: counts[i])
    for position, i in enumerate(waiting):
        shares[i] = min(counts[i], left // (len(waiting) - position))
        left -= shares[i]
    return shares
