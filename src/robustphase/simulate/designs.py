"""Sensing vectors: rows of A drawn from the standard normal law of the field."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from robustphase.simulate.arguments import FIELDS, Seed, check_choice, check_dtype, check_seed, check_size


def gaussian_design(
    m: int, n: int, *, field: str = "real", dtype: DTypeLike | None = None, seed: Seed = None
) -> NDArray[Any]:
    """Draw ``m`` sensing vectors a ~ N(0, I), or aᴴ with a ~ CN(0, I), as the rows of a matrix.

    Parameters
    ----------
    m, n : int
        Number of samples and dimension.
    field : {"real", "complex"}
        In the complex field an entry is (N + iN)/√2, so that E|a_j|² = 1 as in the real one.
    dtype : dtype, optional
        Double precision of the field unless given; ``float32`` and ``complex64`` halve the memory.
    seed : int, Generator or None
        Source of randomness.

    Returns
    -------
    ndarray of shape (m, n)
    """
    m, n = check_size("m", m), check_size("n", n)
    field = check_choice("field", field, FIELDS)
    kind = check_dtype(dtype, field)
    rng = check_seed(seed)
    single = kind.name in ("float32", "complex64")
    part = np.float32 if single else np.float64
    if field == "real":
        return rng.standard_normal((m, n), dtype=part)
    # Drawn as the (re, im) pairs that the complex dtype stores: no second array, no copy.
    pairs = rng.standard_normal((m, 2 * n), dtype=part)
    pairs *= part(np.sqrt(0.5))
    return pairs.view(kind)
