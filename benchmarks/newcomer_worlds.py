"""Kinds of data that break the model as newcomers of other fields bring them: optics, crystals, antennas, logbooks, statistics.

They were written down before any check had seen them; docs/trust.md says how many were missed at the first contact. Each is
scaled so that the signal which should be found explains the responses best, as far as one does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm, rankdata

import robustphase as rp
from benchmarks.world_makers import Array, Data, Maker, drawn, few, of_responses, of_rows, of_told_rows


def _of_products(change: Callable[[Array], Array], field: str = "real") -> Maker:
    """A detector that takes another function of ``a·x`` than its squared magnitude."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n, field=field)
        return Data(A, change(A @ x) + z, x)

    return make


def _friedel(rng: np.random.Generator, n: int, m: int) -> Data:
    """Reflections averaged with their opposite ones, of a crystal that absorbs."""
    A, x, z = drawn(rng, m, n, field="complex")
    return Data(A, (np.abs(A @ x) ** 2 + np.abs(A.conj() @ x) ** 2) / 2 + z, x)


def _in_turn(count: int) -> Maker:
    """So many objects in turn, none of which has half of the samples."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        objects = [x, *(rp.simulate.random_signal(n, seed=rng) for _ in range(count - 1))]
        heard = np.stack([(A @ one) ** 2 for one in objects])
        return Data(A, heard[np.arange(m) % count, np.arange(m)] + z, x, {"contamination": "auto"})

    return make


def _trembling(rng: np.random.Generator, n: int, m: int) -> Data:
    """Five frames of an object that is deformed at random from frame to frame, averaged."""
    A, x, z = drawn(rng, m, n)
    objects = x + rng.standard_normal((5, n)) / np.sqrt(n)
    return Data(A, ((A @ objects.T) ** 2).mean(axis=1) + z, x)


def _standardised(rng: np.random.Generator, n: int, m: int) -> Data:
    """Grey patterns whose columns were centred and scaled to one, as features of a regression are."""
    A, x, z = drawn(rng, m, n)
    grey = 1.0 + A
    return Data((grey - grey.mean(axis=0)) / grey.std(axis=0), (grey @ x) ** 2 + z, x)


def _jittered(rng: np.random.Generator, n: int, m: int) -> Data:
    """Data of 2.5 noisy samples per unknown, ten copies with a little noise on rows and responses: augmented."""
    data = few(2.5, noise=0.3)(rng, n, m)
    A, y = np.repeat(data.A, 10, axis=0), np.repeat(data.y, 10)
    return Data(A + 0.02 * rng.standard_normal(A.shape), y + 0.02 * rng.standard_normal(y.size), data.truth)


def _unequal_rows(rng: np.random.Generator, n: int, m: int) -> Data:
    """Rows of unequal lengths, all told with one length."""
    A, x, z = drawn(rng, m, n)
    A = A * np.exp(0.6 * rng.standard_normal((m, 1)))
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    return Data(A * np.sqrt(n) / lengths, (A @ x) ** 2 + z, x)


def _gain_by_rows(gain: Callable[[Array], Array]) -> Maker:
    """The rows change the gain of their own responses."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        return Data(A, gain(A) * (A @ x) ** 2 + z, x)

    return make


def _coincidences(rng: np.random.Generator, n: int, m: int) -> Data:
    """What two detectors count together, which is the product of what they count."""
    A, x, z = drawn(rng, m, n)
    other = rp.simulate.random_signal(n, seed=rng)
    return Data(A, (A @ x) ** 2 * (A @ other) ** 2 + z, x)


def _without_repeats(rng: np.random.Generator, n: int, m: int) -> Data:
    """Responses of two digits of which repeated ones were dropped, and their rows were not."""
    A, x, z = drawn(rng, 4 * m, n)
    y = np.round((A @ x) ** 2 + z, 2)
    _, first = np.unique(y, return_index=True)
    left = y[np.sort(first)][:m]
    return Data(A[: left.size], left, x)


def _without_points(y: Array) -> Array:
    """Three digits whose decimal point was lost, in units of a typical one."""
    sizes = np.maximum(np.abs(y), 1e-6)
    digits = sizes / 10 ** np.floor(np.log10(sizes))
    read: Array = np.round(digits, 2) * np.median(sizes) / np.median(digits)
    return read


def _held(y: Array, keep: float) -> Array:
    """A detector that holds its peaks and forgets them slowly."""
    heard, state = np.empty_like(y), y[0]
    for number, value in enumerate(y):
        state = max(value, keep * state)
        heard[number] = state
    return heard


def _on_change(y: Array, step: float) -> Array:
    """A logger that writes a new reading only where it differs from the last by a step."""
    heard, state = np.empty_like(y), y[0]
    for number, value in enumerate(y):
        state = value if abs(value - state) > step else state
        heard[number] = state
    return heard


def _fast_clock(y: Array, by: float) -> Array:
    """Readings interpolated on the time of another clock."""
    times = np.arange(y.size)
    return np.interp((1 + by) * times, times, y)


def _swapped(y: Array, rng: np.random.Generator) -> Array:
    """Half of the pairs of neighbours in the other order."""
    pairs = y[: y.size // 2 * 2].reshape(-1, 2)
    turned = np.where(rng.random((len(pairs), 1)) < 0.5, pairs[:, ::-1], pairs)
    return np.append(turned.ravel(), y[pairs.size :])


def _late_columns(A: Array) -> Array:
    """The second half of the columns, joined from a table that is late by a row."""
    half = A.shape[1] // 2
    return np.hstack((A[:, :half], np.roll(A[:, half:], 1, axis=0)))


def _other_units(A: Array, rng: np.random.Generator) -> Array:
    """Half of the columns in other units in 40% of the rows."""
    told = A.copy()
    told[np.ix_(rng.random(len(A)) < 0.4, np.arange(A.shape[1] // 2))] *= 10.0
    return told


def _powers(A: Array, rng: np.random.Generator) -> Array:
    """Powers of one variable, as of a polynomial."""
    places = rng.uniform(-1.0, 1.0, (len(A), 1))
    rows: Array = places ** np.arange(A.shape[1])
    return rows


#: Kinds that no check had seen.
NEWCOMERS: dict[str, Maker] = {
    "three objects in turn, auto": _in_turn(3),
    "half of the columns late by a row": of_told_rows(lambda A, rng: _late_columns(A)),
    "opposite reflections averaged": _friedel,
    "one quadrature squared": _of_products(lambda s: 2 * s.real**2, "complex"),
    "sum of both magnitudes, squared": _of_products(
        lambda s: np.pi / (np.pi + 2) * (np.abs(s.real) + np.abs(s.imag)) ** 2, "complex"
    ),
    "rectified before the square": _of_products(lambda s: 2 * np.maximum(s, 0.0) ** 2),
    "squares with the sign of a·x": _of_products(lambda s: s * np.abs(s)),
    "dead zone before the square": _of_products(lambda s: np.maximum(np.abs(s) - 0.7, 0.0) ** 2),
    "decimal points lost": of_responses(lambda y, rng: _without_points(y)),
    "rounded to powers of four": of_responses(lambda y, rng: 4.0 ** np.round(np.log(np.maximum(y, 1e-3)) / np.log(4))),
    "compared with a random voltage": of_responses(lambda y, rng: 4.0 * (y > rng.uniform(0, 4.0, y.size))),
    "columns centred and scaled": _standardised,
    "2.5n samples, ten jittered copies": _jittered,
    "speckle of four looks": of_responses(lambda y, rng: y * rng.gamma(4.0, 0.25, y.size)),
    "over a noisy reference": of_responses(lambda y, rng: y / np.maximum(1 + 0.5 * rng.standard_normal(y.size), 0.1)),
    "peaks held": of_responses(lambda y, rng: _held(y, 0.8)),
    "logged on change": of_responses(lambda y, rng: _on_change(y, 1.0)),
    "clock that is fast": of_responses(lambda y, rng: _fast_clock(y, 0.005)),
    "quantiles of a normal law": of_responses(lambda y, rng: norm.ppf((rankdata(y) - 0.5) / y.size)),
    "coincidences with another object": _coincidences,
    "gain that follows a column": _gain_by_rows(lambda A: np.exp(np.tanh(2 * A[:, 0]))),
    "gain that falls with the row's length": _gain_by_rows(
        lambda A: np.exp(-12 * (np.mean(A**2, axis=1) - 1)) / np.mean(np.exp(-12 * (np.mean(A**2, axis=1) - 1)))
    ),
    "told rows of one length": _unequal_rows,
    "powers of one variable": of_rows(_powers),
    "half of the columns in other units in 40% of the rows": of_told_rows(_other_units),
    "half of the pairs swapped": of_responses(_swapped),
    "frames of a trembling object averaged": _trembling,
    "repeated responses dropped, their rows not": _without_repeats,
}
