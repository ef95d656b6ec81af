"""Kinds of data that break the model by mishaps of files, converters, stages and modulators.

They were written down before any check had seen them; docs/trust.md says how many were missed at the first contact. Each is
scaled so that the signal which should be found explains the responses best, as far as one does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.fft import dctn, idctn

import robustphase as rp
from benchmarks.world_makers import Array, Data, Maker, bad_majority, drawn, few, of_responses, of_told_rows


def _heard(hear: Callable[[Array, Array, np.random.Generator], Array], field: str = "real", **told: Any) -> Maker:
    """Responses that are another function of rows and signal than the one that is assumed."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n, field=field)
        return Data(A, hear(A, x, rng) + z, x, told)

    return make


def _applied(change: Callable[[Array, np.random.Generator], Array], field: str = "real", **told: Any) -> Maker:
    """Rows that were changed before they met the signal; those that were meant are told."""
    return _heard(lambda A, x, rng: np.abs(change(A, rng) @ x) ** 2, field, **told)


def _with_other(mix: Callable[[Array, Array, np.random.Generator], Array], field: str = "real", **told: Any) -> Maker:
    """Intensities of the signal and of another one, mixed in some way."""

    def hear(A: Array, x: Array, rng: np.random.Generator) -> Array:
        other = rp.simulate.random_signal(x.size, field=field, seed=rng)
        return mix(np.abs(A @ x) ** 2, np.abs(A @ other) ** 2, rng)

    return _heard(hear, field, **told)


def _of_rolled(shifts: Callable[[int, np.random.Generator], Array], **told: Any) -> Maker:
    """The object is moved by so many pixels at every row."""

    def hear(A: Array, x: Array, rng: np.random.Generator) -> Array:
        by = shifts(len(A), rng)
        moved = np.stack([np.roll(x, shift) for shift in range(by.min(), by.max() + 1)])
        heard: Array = np.abs(np.einsum("ij,ij->i", A, moved[by - by.min()])) ** 2
        return heard

    return _heard(hear, **told)


def _in_bits(change: Callable[[Array], Array], bits: int) -> Maker:
    """A converter of so many bits, whose integers are changed on the way."""

    def rewrite(y: Array, rng: np.random.Generator) -> Array:
        step = float(y.max()) / (2**bits - 1)
        integers = np.clip(np.round(y / step), 0, 2**bits - 1).astype(np.int64)
        changed: Array = change(integers) * step
        return changed

    return of_responses(rewrite)


def _from_gray(integers: Array) -> Array:
    """Binary numbers written as Gray's code and read as binary ones."""
    read: Array = integers ^ (integers >> 1)
    return read


def _by_name(y: Array, rng: np.random.Generator) -> Array:
    """Files in the order of their names, in which 10 comes before 2."""
    return y[np.argsort([str(number) for number in range(y.size)], kind="stable")]


def _cells_lost(A: Array, rng: np.random.Generator) -> Array:
    """A cell is lost in every row, and those after it move up."""
    told, n = A.copy(), A.shape[1]
    for row, lost in zip(told, rng.integers(0, n, len(A)), strict=True):
        row[lost:-1] = row[lost + 1 :]
        row[-1] = 0.0
    return told


def _filled_forward(A: Array, rng: np.random.Generator) -> Array:
    """Missing entries replaced by those of the row before."""
    told, missing = A.copy(), np.less(rng.random(A.shape), 0.4)
    for number in range(1, len(A)):
        told[number] = np.where(missing[number], told[number - 1], A[number])
    return told


def _diffused(A: Array) -> Array:
    """Grey values shown as black and white, the error of each handed to the next."""
    shown, error = np.empty_like(A), np.zeros(len(A))
    for column in range(A.shape[1]):
        wanted = A[:, column] + error
        shown[:, column] = np.where(wanted > 0, 1.0, -1.0)
        error = np.clip(wanted - shown[:, column], -2.0, 2.0)
    return shown


def _rolling(A: Array, rng: np.random.Generator) -> Array:
    """A modulator that is read line by line: what comes late is still of the row before."""
    late = np.arange(A.shape[1]) >= rng.integers(A.shape[1] // 4, A.shape[1], (len(A), 1))
    return np.where(late, np.roll(A, 1, axis=0), A)


def _compressed(values: Array, keep: float) -> Array:
    """A lossy picture of the values: the strongest of its frequencies, in blocks of eight by eight."""
    side = values.size // 64 * 64
    blocks = values[:side].reshape(-1, 8, 8)
    waves = dctn(blocks, axes=(1, 2), norm="ortho")
    least = np.quantile(np.abs(waves), 1 - keep, axis=(1, 2), keepdims=True)
    shown = idctn(np.where(np.abs(waves) >= least, waves, 0.0), axes=(1, 2), norm="ortho")
    return np.append(shown.ravel(), values[side:])


def _of_rank(A: Array, share: float) -> Array:
    """The strongest components of the table of rows."""
    left, values, right = np.linalg.svd(A, full_matrices=False)
    count = int(share * values.size)
    return np.asarray((left[:, :count] * values[:count]) @ right[:count])


def _warming(y: Array, rng: np.random.Generator) -> Array:
    """A detector whose gain falls with what it has seen lately."""
    heard, heat = np.empty_like(y), 1.0
    for number, value in enumerate(y):
        heard[number] = 2 * value / (1 + heat**2)
        heat = 0.8 * heat + 0.2 * max(value, 0.0) * 2
    return heard


def _shaded(A: Array, rng: np.random.Generator) -> Array:
    """Either half of the object is in the shade by turns."""
    half = A.shape[1] // 2
    lit = np.equal.outer(np.arange(len(A)) % 2 == 0, np.arange(A.shape[1]) < half)
    applied: Array = np.sqrt(2) * A * lit
    return applied


def _colours(rng: np.random.Generator, n: int, m: int) -> Data:
    """Phases of three colours, of which the middle one is told; their intensities add up."""
    _, x, z = drawn(rng, m, n, field="complex")
    phases = rng.uniform(0, 2 * np.pi, (m, n))
    heard = np.mean([np.abs(np.exp(1j * colour * phases) @ x) ** 2 for colour in (0.85, 1.0, 1.15)], axis=0)
    return Data(np.exp(1j * phases), heard + z, x)


def _polar(rng: np.random.Generator, n: int, m: int) -> Data:
    """Magnitudes and phases told as real and imaginary parts."""
    A, x, z = drawn(rng, m, n, field="complex")
    return Data(np.abs(A) + 1j * np.angle(A), np.abs(A @ x) ** 2 + z, x)


def _short_stroke(rng: np.random.Generator, n: int, m: int) -> Data:
    """A modulator that reaches no more than 60% of the phases it is told."""
    _, x, z = drawn(rng, m, n, field="complex")
    phases = rng.uniform(0, 2 * np.pi, (m, n))
    heard = np.abs(np.exp(1j * np.minimum(phases, 1.2 * np.pi)) @ x) ** 2
    return Data(np.exp(1j * phases), heard + z, x)


def _flat_curve(rng: np.random.Generator, n: int, m: int) -> Data:
    """A modulator whose phase is the square of what it is told."""
    _, x, z = drawn(rng, m, n, field="complex")
    grey = rng.random((m, n))
    return Data(np.exp(2j * np.pi * grey), np.abs(np.exp(2j * np.pi * grey**2) @ x) ** 2 + z, x)


def _index_column(rng: np.random.Generator, n: int, m: int) -> Data:
    """The number of the row read as the first column of the table; the last column is cut off."""
    A, x, z = drawn(rng, m, n)
    numbers = np.arange(m)[:, np.newaxis] / 1.0
    return Data(np.hstack((numbers, A[:, :-1])), (A @ x) ** 2 + z, np.append(0.0, x[:-1]))


def _few_photons(mean: float) -> Maker:
    """Counts of so few photons that they hardly tell."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, _ = drawn(rng, m, n)
        return Data(A, rng.poisson(mean * (A @ x) ** 2).astype(float), np.sqrt(mean) * x)

    return make


def _many_decoys(share: float, count: int, **told: Any) -> Maker:
    """A part of the responses tells of a few other signals in turn."""

    def attack(A: Array, y: Array, rng: np.random.Generator) -> Array:
        others = [rp.simulate.random_signal(A.shape[1], seed=rng) for _ in range(count)]
        heard = np.stack([(A @ other) ** 2 for other in others])
        return heard[np.arange(len(A)) % count, np.arange(len(A))]

    return bad_majority(attack, share, **told)


def _fewer(make: Maker, per_unknown: float) -> Maker:
    """The same world with so many samples per unknown."""
    return lambda rng, n, m: make(rng, n, int(per_unknown * n))


def _fourier_part(change: Callable[[int, Array], Array], told: Callable[[Array], Array] = lambda rows: rows) -> Maker:
    """Random masks before a Fourier transform, of which some part is told in another way than it was applied."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        masks = rng.choice(np.array([1, 1j, -1, -1j]), (m // n, n))
        waves = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        x = rp.simulate.random_signal(n, field="complex", seed=rng)
        applied = np.vstack([waves * change(number, mask) for number, mask in enumerate(masks)])
        stated = np.vstack([told(waves * mask) for mask in masks])
        return Data(stated, np.abs(applied @ x) ** 2 + 0.1 * rng.standard_normal(len(applied)), x)

    return make


def _half_shuffled(y: Array, rng: np.random.Generator) -> Array:
    """Half of the responses beside other rows."""
    return np.where(rng.random(y.size) < 0.5, rng.permutation(y), y)


def _smooth(A: Array, width: int) -> Array:
    """Every entry averaged with those beside it, at the same mean square."""
    total = sum(np.roll(A, shift, axis=1) for shift in range(width))
    return np.asarray(total / np.sqrt(width))


#: Kinds that no check had seen.
MISHAPS: dict[str, Maker] = {
    "bytes in the other order": _in_bits(lambda k: ((k & 255) << 8) | (k >> 8), 16),
    "Gray's code read as binary": _in_bits(_from_gray, 10),
    "a bit of the converter stuck": _in_bits(lambda k: k | 32, 9),
    "bits in the other order": _in_bits(
        lambda k: np.sum([((k >> bit) & 1) << (7 - bit) for bit in range(8)], axis=0), 8
    ),
    "files in the order of their names": of_responses(_by_name),
    "files in the order of their names, told 0.3": of_responses(_by_name, contamination=0.3),
    "a cell lost in every row of A": of_told_rows(_cells_lost),
    "40% of A filled from the row before": of_told_rows(_filled_forward),
    "the row's number as first column": _index_column,
    "shown in black and white, error handed on": _applied(lambda A, rng: _diffused(A)),
    "shown in black and white at random": _applied(
        lambda A, rng: np.where(rng.standard_normal(A.shape) < A, 1.0, -1.0) * np.sqrt(2)
    ),
    "modulator read line by line": _applied(_rolling),
    "modulator read line by line, told 0.3": _applied(_rolling, contamination=0.3),
    "modulator that clips at a half": _applied(lambda A, rng: np.clip(A, -0.5, 0.5) / 0.42),
    "neighbouring pixels multiply": _applied(lambda A, rng: (A + A * np.roll(A, 1, axis=1)) / np.sqrt(2)),
    "large entries halve their neighbours": _applied(
        lambda A, rng: A * np.where(np.abs(np.roll(A, 1, axis=1)) > 0.8, 0.5, 1.3)
    ),
    "entries of either sign at another gain": _applied(lambda A, rng: np.where(A > 0, 1.3 * A, 0.6 * A)),
    "phases that end at 60%": _short_stroke,
    "phases of a bent curve": _flat_curve,
    "three colours at once": _colours,
    "magnitudes and phases told as parts": _polar,
    "rows of the strongest components told": of_told_rows(lambda A, rng: _of_rank(A, 0.7)),
    "differences of neighbouring rows applied": _applied(lambda A, rng: (A - np.roll(A, 1, axis=0)) / np.sqrt(2)),
    "product of neighbouring amplitudes": _heard(lambda A, x, rng: (A @ x) * np.roll(A @ x, 1)),
    "either half in the shade by turns": _applied(_shaded),
    "either half in the shade by turns, auto": _applied(_shaded, contamination="auto"),
    "stage that drifts by a pixel in a fifth": _of_rolled(lambda m, rng: np.arange(m) * 5 // m),
    "stage that drifts by a pixel in half": _of_rolled(lambda m, rng: np.arange(m) * 2 // m),
    "stage that vibrates by a pixel": _of_rolled(lambda m, rng: rng.integers(-1, 2, m)),
    "stage that vibrates slowly": _of_rolled(lambda m, rng: np.round(1.4 * np.sin(np.arange(m) / 20)).astype(int)),
    "stage that stands still in 55%, told 0.1": _of_rolled(lambda m, rng: (rng.random(m) > 0.55).astype(int)),
    "the larger of two objects": _with_other(lambda a, b, rng: np.maximum(a, b)),
    "the smaller of two objects": _with_other(lambda a, b, rng: np.minimum(a, b)),
    "over the sum with another object": _with_other(lambda a, b, rng: 2 * a / (a + b)),
    "over the sum with another object, complex": _with_other(lambda a, b, rng: 2 * a / (a + b), "complex"),
    "root of the product of two objects": _with_other(lambda a, b, rng: np.sqrt(a * b)),
    "polariser turned at random": _with_other(
        lambda a, b, rng: a + (b - a) * np.sin(rng.uniform(0, np.pi, a.size)) ** 2
    ),
    "polariser turned slowly": _with_other(lambda a, b, rng: a + (b - a) * np.sin(np.linspace(0, 20, a.size)) ** 2),
    "shutter that opens on another object": _with_other(
        lambda a, b, rng: np.where(rng.random(a.size) < 0.5, a, 0.5 * (a + b))
    ),
    "moved while it was exposed": _heard(
        lambda A, x, rng: np.mean([np.abs(A @ np.roll(x, by)) ** 2 for by in range(3)], axis=0)
    ),
    "responses as a lossy picture": of_responses(lambda y, rng: _compressed(y, 0.2)),
    "responses as a picture of little loss": of_responses(lambda y, rng: _compressed(y, 0.5)),
    "detector that warms": of_responses(_warming),
    "less the mean, clipped at zero": of_responses(lambda y, rng: np.maximum(y - y.mean(), 0.0)),
    "roots of the larger half": of_responses(lambda y, rng: np.where(y > 0.5, np.sqrt(np.abs(y) / 2), y)),
    "squares of the smaller three quarters": of_responses(lambda y, rng: np.where(y < 1.3, y**2 / 1.3, y)),
    "roots in half of the rows, told 0.3": of_responses(
        lambda y, rng: np.where(rng.random(y.size) < 0.5, np.sqrt(np.abs(y)), y), contamination=0.3
    ),
    "light in proportion to the row's sum": _heard(
        lambda A, x, rng: (A @ x) ** 2 + np.abs(A.sum(axis=1)) / np.sqrt(x.size)
    ),
    "light in proportion to one column": _heard(lambda A, x, rng: (A @ x) ** 2 + 1.5 * A[:, 0] ** 2),
    "noise in proportion to the row's first entry": _heard(
        lambda A, x, rng: (A @ x) ** 2 + 2 * A[:, 0] * rng.standard_normal(len(A))
    ),
    "counts of a thirtieth of a photon": _few_photons(1 / 30),
    "counts of a thirtieth of a photon, told Poisson": lambda rng, n, m: _few_photons(1 / 30)(rng, n, m)._replace(
        told={"noise": "poisson"}
    ),
    "35% shuffled, told 0": bad_majority(lambda A, y, rng: rng.permutation(y), 0.35, contamination=0.0),
    "40% zeros, told 0.02": bad_majority(lambda A, y, rng: np.zeros(y.size), 0.4, contamination=0.02),
    "40% at 1.5 times, told 0.05": bad_majority(lambda A, y, rng: 1.5 * y, 0.4, contamination=0.05),
    "55% at 2 times, told 0.3": bad_majority(lambda A, y, rng: 2 * y, 0.55, contamination=0.3),
    "60% of three decoys, told 0.2": _many_decoys(0.6, 3, contamination=0.2),
    "75% of five decoys, told 0.45": _many_decoys(0.75, 5, contamination=0.45),
    "75% of five decoys, auto": _many_decoys(0.75, 5, contamination="auto"),
    "large responses of another object": _with_other(lambda a, b, rng: np.where(b > 1.0, b, a)),
    "responses shuffled, six per unknown": _fewer(of_responses(lambda y, rng: rng.permutation(y)), 6),
    "responses shuffled, six per unknown, told 0.3": _fewer(
        of_responses(lambda y, rng: rng.permutation(y), contamination=0.3), 6
    ),
    "half shuffled, eight per unknown": _fewer(bad_majority(lambda A, y, rng: rng.permutation(y), 0.5), 8),
    "half shuffled, complex, twelve per unknown": _fewer(
        _heard(lambda A, x, rng: _half_shuffled(np.abs(A @ x) ** 2, rng), "complex"), 12
    ),
    "noise one, eight per unknown": lambda rng, n, m: few(8.0, noise=1.0)(rng, n, m),
    "two modes, eight per unknown": _fewer(_with_other(lambda a, b, rng: a + b), 8),
    "told rows half noise, eight per unknown": _fewer(
        of_told_rows(lambda A, rng: (A + rng.standard_normal(A.shape)) / np.sqrt(2)), 8
    ),
    "polariser turned at random, eight per unknown": _fewer(
        _with_other(lambda a, b, rng: a + (b - a) * np.sin(rng.uniform(0, np.pi, a.size)) ** 2), 8
    ),
    "masked Fourier, every second mask moved by a pixel": _fourier_part(lambda number, mask: np.roll(mask, number % 2)),
    "masked Fourier, every second mask conjugate": _fourier_part(
        lambda number, mask: mask.conj() if number % 2 else mask
    ),
    "masked Fourier, half of every third mask inverted": _fourier_part(
        lambda number, mask: np.where((np.arange(mask.size) < mask.size // 2) & (number % 3 == 0), -mask, mask)
    ),
    "masked Fourier, upper half told in reverse": _fourier_part(
        lambda number, mask: mask,
        lambda rows: np.vstack((rows[: len(rows) // 2], rows[len(rows) // 2 :][::-1])),
    ),
    "smooth rows applied, sharp ones told, in half of the rows": _applied(
        lambda A, rng: np.where(rng.random((len(A), 1)) < 0.5, _smooth(A, 2), A)
    ),
}
