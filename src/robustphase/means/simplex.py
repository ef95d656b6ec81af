"""Weights that no adversary can concentrate: the capped simplex, and the way back to it.

A fraction ε of the points may be bad, so an honest weighting is close to one that spreads evenly over the others:
weights that sum to one and none above ``1 / ((1 − ε) N)``. Multiplicative updates leave that set; the nearest member in
relative entropy lifts all weights by one factor and cuts those that would exceed the cap.
"""

from __future__ import annotations

import numpy as np

from robustphase.rows.source import Array


def capped_simplex_projection(weights: Array, cap: float) -> Array:
    """Weights in ``{w ≥ 0, Σ w = 1, w ≤ cap}`` closest to ``weights`` in relative entropy ``Σ w log(w / weights)``.

    Every weight is multiplied by the same factor, and those that would exceed the cap get the cap.

    Parameters
    ----------
    weights : ndarray of shape (N,)
        Non-negative weights, of any sum. Zeros stay zero.
    cap : float
        Largest weight allowed.

    Returns
    -------
    ndarray of shape (N,)

    Examples
    --------
    >>> import numpy as np
    >>> capped_simplex_projection(np.array([0.56495992, 0.31297521, 0.12206487]), 0.5)
    array([0.5       , 0.35970848, 0.14029152])
    """
    positive = int(np.count_nonzero(weights))
    # One part in 1e9: ``1 / count`` is a legal cap, and must not fail by a rounding.
    if cap * positive < 1 - 1e-9:
        raise ValueError(f"{positive} positive weights of at most {cap:g} cannot sum to one; use a larger cap.")
    capped = np.zeros(weights.shape, bool)
    # Capping some weights raises the factor for the rest, which may push more of them over: the set only grows.
    while True:
        room = max(1.0 - cap * float(capped.sum()), 0.0)
        rest = float(weights[~capped].sum())
        factor = room / rest if rest > 0 else 0.0
        # A factor at the edge of rounding must not send a weight that just fits to the cap, and the last room with it.
        over = ~capped & (weights * factor > cap * (1 + 1e-12))
        if not over.any():
            return np.where(capped, cap, np.minimum(weights * factor, cap))
        capped |= over
