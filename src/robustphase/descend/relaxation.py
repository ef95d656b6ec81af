"""How far to go along a proposed step.

The proposals are those of a fixed-point map: exact in expectation, too long where samples are few, too short where iterated
weights follow slowly. Irons and Tuck's rule (Aitken's, for vectors) reads the right length off the last two proposals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows.source import Array

#: No step may be longer than this fraction of the signal.
LONGEST = 0.5
_TINY = float(np.finfo(np.float64).tiny)


class Relaxation(NamedTuple):
    """One relaxation factor per candidate, adapted from step to step.

    Attributes
    ----------
    factor : ndarray of shape (k,) or float
        Present factors; before the first step a single one for all.
    least, most : float
        Bounds of the adapted factors.
    proposals : ndarray of shape (n, k), optional
        The last proposals.
    """

    factor: Array | float
    least: float = 0.4
    most: float = 4.0
    proposals: Array | None = None

    def only(self, chosen: Array) -> Relaxation:
        """Those of some candidates."""
        if self.proposals is None:
            return self
        return self._replace(factor=np.asarray(self.factor)[chosen], proposals=self.proposals[:, chosen])

    def after(self, proposals: Array) -> Relaxation:
        """The factors for new proposals of shape (n, k)."""
        if self.proposals is None:
            return self._replace(factor=np.full(proposals.shape[1], float(self.factor)), proposals=proposals)
        change = self.proposals - proposals
        size = np.vecdot(change.T, change.T).real
        gained = np.vecdot(change.T, self.proposals.T).real / np.maximum(size, _TINY)
        adapted = np.clip(self.factor * gained, self.least, self.most)
        return self._replace(factor=np.where(size > 0, adapted, self.factor), proposals=proposals)

    def factors(self, signals: Array) -> Array:
        """The factors, cut so that no step exceeds ``LONGEST`` of its signal; shape (k,)."""
        assert self.proposals is not None
        lengths = np.maximum(np.linalg.norm(self.proposals, axis=0), _TINY)
        cut: Array = np.minimum(self.factor, LONGEST * np.linalg.norm(signals, axis=0) / lengths)
        return cut
