"""How far to go along a proposed step.

The proposals are those of a fixed-point map: exact in expectation, too long where samples are few, too short where iterated
weights follow slowly. Irons and Tuck's rule (Aitken's, for vectors) reads the right length off the last two proposals.
"""

from __future__ import annotations

import numpy as np

from robustphase.rows.source import Array

#: No step may be longer than this fraction of the signal.
LONGEST = 0.5


class Relaxation:
    """One relaxation factor per candidate, adapted from step to step.

    Parameters
    ----------
    first : float
        Factor of the first step.
    least, most : float
        Bounds of the later ones.
    """

    def __init__(self, first: float, least: float = 0.4, most: float = 4.0) -> None:
        self._factor: Array = np.array(first)
        self._least, self._most = least, most
        self._last: Array | None = None

    def only(self, chosen: Array) -> None:
        """Forget all candidates but the chosen ones."""
        self._factor = self._factor[chosen]
        if self._last is not None:
            self._last = self._last[:, chosen]

    def __call__(self, signals: Array, proposals: Array) -> Array:
        """Factors for proposals of shape (n, k), cut so that no step exceeds ``LONGEST`` of its signal; shape (k,)."""
        if self._last is None:
            self._factor = np.full(proposals.shape[1], float(self._factor))
        else:
            change = self._last - proposals
            size = np.vecdot(change.T, change.T).real
            gained = np.vecdot(change.T, self._last.T).real / np.maximum(size, np.finfo(np.float64).tiny)
            adapted = np.clip(self._factor * gained, self._least, self._most)
            self._factor = np.where(size > 0, adapted, self._factor)
        self._last = proposals
        lengths = np.maximum(np.linalg.norm(proposals, axis=0), np.finfo(np.float64).tiny)
        factors: Array = np.minimum(self._factor, LONGEST * np.linalg.norm(signals, axis=0) / lengths)
        return factors
