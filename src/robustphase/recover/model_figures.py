"""Figures that tell whether a fit believes in the right model, from three passes over the rows.

A fit follows its own samples, and with few of them it follows anything; so what can be is measured on samples that the
measured thing has not seen. The samples are split at random. The gradients of either half say where the signal would have been
without the other half, ``x ∓ H⁻¹(g₁ − g₂)/2``, to first order; each is judged on the other half. In the same way the direction v
in which the residuals of one half depend most on ``|a·v|²`` is judged on the other half, where chance gives a correlation of
zero with a known spread. Residuals are clipped, so that heavy tails decide nothing.

The first pass also takes what there is to know of the design: the lengths of the rows, their mean, two moments of the spectrum
of their covariance along a random direction, and, from a few rows per unknown, the least curvature of the loss at the answer:
where it is nearly zero, other signals fit as well. For standard normal rows the least eigenvalue of the mean of
``|a·x|² a aᵀ`` over k rows per unknown is ``(1 − k^{-1/2})³ ‖x‖²``, as simulations say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from robustphase.constants import budget, empirical
from robustphase.population import newton_step
from robustphase.problem import kept
from robustphase.rows import OperatorRows, RowSource
from robustphase.rows.passes import abs2, adjoint_block, in_slices, project_block
from robustphase.rows.source import Array, Parts

_TINY = float(np.finfo(np.float64).tiny)
_NORMAL_MAD = 1.4826


@dataclass(frozen=True)
class FigureOptions:
    """Constants of the figures."""

    clip: float = empirical(3.0, "residuals count up to so many robust standard deviations: tails decide nothing")
    bins: int = budget(12, "bins of the prediction along which the responses are followed")
    fewest: int = budget(8, "fewest samples of a bin")
    directions: int = budget(
        8, "most signals for which directions in the residuals are sought: they cost two products each"
    )
    least_spread: float = empirical(
        0.3, "least scale of a bin in units of that of all: a few samples may agree by chance"
    )
    powers: int = budget(45, "exponents that are tried")
    curvature_rows: float = budget(8.0, "rows per real unknown from which the curvature is computed")
    curvature_unknowns: int = budget(200, "most real unknowns for which it is computed: it takes a matrix of that size")


FIGURES = FigureOptions()


class FittedSamples(NamedTuple):
    """A fit and its samples.

    Attributes
    ----------
    source : RowSource
        The covariates.
    responses, weights, covariate_weights : ndarray of shape (m, p)
        Responses, weights of the samples, and of their covariates alone.
    dropped : ndarray of bool, shape (m,) or (m, p)
        Samples that could not be used.
    signals, initial_signals : ndarray of shape (n, p)
        The answers, and the starts they came from.
    centres, scales, levels : ndarray of shape (p,)
        Where the residuals of clean samples are centred, their scale, and the contamination that was stated or found.
    unknown_mean : bool
        Whether backgrounds were fitted.
    spreads : ndarray of shape (m, p), optional
        Standard deviation of every sample over the typical one, as the fit has it; one without.
    counts : bool, default=False
        The responses are counts, which are described by means: medians of counts are whole numbers.
    """

    source: RowSource
    responses: Array
    weights: Array
    covariate_weights: Array
    dropped: Array
    signals: Array
    initial_signals: Array
    centres: Array
    scales: Array
    levels: Array
    unknown_mean: bool
    spreads: Array | None = None
    counts: bool = False


class Design(NamedTuple):
    """The rows that were kept, held against a standard normal design.

    Attributes
    ----------
    scale : float
        Median squared length of the rows over the number of unknowns: 1.
    shift : float
        Squared length of the mean row over the mean squared length of a row: nearly 0.
    spread : float
        Variance of the eigenvalues of the second moment in units of their mean squared, less what chance adds: 0.
    kurtosis : float
        Excess kurtosis of the entries if they are independent, from the variance of the squared lengths: 0.
    rows : int
        How many rows that were.
    curvature : float
        Least curvature of the loss at the answer over that of a standard normal design: 1. NaN where it was not computed.
    """

    scale: float
    shift: float
    spread: float
    kurtosis: float
    rows: int
    curvature: float


class Figures(NamedTuple):
    """What was measured of one signal.

    Attributes
    ----------
    samples, kept, unknowns : int
        Samples that could be used, samples that are kept, and real unknowns.
    flagged : float
        Share of the usable samples that are not kept.
    energy, scale : float
        Squared norm of the signal (mean prediction, for a linear operator), and robust standard deviation of the kept residuals.
    correlation : float
        Rank correlation of the responses with predictions from the other half, over all samples with good covariates.
    kept_correlation : float
        The same over the samples that are kept.
    unexplained : float
        Variance of the kept residuals over that of the kept responses.
    power, power_evidence : float
        Exponent q of ``y ≈ b + c (|a·x|²)^q`` along bins of the prediction, and by how much it fits better than 1, in units of
        the variance of a bin.
    uneven : float
        Scale of the residuals in the upper third of the predictions over that in the lower third.
    dependence, dependence_evidence : float
        Share of the variance of the residuals that one direction of the covariates explains, judged on the other half, and the
        number of standard deviations that it lies above chance.
    background : float
        Mean of the kept residuals ``y − |a·x|²``, as far as they are clipped.
    neighbours, drift, gain : float
        Correlation of residuals with those of the next row, with the number of the row, and with prediction times that number.
    """

    samples: int
    kept: int
    unknowns: int
    flagged: float
    energy: float
    scale: float
    correlation: float
    kept_correlation: float
    unexplained: float
    power: float
    power_evidence: float
    uneven: float
    dependence: float
    dependence_evidence: float
    background: float
    neighbours: float
    drift: float
    gain: float


def measure(fit: FittedSamples, *, seed: int = 0) -> tuple[list[Figures], Design | None]:
    """The figures of every signal, and those of the design unless it is a linear operator: three passes."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _measure(fit, np.random.default_rng(seed))


def _measure(fit: FittedSamples, rng: np.random.Generator) -> tuple[list[Figures], Design | None]:
    (m, p), n = fit.responses.shape, len(fit.signals)
    usable: Array = np.logical_not(np.broadcast_to(fit.dropped.reshape(m, -1), (m, p)))
    keep: Array = np.logical_and(kept(fit.weights), usable)
    first_half: Array = np.asarray(rng.random(m) < 0.5)
    halves = np.where(first_half[:, np.newaxis], 1.0, 0.0)
    with_directions = p <= FIGURES.directions
    starts = _random_directions(n, 2, fit.signals.dtype, rng)
    starts = np.repeat(starts, p, axis=1) if with_directions else starts[:, :1]
    if with_directions:
        # What the start has across the answer is where a second signal would show.
        starts = starts + _across(fit.initial_signals, fit.signals)[:, np.tile(np.arange(p), 2)]
        starts /= np.linalg.norm(starts, axis=0)
    first = _first_pass(fit, keep, halves, starts, with_directions, rng)
    predictions = first.predictions
    residuals = fit.responses - predictions - fit.centres
    scales = np.array([_robust_scale(r[k]) for r, k in zip(residuals.T, keep.T, strict=True)])
    design = None if first.lengths is None else _design(first, starts, _mostly(keep)[:, 0], usable[:, 0], n)
    energies = np.sum(abs2(fit.signals), axis=0)
    sizes = np.full(p, 1.0 if design is None or not design.scale > 0 else design.scale)
    if design is None:
        # Rows of an operator have any size, and only their responses tell it.
        strengths = np.where(keep, predictions, 0.0).sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
        sizes = np.maximum(strengths, _TINY) / np.maximum(energies, _TINY)
        energies = strengths
    moves = _half_moves(fit, first, sizes)
    clipped = np.clip(residuals / np.maximum(scales, _TINY), -FIGURES.clip, FIGURES.clip)
    clipped = np.where(keep, clipped, 0.0)
    means = clipped.sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
    clipped -= np.where(keep, means, 0.0)
    ahead = _second_pass(fit, moves, clipped, halves, first.directions if with_directions else None)
    held_out = np.where(first_half[:, np.newaxis], ahead.of_second, ahead.of_first)
    evidence = _dependence(fit, clipped, keep, halves, ahead.directions) if with_directions else np.zeros((2, p))
    unknowns = n * (2 if np.iscomplexobj(fit.signals) else 1)
    good = (fit.covariate_weights >= 0.5) & usable
    standard = residuals if fit.spreads is None else residuals / fit.spreads
    figures = []
    for j in range(p):
        used, k, y = usable[:, j], keep[:, j], fit.responses[:, j]
        g = good[:, j] if good[:, j].sum() > 0.5 * used.sum() else used
        power, power_evidence = _power(held_out[k, j], y[k], scales[j], float(fit.levels[j]), counts=fit.counts)
        order = np.flatnonzero(k)
        r = clipped[order, j]
        figures.append(
            Figures(
                samples=int(used.sum()),
                kept=int(k.sum()),
                unknowns=unknowns,
                flagged=1.0 - k.sum() / max(int(used.sum()), 1),
                energy=float(energies[j]),
                scale=float(scales[j]),
                correlation=_rank_correlation(held_out[g, j], y[g]),
                kept_correlation=_rank_correlation(held_out[k, j], y[k]),
                unexplained=_unexplained(residuals[k, j], y[k]),
                power=power,
                power_evidence=power_evidence,
                uneven=_unevenness(predictions[k, j], standard[k, j], counts=fit.counts),
                dependence=float(evidence[0, j]),
                dependence_evidence=float(evidence[1, j]),
                background=float(fit.centres[j] + scales[j] * means[j]),
                neighbours=_correlation(r[:-1], r[1:]),
                drift=_correlation(r, order),
                gain=_correlation(r, predictions[order, j] * (order - order.mean()) if order.size else order),
            )
        )
    return figures, design


class _First(NamedTuple):
    predictions: Array
    gradients: Array
    directions: Array
    lengths: Array | None
    mean: Array
    image: Array
    along: float
    rows: int
    curvature: float


def _first_pass(
    fit: FittedSamples, keep: Array, halves: Array, starts: Array, with_directions: bool, rng: np.random.Generator
) -> _First:
    """Predictions, gradients of the halves, first steps towards directions in their residuals, and figures of the design."""
    p, signals, centres, limits = fit.signals.shape[1], fit.signals, fit.centres, FIGURES.clip * fit.scales
    operator = isinstance(fit.source, OperatorRows)
    # Most rows are kept or nothing can be said; where they are not, the figures of the design are about all of them.
    rows = most if 2 * (most := _mostly(keep)).sum() >= len(keep) else np.ones((len(keep), 1), bool)
    unknowns = len(signals) * (2 if np.iscomplexobj(signals) else 1)
    probes_ = np.hstack((signals, starts))
    curved = not operator and p == 1 and unknowns <= FIGURES.curvature_unknowns
    chosen = rows & (rng.random((len(rows), 1)) * rows.sum() < FIGURES.curvature_rows * unknowns) & curved

    def kernel(block: Array, y: Array, kept_: Array, half: Array, row: Array, few: Array) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            projected = project_block(block, probes_)
            s, probes = projected[:, :p], projected[:, p:]
            predicted = abs2(s)
            residuals = np.where(kept_, y - predicted - centres, 0.0)
            pull = np.where(kept_, -residuals * s, 0.0)
            along = np.where(row, probes[:, :1], 0.0)
            columns = [pull * half, pull * (1 - half), along, row.astype(np.float64)]
            if with_directions:
                clipped = np.clip(residuals, -limits, limits)
                split = np.hstack((clipped * half, clipped * (1 - half)))
                columns.append(np.where(split != 0, split * probes, 0.0))
            sums = adjoint_block(block if operator else _without(block, kept_, row), np.hstack(columns))
            lengths = np.zeros(len(y)) if operator else _squared_lengths(block)
            moment = _tangent_moment(block[few[:, 0]], s[few[:, 0], 0]) if curved else np.zeros((0, 0))
        return Parts(sums=(sums, abs2(along).sum(axis=0), moment), rows=(predicted, lengths))

    parts = fit.source.reduce(in_slices(kernel, 4 * p), (fit.responses, keep, halves, rows, chosen))
    sums, along, moment = parts.sums
    predicted, lengths = parts.rows
    masses = np.maximum(np.stack(((keep * halves).sum(axis=0), (keep * (1 - halves)).sum(axis=0))), 1.0)
    count = max(int(rows.sum()), 1)
    return _First(
        predictions=predicted,
        gradients=np.stack((sums[:, :p] / masses[0], sums[:, p : 2 * p] / masses[1])),
        directions=_across(sums[:, 2 * p + 2 :], signals) if with_directions else sums[:, :0],
        lengths=None if operator else lengths,
        mean=sums[:, 2 * p + 1] / count,
        image=sums[:, 2 * p] / count,
        along=float(along[0]) / count,
        rows=count,
        curvature=_least_curvature(moment, int(chosen.sum()), signals[:, 0]) if curved else np.nan,
    )


def _tangent_moment(rows: Array, projections: Array) -> Array:
    """Sum of the outer products of the derivatives of ``|a·x|²/2`` in the real unknowns."""
    tangents = np.conj(projections)[:, np.newaxis] * rows
    if np.iscomplexobj(tangents):
        tangents = np.hstack((tangents.real, -tangents.imag))
    moment: Array = tangents.T @ tangents
    return moment.astype(np.float64)


def _least_curvature(moment: Array, rows: int, signal: Array) -> float:
    """Least eigenvalue over what standard normal rows would give; the phase of a complex signal is free."""
    is_complex, energy = np.iscomplexobj(signal), float(np.sum(abs2(signal)))
    ratio = rows / len(moment)
    if ratio <= 1 or not energy > 0 or not np.isfinite(moment).all():
        return np.nan
    values = np.linalg.eigvalsh(moment / rows)
    least = 2 * values[1] if is_complex and values.size > 1 else values[0]
    return float(max(least, 0.0) / energy / (1 - ratio**-0.5) ** 3)


def _mostly(keep: Array) -> Array:
    """Rows that are kept for most signals, shape (m, 1): those that the design is judged by."""
    mostly: Array = 2 * keep.sum(axis=1, keepdims=True) > keep.shape[1]
    return mostly


def _without(block: Array, *masks: Array) -> Array:
    """The block with rows of zeros where nothing is to be summed: a zero times an infinite entry would not be zero."""
    used = np.zeros(len(block), bool)
    for mask in masks:
        used |= mask.any(axis=1)
    return block if used.all() else np.where(used[:, np.newaxis], block, 0)


def _squared_lengths(block: Array) -> Array:
    parts = (block.real, block.imag) if block.dtype.kind == "c" else (block,)
    total: Array = np.sum([np.einsum("ij,ij->i", part, part, dtype=np.float64) for part in parts], axis=0)
    return total


def _design(first: _First, starts: Array, keep: Array, usable: Array, n: int) -> Design:
    assert first.lengths is not None
    rows = keep if 2 * keep.sum() >= keep.size else usable
    lengths = first.lengths[rows]
    lengths = lengths[np.isfinite(lengths)]
    if not lengths.size or not np.median(lengths) > 0:
        return Design(0.0, 0.0, 0.0, 0.0, 0, 0.0)
    typical, average = float(np.median(lengths)), float(np.mean(lengths))
    real = 1.0 if np.isrealobj(starts) else 0.5
    shift = float(np.sum(abs2(first.mean))) / average
    second = float(np.sum(abs2(first.image)))
    spread = second / max(first.along, _TINY) ** 2 - 1.0 - n / first.rows
    # Squared lengths of rows of independent entries have the variance n(κ + 2), or n(κ + 1) if they are complex.
    varied = float(np.square(_NORMAL_MAD * np.median(np.abs(lengths - typical)))) * n / typical**2
    return Design(typical / n, shift, spread, varied - 2.0 * real, first.rows, first.curvature)


def _half_moves(fit: FittedSamples, first: _First, sizes: Array) -> Array:
    """Where the signal would be without either half, from where it is, as far as first order tells."""
    noise_mean: Any = "unknown" if fit.unknown_mean else "zero"
    difference = (first.gradients[0] - first.gradients[1]) / 2
    moves = [
        newton_step(x, g / size**2, noise_mean=noise_mean, max_relative_length=1.0) if np.any(x) else np.zeros_like(x)
        for x, g, size in zip(fit.signals.T, difference.T, sizes, strict=True)
    ]
    return np.stack(moves, axis=1)


class _Second(NamedTuple):
    of_first: Array
    of_second: Array
    directions: Array


def _second_pass(fit: FittedSamples, moves: Array, clipped: Array, halves: Array, starts: Array | None) -> _Second:
    """Predictions of either half, and the next step of the power iterations on the residuals of either half."""
    p = moves.shape[1]
    tried = np.hstack((fit.signals - moves, fit.signals + moves))
    both = tried if starts is None else np.hstack((tried, starts))

    def kernel(block: Array, r: Array, half: Array) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            projected = project_block(block, both)
            rows = (abs2(projected[:, : 2 * p]),)
            if starts is None:
                return Parts(rows=rows)
            split = np.hstack((r * half, r * (1 - half)))
            weighted = np.where(split != 0, split * projected[:, 2 * p :], 0.0)
            block = block if isinstance(fit.source, OperatorRows) else _without(block, r != 0)
            return Parts(sums=(adjoint_block(block, weighted),), rows=rows)

    parts = fit.source.reduce(in_slices(kernel, 4 * p), (clipped, halves))
    predicted = parts.rows[0]
    directions = np.empty((len(moves), 0)) if starts is None else _across(parts.sums[0], fit.signals)
    return _Second(predicted[:, :p], predicted[:, p:], directions)


def _dependence(fit: FittedSamples, clipped: Array, keep: Array, halves: Array, directions: Array) -> Array:
    """Shares of the variance of the residuals that the strongest direction of the other half explains, and their evidence."""
    p = clipped.shape[1]

    def kernel(block: Array) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return Parts(rows=(abs2(project_block(block, directions)),))

    squares = fit.source.reduce(in_slices(kernel, 2 * p)).rows[0]
    result = np.zeros((2, p))
    for j in range(p):
        found = []
        for own, column in ((halves[:, 0] > 0, j), (halves[:, 0] == 0, p + j)):
            mine, other = own & keep[:, j], ~own & keep[:, j]
            there = _correlation(clipped[mine, j], squares[mine, column])
            here = _correlation(clipped[other, j], squares[other, column])
            found.append((np.sign(there) * here, int(other.sum())))
        shares = [max(c, 0.0) ** 2 for c, _ in found]
        result[0, j] = float(np.mean(shares))
        result[1, j] = float(sum(c * np.sqrt(k) for c, k in found) / np.sqrt(2))
    return result


def _across(vectors: Array, signals: Array) -> Array:
    """Unit vectors across the signals, along which the residuals of a fit vanish on average anyway."""
    repeated = np.hstack([signals] * (vectors.shape[1] // signals.shape[1]))
    units = repeated / np.maximum(np.linalg.norm(repeated, axis=0), _TINY)
    left = vectors - units * np.vecdot(units.T, vectors.T)
    across: Array = left / np.maximum(np.linalg.norm(left, axis=0), _TINY)
    return across


def _random_directions(n: int, count: int, dtype: Any, rng: np.random.Generator) -> Array:
    values = rng.standard_normal((n, count)).astype(np.result_type(dtype, np.float64))
    if np.iscomplexobj(values):
        values = values + 1j * rng.standard_normal((n, count))
    directions: Array = values / np.linalg.norm(values, axis=0)
    return directions


def _robust_scale(values: Array) -> float:
    if not values.size:
        return 0.0
    return float(_NORMAL_MAD * np.median(np.abs(values - np.median(values))))


def _correlation(a: Array, b: Array) -> float:
    if a.size < FIGURES.fewest:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if 0 < size < np.inf else 0.0


def _rank_correlation(a: Array, b: Array) -> float:
    return _correlation(rankdata(a), rankdata(b)) if a.size else 0.0


def _unexplained(residuals: Array, responses: Array) -> float:
    if not residuals.size:
        return 1.0
    return float(np.var(residuals) / max(float(np.var(responses)), _TINY))


def _unevenness(predictions: Array, residuals: Array, *, counts: bool) -> float:
    third = predictions.size // 3
    if third < FIGURES.fewest:
        return 1.0
    order = np.argsort(predictions)
    scale = _root_mean_square if counts else _robust_scale
    low, high = scale(residuals[order[:third]]), scale(residuals[order[-third:]])
    return high / low if low > 0 else 1.0


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def _power(
    predictions: Array, responses: Array, scale: float, level: float, *, counts: bool = False
) -> tuple[float, float]:
    """The exponent that bins of the prediction ask for, with a free factor and offset, and the evidence against one.

    Bad samples may all have the largest predictions, where they look like a detector that saturates; their share is left out.
    """
    bins = min(FIGURES.bins, predictions.size // FIGURES.fewest)
    if bins < 5:
        return 1.0, 0.0
    order = np.argsort(predictions)
    parts = np.array_split(order, bins)[: max(bins - int(level * bins), 5)]
    x = np.array([np.median(predictions[part]) for part in parts])
    if not x[0] < x[-1]:
        return 1.0, 0.0
    gaps = [responses[part] - predictions[part] for part in parts]
    middle, spread, factor = (np.mean, np.std, 1.0) if counts else (np.median, _robust_scale, 1.2533)
    y = x + np.array([middle(gap) for gap in gaps])
    spreads = np.array([spread(gap) for gap in gaps])
    errors = factor * np.maximum(spreads, FIGURES.least_spread * scale) / np.sqrt([part.size for part in parts])
    if not (errors > 0).all():
        return 1.0, 0.0
    x = x / x[-1]
    grid = np.append(np.geomspace(0.05, 4.0, FIGURES.powers), 1.0)
    misfits = np.array([_misfit(x**q, y, errors) for q in grid])
    best = int(np.argmin(misfits))
    return float(grid[best]), float(misfits[-1] - misfits[best])


def _misfit(x: Array, y: Array, errors: Array) -> float:
    basis = np.stack((np.ones_like(x), x), axis=1) / errors[:, np.newaxis]
    solution = np.linalg.lstsq(basis, y / errors, rcond=None)[0]
    return float(np.sum(np.square(y / errors - basis @ solution)))
