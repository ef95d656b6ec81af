"""Figures that tell whether a fit believes in the right model, from a part of the rows that is taken into memory.

How many rows that takes depends on the number of unknowns more than on that of the samples (:func:`checked_rows`), so the check
costs a few percent of a fit. They are taken in pairs of neighbours, so that the order of the rows can be looked at. Rows that
cannot be taken, those of a linear operator or too long for memory, are all swept instead.

A fit follows its own samples, and with few of them it follows anything; so what can be is measured on samples that the
measured thing has not seen. The rows are split at random into halves. The gradient of either half says where the signal would
have been without that half: leaving out k of m samples whose gradients average to g moves it by ``H⁻¹ g k/(m − k)``, to first
order. In the same way the direction v in which the residuals of one half depend most on ``|a·v|²``, found by Lanczos' method, is
judged on the other half, where chance gives a correlation of zero with a known spread. Residuals are clipped, so that heavy
tails decide nothing.

The first pass also takes what there is to know of the design: the lengths of the rows, their mean, two moments of the spectrum
of their covariance along a random direction, and whether they determine a signal (:mod:`robustphase.recover.determinacy`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from robustphase.constants import budget, derived, empirical
from robustphase.population import newton_step
from robustphase.problem import kept
from robustphase.recover.determinacy import least_curvature, random_directions, variety
from robustphase.recover.rival_signal import Rival, find_rival
from robustphase.rows import MemoryRows, OperatorRows, RowSource, rows_at
from robustphase.rows.passes import NUMBERS, abs2, adjoint_block, in_slices, project_block
from robustphase.rows.source import Array, Parts

_TINY = float(np.finfo(np.float64).tiny)
_NORMAL_MAD = 1.4826


@dataclass(frozen=True)
class FigureOptions:
    """Constants of the figures."""

    clip: float = empirical(3.0, "residuals count up to so many robust standard deviations: tails decide nothing")
    bins: int = budget(12, "bins of the prediction along which the responses are followed")
    fewest: int = budget(8, "fewest samples of a bin")
    rows: int = derived(
        4000, "fewest rows: half of them show a share of 0.02 with 4.5 standard deviations, and to spare"
    )
    rows_per_unknown: float = empirical(
        10.0, "fewest rows for every real unknown: a direction is found in half of them"
    )
    rows_share: float = budget(0.125, "rows that may always be taken, over all of them")
    numbers: int = budget(1 << 24, "numbers in the rows that are taken")
    depth: int = budget(4, "steps of Lanczos' method for directions in the residuals of rows in memory")
    passes: int = budget(2, "steps of it for rows that are swept")
    swept_signals: int = budget(8, "most signals for which directions are sought where rows are swept")
    least_spread: float = empirical(
        0.3, "least scale of a bin in units of that of all: a few samples may agree by chance"
    )
    powers: int = budget(45, "exponents that are tried")


FIGURES = FigureOptions()
#: Share of flagged samples from which on a rival is sought, if no larger one was stated.
RIVAL_FROM = 0.05
#: The same where the level is to be found.
RIVAL_AUTO = 0.25
#: Entries whose squares single precision holds.
LARGE = 1e15


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
    expected : ndarray of shape (p,)
        Share of flagged samples beyond which a rival is sought.
    unknown_mean : bool
        Whether backgrounds were fitted.
    spreads : ndarray of shape (m, p), optional
        Standard deviation of every sample over the typical one, as the fit has it; one without.
    counts : bool, default=False
        The responses are counts, which are described by means: medians of counts are whole numbers.
    predictions : ndarray of shape (m, p), optional
        ``|A x|²`` of these signals, where the fit has them: then rows in single precision do.
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
    expected: Array
    spreads: Array | None = None
    counts: bool = False
    predictions: Array | None = None


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
    variety : float, default=inf
        At least so many numbers can be told from each other by responses to such rows, however many there are.
    """

    scale: float
    shift: float
    spread: float
    kurtosis: float
    rows: int
    curvature: float
    variety: float = np.inf


class Figures(NamedTuple):
    """What was measured of one signal.

    Attributes
    ----------
    samples, kept, unknowns : int
        Samples that could be used, samples that are kept, and real unknowns.
    flagged : float
        Share of the usable samples that are not kept.
    checked : int
        Kept samples that the other figures rest on.
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
    noise : float
        Root mean square of the kept residuals as the gradient weighs them, by the prediction; clipped.
    uneven, rough : float
        Scale of the residuals in the upper third of the predictions over that in the lower third, and over the median prediction
        of the upper third.
    dependence, dependence_evidence : float
        Share of the variance of the residuals that one direction of the covariates explains, judged on the other half, and the
        number of standard deviations that it lies above chance.
    linear, linear_evidence : float
        Share of the variance of the residuals that is linear in the covariates, beyond chance, and the number of standard
        deviations that it lies above chance.
    slope, slope_error : float
        Slope of the kept responses along the predictions, which is one, and its standard error.
    background : float
        Mean of the kept residuals ``y − |a·x|²``, as far as they are clipped.
    neighbours, drift, gain : float
        Correlation of residuals with those of the next row, with the number of the row, and with prediction times that number.
    turn, turn_evidence : float
        How far apart the signals behind the first and the last half of the rows are, relative to the norm, beyond chance, and the
        number of standard deviations that it lies above chance.
    rival, rival_apart : float
        Share of the samples that another signal explains instead, of all and of those that tell it from the answer; sought where
        more samples are flagged than are expected.
    efficient : float
        Standard deviation of even noise that would leave as much information; NaN where the noise does not depend on the signal.
    """

    samples: int
    kept: int
    unknowns: int
    flagged: float
    checked: int
    energy: float
    scale: float
    correlation: float
    kept_correlation: float
    unexplained: float
    power: float
    power_evidence: float
    noise: float
    uneven: float
    rough: float
    dependence: float
    dependence_evidence: float
    linear: float
    linear_evidence: float
    slope: float
    slope_error: float
    background: float
    neighbours: float
    drift: float
    gain: float
    turn: float
    turn_evidence: float
    rival: float
    rival_apart: float
    efficient: float = np.nan


def checked_rows(m: int, n: int, unknowns: int) -> int:
    """How many of m rows of length n to take for a check: all of them if that is not much more than needed."""
    wanted = max(FIGURES.rows, FIGURES.rows_per_unknown * unknowns, FIGURES.rows_share * m)
    return m if wanted > 0.8 * m else int(wanted)


class _Part(NamedTuple):
    """The rows that are looked at, where they stand, and how many samples are usable and kept among all, shape (p,).

    Rows in memory come in single precision as well, first those of the first half; rows that no signal keeps and that are too
    large for it are zeros.
    """

    fit: FittedSamples
    positions: Array
    usable: Array
    kept: Array
    first_half: Array
    order: Array
    single: Array | None


def measure(fit: FittedSamples, *, seed: int = 0) -> tuple[list[Figures], Design | None]:
    """The figures of every signal, and those of the design unless it is a linear operator."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", invalid="ignore"):
        return _measure(_taken(fit, rng), rng)


def _taken(fit: FittedSamples, rng: np.random.Generator) -> _Part:
    """Some rows in memory, or all where they are."""
    (m, p), n = fit.responses.shape, len(fit.signals)
    dropped = np.broadcast_to(fit.dropped.reshape(m, -1), (m, p))
    usable = m - dropped.sum(axis=0)
    keep = (kept(fit.weights) & ~dropped).sum(axis=0)
    everything = np.arange(m)
    count = checked_rows(m, n, n * (2 if np.iscomplexobj(fit.signals) else 1))
    if isinstance(fit.source, OperatorRows) or count * n > FIGURES.numbers:
        return _Part(fit, everything, usable, keep, np.asarray(rng.random(m) < 0.5), everything, None)
    positions = everything
    if count < m:
        firsts = 2 * np.sort(rng.choice(m // 2, count // 2, replace=False))
        positions = np.stack((firsts, firsts + 1), axis=1).ravel()
    source = fit.source
    single_type = np.complex64 if source.dtype.kind == "c" else np.float32
    if isinstance(source, MemoryRows) and type(source) is MemoryRows and source.reads_views:
        if count == m:
            rows = source.array
        else:
            rows = _taken_rows(source.array, positions, source.dtype if fit.predictions is None else single_type)
    else:
        rows = rows_at(source, positions)
    part = fit._replace(
        source=MemoryRows(rows),
        spreads=None if fit.spreads is None else fit.spreads[positions],
        predictions=None if fit.predictions is None else fit.predictions[positions],
        **{name: getattr(fit, name)[positions] for name in ("responses", "weights", "covariate_weights", "dropped")},
    )
    first_half = rng.random(positions.size) < 0.5
    order = np.concatenate((np.flatnonzero(first_half), np.flatnonzero(~first_half)))
    # Made narrow before they are put in order, so that less is moved.
    narrow = rows.astype(single_type, copy=False)
    unkept = np.flatnonzero(~(kept(part.weights) & ~dropped[positions]).any(axis=1))
    large = unkept[~(np.abs(narrow[unkept]).max(axis=1, initial=0.0) < LARGE)]
    if large.size:
        narrow = narrow.copy() if narrow is rows else narrow
        narrow[large] = 0
    if fit.predictions is not None:
        part = part._replace(source=MemoryRows(narrow))
    return _Part(part, positions, usable, keep, first_half, order, narrow[order])


def _taken_rows(array: Array, positions: Array, dtype: Any) -> Array:
    """Some rows in this type, a few at a time so that each is read once."""
    rows = np.empty((positions.size, array.shape[1]), dtype)
    step = max(1, NUMBERS // max(array.shape[1], 1))
    for low in range(0, positions.size, step):
        rows[low : low + step] = array[positions[low : low + step]]
    return rows


def _measure(part: _Part, rng: np.random.Generator) -> tuple[list[Figures], Design | None]:
    fit = part.fit
    (m, p), n = fit.responses.shape, len(fit.signals)
    usable: Array = np.logical_not(np.broadcast_to(fit.dropped.reshape(m, -1), (m, p)))
    keep: Array = np.logical_and(kept(fit.weights), usable)
    first_half = part.first_half
    halves = np.where(first_half[:, np.newaxis], 1.0, 0.0)
    depth = FIGURES.depth if part.single is not None else FIGURES.passes if p <= FIGURES.swept_signals else 0
    starts = random_directions(n, 2, fit.signals.dtype, rng)
    first = _first_pass(part, keep, halves, starts[:, :1], rng)
    predictions = first.predictions if fit.predictions is None else fit.predictions
    residuals = fit.responses - predictions - fit.centres
    scales = np.array([_robust_scale(r[k]) for r, k in zip(residuals.T, keep.T, strict=True)])
    design = (
        None
        if first.lengths is None
        else _design(first, fit.source.dtype.kind != "c", _mostly(keep)[:, 0], usable[:, 0], n)
    )
    energies = np.sum(abs2(fit.signals), axis=0)
    sizes = np.full(p, 1.0 if design is None or not design.scale > 0 else design.scale)
    if design is None:
        # Rows of an operator have any size, and only their responses tell it.
        strengths = np.where(keep, predictions, 0.0).sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
        sizes = np.maximum(strengths, _TINY) / np.maximum(energies, _TINY)
        energies = strengths
    clipped, means = _clipped(residuals, scales, keep)
    standard = residuals
    if fit.spreads is not None:
        # Where noise grows with the signal, every residual is worth what its own scale makes of it.
        standard = residuals / np.maximum(fit.spreads, _TINY)
        clipped = _clipped(standard, scales, keep)[0]
    # What the start has across the answer is where a second signal would show.
    guesses = np.repeat(starts, p, axis=1) + np.tile(_across(fit.initial_signals, fit.signals), 2)
    directions = _strongest_directions(part, clipped, _across(guesses, fit.signals), depth)
    ahead, squares = _last_pass(part, _without_half(part, first, sizes), directions)
    held_out = np.where(first_half[:, np.newaxis], ahead[:, :p], ahead[:, p:])
    evidence = _dependence(clipped, keep, halves, squares) if depth else np.zeros((2, p))
    unknowns = n * (2 if np.iscomplexobj(fit.signals) else 1)
    good = (fit.covariate_weights >= 0.5) & usable
    turns, linear = _changes(
        part, clipped, first, scales / np.maximum(np.sum(abs2(fit.signals), axis=0) * sizes**2, _TINY)
    )
    rivals = [_rival(part, j, residuals[:, j], predictions[:, j], good[:, j], keep[:, j], scales[j]) for j in range(p)]
    figures = []
    for j in range(p):
        used, k, y = usable[:, j], keep[:, j], fit.responses[:, j]
        g = good[:, j] if good[:, j].sum() > 0.5 * used.sum() else used
        order = np.argsort(predictions[k, j])
        by_prediction = (predictions[k, j][order], residuals[k, j][order])
        power, power_evidence = _power(held_out[k, j], y[k], scales[j], float(fit.levels[j]), counts=fit.counts)
        slope, slope_error = _slope(predictions[k, j], residuals[k, j])
        r, at = clipped[k, j], part.positions[k]
        next_to = np.flatnonzero(np.diff(at) == 1)
        figures.append(
            Figures(
                samples=int(part.usable[j]),
                kept=int(part.kept[j]),
                unknowns=unknowns,
                flagged=1.0 - part.kept[j] / max(int(part.usable[j]), 1),
                checked=int(k.sum()),
                energy=float(energies[j]),
                scale=float(scales[j]),
                correlation=_rank_correlation(held_out[g, j], y[g]),
                kept_correlation=_rank_correlation(held_out[k, j], y[k]),
                unexplained=_unexplained(residuals[k, j], y[k]),
                power=power,
                power_evidence=power_evidence,
                noise=_weighed_noise(*by_prediction),
                uneven=_unevenness(by_prediction[0], standard[k, j][order], counts=fit.counts),
                rough=_roughness(*by_prediction),
                dependence=float(evidence[0, j]),
                dependence_evidence=float(evidence[1, j]),
                linear=float(linear[0, j]),
                linear_evidence=float(linear[1, j]),
                slope=slope,
                slope_error=slope_error,
                background=float(fit.centres[j] + scales[j] * means[j]),
                neighbours=_correlation(r[next_to], r[next_to + 1]),
                drift=_correlation(r, at),
                gain=_correlation(r, predictions[k, j] * (at - at.mean()) if at.size else at),
                turn=float(turns[0, j]),
                turn_evidence=float(turns[1, j]),
                rival=rivals[j].all,
                rival_apart=rivals[j].apart,
            )
        )
    return figures, design


def _rival(part: _Part, j: int, residuals: Array, predictions: Array, good: Array, keep: Array, scale: float) -> Rival:
    """The rival of a signal, if more samples are flagged than are expected."""
    few = part.kept[j] >= (1 - max(part.fit.expected[j], RIVAL_FROM)) * part.usable[j]
    if part.single is None or few:
        return Rival(0.0, 0.0)
    used = (np.isfinite(residuals) & good)[part.order]
    rows, chosen = (part.single, part.order) if used.all() else (part.single[used], part.order[used])
    signal = part.fit.signals[:, j]
    return find_rival(rows, residuals[chosen], predictions[chosen], ~keep[chosen], signal, float(scale))


def _clipped(residuals: Array, scales: Array, keep: Array) -> tuple[Array, Array]:
    """Kept residuals over their scale, clipped and centred, zero where they are not kept; and their means before."""
    clipped = np.clip(residuals / np.maximum(scales, _TINY), -FIGURES.clip, FIGURES.clip)
    clipped = np.where(keep, clipped, 0.0)
    means = clipped.sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
    return clipped - np.where(keep, means, 0.0), means


def _changes(part: _Part, residuals: Array, first: _First, units: Array) -> tuple[Array, Array]:
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
    signs = np.where(np.arange(len(residuals)) < len(residuals) // 2, 1.0, -1.0)[:, np.newaxis]
    norms = np.maximum(np.linalg.norm(fit.signals, axis=0), _TINY)
    used = residuals != 0
    coefficients = np.where(used, signs * residuals * (projections / norms), 0.0)
    # Rows that are not used may be too long for a number.
    lengths = np.where(used.any(axis=1), first.lengths, 0.0)[:, np.newaxis]
    both = np.hstack((coefficients, residuals))
    energies = abs2(adjoint_block(part.single, both[part.order])).sum(axis=0)
    chances = np.maximum((abs2(both) * lengths).sum(axis=0), _TINY)
    complex_rows = np.iscomplexobj(part.single)
    unknowns = len(fit.signals) * (2 if complex_rows or np.iscomplexobj(fit.signals) else 1)
    # A signal that is complex behind real rows has gradients of either kind.
    evidence = _deviations(energies / chances, np.repeat([unknowns, len(fit.signals) * (1 + complex_rows)], p))
    excess = np.sqrt(np.maximum(energies - chances, 0.0))
    # Either half is led astray by half of the difference, and the curvature of the loss is 2‖x‖² across the signal.
    weighed = used if fit.spreads is None else used / np.maximum(fit.spreads, _TINY)
    strengths = np.where(used, abs2(projections), 0.0)
    count = (strengths * weighed).sum(axis=0) * used.sum(axis=0) / np.maximum(strengths.sum(axis=0), _TINY)
    turn = units * excess[:p] / np.maximum(count, 1.0)
    # The variance of what is linear in rows whose entries have the mean square ℓ is ℓ times the squared length of its factor.
    total = (residuals**2).sum(axis=0)
    average = (lengths * used).sum(axis=0) / len(fit.signals)
    share = excess[p:] ** 2 / np.maximum(total * average, _TINY)
    return np.stack((turn, evidence[:p])), np.stack((share, evidence[p:]))


def _deviations(ratios: Array, freedom: Array) -> Array:
    """Standard deviations of a normal variable as rare as these means of so many squared ones (Wilson and Hilferty, 1931)."""
    small = 2 / (9 * freedom)
    deviations: Array = (np.cbrt(ratios) - (1 - small)) / np.sqrt(small)
    return deviations


def _slope(predictions: Array, residuals: Array) -> tuple[float, float]:
    """Slope of responses along predictions, and its standard error."""
    if predictions.size < FIGURES.fewest:
        return 1.0, np.inf
    centred = predictions - predictions.mean()
    squares = float(centred @ centred)
    if not 0 < squares < np.inf:
        return 1.0, np.inf
    slope = float(centred @ residuals) / squares
    left = (residuals - residuals.mean() - slope * centred) * centred
    return 1.0 + slope, float(np.sqrt(left @ left)) / squares


class _First(NamedTuple):
    projections: Array
    predictions: Array
    gradients: Array
    lengths: Array | None
    mean: Array
    image: Array
    along: float
    rows: int
    curvature: float
    variety: float


def _first_pass(part: _Part, keep: Array, halves: Array, probe: Array, rng: np.random.Generator) -> _First:
    """Predictions, gradients of the halves, and figures of the design."""
    fit = part.fit
    p, signals, centres = fit.signals.shape[1], fit.signals, fit.centres
    operator = isinstance(fit.source, OperatorRows)
    # Most rows are kept or nothing can be said; where they are not, the figures of the design are about all of them.
    most = _mostly(keep)
    rows = most if 2 * most.sum() >= len(keep) else np.ones((len(keep), 1), bool)
    probes = np.hstack((signals, probe))

    def kernel(block: Array, y: Array, kept_: Array, half: Array, row: Array) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            projected = project_block(block, probes)
            s = projected[:, :p]
            predicted = abs2(s)
            pull = np.where(kept_, (predicted + centres - y) * s, 0.0)
            along = np.where(row, projected[:, p:], 0.0)
            columns = np.hstack((pull * half, pull * (1 - half), along, row.astype(np.float64)))
            sums = adjoint_block(block, columns)
            lengths = np.zeros(len(y)) if operator else _squared_lengths(block)
        return Parts(sums=(sums, abs2(along).sum(axis=0)), rows=(s, lengths))

    parts = fit.source.reduce(in_slices(kernel, 4 * p), (fit.responses, keep, halves, rows))
    sums, along = parts.sums
    projections, lengths = parts.rows
    masses = np.maximum(np.stack(((keep * halves).sum(axis=0), (keep * (1 - halves)).sum(axis=0))), 1.0)
    count = max(int(rows.sum()), 1)
    return _First(
        projections=projections,
        predictions=abs2(projections),
        gradients=np.stack((sums[:, :p] / masses[0], sums[:, p : 2 * p] / masses[1])),
        lengths=None if operator else lengths,
        mean=sums[:, 2 * p + 1] / count,
        image=sums[:, 2 * p] / count,
        along=float(along[0]) / count,
        rows=count,
        curvature=_curvature(part, projections, np.flatnonzero(most), rng),
        variety=np.inf if part.single is None else variety(part.single[rows[part.order, 0]], rng),
    )


def _curvature(part: _Part, projections: Array, rows: Array, rng: np.random.Generator) -> float:
    """Least curvature of the loss at a typical answer over what standard normal rows would give; NaN if it cannot be told."""
    signals = part.fit.signals
    energies = np.sum(abs2(signals), axis=0)
    column = int(np.argsort(energies)[energies.size // 2])
    if part.single is None or not energies[column] > 0:
        return np.nan
    unit = np.sqrt(energies[column])
    used = np.zeros(len(projections), projections.dtype)
    used[rows] = projections[rows, column] / unit
    return least_curvature(part.single, used[part.order], signals[:, column] / unit, rng)


def _mostly(keep: Array) -> Array:
    """Rows that are kept for most signals, shape (m, 1): those that the design is judged by."""
    mostly: Array = 2 * keep.sum(axis=1, keepdims=True) > keep.shape[1]
    return mostly


def _squared_lengths(block: Array) -> Array:
    parts = (block.real, block.imag) if block.dtype.kind == "c" else (block,)
    total: Array = np.sum([np.einsum("ij,ij->i", part, part, dtype=np.float64) for part in parts], axis=0)
    return total


def _design(first: _First, real_rows: bool, keep: Array, usable: Array, n: int) -> Design:
    assert first.lengths is not None
    rows = keep if 2 * keep.sum() >= keep.size else usable
    lengths = first.lengths[rows]
    lengths = lengths[np.isfinite(lengths)]
    if not lengths.size or not np.median(lengths) > 0:
        return Design(0.0, 0.0, 0.0, 0.0, 0, 0.0)
    typical, average = float(np.median(lengths)), float(np.mean(lengths))
    real = 1.0 if real_rows else 0.5
    shift = float(np.sum(abs2(first.mean))) / average
    second = float(np.sum(abs2(first.image)))
    spread = second / max(first.along, _TINY) ** 2 - 1.0 - n / first.rows
    # Squared lengths of rows of independent entries have the variance n(κ + 2), or n(κ + 1) if they are complex.
    varied = float(np.square(_NORMAL_MAD * np.median(np.abs(lengths - typical)))) * n / typical**2
    return Design(typical / n, shift, spread, varied - 2.0 * real, first.rows, first.curvature, first.variety)


def _without_half(part: _Part, first: _First, sizes: Array) -> Array:
    """Where the signals would be without the first and without the second half of the rows, to first order, shape (n, 2p)."""
    fit = part.fit
    noise_mean: Any = "unknown" if fit.unknown_mean else "zero"
    difference = (first.gradients[0] - first.gradients[1]) / 2
    real_rows = fit.source.dtype.kind != "c"
    half = 0.5 * np.minimum(len(fit.responses), part.kept)
    sizes = sizes**2 * np.maximum(part.kept - half, 1.0) / np.maximum(half, 1.0)
    moves = np.stack(
        [
            newton_step(x, g / size, noise_mean=noise_mean, max_relative_length=1.0, real_rows=real_rows)
            if np.any(x)
            else np.zeros_like(x)
            for x, g, size in zip(fit.signals.T, difference.T, sizes, strict=True)
        ],
        axis=1,
    )
    return np.hstack((fit.signals + moves, fit.signals - moves))


def _strongest_directions(part: _Part, clipped: Array, guesses: Array, depth: int) -> Array:
    """Unit vectors v across the signals along which residuals of each half depend most on ``|a·v|²``, shape (n, 2p).

    They are Ritz vectors of ``Σ r a aᴴ`` with the largest absolute values, by Lanczos' method, one pass per step.
    """
    fit = part.fit
    basis: list[Array] = []
    images: list[Array] = []
    vectors = guesses
    times = _residual_moments(part, clipped)
    for _ in range(depth):
        image = _across_only(times(vectors), fit.signals)
        basis.append(vectors)
        images.append(image)
        left = image
        for earlier in basis * 2:
            left = left - earlier * np.vecdot(earlier.T, left.T)
        lengths = np.linalg.norm(left, axis=0)
        new = lengths > 1e-9 * np.linalg.norm(image, axis=0)
        vectors = np.where(new, left / np.maximum(lengths, _TINY), 0.0)
    if not basis:
        return guesses[:, :0]
    stacked = np.stack(basis)
    small = np.einsum("dnk,enk->kde", stacked.conj(), np.stack(images))
    small = np.where(np.isfinite(small), small, 0.0)
    values, inner = np.linalg.eigh((small + small.conj().transpose(0, 2, 1)) / 2)
    strongest = np.take_along_axis(inner, np.abs(values).argmax(axis=1)[:, np.newaxis, np.newaxis], axis=2)[:, :, 0]
    return _across(np.einsum("dnk,kd->nk", stacked, strongest), fit.signals)


def _residual_moments(part: _Part, clipped: Array) -> Callable[[Array], Array]:
    """The map ``v ↦ Σ r a aᴴ v`` over the rows of either half, for columns (n, 2p): p for the first half, p for the second."""
    p = clipped.shape[1]
    if part.single is not None:
        count, ordered = int(part.first_half.sum()), clipped[part.order]
        halves = ((part.single[:count], ordered[:count]), (part.single[count:], ordered[count:]))

        def in_memory(vectors: Array) -> Array:
            own = (vectors[:, :p], vectors[:, p:])
            return np.hstack(
                [
                    adjoint_block(rows, r * project_block(rows, v)).astype(vectors.dtype)
                    for (rows, r), v in zip(halves, own, strict=True)
                ]
            )

        return in_memory

    split = np.where(np.repeat([True, False], p) == part.first_half[:, np.newaxis], np.tile(clipped, 2), 0.0)

    def swept(vectors: Array) -> Array:
        def kernel(block: Array, r: Array) -> Parts:
            with np.errstate(over="ignore", invalid="ignore"):
                weighted = np.where(r != 0, r * project_block(block, vectors), 0.0)
                return Parts(sums=(adjoint_block(block, weighted),))

        return part.fit.source.reduce(in_slices(kernel, 4 * p), (split,)).sums[0]

    return swept


def _last_pass(part: _Part, signals: Array, directions: Array) -> tuple[Array, Array]:
    """``|A V|²`` of signals and of directions."""
    both, count = np.hstack((signals, directions)), signals.shape[1]
    if part.single is not None:
        squares = np.empty((len(part.order), both.shape[1]))
        # Single precision holds no signals of extreme length.
        norms = np.maximum(np.linalg.norm(both, axis=0), _TINY)
        squares[part.order] = abs2(project_block(part.single, both / norms)) * norms**2
        return squares[:, :count], squares[:, count:]

    def kernel(block: Array) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return Parts(rows=(abs2(project_block(block, both)),))

    squares = part.fit.source.reduce(in_slices(kernel, both.shape[1])).rows[0]
    return squares[:, :count], squares[:, count:]


def _dependence(clipped: Array, keep: Array, halves: Array, squares: Array) -> Array:
    """Shares of the variance of the residuals that the strongest direction of the other half explains, and their evidence."""
    p = clipped.shape[1]
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
    left = _across_only(vectors, signals)
    across: Array = left / np.maximum(np.linalg.norm(left, axis=0), _TINY)
    return across


def _across_only(vectors: Array, signals: Array) -> Array:
    """What vectors have across the signals."""
    repeated = np.hstack([signals] * (vectors.shape[1] // signals.shape[1]))
    units = repeated / np.maximum(np.linalg.norm(repeated, axis=0), _TINY)
    left: Array = vectors - units * np.vecdot(units.T, vectors.T)
    return left


def _robust_scale(values: Array) -> float:
    if not values.size:
        return 0.0
    return _NORMAL_MAD * _median(np.abs(values - _median(values)))


def _median(values: Array) -> float:
    """The upper median; NumPy's own takes several times as long for a few thousand numbers."""
    return float(np.partition(values, values.size // 2)[values.size // 2])


def _correlation(a: Array, b: Array) -> float:
    if a.size < FIGURES.fewest:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if 0 < size < np.inf else 0.0


def _rank_correlation(a: Array, b: Array) -> float:
    return _correlation(_ranks(a), _ranks(b)) if a.size else 0.0


def _ranks(values: Array) -> Array:
    """Ranks; those of equal values are their mean."""
    order = np.argsort(values)
    ordered = values[order]
    ranks = np.empty(values.size)
    ranks[order] = np.arange(values.size)
    if (ordered[1:] == ordered[:-1]).any():
        return np.asarray(rankdata(values), np.float64)
    return ranks


def _unexplained(residuals: Array, responses: Array) -> float:
    if not residuals.size:
        return 1.0
    return float(np.var(residuals) / max(float(np.var(responses)), _TINY))


def _unevenness(predictions: Array, residuals: Array, *, counts: bool = False) -> float:
    """Scale of the residuals of the upper third over that of the lower third; both ordered by the prediction."""
    third = predictions.size // 3
    if third < FIGURES.fewest:
        return 1.0
    scale = _root_mean_square if counts else _robust_scale
    low, high = scale(residuals[:third]), scale(residuals[-third:])
    return high / low if low > 0 else 1.0


def _roughness(predictions: Array, residuals: Array) -> float:
    """Scale of the residuals of the upper third over its median prediction; both ordered by the prediction."""
    third = predictions.size // 3
    if third < FIGURES.fewest:
        return 0.0
    return _robust_scale(residuals[-third:]) / max(float(predictions[-third // 2]), _TINY)


def _weighed_noise(predictions: Array, residuals: Array) -> float:
    """Root of the mean of ``r²`` weighed by the prediction, with residuals clipped at multiples of the scale of their third."""
    if predictions.size < 3 * FIGURES.fewest:
        return 0.0
    total = 0.0
    for p, r in zip(np.array_split(predictions, 3), np.array_split(residuals, 3), strict=True):
        limit = FIGURES.clip * _robust_scale(r)
        total += float(np.square(np.clip(r - _median(r), -limit, limit)) @ p)
    return float(np.sqrt(total / max(float(predictions.sum()), _TINY)))


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
    # Bins of one size, so that one call orders all of them.
    members = np.stack([part[: predictions.size // bins] for part in parts])
    x = np.median(predictions[members], axis=1)
    if not x[0] < x[-1]:
        return 1.0, 0.0
    gaps = np.sort(responses[members] - predictions[members], axis=1)
    if counts:
        centres, spreads, factor = gaps.mean(axis=1), gaps.std(axis=1), 1.0
    else:
        centres, factor = np.median(gaps, axis=1), 1.2533
        spreads = _NORMAL_MAD * np.median(np.abs(gaps - centres[:, np.newaxis]), axis=1)
    errors = factor * np.maximum(spreads, FIGURES.least_spread * scale) / np.sqrt(members.shape[1])
    if not (errors > 0).all():
        return 1.0, 0.0
    grid = np.append(np.geomspace(0.05, 4.0, FIGURES.powers), 1.0)
    misfits = _misfits((x / x[-1]) ** grid[:, np.newaxis], x + centres, errors)
    best = int(np.argmin(misfits))
    return float(grid[best]), float(misfits[-1] - misfits[best])


def _misfits(curves: Array, y: Array, errors: Array) -> Array:
    """Weighted squared residuals of y after regression on a constant and each of the curves, shape (number of curves,)."""
    weights = 1 / np.square(errors)
    mean = float(weights @ y) / weights.sum()
    centred = curves - (curves @ weights)[:, np.newaxis] / weights.sum()
    squares = np.square(centred) @ weights
    slopes = (centred * weights) @ (y - mean) / np.maximum(squares, _TINY)
    misfits: Array = weights @ np.square(y - mean) - slopes**2 * squares
    return misfits
