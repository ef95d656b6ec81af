"""Longer steps read off earlier ones, for many columns at once.

Both take the steps of a fixed-point map that is exact in expectation, too long where samples are few and too short where
iterated weights follow slowly. :class:`Aitken` keeps one factor per column (Irons and Tuck's rule, Aitken's for vectors).
:class:`Anderson` remembers the last steps: the combination of them whose proposals cancel best says where the map comes to
rest. On a quadratic problem that is as fast as conjugate gradients, but it needs only the map itself, so whatever the map
updates along the way (weights, a scale, a share of bad samples) is accelerated too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, numeric
from robustphase.rows.source import Array


@dataclass(frozen=True)
class AccelerationOptions:
    """Constants of the acceleration."""

    depth: int = budget(12, "steps that Anderson's method remembers")
    ridge: float = numeric(1e-13, "ridge of its small least-squares problems, over their trace: roundings say nothing")
    least: float = numeric(0.4, "least of Aitken's factors: shorter steps would hardly move")
    most: float = numeric(4.0, "largest of Aitken's factors: longer steps come from two that nearly coincide")


ACCELERATION = AccelerationOptions()


class Aitken(NamedTuple):
    """One factor per candidate, adapted from step to step."""

    factors: Array | float  # (k,): present factors; before the first step a single one for all
    least: float = ACCELERATION.least  # Bound of the adapted factors from below
    steps: Array | None = None  # (n, k): the last steps of the map

    def only(self, columns: Array) -> Aitken:
        """Those of some candidates."""
        if self.steps is None:
            return self
        return self._replace(factors=np.asarray(self.factors)[columns], steps=self.steps[:, columns])

    def after(self, steps: Array) -> Aitken:
        """The factors for the next steps of the map, shape (n, k)."""
        if self.steps is None:
            return self._replace(factors=np.full(steps.shape[1], float(self.factors)), steps=steps)
        change = self.steps - steps
        size = np.vecdot(change.T, change.T).real
        gained = np.vecdot(change.T, self.steps.T).real / np.maximum(size, TINY)
        adapted = np.clip(self.factors * gained, self.least, ACCELERATION.most)
        return self._replace(factors=np.where(size > 0, adapted, self.factors), steps=steps)


class Anderson:
    """Memory of the last points and steps of k columns."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._steps: list[Array] = []
        self._trusted: list[Array] = []

    def forget(self, columns: Array) -> None:
        """Clear the memory of the marked columns."""
        self._trusted = [trusted & ~columns for trusted in self._trusted]

    def only(self, columns: Array) -> None:
        """Go on with some of the columns."""
        self._points = [points[:, columns] for points in self._points]
        self._steps = [steps[:, columns] for steps in self._steps]
        self._trusted = [trusted[columns] for trusted in self._trusted]

    def extrapolate(self, points: Array, steps: Array, metric: Array) -> Array:
        """Where to go from ``points`` if the map would move by ``steps``, both of shape (N, k).

        ``metric``, (N, 1) or (N, k), weighs the entries when steps are compared; it is zero for entries that only follow.
        """
        self._points.append(points)
        self._steps.append(steps)
        self._trusted.append(np.ones(points.shape[1], bool))
        if len(self._points) > ACCELERATION.depth + 1:
            del self._points[0], self._steps[0], self._trusted[0]
        if len(self._points) == 1:
            return points + steps
        # A difference of two steps counts only if neither was forgotten.
        known = np.stack([earlier & later for earlier, later in zip(self._trusted, self._trusted[1:], strict=False)])
        moved = np.stack([later - earlier for earlier, later in zip(self._points, self._points[1:], strict=False)])
        changed = np.stack([later - earlier for earlier, later in zip(self._steps, self._steps[1:], strict=False)])
        weighted = (metric * changed * known[:, np.newaxis, :]).transpose(2, 0, 1)
        gram = (weighted @ weighted.conj().transpose(0, 2, 1)).real
        right = np.einsum("kdn,nk->kd", weighted.conj(), metric * steps).real
        ridge = ACCELERATION.ridge * np.trace(gram, axis1=1, axis2=2) + TINY
        gram += ridge[:, np.newaxis, np.newaxis] * np.eye(gram.shape[1])
        mix = np.linalg.solve(gram, right[:, :, np.newaxis])[:, :, 0].T
        mix = np.where(known, mix, 0.0)
        accelerated: Array = points + steps - np.einsum("dk,dnk->nk", mix, moved + changed)
        return accelerated
