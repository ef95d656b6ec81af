"""The curve of the responses along held-out predictions: the exponent that bins of the prediction ask for."""

from __future__ import annotations

import numpy as np

from robustphase.constants import TINY
from robustphase.recover.model.limits import CHECKS, FIGURES
from robustphase.recover.model.residuals import NORMAL_MAD
from robustphase.rows.source import Array

#: Exponents that are tried; the last one is the one that is expected.
POWERS = np.append(np.geomspace(0.05, 4.0, FIGURES.powers), 1.0)


def power_of(
    predictions: Array, responses: Array, scale: float, level: float, *, by_means: bool = False
) -> tuple[float, float]:
    """The exponent that bins of the prediction ask for, with a free factor and offset, and the evidence against one.

    Samples come in the order of their predictions. Bad samples may all have the largest predictions, where they look like a
    detector that saturates; their share is left out. Bins are described by Huber's means, or by plain ones where medians, from
    which those begin, jump: those of counts, and of noise with two peaks.
    """
    bins = min(FIGURES.bins, predictions.size // FIGURES.fewest)
    if bins < 5:
        return 1.0, 0.0
    # Bins of one size, so that one call orders all of them; the first ones are followed by a sample that is left over.
    size, longer = divmod(predictions.size, bins)
    numbers = np.arange(max(bins - int(level * bins), 5))
    members = (size * numbers + np.minimum(numbers, longer))[:, np.newaxis] + np.arange(size)
    # The upper median, as elsewhere.
    middle = size // 2
    x = predictions[members[:, middle]]
    if not x[0] < x[-1]:
        return 1.0, 0.0
    gaps = responses[members] - predictions[members]
    if by_means:
        centres, spreads = gaps.mean(axis=1), gaps.std(axis=1)
    else:
        centres, spreads = huber_means(gaps)
    errors = np.maximum(spreads, FIGURES.least_spread * scale) / np.sqrt(size)
    if not (errors > 0).all():
        return 1.0, 0.0
    # By logarithms, which is several times as fast as powers.
    curves = np.exp(POWERS[:, np.newaxis] * np.log(np.maximum(x / x[-1], TINY)))
    misfits = _misfits(curves, x + centres, errors)
    best = int(np.argmin(misfits))
    return float(POWERS[best]), float(misfits[-1] - misfits[best])


def huber_means(rows: Array) -> tuple[Array, Array]:
    """Means of rows whose entries count up to some deviations, by one step from the median, and their standard deviations.

    A median needs half as many samples again for the same accuracy where noise is normal; the step goes all of the way there but
    for a twentieth, and tails decide as little.
    """
    size, middle = rows.shape[1], rows.shape[1] // 2
    medians = np.partition(rows, middle, axis=1)[:, middle, np.newaxis]
    away = rows - medians
    sizes = np.abs(away)
    most = FIGURES.huber * NORMAL_MAD * np.partition(sizes, middle, axis=1)[:, middle, np.newaxis]
    clipped = np.minimum(np.maximum(away, -most), most)
    # The share that the clipping leaves alone is the slope of the step; half of the samples are always among them.
    slopes = (sizes <= most).sum(axis=1) / size
    # By sums and squares: NumPy's own means and deviations take several times as long for a few hundred numbers.
    means = clipped.sum(axis=1) / size
    variances = np.vecdot(clipped, clipped) / size - means**2
    return medians[:, 0] + means / slopes, np.sqrt(np.maximum(variances, 0.0)) / slopes


def is_another_power(power: float) -> bool:
    """Whether an exponent is another one than 1, not only by rounding."""
    return not CHECKS.low_power <= power <= CHECKS.high_power


def _misfits(curves: Array, y: Array, errors: Array) -> Array:
    """Weighted squared residuals of y after regression on a constant and each of the curves, shape (number of curves,)."""
    weights = 1 / np.square(errors)
    total = float(weights.sum())
    own = y - float(weights @ y) / total
    centred = curves - ((curves @ weights) / total)[:, np.newaxis]
    squares = np.square(centred) @ weights
    slopes = centred @ (weights * own) / np.maximum(squares, TINY)
    misfits: Array = weights @ np.square(own) - slopes**2 * squares
    return misfits
