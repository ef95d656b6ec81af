"""Anderson's acceleration of a fixed-point map, for many columns at once.

A map that contracts slowly along a few directions is followed by its last steps: the combination of them whose proposals
cancel best says where the map comes to rest. On a quadratic problem this is as fast as conjugate gradients, but it needs only
the map itself, so whatever the map updates along the way (weights, a scale, a share of bad samples) is accelerated too.
"""

from __future__ import annotations

import numpy as np

from robustphase.rows.source import Array

#: Steps remembered.
DEPTH = 12
#: Ridge of the small least-squares problems, relative to their trace: proposals that differ by rounding only say nothing.
RIDGE = 1e-13
#: When the proposals of a column grow by this factor its memory was misleading, and is cleared.
GROWN = 2.0
_TINY = float(np.finfo(np.float64).tiny)


class Acceleration:
    """Memory of the last points and proposals of k columns.

    Parameters
    ----------
    depth : int
        Steps remembered.
    """

    def __init__(self, depth: int = DEPTH) -> None:
        self._depth = depth
        self._points: list[Array] = []
        self._proposals: list[Array] = []
        self._trusted: list[Array] = []

    def forget(self, columns: Array) -> None:
        """Clear the memory of the marked columns."""
        self._trusted = [trusted & ~columns for trusted in self._trusted]

    def only(self, columns: Array) -> None:
        """Go on with some of the columns."""
        self._points = [points[:, columns] for points in self._points]
        self._proposals = [proposals[:, columns] for proposals in self._proposals]
        self._trusted = [trusted[columns] for trusted in self._trusted]

    def step(self, points: Array, proposals: Array, metric: Array) -> Array:
        """Where to go from ``points``, shape (N, k), if the map proposes to move by ``proposals``.

        Parameters
        ----------
        points, proposals : ndarray of shape (N, k)
            Present points, and what the map adds to them.
        metric : ndarray of shape (N, 1) or (N, k)
            Weights of the entries when proposals are compared; zero for entries that only follow.
        """
        if self._proposals:
            grown = _sizes(metric * proposals) > GROWN * _sizes(metric * self._proposals[-1])
            self.forget(grown)
        self._points.append(points)
        self._proposals.append(proposals)
        self._trusted.append(np.ones(points.shape[1], bool))
        if len(self._points) > self._depth + 1:
            del self._points[0], self._proposals[0], self._trusted[0]
        if len(self._points) == 1:
            return points + proposals
        # A difference of two steps counts only if neither was forgotten.
        known = np.stack([earlier & later for earlier, later in zip(self._trusted, self._trusted[1:], strict=False)])
        moved = np.stack([later - earlier for earlier, later in zip(self._points, self._points[1:], strict=False)])
        changed = np.stack(
            [later - earlier for earlier, later in zip(self._proposals, self._proposals[1:], strict=False)]
        )
        weighted = (metric * changed * known[:, np.newaxis, :]).transpose(2, 0, 1)
        gram = (weighted @ weighted.conj().transpose(0, 2, 1)).real
        right = np.einsum("kdn,nk->kd", weighted.conj(), metric * proposals).real
        ridge = RIDGE * np.trace(gram, axis1=1, axis2=2) + _TINY
        gram += ridge[:, np.newaxis, np.newaxis] * np.eye(gram.shape[1])
        mix = np.linalg.solve(gram, right[:, :, np.newaxis])[:, :, 0].T
        mix = np.where(known, mix, 0.0)
        accelerated: Array = points + proposals - np.einsum("dk,dnk->nk", mix, moved + changed)
        return accelerated


def _sizes(vectors: Array) -> Array:
    sizes: Array = np.linalg.norm(vectors, axis=0)
    return sizes
