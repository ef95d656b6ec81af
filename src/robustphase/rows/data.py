"""Screened samples in natural units: what every stage from the start on works with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows.source import Array, RowSource


class Data(NamedTuple):
    """Screened samples.

    Responses, weights and density are of shape (m,) or (m, 1), the same for all candidates, or (m, k), one column for each.

    Attributes
    ----------
    source : RowSource
        The covariates.
    responses : ndarray
        Responses over their unit.
    weights : ndarray
        Weights of the covariates.
    density : ndarray
        Marginal density of the responses.
    contamination : float
        ε as used.
    unknown_mean : bool
        Whether a background is fitted.
    """

    source: RowSource
    responses: Array
    weights: Array
    density: Array
    contamination: float
    unknown_mean: bool

    def only(self, chosen: Array) -> Data:
        """The data of some of the candidates."""
        responses, weights, density = (
            values[:, chosen] if values.ndim == 2 and values.shape[1] > 1 else values
            for values in (self.responses, self.weights, self.density)
        )
        return self._replace(responses=responses, weights=weights, density=density)


def as_columns(values: Array) -> Array:
    """Values per sample as one column, or as the columns they are."""
    return values if values.ndim == 2 else values[:, np.newaxis]
