"""Kinds of data that break the model through the instrument between object and file: slow detectors, gain control, selection.

They were written down before any check had seen them; docs/trust.md says how many were missed at the first contact. Kinds that
another signal explains exactly, such as crosstalk that is the same in all rows, are not among them: no check can see those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robustphase as rp
from benchmarks.world_makers import Array, Data, Maker, drawn, of_responses, of_told_rows

Change = Callable[[Array, np.random.Generator], Array]


def _of_applied_rows(change: Change) -> Maker:
    """A world in which the rows that were applied are made of those that are told."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        return Data(A, (change(A, rng) @ x) ** 2 + z, x)

    return make


def _of_patterns(response: Callable[[Array, Array, Array], Array], told: Callable[[Array], Array]) -> Maker:
    """Patterns of zeros and ones before the object, of which something else may be told.

    Of an object whose entries add up to nearly zero, patterns told as ±1 are a gain, which no check can see.
    """

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        while abs(x.sum()) < 0.5:
            x = rp.simulate.random_signal(n, seed=rng)
        on = (A > 0).astype(float)
        return Data(told(on), response(on, x, rng.random(m)) + 0.25 * z, x)

    return make


def _partly_coherent(share: float) -> Maker:
    """So much of the light interferes, the rest adds up by intensity."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        return Data(A, share * (A @ x) ** 2 + (1 - share) * A**2 @ x**2 + z, np.sqrt(share) * x)

    return make


def _written_often(ratio: float, noise: float, copies: int) -> Maker:
    """Few samples with noise, each written to the file several times."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, int(ratio * n), n)
        y = (A @ x) ** 2 + 10 * noise * z
        return Data(np.tile(A, (copies, 1)), np.tile(y, copies), x)

    return make


def _selected(chosen: Callable[[Array], Array], noise: float) -> Maker:
    """Only samples with such responses were stored."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, 3 * m, n)
        y = (A @ x) ** 2 + 10 * noise * z
        rows = np.flatnonzero(chosen(y))[:m]
        return Data(A[rows], y[rows], x)

    return make


def _photons(mean: float, change: Change) -> Maker:
    """Photon counts as a detector reports them."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, _ = drawn(rng, m, n)
        counts = rng.poisson(mean * (A @ x) ** 2).astype(float)
        return Data(A, change(counts, rng), np.sqrt(mean) * x)

    return make


def _slow(y: Array, memory: float) -> Array:
    """A detector that forgets exponentially."""
    heard = np.empty_like(y)
    state = y[0]
    for k, value in enumerate(y):
        state = memory * state + (1 - memory) * value
        heard[k] = state
    return heard


def _by_block(size: int, change: Callable[[Array], Array]) -> Change:
    """Responses rewritten a few rows at a time."""

    def rewritten(y: Array, rng: np.random.Generator) -> Array:
        return np.concatenate([change(part) for part in np.array_split(y, max(y.size // size, 1))])

    return rewritten


def _repeated(y: Array, share: float, rng: np.random.Generator) -> Array:
    """A camera that now and then hands out the last frame again."""
    fresh = rng.random(y.size) >= share
    fresh[0] = True
    repeated: Array = y[np.maximum.accumulate(np.where(fresh, np.arange(y.size), 0))]
    return repeated


def _bridged(y: Array, share: float, rng: np.random.Generator) -> Array:
    """Missing responses replaced by the line between their neighbours."""
    there = rng.random(y.size) >= share
    bridged: Array = np.interp(np.arange(y.size), np.flatnonzero(there), y[there])
    return bridged


def _tired(y: Array, limit: float) -> Array:
    """A detector that misses what comes after a large response."""
    heard = y.copy()
    heard[1:][y[:-1] > limit] = 0.0
    return heard


def _flipped_columns(A: Array, rng: np.random.Generator, share: float) -> Array:
    """The sign of half of the columns is wrong in a part of the rows."""
    flipped = (rng.random((len(A), 1)) < share) & (np.arange(A.shape[1]) % 2 == 0)
    told: Array = np.where(flipped, -A, A)
    return told


def _camera_curve(y: Array) -> Array:
    """The curve of pictures for a screen."""
    light = np.clip(y / y.max(), 0.0, 1.0)
    curve: Array = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return curve


#: Kinds that no check had seen.
INSTRUMENTS: dict[str, Maker] = {
    "slow detector": of_responses(lambda y, rng: _slow(y, 0.5)),
    "afterglow of a half": of_responses(lambda y, rng: y + 0.5 * np.r_[0.0, y[:-1]]),
    "alternating current only": of_responses(lambda y, rng: y - _slow(y, 0.9)),
    "ratio to the response before": of_responses(lambda y, rng: y / np.maximum(np.roll(y, 1), 0.1)),
    "gain control over ten rows": of_responses(lambda y, rng: y / np.maximum(_slow(y, 0.9), 0.1)),
    "over the largest of twenty": of_responses(_by_block(20, lambda part: 4.5 * part / part.max())),
    "standardised in blocks of fifty": of_responses(_by_block(50, lambda part: (part - part.mean()) / part.std())),
    "ranks in blocks of fifty": of_responses(_by_block(50, lambda part: np.argsort(np.argsort(part)) / 10.0)),
    "last frame again, 30%": of_responses(lambda y, rng: _repeated(y, 0.3, rng)),
    "last frame again, 60%": of_responses(lambda y, rng: _repeated(y, 0.6, rng)),
    "interpolated, 40%": of_responses(lambda y, rng: _bridged(y, 0.4, rng)),
    "late by one row in 40%": of_responses(lambda y, rng: np.where(rng.random(y.size) < 0.4, np.roll(y, 1), y)),
    "missing ones replaced by the mean, 30%": of_responses(
        lambda y, rng: np.where(rng.random(y.size) < 0.3, y.mean(), y)
    ),
    "dead after a large response": of_responses(lambda y, rng: _tired(y, 0.5)),
    "fades and is renewed": of_responses(lambda y, rng: y * np.exp(-(np.arange(y.size) % 37) / 15)),
    "blinks between one and three": of_responses(lambda y, rng: y * rng.choice([1.0, 3.0], y.size)),
    "dark in 40% of the rows": of_responses(lambda y, rng: np.where(rng.random(y.size) < 0.4, 0.05, y)),
    "lognormal gains": of_responses(lambda y, rng: y * np.exp(rng.standard_normal(y.size))),
    "two detectors of other offsets": of_responses(lambda y, rng: y + 2.0 * (np.arange(y.size) % 2)),
    "too much dark current subtracted": of_responses(lambda y, rng: np.maximum(y - 0.5, 0.0)),
    "discriminator at the median": of_responses(lambda y, rng: np.where(y < np.median(y), 0.0, y)),
    "quadratic detector": of_responses(lambda y, rng: y + 0.3 * y**2),
    "rounded to whole numbers": of_responses(lambda y, rng: np.round(y)),
    "clipped at the upper quartile": of_responses(lambda y, rng: np.minimum(y, np.quantile(y, 0.75))),
    "clipped at the 60% quantile": of_responses(lambda y, rng: np.minimum(y, np.quantile(y, 0.6))),
    "curve of pictures for a screen": of_responses(lambda y, rng: _camera_curve(y)),
    "clicks instead of counts": _photons(1.0, lambda y, rng: np.minimum(y, 1.0)),
    "avalanche of every photon": _photons(5.0, lambda y, rng: rng.gamma(np.maximum(y, 1e-3), 1.0)),
    "afterpulses": _photons(10.0, lambda y, rng: y + rng.binomial(np.roll(y, 1).astype(int), 0.3)),
    "counts, logarithms of them": _photons(30.0, lambda y, rng: np.log1p(y)),
    "slow modulator": _of_applied_rows(lambda A, rng: 0.7 * A + 0.6 * np.roll(A, 1, axis=0)),
    "modulator that jitters by a column": _of_applied_rows(
        lambda A, rng: np.where(rng.random((len(A), 1)) < 0.5, np.roll(A, 1, axis=1), A)
    ),
    "pixels that stick, a fifth": _of_applied_rows(
        lambda A, rng: np.where(rng.random(A.shape) < 0.2, np.roll(A, 1, axis=0), A)
    ),
    "signs of half of the columns wrong in 30%": of_told_rows(lambda A, rng: _flipped_columns(A, rng, 0.3)),
    "signs of half of the columns wrong in half": of_told_rows(lambda A, rng: _flipped_columns(A, rng, 0.5)),
    "told rows over their unknown gains": of_told_rows(
        lambda A, rng: A * np.exp(0.5 * rng.standard_normal((len(A), 1)))
    ),
    "told rows sorted within": of_told_rows(lambda A, rng: np.sort(A, axis=1)),
    "told 0/1 clipped from grey": of_told_rows(lambda A, rng: np.clip(A, 0.0, 1.0)),
    "told ±1, applied 0/1": _of_patterns(lambda on, x, u: (on @ x) ** 2, lambda on: 2 * on - 1),
    "complement applied in 30%": _of_patterns(
        lambda on, x, u: (np.where(u[:, np.newaxis] < 0.3, 1 - on, on) @ x) ** 2, lambda on: on
    ),
    "stray light of the open pixels": _of_patterns(
        lambda on, x, u: (on @ x) ** 2 + on.mean(axis=1) * (1 + u), lambda on: on
    ),
    "half coherent": _partly_coherent(0.5),
    "fifth coherent": _partly_coherent(0.2),
    "2.5n samples, written eight times": _written_often(2.5, 0.5, 8),
    "4n samples of noise one, written five times": _written_often(4.0, 1.0, 5),
    "only responses below the median, noise one": _selected(lambda y: y < np.median(y), 1.0),
    "only responses above the median, noise one": _selected(lambda y: y > np.median(y), 1.0),
}
