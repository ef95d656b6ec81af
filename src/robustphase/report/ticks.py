"""Axes: which values to label, how to write them, and where they lie.

Steps between ticks are 1, 2 or 5 times a power of ten, so labels are short and a reader can count between them. Logarithmic
axes get decades, and 2 and 5 between them where there are few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
#: Numbers beyond this, and on logarithmic axes below its inverse, are not drawn: their differences and ratios overflow.
LARGEST = 1e150
#: Axes are widened by this share of their length, so that no mark sits on the frame.
PADDING = 0.04


@dataclass(frozen=True)
class Axis:
    """A range of values and the pixels it is drawn on.

    Attributes
    ----------
    low, high : float
        The range.
    start, end : float
        Pixels of ``low`` and ``high``.
    log : bool
        Whether equal ratios, not equal differences, are equally far apart.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: ArrayLike) -> NDArray[np.float64]:
        """Pixels of some values."""
        v, low, high = np.asarray(values, np.float64), self.low, self.high
        if self.log:
            v, low, high = np.log10(v), math.log10(low), math.log10(high)
        return self.start + (v - low) / (high - low) * (self.end - self.start)

    def at(self, value: float) -> float:
        """Pixel of one value."""
        return float(self([value])[0])


def nice_ticks(low: float, high: float, most: int = 6) -> NDArray[np.float64]:
    """Round values within ``[low, high]`` up to rounding: as many as possible, but no more than ``most``.

    Parameters
    ----------
    low, high : float
        Ends of the range, ``low < high``.
    most : int, default=6
        Largest number of ticks, at least 2.

    Returns
    -------
    ndarray
        Multiples of one step, which is 1, 2 or 5 times a power of ten; increasing.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"a range of ticks needs two finite numbers in order, got {low!r} and {high!r}.")
    power = math.floor(math.log10(high - low)) - 2
    while True:
        for digit in (1.0, 2.0, 5.0):
            step = digit * 10.0**power
            # Rounding to the tick that an end coincides with must not lose it.
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last - first + 1 <= max(most, 2):
                return np.arange(first, last + 1, dtype=np.float64) * step
        power += 1


def log_ticks(low: float, high: float, most: int = 6) -> NDArray[np.float64]:
    """Round values within ``[low, high]`` for a logarithmic axis: as many as possible, but no more than ``most``.

    Powers of ten with 2 and 5 times them; powers of ten; every second, third, ... power; and where the range holds no two
    of these, multiples of one step.
    """
    if not (0 < low < high < math.inf):
        raise ValueError(f"a logarithmic range needs two positive numbers in order, got {low!r} and {high!r}.")
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = np.arange(first, last + 1)
    if decades.size <= most:
        powers = np.arange(first - 1, last + 1)
        for digits in ((1.0, 2.0, 5.0), (1.0, 3.0)):
            between = np.outer(10.0**powers, digits).ravel()
            inside = between[(between >= low * (1 - 1e-9)) & (between <= high * (1 + 1e-9))]
            if 2 <= inside.size <= max(most, 2):
                return inside
    if decades.size < 2:
        return nice_ticks(low, high, most)
    every = math.ceil(decades.size / max(most, 2))
    chosen = decades[decades % every == 0]
    if chosen.size < 2:
        chosen = decades[[0, -1]]
    ticks: NDArray[np.float64] = 10.0**chosen
    return ticks


def tick_labels(ticks: NDArray[np.float64], *, log: bool = False) -> list[str]:
    """Labels that tell all ticks apart, with as many digits as that takes and no more."""
    if ticks.size == 0:
        return []
    smallest, largest = float(np.abs(ticks).min()), float(np.abs(ticks).max())
    if log and (smallest < 1e-3 or largest > 1e4) and all(_is_decade(tick) for tick in ticks):
        return [_power(tick) for tick in ticks]
    if largest == 0:
        return ["0"] * ticks.size
    if not 1e-3 <= largest < 1e6 or (log and smallest < 1e-4):
        return [_scientific(tick, ticks) for tick in ticks]
    if log and len({f"{tick:.4g}" for tick in ticks}) == ticks.size:
        return [np.format_float_positional(float(f"{tick:.4g}"), trim="-") for tick in ticks]
    for decimals in range(12):
        labels = [f"{tick:.{decimals}f}".replace("-", "−") for tick in ticks]
        close = all(abs(round(float(tick), decimals) - tick) <= 1e-6 * largest for tick in ticks)
        if close and len(set(labels)) == len(labels):
            break
    return [label.removeprefix("−") if float(label.replace("−", "-")) == 0 else label for label in labels]


def drawable(values: NDArray[np.float64], *, log: bool = False) -> NDArray[np.bool_]:
    """Which values have a place on an axis: finite, not enormous, and on a logarithmic one positive."""
    with np.errstate(invalid="ignore"):
        within: NDArray[np.bool_] = np.abs(values) <= LARGEST
        return within & (values >= 1 / LARGEST) if log else within


def domain(values: NDArray[np.float64], *, log: bool = False, from_zero: bool = False) -> tuple[float, float]:
    """A range that holds all values with a little room; one of some length around a single value.

    Parameters
    ----------
    values : ndarray
        Any numbers; those that cannot be drawn are ignored.
    log : bool, default=False
        For a logarithmic axis.
    from_zero : bool, default=False
        Begin at zero exactly: for bars.
    """
    usable = values[drawable(values, log=log)]
    if usable.size == 0:
        return (0.1, 10.0) if log else (0.0, 1.0)
    low, high = float(usable.min()), float(usable.max())
    if log:
        low, high = math.log10(low), math.log10(high)
        room = PADDING * (high - low) if high - low > 1e-6 else 0.5
        return 10 ** (low - room), 10 ** (high + room)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    size = max(abs(low), abs(high))
    room = PADDING * (high - low)
    if high - low <= max(1e-9 * size, 1 / LARGEST):
        # Too short to be divided into ticks.
        room = 0.5 * size if size > 1 / LARGEST else 1.0
    ends_at_zero = from_zero and high == 0 > low
    return (low if from_zero and low == 0 else low - room), (high if ends_at_zero else high + room)


def _is_decade(value: float) -> bool:
    return value > 0 and abs(math.log10(value) - round(math.log10(value))) < 1e-9


def _power(value: float) -> str:
    exponent = round(math.log10(value))
    return "1" if exponent == 0 else "10" + str(exponent).translate(_SUPERSCRIPTS)


def _scientific(value: float, among: NDArray[np.float64]) -> str:
    """``2×10⁻⁷``, with the digits that tell the ticks apart."""
    if value == 0:
        return "0"
    gap = float(np.diff(among).min()) if among.size > 1 else abs(value)
    exponent = math.floor(math.log10(abs(value)) + 1e-12)
    digits = min(max(exponent - math.floor(math.log10(gap) + 1e-9), 0), 15)
    mantissa, power = f"{value:.{digits}e}".split("e")
    return f"{mantissa}×10{str(int(power)).translate(_SUPERSCRIPTS)}".replace("-", "−")
