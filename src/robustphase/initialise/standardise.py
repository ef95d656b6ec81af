"""Rows whose second moment is not the identity: noticed, and made standard.

Every stage counts on rows of mean zero and second moment I. A few hundred rows tell whether they have it, by figures that a
share of bad rows can hardly move:

- the *scale*: the median of the squared lengths over n, and their deciles: bad rows on one side move all quantiles, but those of
  the other side only little;
- the *mean*: the median projection of half of the rows on the mean direction of the other half;
- the *second moment* but for scale: for every row the mean of ``n cos²`` with all others, and the median of these. It is one for
  the identity, whatever the law of the lengths, and ``n tr(Σ²)/tr(Σ)²`` for a second moment Σ.

Where one of them is off, scale and mean are standardised first: a mean is a direction of rank one, however large, and taking it
for what it is costs two products with one vector. Where that is not enough, the whole second moment is estimated and whitened.
Signals belong to the rows, so what is found behind standardised rows is taken back by the same matrix.

A last figure, the spread of the lengths, tells designs that have the second moment of standard normal rows but not their fourth
ones: phases and signs have rows of one length, heavy tails have rows of many. What counts on normal projections then asks
the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.means import mean_of
from robustphase.problem import assumed_level
from robustphase.rows import (
    MemoryRows,
    OperatorRows,
    RescaledRows,
    RowSource,
    ScaledRows,
    StretchedRows,
    TransformedRows,
    project,
)
from robustphase.rows.products import abs2
from robustphase.rows.source import Array, Parts
from robustphase.spectra.covariance import Centred, covariance_of, whitener
from robustphase.validation import Samples


@dataclass(frozen=True)
class StandardOptions:
    """Constants of the test of the rows."""

    rows: int = budget(512, "rows that are looked at: their n cos² are known to a two-hundredth")
    fewest: int = derived(32, "fewer rows than this have medians that tell nothing (their standard error is a fifth)")
    errors: float = derived(4.0, "standard errors by which a figure is off: chance exceeds them once in 16000")
    auto_most: float = derived(0.35, 'with "auto", the largest share of bad rows that is not taken for a design')
    largest: float = derived(0.45, "and this where it was stated: from a half on the median is that of the bad rows")
    decile: float = derived(
        0.1, "quantile of the lengths, and its counterpart, that bad rows of the other side move little"
    )
    whole: int = budget(2048, "largest n whose n × n second moment is estimated")
    copied: int = budget(
        1 << 27, "bytes of standard rows up to which they are made once and kept: an eighth of a gibibyte"
    )
    nothing: float = numeric(1e-10, "squared lengths below it, over the typical one, are zero")


STANDARD = StandardOptions()


class RowFigures(NamedTuple):
    """What some rows say of their law, each with the standard error that chance and a share of bad rows may cause."""

    #: Median squared length over n, over what standard normal rows have; one for those.
    scale: float
    scale_error: float
    #: By how many standard deviations of a squared length its deciles and its median are all too large, or, negative,
    #: too small; zero where they disagree.
    longer: float
    longer_error: float
    #: Median projection on the mean direction, in units of the root of the scale; zero without a mean.
    shift: float
    shift_error: float
    #: Median of the mean n cos²; one for second moments that are multiples of the identity.
    spread: float
    spread_error: float
    #: Robust standard deviation of the squared lengths over that of standard normal rows; one for those.
    tails: float
    tails_error: float

    @property
    def centred(self) -> bool:
        """Whether there is no mean."""
        return abs(self.shift) <= STANDARD.errors * self.shift_error

    @property
    def isotropic(self) -> bool:
        """Whether the second moment is a multiple of the identity; chance and bad rows can make the figure smaller."""
        return self.centred and self.spread - 1 <= STANDARD.errors * self.spread_error

    @property
    def standard(self) -> bool:
        """Whether the second moment is the identity."""
        scaled = abs(self.longer) > STANDARD.errors * self.longer_error
        return self.isotropic and not scaled and abs(self.scale - 1) <= STANDARD.errors * self.scale_error

    @property
    def normal_lengths(self) -> bool:
        """Whether the lengths vary as those of normal rows do."""
        return bool(abs(np.log(max(self.tails, TINY))) <= STANDARD.errors * self.tails_error)


class Change(NamedTuple):
    """One change of the rows, ``A W`` for a Hermitian W: a number across a direction, another along it; or a matrix."""

    #: The two numbers.
    across: float
    along: float
    unit: Array  # (n,), or (0,): the direction
    matrix: Array  # (n, n), or (0, 0): W as a whole, where that is what it takes

    @property
    def stretch(self) -> float:
        """Norm of W: how much longer an error of the signal may become on the way back."""
        if self.matrix.size:
            return float(np.linalg.norm(self.matrix, 2))
        return max(self.across, self.along) if self.unit.size else self.across

    @property
    def typical_stretch(self) -> float:
        """Root mean square of the numbers by which W stretches directions, with the direction in a space of n."""
        if self.matrix.size:
            return float(np.linalg.norm(self.matrix) / np.sqrt(len(self.matrix)))
        squares = self.across**2 + (self.along**2 - self.across**2) / max(self.unit.size, 1)
        return float(np.sqrt(squares)) if self.unit.size else self.across

    def rows(self, source: RowSource) -> RowSource:
        """The changed rows."""
        if self.matrix.size:
            return TransformedRows(source, self.matrix)
        return (
            StretchedRows(source, self.unit, self.across, self.along)
            if self.unit.size
            else RescaledRows(source, 1 / self.across)
        )

    def back(self, signals: Array) -> Array:
        """Signals (n, k) behind the changed rows as signals behind the rows."""
        return self.matrix @ signals if self.matrix.size else self._stretched(signals, self.across, self.along)

    def there(self, signals: Array) -> Array:
        """The other way; directions in which the rows have nothing to say are left out."""
        if self.matrix.size:
            solved: Array = np.linalg.lstsq(self.matrix, signals, rcond=None)[0]
            return solved
        return self._stretched(signals, 1 / self.across, 1 / self.along)

    def _stretched(self, signals: Array, across: float, along: float) -> Array:
        if not self.unit.size:
            return across * signals
        return across * signals + self.unit[:, np.newaxis] * ((along - across) * (self.unit.conj() @ signals))


def changed_rows(rows: Array, changes: tuple[Change, ...]) -> Array:
    """Some rows after the changes."""
    for change in changes:
        # W is Hermitian, so that rows change as the adjoints of signals do.
        rows = change.back(rows.conj().T).conj().T
    return rows


class Standardised(NamedTuple):
    """Samples with standard rows, and the changes that made them so, in their order."""

    samples: Samples
    changes: tuple[Change, ...] = ()

    def back(self, signals: Array) -> Array:
        """Signals (n, k) of these samples as signals of the samples that were given."""
        for change in reversed(self.changes):
            signals = change.back(signals)
        return signals

    def there(self, signals: Array) -> Array:
        """The other way."""
        for change in self.changes:
            signals = change.there(signals)
        return signals

    def radii(self, signals: Array, radii: Array) -> Array:
        """Radii relative to the norms of these signals (n, k) as radii relative to those of the signals taken back."""
        if not self.changes:
            return radii
        relative: Array = radii * self._relative(signals, [change.stretch for change in self.changes])
        return relative

    def typical_errors(self, signals: Array) -> Array:
        """How many times larger an error in all directions, relative to these signals (n, k), is when taken back: shape (k,)."""
        if not self.changes:
            return np.ones(signals.shape[1])
        return self._relative(signals, [change.typical_stretch for change in self.changes])

    def _relative(self, signals: Array, stretches: list[float]) -> Array:
        lengths, taken = (np.linalg.norm(s, axis=0) for s in (signals, self.back(signals)))
        factors: Array = np.where(taken > 0, np.prod(stretches) * lengths / np.maximum(taken, TINY), 1.0)
        return factors


def standardised(samples: Samples, whiten: bool | str, contamination: float | str) -> Standardised:
    """Samples whose rows have the identity for a second moment.

    ``whiten`` is ``"auto"``, look whether it is needed; True, whiten the whole second moment; or False, leave the rows as they
    are.
    """
    if isinstance(samples.source, OperatorRows) or not whiten:
        return Standardised(samples)
    # Not as many as a mean or a covariance could find by itself: of skewed rows, on/off ones with few on, it would find half bad.
    assumed = assumed_level(contamination)
    if whiten != "auto":
        return _whitened(Standardised(samples), assumed, shrink=False)
    rows = samples.looked_at
    if rows is None or len(rows) < STANDARD.fewest:
        return Standardised(samples)
    level = _largest_share(contamination, len(rows))
    figures = row_figures(rows, level)
    if figures.standard:
        return Standardised(samples._replace(normal=figures.normal_lengths))
    if figures.isotropic:
        scale = Change(float(1 / np.sqrt(figures.scale)), 1.0, np.empty(0), np.empty((0, 0)))
        return _changed(Standardised(samples), scale, normal=figures.normal_lengths)
    now = Standardised(samples)
    if not figures.centred:
        change = _without_mean(samples, assumed)
        if change is None:
            # Rows that are all one have no second moment to speak of, and no signal to show; the model check says so.
            return now
        now = _changed(now, change, normal=False)
        left = row_figures(changed_rows(rows, now.changes), level)
        if left.spread - 1 <= STANDARD.errors * left.spread_error:
            return _made(now)
    if samples.source.shape[1] > STANDARD.whole:
        return now._replace(samples=now.samples._replace(normal=False))
    now = _whitened(now, assumed, shrink=True)
    normal = figures.centred and row_figures(changed_rows(rows, now.changes), level).normal_lengths
    return now._replace(samples=now.samples._replace(normal=normal))


def _largest_share(contamination: float | str, count: int) -> float:
    """Share of bad ones among some rows that chance hardly exceeds."""
    if isinstance(contamination, str):
        return STANDARD.auto_most
    level = assumed_level(contamination)
    return min(level + STANDARD.errors * float(np.sqrt(level * (1 - level) / count)), STANDARD.largest)


def _agreed(squares: Array, n: int, degrees: int, deviation: float) -> float:
    """The smallest of the deviations of both deciles and the median, if they all have one sign."""
    shares = np.array([STANDARD.decile, 0.5, 1 - STANDARD.decile])
    unit = 2 / (9 * degrees)
    expected = (1 - unit + ndtri(shares) * np.sqrt(unit)) ** 3
    off = (np.quantile(squares, shares) / n - expected) / deviation
    return float(off[np.argmin(np.abs(off))]) if (off > 0).all() or (off < 0).all() else 0.0


def _changed(before: Standardised, change: Change, *, normal: bool) -> Standardised:
    samples = before.samples._replace(source=change.rows(before.samples.source), normal=normal)
    return Standardised(samples, (*before.changes, change))


def row_figures(rows: Array, level: float) -> RowFigures:
    """The figures of some rows, of which a share ``level`` may be bad."""
    count, n = rows.shape
    rows = rows.astype(np.result_type(rows.dtype, np.float64))
    squares = abs2(rows).sum(axis=1)
    typical = float(np.median(squares))
    if not typical > 0:
        return RowFigures(1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, np.inf)
    # Squared lengths of normal rows: their standard deviation over n, and their median by Wilson and Hilferty.
    degrees = 2 * n if np.iscomplexobj(rows) else n
    deviation, median = float(np.sqrt(2 / degrees)), (1 - 2 / (9 * degrees)) ** 3
    # Bad rows on one side turn the median of the good ones into another quantile of theirs.
    moved = float(ndtri(0.5 / (1 - level))) / STANDARD.errors
    outer = STANDARD.decile
    decile_moved = float(ndtri(outer / (1 - level)) - ndtri(outer)) / STANDARD.errors
    decile_chance = float(np.sqrt(outer * (1 - outer) / count) * np.sqrt(2 * np.pi) * np.exp(ndtri(outer) ** 2 / 2))
    widened = float(np.log(ndtri(0.5 + 0.25 / (1 - level)) / ndtri(0.75))) / STANDARD.errors
    # All in one direction, they add a chi-square variable to the mean n cos² of every good row.
    crowded = max(level * (float(ndtri(0.5 + 0.25 / (1 - level))) ** 2 - 1), 0.0) / STANDARD.errors
    chance = float(np.sqrt(np.pi / 2 / count))
    units = rows / np.sqrt(np.maximum(squares, STANDARD.nothing * typical))[:, np.newaxis]
    half = count // 2
    mean = units[:half].mean(axis=0).conj()
    projections = (rows[half:] @ (mean / max(float(np.linalg.norm(mean)), TINY))).real / np.sqrt(typical / n)
    part = 1.0 if not np.iscomplexobj(rows) else float(np.sqrt(0.5))
    cosines = abs2(units @ units.conj().T)
    spreads = n * (cosines.sum(axis=1) - np.diag(cosines)) / max(count - 1, 1)
    apart = 1.4826 * float(np.median(np.abs(squares - typical))) / typical
    return RowFigures(
        scale=typical / (n * median),
        scale_error=deviation * (chance + moved),
        longer=_agreed(squares, n, degrees, deviation),
        longer_error=decile_chance + decile_moved,
        shift=float(np.median(projections)),
        shift_error=part * (np.sqrt(2) * chance + moved),
        spread=float(np.median(spreads)),
        spread_error=crowded + 2 / count + moved * float(np.sqrt(2 / count)),
        tails=apart / deviation,
        # The median deviation of the good rows becomes another quantile of theirs too.
        tails_error=1.17 / float(np.sqrt(count)) + widened,
    )


def _without_mean(samples: Samples, contamination: float) -> Change | None:
    """Scale and mean made standard: one number along the mean, another across it; None where there is nothing across it."""
    source, usable = samples.source, ~_rows_dropped(samples)
    mean = mean_of(source, contamination, dropped=~usable).location
    # Rows are the aᴴ: the direction that they have a component along is the conjugate of theirs.
    unit = mean.conj() / max(float(np.linalg.norm(mean)), TINY)
    along = abs2(project(source, unit))[usable]
    squares = ScaledRows(source).squared_distances()[usable]
    typical, others = float(np.median(squares)), max(source.shape[1] - 1, 1)
    left = float(np.median(squares - along))
    if not left > STANDARD.nothing * typical:
        return None
    across = float(np.sqrt(left / others))
    # Of a variable that is far from zero the median square is the mean square, and bad rows do not move it far.
    size = float(np.sqrt(max(float(np.median(along)), across**2)))
    return Change(1 / across, 1 / size, unit, np.empty((0, 0)))


def _whitened(before: Standardised, contamination: float, *, shrink: bool) -> Standardised:
    """The whole second moment, estimated robustly, made the identity."""
    samples = before.samples
    source, usable = samples.source, ~_rows_dropped(samples)
    n = source.shape[1]
    # Dropped rows read as zero. They are no points of the design, and as such would shrink its second moment.
    centre = np.zeros(n, np.result_type(source.dtype, np.float64))
    found = covariance_of(Centred(source, centre, usable), contamination)
    moment = shrunken(found.covariance, float(found.weights.sum())) if shrink else found.covariance
    return _made(_changed(before, Change(1.0, 1.0, np.empty(0), whitener(moment)), normal=samples.normal))


def _made(now: Standardised) -> Standardised:
    """The same with rows that are kept as they were made, if they are few: to make them anew costs more than most passes."""
    (m, n), source = now.samples.source.shape, now.samples.source
    if m * n * source.dtype.itemsize > STANDARD.copied:
        return now
    kept = MemoryRows(source.reduce(lambda block: Parts(rows=(block.copy(),))).rows[0])
    return now._replace(samples=now.samples._replace(source=kept))


def shrunken(moment: Array, count: float) -> Array:
    """A second moment of ``count`` rows, drawn towards a multiple of the identity as far as chance has spread it.

    Ledoit and Wolf's weight (2004), with the error that normal rows would have. With few rows for each unknown the smallest
    eigenvalues are too small by chance, and whitening by them would make the noise along them large.
    """
    n = len(moment)
    level = float(np.trace(moment).real) / n
    total = float(np.sum(abs2(moment)))
    chance = (n * level) ** 2 / max(count, 1.0) + total / max(count, 1.0)
    share = min(1.0, chance / max(total - n * level**2, TINY))
    mixed: Array = (1 - share) * moment + share * level * np.eye(n)
    return mixed


def _rows_dropped(samples: Samples) -> Array:
    dropped: Array = samples.dropped if samples.dropped.ndim == 1 else np.asarray(samples.dropped.all(axis=1))
    return dropped
