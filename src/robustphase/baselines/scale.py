"""The scale of residuals that M-estimates need, found together with the signal.

The residuals of a rough start say more about the start than about the noise, so estimate and scale take turns: fit with the
scale of the last residuals, measure it again, until it stops falling. Without noise it falls towards zero and outliers lose
all influence; with noise it ends at the noise's own scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from robustphase.rows.source import Array

#: Ratio of the standard deviation of a normal variable to the median of its absolute value.
NORMAL_RATIO = 1.482602218505602
#: Most turns; the scale has settled when a turn changes it by less than this fraction.
TURNS, SETTLED = 20, 0.05
#: The scale is never taken below this fraction of the largest response: the loss would be made of roundings.
SMALLEST = 1e-13


class Fit(NamedTuple):
    """One fit: the signal, its residuals, iterations made, and whether the solver says that it converged."""

    signal: Array
    residuals: Array
    n_iter: int
    converged: bool


def robust_scale(residuals: Array) -> float:
    """Median absolute residual, scaled to the standard deviation of a normal law."""
    return max(NORMAL_RATIO * float(np.median(np.abs(residuals))), SMALLEST)


def take_turns(fit: Callable[[Array, float, int], Fit], first: Fit, max_iter: int) -> Fit:
    """Fit and measure the scale in turns.

    Parameters
    ----------
    fit : callable
        ``fit(start, scale, max_iter) -> Fit``.
    first : Fit
        The start and its residuals.
    max_iter : int
        Most iterations of all fits together.
    """
    found, scale = first, np.inf
    for _ in range(TURNS):
        new_scale = robust_scale(found.residuals)
        if new_scale == SMALLEST:
            # Most residuals are roundings, in which no solver could find a descent.
            return found._replace(converged=True)
        if found.n_iter and new_scale > (1 - SETTLED) * scale:
            return found
        scale, spent = new_scale, found.n_iter
        if spent >= max_iter:
            break
        latest = fit(found.signal, scale, max_iter - spent)
        found = latest._replace(n_iter=spent + latest.n_iter)
    return found._replace(converged=False)
