"""The samples that a model check looks at: a part of the rows, taken into memory.

How many rows that takes depends on the number of unknowns more than on that of the samples (:func:`checked_rows`), so the check
costs a few percent of a fit. They are taken in pairs of neighbours, so that the order of the rows can be looked at. Rows that
cannot be taken, those of a linear operator or too long for memory, are all swept instead. The rows are split at random into
halves, so that what is found in one can be judged on the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustphase.problem import kept
from robustphase.recover.model.limits import FIGURES
from robustphase.rows import MemoryRows, OperatorRows, RowSource, rows_at
from robustphase.rows.passes import NUMBERS
from robustphase.rows.source import Array

#: Length of rows whose squares single precision holds.
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


class Part(NamedTuple):
    """The rows that are looked at, where they stand, and how many samples are usable and kept among all, shape (p,).

    Rows in memory come first half first; ``single`` are the same in single precision, where those that no signal keeps and that
    are too large for it are zeros. ``lengths`` are their squared lengths, and ``along`` numbers them as they stand in the data.
    ``read`` and ``keep``, of shape (m, p), tell which of their samples are usable and which are kept.
    """

    fit: FittedSamples
    positions: Array
    usable: Array
    kept: Array
    first_half: Array
    along: Array
    rows: Array | None
    single: Array | None
    lengths: Array | None
    read: Array
    keep: Array

    def halves(self) -> tuple[Any, Any]:
        """What picks the rows of either half: of those in memory without a copy."""
        if self.single is None:
            return self.first_half, ~self.first_half
        count = int(np.count_nonzero(self.first_half))
        return slice(count), slice(count, None)


def checked_rows(m: int, n: int, unknowns: int) -> int:
    """How many of m rows of length n to take for a check: all of them if that is not much more than needed."""
    # More than are needed are taken where they are few numbers: a check makes copies of them.
    share = min(FIGURES.rows_share * m, FIGURES.numbers / (2 * n))
    wanted = max(FIGURES.rows, FIGURES.rows_per_unknown * unknowns, share)
    return m if wanted > 0.8 * m else int(wanted)


def taken(fit: FittedSamples, rng: np.random.Generator) -> Part:
    """Some rows in memory, or all where they are."""
    (m, p), n = fit.responses.shape, len(fit.signals)
    read = ~fit.dropped.reshape(m, -1)
    if read.shape[1] != p:
        read = np.repeat(read, p, axis=1)
    keeps = kept(fit.weights) & read
    usable, keep = column_counts(read), column_counts(keeps)
    everything = np.arange(m)
    count = checked_rows(m, n, n * (2 if np.iscomplexobj(fit.signals) else 1))
    if isinstance(fit.source, OperatorRows) or count * n > FIGURES.numbers:
        return Part(
            fit, everything, usable, keep, np.asarray(rng.random(m) < 0.5), everything, None, None, None, read, keeps
        )
    positions = everything
    if count < m:
        positions = np.flatnonzero(np.repeat(_drawn(m // 2, count // 2, rng), 2))
    drawn = rng.random(positions.size) < 0.5
    order = np.concatenate((np.flatnonzero(drawn), np.flatnonzero(~drawn)))
    places, along = everything[: order.size], np.empty_like(order)
    first_half, along[order] = places < np.count_nonzero(drawn), places
    source = fit.source
    single_type = np.dtype(np.complex64 if source.dtype.kind == "c" else np.float32)
    wanted_type = source.dtype if fit.predictions is None else single_type
    if isinstance(source, MemoryRows) and type(source) is MemoryRows and source.reads_views:
        rows = _taken_rows(source.array, positions[order], wanted_type)
    elif source.on_disk:
        rows = _read_rows(source, positions, along, wanted_type)
    else:
        rows = rows_at(source, positions)[order]
    positions = positions[order]

    def here(values: Array) -> Array:
        return np.take(values, positions, axis=0)

    read, keeps = here(read), here(keeps)
    part = fit._replace(
        responses=here(fit.responses),
        # All that is asked of the weights from here on is whether they keep a sample.
        weights=keeps,
        covariate_weights=here(fit.covariate_weights),
        dropped=~read,
        spreads=None if fit.spreads is None else here(fit.spreads),
        predictions=None if fit.predictions is None else here(fit.predictions),
    )
    narrow, lengths = rows.astype(single_type, copy=False), squared_lengths(rows)
    if not lengths.max(initial=0.0) < LARGE**2:
        large = ~(lengths < LARGE**2) & ~(keeps[:, 0] if p == 1 else keeps.any(axis=1))
        narrow = narrow.copy() if narrow is rows else narrow
        narrow[large], lengths[large] = 0, 0
    rows = rows if fit.predictions is None else narrow
    return Part(part, positions, usable, keep, first_half, along, rows, narrow, lengths, read, keeps)


def _drawn(total: int, count: int, rng: np.random.Generator) -> Array:
    """Which of so many are drawn, each as likely as any other."""
    if 4 * count > total:
        # A large part of them is told by random numbers for all, in a third of the time.
        numbers = rng.random(total).argpartition(count)[:count]
    else:
        numbers = rng.choice(total, count, replace=False, shuffle=False)
    drawn = np.zeros(total, bool)
    drawn[numbers] = True
    return drawn


def column_counts(chosen: Array) -> Array:
    """How many are chosen in every column; of one NumPy's own sum takes ten times as long."""
    counts: Array = chosen.sum(axis=0) if chosen.shape[1] > 1 else np.array([np.count_nonzero(chosen)])
    return counts


def squared_lengths(rows: Array) -> Array:
    """Squared lengths of rows."""
    # Real and imaginary parts side by side are read at once, which is several times as fast as one after the other.
    parts = np.ascontiguousarray(rows).view(rows.real.dtype) if rows.dtype.kind == "c" else rows
    lengths: Array = np.vecdot(parts, parts)
    return lengths


def _read_rows(source: RowSource, positions: Array, places: Array, dtype: Any) -> Array:
    """Rows at increasing positions in their places, in this type; few of them are in memory twice."""
    rows, low = np.empty((positions.size, source.shape[1]), dtype), 0
    with np.errstate(over="ignore"):
        for piece in source.take_pieces(positions, max(1, NUMBERS // max(source.shape[1], 1))):
            rows[places[low : low + len(piece)]] = piece
            low += len(piece)
    return rows


def _taken_rows(array: Array, positions: Array, dtype: Any) -> Array:
    """Some rows in this type, a few at a time so that each is read once."""
    if array.size <= NUMBERS * 8 and positions.size == len(array):
        # Where all of a small array is wanted it is faster to round it first, and to move half as many bytes.
        return np.take(array.astype(dtype, copy=False), positions, axis=0)
    rows = np.empty((positions.size, array.shape[1]), dtype)
    step = max(1, NUMBERS // max(array.shape[1], 1))
    for low in range(0, positions.size, step):
        rows[low : low + step] = np.take(array, positions[low : low + step], axis=0)
    return rows
