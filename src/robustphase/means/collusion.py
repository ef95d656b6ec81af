"""Points that lean the same way: what few, long points tell about each other.

Along one direction 20 points tell little. In d ≫ N dimensions they need not: deviations of independent points are nearly
orthogonal, so the cosines between them are all near one value, and the largest eigenvalue of their matrix is near its edge
``(1 + s √k)²`` for k points and cosines that spread by s (Marchenko and Pastur, with the effective dimension 1/s²). Points
that act together have cosines near one, however near to the others they stay, and raise it to the size of their group.

The spread s is a median over pairs. If independent points share a few large directions, it is wide, the edge is high, and
nobody is accused. From a share ``ε = 1 − 1/√2`` of bad points on most pairs hold one, and the median says nothing; then the
filter is alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import derived, empirical, numeric
from robustphase.means.excess import OPTIONS as EXCESS
from robustphase.means.geometric_median import TINY, geometric_median
from robustphase.rows import MemoryRows, ScaledRows
from robustphase.rows.source import Array


@dataclass(frozen=True)
class CollusionOptions:
    """When a group is one, and who belongs to it."""

    edge: float = derived(4.0, "times k^(-2/3), by which the edge fluctuates; four deviations of a skewed law")
    together: float = derived(
        0.5, "squared share over the largest; a point at half of it has cosine 0.7 with the group"
    )
    deviation: float = derived(1.4826, "standard deviation over median absolute deviation, for normal cosines")
    whole: float = numeric(1e-9, "a count that is whole up to roundings is not rounded down")
    fewest: int = empirical(5, "points; fewer have too few cosines for a median")


OPTIONS = CollusionOptions()


def without_colluders(points: Array, usable: Array, contamination: float | str) -> Array:
    """The usable points without groups that lean the same way, shape (N,) boolean.

    No more are taken than the stated contamination allows; with ``"auto"``, up to nearly half, if the group is clear.
    """
    keep = usable.copy()
    clear, most = (EXCESS.clear, EXCESS.most) if isinstance(contamination, str) else (1.0, contamination)
    centre = geometric_median(ScaledRows(MemoryRows(points)), weights=keep.astype(np.float64)).centre.conj()
    while keep.sum() >= OPTIONS.fewest:
        # A product of whole size must not lose its last point to a rounding.
        room = int(most * keep.size + OPTIONS.whole) - int(keep.size - keep.sum())
        group = _largest_group(points[keep] - centre, clear)
        if room <= 0 or group.size == 0:
            break
        keep[np.flatnonzero(keep)[group[:room]]] = False
        centre = points[keep].mean(axis=0)
    return keep


def _largest_group(deviations: Array, clear: float) -> Array:
    """Who raises the largest eigenvalue of the cosines above its edge, most involved first; empty if nobody does."""
    count = len(deviations)
    unit = deviations / np.maximum(np.linalg.norm(deviations, axis=1, keepdims=True), TINY)
    cosines = (unit @ unit.conj().T).real
    pairs = cosines[np.triu_indices(count, 1)]
    common = float(np.median(pairs))
    spread = OPTIONS.deviation * float(np.median(np.abs(pairs - common)))
    # What all share comes from a centre that is off, not from a group.
    values, vectors = np.linalg.eigh(cosines - common * (1.0 - np.eye(count)))
    slack = EXCESS.slack + OPTIONS.edge * count ** (-2 / 3)
    if values[-1] <= clear * (1.0 + slack) * (1.0 + spread * np.sqrt(count)) ** 2:
        return np.empty(0, np.intp)
    shares = vectors[:, -1] ** 2
    order = np.argsort(-shares, kind="stable")
    group: Array = order[shares[order] >= OPTIONS.together * shares.max()]
    return group
