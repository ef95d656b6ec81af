"""Arrays of patterns as rows: one axis for the samples, and one or two for the pattern that each sample is.

A stack of pictures (samples x height x width) is a matrix whose rows are the pictures, read line by line; its shape is kept
beside it. Where the samples are the last axis, as one sensing vector in every column or as ``patterns(:, :, j)``, the
array is read transposed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robustphase.rows.io.limits import DataError
from robustphase.rows.source import Array

#: Axes that an array of patterns may have, that of the samples included.
FEWEST_AXES, MOST_AXES = 2, 3


class Layout(NamedTuple):
    """How an array becomes a matrix with one sample in every row."""

    rows: tuple[int, int]  # Samples, and numbers in each
    pattern: tuple[int, ...]  # Shape of one sample as it is stored: ``(n,)`` or ``(height, width)``
    last: bool  # Whether the samples are the last axis rather than the first

    @property
    def plain(self) -> bool:
        """Whether the array is that matrix already."""
        return len(self.pattern) == 1 and not self.last


def layout_of(shape: tuple[int, ...], where: str, *, transpose: bool = False) -> Layout:
    """The layout of an array of covariates, with samples along the first axis, or the last one if ``transpose``.

    What is neither a matrix nor a stack is refused.
    """
    if not FEWEST_AXES <= len(shape) <= MOST_AXES:
        raise DataError(
            f"{where} has shape {shape}; covariates need two dimensions (samples x features), or three for a stack of patterns "
            "(samples x height x width). Reshape it with A.reshape(samples, -1)."
        )
    if 0 in shape:
        raise DataError(f"{where} is empty: shape {shape}; at least one row and one column are needed.")
    samples, pattern = (shape[-1], shape[:-1]) if transpose else (shape[0], shape[1:])
    return Layout((int(samples), math.prod(map(int, pattern))), tuple(map(int, pattern)), transpose)


def as_rows(array: Array, layout: Layout) -> Array:
    """The matrix of an array in memory; a view where that is possible."""
    first = np.moveaxis(array, -1, 0) if layout.last else array
    rows: Array = first.reshape(layout.rows)
    return rows
