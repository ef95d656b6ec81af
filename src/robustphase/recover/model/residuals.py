"""Statistics of the residuals of one signal, robust, and by thirds of the predictions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from robustphase.constants import TINY
from robustphase.ordering import stable_order
from robustphase.recover.model.limits import CHECKS, FIGURES
from robustphase.recover.model.samples import column_counts
from robustphase.rows.source import Array

#: Values from which on it is faster to put them in order by their digits, and the size up to which single precision holds them.
_MANY, _LARGE = 1000, 1e30


NORMAL_MAD = 1.4826


def clip(residuals: Array, scales: Array, keep: Array) -> tuple[Array, Array]:
    """Kept residuals over their scale, clipped and centred, zero where they are not kept; and their means before."""
    clipped = np.where(keep, residuals, 0.0) / np.maximum(scales, TINY)
    # Twice as fast as NumPy's clip for a few thousand numbers.
    clipped = np.minimum(np.maximum(clipped, -FIGURES.clip), FIGURES.clip)
    means = clipped.sum(axis=0) / np.maximum(column_counts(keep), 1)
    return clipped - keep * means, means


def slope_along(predictions: Array, residuals: Array) -> tuple[float, float]:
    """Slope of responses along predictions, and its standard error."""
    if predictions.size < FIGURES.fewest:
        return 1.0, np.inf
    centred = predictions - predictions.sum() / predictions.size
    squares = float(centred @ centred)
    if not 0 < squares < np.inf:
        return 1.0, np.inf
    slope = float(centred @ residuals) / squares
    left = (residuals - residuals.sum() / residuals.size - slope * centred) * centred
    return 1.0 + slope, math.sqrt(float(left @ left)) / squares


class Located(NamedTuple):
    """Where values lie, and how far about it: the median, and the median deviation from it as a standard deviation.

    Of values without tails it is their mean and standard deviation.
    """

    centre: float
    scale: float


def located(values: Array, *, tailless: bool = False) -> Located:
    """Centre and scale of values, robustly."""
    if not values.size:
        return Located(0.0, 0.0)
    if tailless:
        return Located(float(values.mean()), float(values.std()))
    centre = median(values)
    return Located(centre, NORMAL_MAD * median(np.abs(values - centre)))


def robust_scale(values: Array) -> float:
    """Median absolute deviation from the median, as a standard deviation."""
    return located(values).scale


def without_tails(values: Array) -> bool:
    """Whether values have a smaller kurtosis than those of a uniform law, as those of a law with two peaks have.

    Between two peaks there are few values, so medians of a few of them jump from one peak to the other; but without tails means
    need no help.
    """
    if values.size < FIGURES.fewest:
        return False
    squares = np.square(values - values.sum() / values.size)
    # A few bad values that were kept count as two standard deviations; those bring them down to the second time.
    for _ in range(2):
        squares = np.minimum(squares, 4 * squares.sum() / values.size)
    total = float(squares.sum())
    # Where the squares of squares vanish nothing can be told.
    least = math.sqrt(TINY)
    return total > least and float(squares @ squares) * values.size < FIGURES.uniform_kurtosis * total * total


def median(values: Array) -> float:
    """The upper median; NumPy's own takes several times as long for a few thousand numbers."""
    return float(np.partition(values, values.size // 2)[values.size // 2])


def correlation(a: Array, b: Array) -> float:
    """Correlation; zero for few values or constant ones."""
    return correlations(a, b)[0]


def correlations(a: Array, *others: Array) -> list[float]:
    """Correlation with each of the others."""
    if a.size < FIGURES.fewest:
        return [0.0] * len(others)
    a = a - a.sum() / a.size
    square = float(a @ a)
    return [_cosine(a, b - b.sum() / b.size, square) for b in others]


def _cosine(a: Array, b: Array, square: float) -> float:
    """Cosine of the angle between centred values, of which the first have this sum of squares."""
    size = math.sqrt(max(square * float(b @ b), 0.0))
    return float(a @ b) / size if 0 < size < np.inf else 0.0


class Ordered(NamedTuple):
    """Values, the order of their sizes, which the ranks of any part of them share, and whether some of them are equal."""

    values: Array
    order: Array
    ties: bool


def ordered(values: Array) -> Ordered:
    """Values with their order."""
    order = order_of(values)
    return Ordered(values, order, _ties(values[order]))


def order_of(values: Array) -> Array:
    """Numbers of the values, the smallest value first, in single precision where there are many."""
    fast = values.size >= _MANY and 1 / _LARGE < float(np.abs(values).max()) < _LARGE
    return stable_order(values.astype(np.float32)) if fast else np.argsort(values)


def in_order(order: Array, chosen: Array) -> Array:
    """Numbers of the chosen values (a mask), in the order of all of them."""
    numbers: Array = order if chosen.all() else order[chosen[order]]
    return numbers


def rank_correlation(a: Ordered, b: Ordered, chosen: Array, first: Array | None = None) -> float:
    """Correlation of the ranks of the chosen values among each other; ranks of equal values are their mean.

    ``first`` may be given: the numbers of the chosen values in the order of a.
    """
    first, second = in_order(a.order, chosen) if first is None else first, in_order(b.order, chosen)
    count = first.size
    if count < FIGURES.fewest:
        return 0.0
    own, other = (_centred_ranks(values, numbers) for values, numbers in ((a, first), (b, second)))
    among = np.empty(chosen.size)
    among[second] = other
    size = math.sqrt(float(own @ own) * float(other @ other))
    return float(own @ among[first]) / size if size > 0 else 0.0


def _centred_ranks(values: Ordered, numbers: Array) -> Array:
    """Ranks less their mean of the values of these numbers, which come in their order; equal values share the mean of theirs."""
    ranks: Array = np.arange(numbers.size) - 0.5 * (numbers.size - 1)
    if not values.ties:
        return ranks
    told = values.values[numbers]
    equal = np.flatnonzero(told[1:] == told[:-1])
    if (equal[1:] == equal[:-1] + 1).any():
        lows, counts = _runs(told)
        return np.repeat(ranks[lows] + 0.5 * (counts - 1), counts)
    # Pairs alone, as single precision makes a few of: each of them gives half a rank to the other.
    ranks[equal] += 0.5
    ranks[equal + 1] -= 0.5
    return ranks


def followed(ahead: Ordered, heard: Ordered, flagged: Array) -> tuple[float, float]:
    """Whether flagged responses follow their predictions, in standard deviations of chance, and how far about them.

    The second is half the range of the middle 68% of the logarithms of responses over predictions, of the larger predictions: a
    standard deviation of one law, and half the distance of two groups.
    """
    numbers = in_order(ahead.order, flagged)
    if numbers.size < 2 * FIGURES.fewest:
        return 0.0, 0.0
    larger = numbers[numbers.size // 2 :]
    ratios = heard.values[larger] / np.maximum(ahead.values[larger], TINY)
    logarithms = np.sort(np.log(np.maximum(ratios, FIGURES.least_ratio)))
    low, high = (logarithms[int(share * larger.size)] for share in (0.16, 0.84))
    return rank_correlation(ahead, heard, flagged, numbers) * float(np.sqrt(numbers.size)), float(high - low) / 2


def _ties(values: Array) -> bool:
    """Whether values in their order are not all different."""
    return bool((values[1:] == values[:-1]).any())


def crowded_share(heard: Ordered, chosen: Array, predictions: Array, scale: float) -> float:
    """Share of the chosen responses that have one value, where that is far more than usual and their rows do not explain it.

    Levels of a camera make all responses equal to some others; a detector that is over-exposed, or a value that was filled in,
    makes one level that no noise has. Equal responses to equal rows are predicted to be equal.
    """
    numbers, lows, counts = _equal(heard, chosen)
    if not counts.size:
        return 0.0
    most = int(counts.argmax())
    if counts[most] <= FIGURES.crowded * np.median(np.repeat(counts, counts)):
        return 0.0
    members = numbers[lows[most] : lows[most] + counts[most]]
    return float(counts[most]) / numbers.size if robust_scale(predictions[members]) > scale else 0.0


def crowded_counts(heard: Ordered, chosen: Array, means: Array) -> float:
    """Share of the chosen counts that have one value beyond what Poisson's law explains; zero if chance may explain it.

    Counts are equal to many others, but how many have a value is known from their means. A counter that tells no more than
    whether there was a photon, or that stops somewhere, puts into one value what belongs to all above it.
    """
    numbers, lows, counts = _equal(heard, chosen)
    means = np.maximum(means[numbers], TINY)
    logarithms = np.log(means)
    most = 0.0
    # What has no such share cannot exceed it.
    for number in np.flatnonzero(counts > CHECKS.few_flags * numbers.size):
        value = float(heard.values[numbers[lows[number]]])
        expected = float(np.exp(value * logarithms - means - gammaln(value + 1)).mean()) if value >= 0 else 0.0
        excess = counts[number] / numbers.size - expected
        if excess > CHECKS.deviations * np.sqrt(expected * (1 - expected) / numbers.size):
            most = max(most, excess)
    return float(most)


def _equal(heard: Ordered, chosen: Array) -> tuple[Array, Array, Array]:
    """Numbers of the chosen values in their order, where runs of equal ones begin, and their lengths; no runs without ties."""
    none = np.empty(0, np.intp)
    if not heard.ties:
        return none, none, none
    numbers = in_order(heard.order, chosen)
    values = heard.values[numbers]
    if not _ties(values):
        return none, none, none
    return numbers, *_runs(values)


def _runs(values: Array) -> tuple[Array, Array]:
    """Where runs of equal values begin, and their lengths."""
    ends = np.append(1 + np.flatnonzero(values[1:] != values[:-1]), values.size)
    lows = np.append(0, ends[:-1])
    return lows, ends - lows


def unexplained_share(residuals: Array, responses: Array) -> float:
    """Variance of the residuals over that of the responses."""
    if not residuals.size:
        return 1.0
    return _variance(residuals) / max(_variance(responses), TINY)


def _variance(values: Array) -> float:
    centred = values - values.sum() / values.size
    return float(centred @ centred) / values.size


class Thirds(NamedTuple):
    """Samples in the order of their predictions, and where the residuals of every third lie.

    Attributes
    ----------
    predictions, residuals : ndarray of shape (m,)
        Of the samples.
    lower, middle, upper : Located
        The residuals of these thirds.
    """

    predictions: Array
    residuals: Array
    lower: Located
    middle: Located
    upper: Located


def in_thirds(predictions: Array, residuals: Array, *, tailless: bool = False) -> Thirds:
    """Samples in the order of their predictions, of which thirds are looked at."""
    third = residuals.size // 3
    if tailless or not third:
        parts = (residuals[:third], residuals[third : residuals.size - third], residuals[residuals.size - third :])
        return Thirds(predictions, residuals, *(located(part, tailless=tailless) for part in parts))
    # One call orders all thirds; one or two samples that are left over stand between the last two.
    rows = np.concatenate((residuals[: 2 * third], residuals[residuals.size - third :])).reshape(3, third)
    centres = _medians(rows)
    scales = NORMAL_MAD * _medians(np.abs(rows - centres[:, np.newaxis]))
    return Thirds(predictions, residuals, *map(Located, centres.tolist(), scales.tolist()))


def _medians(rows: Array) -> Array:
    """The upper median of every row."""
    middle = rows.shape[1] // 2
    medians: Array = np.partition(rows, middle, axis=1)[:, middle]
    return medians


def missing_shares(keep: Array) -> tuple[float, float, float]:
    """Share of the samples, and of the lower and upper third of them in the order of their predictions, that is not kept."""
    third = keep.size // 3
    if third < FIGURES.fewest:
        return 0.0, 0.0, 0.0
    parts = (keep, keep[:third], keep[-third:])
    every, low, high = (1.0 - int(np.count_nonzero(part)) / part.size for part in parts)
    return every, low, high


def unevenness(thirds: Thirds, *, counts: bool = False) -> float:
    """Scale of the residuals of the upper third over that of the lower third."""
    residuals, third = thirds.residuals, thirds.residuals.size // 3
    if third < FIGURES.fewest:
        return 1.0
    if counts:
        low, high = _root_mean_square(residuals[:third]), _root_mean_square(residuals[-third:])
    else:
        low, high = thirds.lower.scale, thirds.upper.scale
    return high / low if low > 0 else 1.0


def roughness(thirds: Thirds) -> float:
    """Scale of the residuals of the upper third over its median prediction."""
    third = thirds.predictions.size // 3
    if third < FIGURES.fewest:
        return 0.0
    # They come in their order.
    return thirds.upper.scale / max(float(thirds.predictions[third // 2 - third]), TINY)


def weighed_noise(thirds: Thirds) -> float:
    """Root of the mean of ``r²`` weighed by the prediction, with residuals clipped at multiples of the scale of their third."""
    predictions, residuals, *places = thirds
    if predictions.size < 3 * FIGURES.fewest:
        return 0.0
    total, low = 0.0, predictions.size // 3
    high = predictions.size - low
    parts = (slice(0, low), slice(low, high), slice(high, None))
    for third, place in zip(parts, places, strict=True):
        r = residuals[third]
        centre, scale = place
        # Twice as fast as NumPy's clip for a few hundred numbers.
        clipped = np.minimum(np.maximum(r - centre, -FIGURES.clip * scale), FIGURES.clip * scale)
        total += float((clipped * clipped) @ predictions[third])
    return math.sqrt(max(total, 0.0) / max(float(predictions.sum()), TINY))


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
