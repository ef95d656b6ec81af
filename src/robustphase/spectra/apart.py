"""Whether some points have lengths of their own: a group that is longer, or shorter, than the rest.

A group of points that are good but for their scale, such as readings in another unit, leaves the shape along every direction
nearly as it was, so no direction shows it. Whitened points of many dimensions nearly all have one length, and there a group of
another length is a second peak of the density. Heavy tails are not: the density falls all the way. Logarithms of lengths are
looked at, on which heavy tails have no far ends, and a peak counts if it rises above the valley before it by more than the noise
of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import derived, numeric
from robustphase.rows.source import Array
from robustphase.spectra.density import smoothed_counts


@dataclass(frozen=True)
class ApartOptions:
    """When a peak is one."""

    noise: float = derived(4.0, "standard deviations of a rise; a peak is looked for at some hundred places")
    farthest: float = numeric(3.0, "larger logarithms of lengths over the usual one count as this")
    fewest: float = derived(0.01, "share of the points below which a group does no harm: it moves variances by less")


OPTIONS = ApartOptions()


def some_stand_apart(roots: Array, centre: float, scale: float) -> bool:
    """Whether lengths have a second peak.

    Parameters
    ----------
    roots : ndarray of shape (N,)
        Cube roots of squared lengths, nearly normal for good points.
    centre, scale : float
        Their median and deviation.
    """
    relative = scale / centre if centre > 0 else np.inf
    if not np.isfinite(relative) or relative <= np.finfo(np.float64).eps:
        return False
    farthest = OPTIONS.farthest / relative
    values = np.log(np.maximum(roots, np.exp(-OPTIONS.farthest) * centre) / centre) / relative
    seen = smoothed_counts(np.clip(values, -farthest, farthest), np.ones(roots.size), farthest)
    outwards, inwards = seen.values[seen.grid >= 0], seen.values[seen.grid <= 0]
    cell = float(seen.grid[1] - seen.grid[0]) / roots.size
    return any(_beyond_valley(side, seen.width) * cell > OPTIONS.fewest for side in (outwards, inwards[::-1]))


def _beyond_valley(density: Array, width: float) -> float:
    """How much lies beyond the valley before the first peak of a density that is followed outwards; zero without a peak."""
    valley = np.minimum.accumulate(density)
    # Variance of a count that a normal kernel has smoothed, of both.
    noise = np.sqrt((density + valley) / (2 * np.sqrt(np.pi) * width))
    peaks = density - valley > OPTIONS.noise * noise
    if not peaks.any():
        return 0.0
    lowest = int(np.argmin(density[: int(np.argmax(peaks)) + 1]))
    return float(density[lowest:].sum())
