"""Kinds of data that break the model through what is done to them between detector and fit: filtered, merged, cut, relabelled.

They were written down before any check had seen them; docs/trust.md says how many were missed at the first contact. Kinds that
another signal explains exactly, such as patterns transposed in all rows alike, are not among them: no check can see those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.ndimage import median_filter, minimum_filter1d
from scipy.signal import savgol_filter

import robustphase as rp
from benchmarks.world_makers import Array, Data, Maker, drawn, of_responses, of_told_rows

Change = Callable[[Array, np.random.Generator], Array]


def _in_part(share: float, change: Callable[[Array], Array]) -> Change:
    """Rows or responses rewritten in the last part of the data: those of another session."""

    def rewritten(values: Array, rng: np.random.Generator) -> Array:
        first = int((1 - share) * len(values))
        return np.concatenate((values[:first], change(values[first:])))

    return rewritten


def _transposed(A: Array) -> Array:
    """Patterns of as square a shape as the number of pixels allows, read column by column."""
    n = A.shape[1]
    height = max(k for k in range(1, int(np.sqrt(n)) + 1) if n % k == 0)
    turned: Array = A.reshape(len(A), height, n // height).transpose(0, 2, 1).reshape(A.shape)
    return turned


def _serpentine(y: Array, line: int) -> Array:
    """Every second line of a scan backwards."""
    lines = np.array_split(y, max(y.size // line, 1))
    return np.concatenate([part[::-1] if number % 2 else part for number, part in enumerate(lines)])


def _rejected(keep: Callable[[Array, np.random.Generator], Array]) -> Maker:
    """Readings that were left out of the responses and not out of the rows."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, 2 * m, n)
        y = (A @ x) ** 2 + z
        left = y[keep(y, rng)][:m]
        return Data(A[: left.size], left, x)

    return make


def _binned(rng: np.random.Generator, n: int, m: int) -> Data:
    """Means of two responses beside means of their rows."""
    A, x, z = drawn(rng, 2 * m, n)
    y = (A @ x) ** 2 + z
    return Data((A[::2] + A[1::2]) / np.sqrt(2), (y[::2] + y[1::2]) / 2, x)


def _ghost(share: float) -> Maker:
    """A copy of the object beside it, of another path of the light."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        return Data(A, (A @ x) ** 2 + share * (A @ np.roll(x, 2)) ** 2 + z, x)

    return make


def _grey_curve(rng: np.random.Generator, n: int, m: int) -> Data:
    """Grey patterns that a projector shows with the curve of a screen."""
    A, x, z = drawn(rng, m, n)
    grey = np.clip(0.5 + A / 4, 0.0, 1.0)
    return Data(grey, (grey**2.2 @ x) ** 2 + z, x)


def _degrees(rng: np.random.Generator, n: int, m: int) -> Data:
    """Phases of a modulator in degrees, told as radians."""
    degrees = rng.integers(0, 360, (m, n))
    A = np.exp(1j * np.deg2rad(degrees))
    x = rp.simulate.random_signal(n, field="complex", seed=rng)
    return Data(np.exp(1j * degrees), np.abs(A @ x) ** 2 + 0.1 * rng.standard_normal(m), x)


def _in_bytes(values: Array, scale: float) -> Array:
    """Signed bytes that overflow and come back at the other end."""
    wrapped: Array = (np.mod(np.round(scale * values) + 128, 256) - 128) / scale
    return wrapped


def _companded(y: Array) -> Array:
    """The logarithmic compression of telephones."""
    largest = np.abs(y).max()
    heard: Array = np.sign(y) * np.log1p(255 * np.abs(y) / largest) / np.log(256) * largest
    return heard


def _without_spikes(y: Array) -> Array:
    """A filter against hot pixels, which takes large responses for them."""
    typical = median_filter(y, 5)
    cleaned: Array = np.where(np.abs(y - typical) > y.std(), typical, y)
    return cleaned


def _over_block_mean(y: Array, size: int) -> Array:
    parts = np.array_split(y, max(y.size // size, 1))
    return np.concatenate([part / part.mean() for part in parts])


def _lost(y: Array, every: int) -> Array:
    """A frame is lost now and then; the last ones are missing at the end."""
    left = np.delete(y, np.arange(every // 2, y.size, every))
    return np.resize(left, y.size)


def _quadrant(A: Array) -> Array:
    """The sign of a quarter of the columns is another one."""
    n = A.shape[1]
    told: Array = np.where(np.arange(n) < n // 4, -A, A)
    return told


def _stretched(A: Array) -> Array:
    """The contrast of every row stretched to the same range, in the units of a typical one."""
    ranges = np.ptp(A, axis=1, keepdims=True)
    told: Array = (A - A.min(axis=1, keepdims=True)) * ranges.mean() / ranges
    return told


#: Kinds that no check had seen.
HANDLING: dict[str, Maker] = {
    "scan told without its turns": of_responses(lambda y, rng: _serpentine(y, 32)),
    "patterns transposed in 40% of the rows": of_told_rows(_in_part(0.4, _transposed)),
    "patterns mirrored in 40% of the rows": of_told_rows(_in_part(0.4, lambda A: A[:, ::-1])),
    "sign of a quadrant wrong in 40% of the rows": of_told_rows(_in_part(0.4, _quadrant)),
    "dark frame of another exposure in half": of_responses(_in_part(0.5, lambda y: y - 1.0)),
    "companded": of_responses(lambda y, rng: _companded(y)),
    "paralysed by large responses": of_responses(lambda y, rng: y * np.exp(-0.5 * np.abs(y))),
    "a frame lost every sixty rows": of_responses(lambda y, rng: _lost(y, 60)),
    "two sessions, gains 1 and 1.8": of_responses(_in_part(0.4, lambda y: 1.8 * y)),
    "two sessions, gains 1 and 0.4": of_responses(_in_part(0.5, lambda y: 0.4 * y)),
    "gains 1 and 1.8 at random": of_responses(lambda y, rng: y * rng.choice([1.0, 1.8], y.size)),
    "exposure times 1, 2 and 5 at random": of_responses(lambda y, rng: y * rng.choice([1.0, 2.0, 5.0], y.size)),
    "second session in decibels": of_responses(_in_part(0.4, lambda y: 10 * np.log10(np.maximum(y, 1e-3)))),
    "every row told twice": of_told_rows(lambda A, rng: np.repeat(A[::2], 2, axis=0)[: len(A)]),
    "median of five responses": of_responses(lambda y, rng: median_filter(y, 5)),
    "parabola through seven responses": of_responses(lambda y, rng: savgol_filter(y, 7, 2)),
    "filter against hot pixels": of_responses(lambda y, rng: _without_spikes(y)),
    "over the mean of their ten": of_responses(lambda y, rng: _over_block_mean(y, 10)),
    "less the least of five neighbours": of_responses(lambda y, rng: y - minimum_filter1d(y, 5)),
    "less a running median": of_responses(lambda y, rng: y - median_filter(y, 21)),
    "negative readings wrapped to the top": of_responses(lambda y, rng: np.where(y < 0.02, y + 20.0, y)),
    "range switched above one": of_responses(lambda y, rng: np.where(y > 1.0, y / 4, y)),
    "over-exposed readings set to zero": of_responses(lambda y, rng: np.where(y > 1.0, 0.0, y)),
    "lamp that flickers": of_responses(lambda y, rng: y * (1 + 0.9 * np.sin(2.3 * np.arange(y.size)))),
    "wrong flat field": of_responses(lambda y, rng: y * rng.uniform(0.1, 1.9, 64)[np.arange(y.size) % 64]),
    "large readings rejected, their rows not": _rejected(lambda y, rng: y < 3.0),
    "missing readings dropped, their rows not": _rejected(lambda y, rng: rng.random(y.size) > 0.02),
    "two rows binned": _binned,
    "ghost of half": _ghost(0.5),
    "ghost of a third": _ghost(0.33),
    "grey patterns behind a screen's curve": _grey_curve,
    "phases in degrees told as radians": _degrees,
    "told rows stretched one by one": of_told_rows(lambda A, rng: _stretched(A)),
    "told rows in three levels": of_told_rows(lambda A, rng: 1.525 * np.sign(A) * (np.abs(A) > 1.0)),
    "told rows wrapped as bytes": of_told_rows(lambda A, rng: _in_bytes(A, 80.0)),
    "told rows without their last fifth": of_told_rows(lambda A, rng: A * (np.arange(A.shape[1]) < 0.8 * A.shape[1])),
}
