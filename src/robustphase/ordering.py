"""The order of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def stable_order(values: NDArray[Any]) -> NDArray[Any]:
    """The order of values (m,), and of ties among them as they come.

    Without ties there is one order, and NumPy's quick sort finds it in half the time of its stable one.
    """
    order = np.argsort(values)
    ordered = values[order]
    untied = bool((ordered[1:] > ordered[:-1]).all())
    return order if untied else np.argsort(values, kind="stable")
