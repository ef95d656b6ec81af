"""Predictions of samples that the fit has not seen.

The gradient of either half of the rows says where the signal would have been without that half: leaving out k of m samples whose
gradients average to g moves it by ``H⁻¹ g k/(m − k)``, to first order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.constants import TINY
from robustphase.population import inverse_curvature
from robustphase.recover.model.design import First
from robustphase.recover.model.directions import column_lengths
from robustphase.recover.model.samples import Part
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, in_type_of, project_block
from robustphase.rows.source import Array, Parts


def without_half(part: Part, first: First, sizes: Array) -> Array:
    """Where the signals would be without the first and without the second half of the rows, to first order, shape (n, 2p)."""
    fit = part.fit
    noise_mean: Any = "unknown" if fit.unknown_mean else "zero"
    real_rows = fit.source.dtype.kind != "c"
    half = 0.5 * np.minimum(len(fit.responses), part.kept)
    sizes = sizes**2 * np.maximum(part.kept - half, 1.0) / np.maximum(half, 1.0)
    solve = inverse_curvature(fit.signals, noise_mean=noise_mean, real_rows=real_rows)
    moves = solve(first.difference / (2 * sizes)).astype(fit.signals.dtype, copy=False)
    # No move is longer than the signal itself.
    norms, lengths = column_lengths(fit.signals), column_lengths(moves)
    moves = moves * np.minimum(norms / np.maximum(lengths, TINY), 1.0)
    return np.concatenate((fit.signals + moves, fit.signals - moves), axis=1)


def last_pass(part: Part, signals: Array, directions: Array) -> tuple[Array, Array]:
    """``|a·v|²`` of the signal without the half that a row is in, shape (m, p), and of all directions."""
    p = signals.shape[1] // 2
    if part.single is not None:
        # Single precision holds no signals of extreme length.
        norms = np.maximum(column_lengths(signals), TINY)
        units, powers = in_type_of(part.single, signals / norms), norms**2
        columns = (slice(p), slice(p, None))
        ahead = [
            abs2(project_block(part.single[half], units[:, own])) * powers[own]
            for half, own in zip(part.halves(), columns, strict=True)
        ]
        return np.concatenate(ahead), abs2(project_block(part.single, directions))
    both = np.concatenate((signals, directions), axis=1)

    def kernel(block: Array) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return Parts(rows=(abs2(project_block(block, both)),))

    squares = part.fit.source.reduce(in_slices(kernel, both.shape[1])).rows[0]
    return np.where(part.first_half[:, np.newaxis], squares[:, :p], squares[:, p : 2 * p]), squares[:, 2 * p :]
