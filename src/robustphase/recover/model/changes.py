"""Whether the signal changes along the rows, and whether the residuals are linear in them."""

from __future__ import annotations

import numpy as np

from robustphase.recover.model.design import First
from robustphase.recover.model.directions import column_lengths
from robustphase.recover.model.samples import Part
from robustphase.rows.passes import abs2, adjoint_block
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


def changes(part: Part, residuals: Array, first: First, units: Array) -> tuple[Array, Array]:
    """Two sums of kept rows that chance alone keeps from vanishing; each a figure and the evidence for it, (2, p).

    How far the signal turns from the first half of the rows, in their order, to the last: the gradients with the sign of their
    half add up to a vector whose squared length is that of unrelated signs if the signal stays. And the share of the residuals
    that is linear in the rows: their sum with the residuals as factors. Residuals come over their scale, and ``units`` are what
    turns them into relative errors of the signal.
    """
    fit = part.fit
    p = residuals.shape[1]
    projections = first.projections
    if part.single is None or first.lengths is None:
        return np.zeros((2, p)), np.zeros((2, p))
    signs = np.where(part.positions < part.positions[part.along[len(residuals) // 2]], 1.0, -1.0)[:, np.newaxis]
    norms = np.maximum(column_lengths(fit.signals), _TINY)
    used = residuals != 0
    coefficients = np.where(used, (signs * residuals / norms) * projections, 0.0)
    # Rows that are not used may be too long for a number.
    lengths = np.where(used[:, 0] if p == 1 else used.any(axis=1), first.lengths, 0.0).astype(np.float64, copy=False)
    both = np.concatenate((coefficients, residuals), axis=1)
    energies = abs2(adjoint_block(part.single, both)).sum(axis=0)
    chances = np.maximum(lengths @ abs2(both), _TINY)
    complex_rows = np.iscomplexobj(part.single)
    unknowns = len(fit.signals) * (2 if complex_rows or np.iscomplexobj(fit.signals) else 1)
    # A signal that is complex behind real rows has gradients of either kind.
    freedom = np.array([unknowns] * p + [len(fit.signals) * (1 + complex_rows)] * p)
    evidence = _deviations(energies / chances, freedom)
    excess = np.sqrt(np.maximum(energies - chances, 0.0))
    # Either half is led astray by half of the difference, and the curvature of the loss is 2‖x‖² across the signal.
    count = used.sum(axis=0)
    if fit.spreads is not None:
        strengths = np.where(used, abs2(projections), 0.0)
        weighed = (strengths / np.maximum(fit.spreads, _TINY)).sum(axis=0)
        count = count * weighed / np.maximum(strengths.sum(axis=0), _TINY)
    turn = units * excess[:p] / np.maximum(count, 1.0)
    # The variance of what is linear in rows whose entries have the mean square ℓ is ℓ times the squared length of its factor.
    total = (residuals**2).sum(axis=0)
    average = lengths @ used / len(fit.signals)
    share = excess[p:] ** 2 / np.maximum(total * average, _TINY)
    return np.array((turn, evidence[:p])), np.array((share, evidence[p:]))


def _deviations(ratios: Array, freedom: Array) -> Array:
    """Standard deviations of a normal variable as rare as these means of so many squared ones (Wilson and Hilferty, 1931)."""
    small = 2 / (9 * freedom)
    deviations: Array = (np.cbrt(ratios) - (1 - small)) / np.sqrt(small)
    return deviations
