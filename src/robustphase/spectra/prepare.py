"""From what the user has to centred points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustphase.means import mean_of
from robustphase.rows import MaskedRows, RowSource, ShiftedRows, as_source
from robustphase.rows.source import Array
from robustphase.validation import NONFINITE, check_choice, hide_extremes


class Centred(NamedTuple):
    """Rows with their mean at zero.

    Attributes
    ----------
    source : RowSource
        The rows, moved.
    location : ndarray of shape (n,)
        What was subtracted.
    usable : ndarray of bool, shape (N,)
        Rows that can be computed with.
    """

    source: RowSource
    location: Array
    usable: Array


def centred_rows(X: Any, contamination: float | str, *, assume_centered: bool, nonfinite: str) -> Centred:
    """Check the rows of ``X`` and subtract their robust mean, unless they are known to have mean zero."""
    check_choice("nonfinite", nonfinite, NONFINITE)
    source, dropped = hide_extremes(as_source(X, name="X"), nonfinite, name="X")
    if dropped.all():
        raise ValueError("every row of X holds NaN, infinite or overflowing entries; nothing is left to work with.")
    if assume_centered:
        return Centred(source, np.zeros(source.shape[1], np.result_type(source.dtype, np.float64)), ~dropped)
    location = mean_of(source, contamination, dropped=dropped).location
    # Dropped rows read as zero before the shift and must do so after it.
    return Centred(MaskedRows(ShiftedRows(source, location), dropped), location, ~dropped)
