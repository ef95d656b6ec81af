"""The marginal density of responses: what a bad response is compared with."""

from __future__ import annotations

import numpy as np

from robustphase.likelihood.types import Array

#: Share of the samples on either side that a local density is taken from.
NEIGHBOURS = 0.02


def response_density(responses: Array, floor: float) -> Array:
    """Density of the responses at each of them, by the width of its neighbourhood, never below ``floor``.

    Parameters
    ----------
    responses : ndarray of shape (m,)
        In units of their interquartile range.
    floor : float
        Smallest density. A response far out, where there are no others, would otherwise count as infinitely surprising,
        and explaining it would be worth more than explaining many ordinary ones.

    Returns
    -------
    ndarray of shape (m,)
    """
    m = responses.size
    order = np.argsort(responses, kind="stable")
    ordered = responses[order]
    reach = max(5, int(NEIGHBOURS * m))
    low = np.maximum(np.arange(m) - reach, 0)
    high = np.minimum(np.arange(m) + reach, m - 1)
    density = np.empty(m)
    # Ties (erased responses) have zero width; a fiftieth of the unit is as narrow as a neighbourhood gets.
    density[order] = (high - low) / (m * np.maximum(ordered[high] - ordered[low], NEIGHBOURS))
    return np.maximum(density, floor)


def density_floor(contamination: float) -> float:
    """Floor of the density while candidates are compared.

    Up to a fifth of bad samples a high floor, so that many ordinary samples outvote few surprising ones. Beyond, an adversary
    can have the majority of ordinary-looking samples on his side, and only the surprising ones tell: the floor sinks.
    """
    return float(0.3 * min(1.0, (0.2 / contamination) ** 4.5))
