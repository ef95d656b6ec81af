"""Kinds of data that break the model as they come from laboratories: files, converters, clocks and instruments gone wrong.

They were written down before any check had seen them; docs/trust.md says how many were missed at the first contact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import robustphase as rp
from benchmarks.world_makers import Array, Data, Maker, drawn, few, modes, of_responses, of_rows, of_told_rows

Change = Callable[[Array, np.random.Generator], Array]


def _two_signals(belongs: Callable[[int, np.random.Generator], Array], **told: Any) -> Maker:
    """Some responses tell of one signal and the others of another one; the first is sought."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        other = rp.simulate.random_signal(n, seed=rng)
        return Data(A, np.where(belongs(m, rng), (A @ x) ** 2, (A @ other) ** 2) + z, x, told)

    return make


def _measured_twice(rng: np.random.Generator, n: int, m: int) -> Data:
    """Every row twice, with the object moved between the runs."""
    A, x, z = drawn(rng, m, n)
    A[m // 2 :] = A[: m - m // 2]
    other = rp.simulate.random_signal(n, seed=rng)
    return Data(A, np.where(np.arange(m) < m // 2, (A @ x) ** 2, (A @ other) ** 2) + z, x)


def _complex(applied_to_told: Change) -> Maker:
    """Complex rows of unit entries; what was told is made of those that were applied."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A = np.exp(2j * np.pi * rng.random((m, n)))
        x = rp.simulate.random_signal(n, field="complex", seed=rng)
        return Data(applied_to_told(A, rng), np.abs(A @ x) ** 2 + 0.1 * rng.standard_normal(m), x)

    return make


def _gaussian_complex(applied_to_told: Change, **told: Any) -> Maker:
    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n, field="complex")
        return Data(applied_to_told(A, rng), np.abs(A @ x) ** 2 + z, x, told)

    return make


def _masked_transform(convention: Callable[[Array, int], Array]) -> Maker:
    """Random masks before a Fourier transform, of which another convention is told.

    The zero frequency in the middle of all of them would be right for a signal whose entries change sign alternately.
    """

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        transform = np.fft.fft(np.eye(n))
        masks = [rng.choice([1, -1, 1j, -1j], n) for _ in range(12)]
        A = np.vstack([transform * mask for mask in masks])
        told = np.vstack([convention(transform, number) * mask for number, mask in enumerate(masks)])
        x = rp.simulate.random_signal(n, field="complex", seed=rng)
        return Data(told, np.abs(A @ x) ** 2 + 0.05 * rng.standard_normal(len(A)), x)

    return make


def _strongest_column_missing(rng: np.random.Generator, n: int, m: int) -> Data:
    A, x, z = drawn(rng, m, n)
    x[0] = 1.0
    return Data(A[:, 1:], (A @ x) ** 2 + z, x[1:])


def _side_by_side(rng: np.random.Generator, n: int, m: int) -> Data:
    """Real and imaginary parts of complex rows as columns of real ones."""
    A, x, z = drawn(rng, m, n, field="complex")
    return Data(np.hstack((A.real, A.imag)) * np.sqrt(2), np.abs(A @ x) ** 2 + z, np.hstack((x.real, -x.imag)))


def _on_top(rng: np.random.Generator, n: int, m: int) -> Data:
    """Real and imaginary parts of complex rows as rows of their own, each with the response of both."""
    A, x, z = drawn(rng, m // 2, n, field="complex")
    y = np.abs(A @ x) ** 2 + z
    return Data(np.vstack((A.real, A.imag)) * np.sqrt(2), np.concatenate((y, y)), x)


def _reference(strength: Callable[[int, np.random.Generator], Array]) -> Maker:
    """Something coherent of another strength for every row."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        return Data(A, (A @ x + strength(m, rng)) ** 2 + z, x)

    return make


def _unsteady(strength: float) -> Maker:
    """The signal is another one for every row, about a mean."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        shaken = x + strength * rng.standard_normal((m, n)) / np.sqrt(n)
        return Data(A, np.einsum("ij,ij->i", A, shaken) ** 2 + z, x)

    return make


def _counts(change: Change, **told: Any) -> Maker:
    """Photon counts, rewritten."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, _ = drawn(rng, m, n)
        return Data(A, change(rng.poisson(30 * (A @ x) ** 2).astype(float), rng), np.sqrt(30) * x, told)

    return make


def _lowest_bits(y: Array, scale: float, bits: int) -> Array:
    """Integers that overflow and come back at the other end."""
    half = 2 ** (bits - 1)
    wrapped: Array = (np.mod(np.round(scale * y) + half, 2 * half) - half) / scale
    return wrapped


def _third(count: int) -> Array:
    third: Array = np.arange(count) % 3 == 0
    return third


def _walk(count: int, rng: np.random.Generator) -> Array:
    walk: Array = np.cumsum(rng.standard_normal(count)) / np.sqrt(count)
    return walk


#: Kinds that no check had seen.
LABORATORY: dict[str, Maker] = {
    "A and y sorted separately": of_told_rows(lambda A, rng: A[np.argsort(A[:, 0])]),
    "y sorted in blocks of twenty": of_responses(
        lambda y, rng: np.concatenate([np.sort(part) for part in np.array_split(y, y.size // 20)])
    ),
    "A read in the other order of its axes": of_told_rows(lambda A, rng: A.T.reshape(A.shape)),
    "rows in another order within blocks of eight": of_told_rows(
        lambda A, rng: A[np.concatenate([rng.permutation(b) for b in np.array_split(np.arange(len(A)), len(A) // 8)])]
    ),
    "rows measured twice, object moved": _measured_twice,
    "object changed halfway": _two_signals(lambda m, rng: np.arange(m) < m // 2),
    "object changed halfway, auto": _two_signals(lambda m, rng: np.arange(m) < m // 2, contamination="auto"),
    "object changed after 60%, told 0.2": _two_signals(lambda m, rng: np.arange(m) < 0.4 * m, contamination=0.2),
    "two objects in turn": _two_signals(lambda m, rng: np.arange(m) % 2 == 0),
    "two objects in turn, told 0.3": _two_signals(lambda m, rng: np.arange(m) % 2 == 0, contamination=0.3),
    "65% of another object, told 0.1": _two_signals(lambda m, rng: rng.random(m) < 0.35),
    "70% of another object, auto": _two_signals(lambda m, rng: rng.random(m) < 0.3, contamination="auto"),
    "mean of two neighbouring responses": of_responses(lambda y, rng: (y + np.roll(y, 1)) / 2),
    "median of three neighbouring responses": of_responses(
        lambda y, rng: np.median([np.roll(y, -1), y, np.roll(y, 1)], axis=0)
    ),
    "largest of two neighbouring responses": of_responses(lambda y, rng: np.maximum(y, np.roll(y, 1))),
    "product with the next response": of_responses(lambda y, rng: y * np.roll(y, -1)),
    "running mean of the responses": of_responses(lambda y, rng: np.cumsum(y) / (1 + np.arange(y.size))),
    "second half late by seven rows": of_responses(
        lambda y, rng: np.r_[y[: y.size // 2], np.roll(y[y.size // 2 :], 7)]
    ),
    "second half late by seven rows, auto": of_responses(
        lambda y, rng: np.r_[y[: y.size // 2], np.roll(y[y.size // 2 :], 7)], contamination="auto"
    ),
    "a row lost at a tenth of the way": of_responses(lambda y, rng: np.r_[y[: y.size // 10], y[y.size // 10 + 1 :], 0]),
    "every third response in decibels": of_responses(
        lambda y, rng: np.where(_third(y.size), 10 * np.log10(np.maximum(y, 1e-3)), y)
    ),
    "every second response a magnitude": of_responses(
        lambda y, rng: np.where(np.arange(y.size) % 2, 5 * np.sqrt(np.abs(y)), y)
    ),
    "gain 1, 2 and 4 in turn": of_responses(lambda y, rng: y * 2.0 ** (np.arange(y.size) % 3)),
    "gain a random walk": of_responses(lambda y, rng: y * np.exp(2 * _walk(y.size, rng))),
    "gains uniform between 0 and 2": of_responses(lambda y, rng: y * rng.uniform(0, 2, y.size)),
    "exponential gains, told additive": of_responses(lambda y, rng: y * rng.exponential(1.0, y.size), noise="additive"),
    "exponential gains, unknown mean": of_responses(
        lambda y, rng: y * rng.exponential(1.0, y.size), noise_mean="unknown"
    ),
    "exponential gains, auto": of_responses(lambda y, rng: y * rng.exponential(1.0, y.size), contamination="auto"),
    "reference that grows along the rows": _reference(lambda m, rng: np.linspace(0, 2, m)),
    "reference of random strength": _reference(lambda m, rng: rng.standard_normal(m)),
    "reference of random sign": _reference(lambda m, rng: rng.choice([-0.7, 0.7], m)),
    "signal unsteady by half": _unsteady(0.5),
    "signal unsteady by one": _unsteady(1.0),
    "two sources, 0.7 and 0.3": modes((0.7, 0.3)),
    "two sources, 0.55 and 0.45, complex": modes((0.55, 0.45), field="complex"),
    "clipped below at the median": of_responses(lambda y, rng: np.maximum(y, np.median(y))),
    "clipped below and above at the quartiles": of_responses(
        lambda y, rng: np.clip(y, np.quantile(y, 0.25), np.quantile(y, 0.75))
    ),
    "saturation told ten times too high": of_responses(lambda y, rng: np.minimum(y, 0.4), saturation=4.0),
    "saturation told too low": of_responses(lambda y, rng: y, saturation=0.05),
    "absolute values of standardised responses": of_responses(lambda y, rng: np.abs((y - y.mean()) / y.std())),
    "over the length of the row, twice": of_responses(lambda y, rng: y / (0.05 + rng.random(y.size)) ** 2),
    "counts, root transformed": _counts(lambda y, rng: 2 * np.sqrt(y + 0.375), contamination="auto"),
    "counts with a gain of ten, told Poisson": _counts(lambda y, rng: np.round(10 * y), noise="poisson"),
    "counts thinned by dead time": _counts(lambda y, rng: np.round(y / (1 + y / 20))),
    "counts thinned by dead time, told Poisson": _counts(lambda y, rng: np.round(y / (1 + y / 20)), noise="poisson"),
    "counts of the row before, told Poisson": _counts(lambda y, rng: np.roll(y, 1), noise="poisson"),
    "sixteen bits wrapped": of_responses(lambda y, rng: _lowest_bits(y, 2e4, 16)),
    "first half of the responses zero": of_responses(lambda y, rng: np.where(np.arange(y.size) < y.size // 2, 0.0, y)),
    "every second response zero": of_responses(lambda y, rng: np.where(np.arange(y.size) % 2, 0.0, y)),
    "every third response dark": of_responses(lambda y, rng: np.where(_third(y.size), 0.1 * rng.random(y.size), y)),
    "runs of fifty equal rows": of_rows(lambda A, rng: A[np.arange(len(A)) // 50]),
    "constant column of ten": of_rows(lambda A, rng: np.hstack((np.full((len(A), 1), 10.0), A[:, 1:]))),
    "a third of the columns equal": of_rows(
        lambda A, rng: np.where(np.arange(A.shape[1]) < A.shape[1] // 3, A[:, :1], A)
    ),
    "strongest column missing": _strongest_column_missing,
    "told rows without a third of their entries": of_told_rows(lambda A, rng: A * (rng.random(A.shape) > 0.33)),
    "told rows of two bits": of_told_rows(lambda A, rng: np.clip(np.floor(A), -2, 1) + 0.5),
    "told rows with roots of the entries": of_told_rows(lambda A, rng: np.sign(A) * np.sqrt(np.abs(A))),
    "told rows with cubes of the entries": of_told_rows(lambda A, rng: A**3 / np.sqrt(15)),
    "told rows of another day for 40%, told 0.2": of_told_rows(
        lambda A, rng: np.where(rng.random((len(A), 1)) < 0.4, rng.standard_normal(A.shape), A), contamination=0.2
    ),
    "told rows off by one column": of_told_rows(
        lambda A, rng: np.where(rng.random((len(A), 1)) < 0.7, np.roll(A, 1, axis=1), A)
    ),
    "phases told 1.4 times too large": _complex(lambda A, rng: np.exp(1.4j * np.angle(A))),
    "phases told in four steps": _complex(lambda A, rng: np.exp(0.5j * np.pi * np.round(2 * np.angle(A) / np.pi))),
    "phases told in two steps": _complex(lambda A, rng: np.where(A.real > 0, 1.0, -1.0) + 0j),
    "told signs of both parts": _gaussian_complex(lambda A, rng: (np.sign(A.real) + 1j * np.sign(A.imag)) / np.sqrt(2)),
    "told conjugates of a third of the rows": _gaussian_complex(
        lambda A, rng: np.where(_third(len(A))[:, np.newaxis], A.conj(), A), contamination=0.05
    ),
    "told conjugates of a third of the columns": _gaussian_complex(
        lambda A, rng: np.where(_third(A.shape[1]), A.conj(), A)
    ),
    "real part of the rows, told a real signal": _gaussian_complex(lambda A, rng: A.real.copy(), field="real"),
    "told real signal behind complex rows": _gaussian_complex(lambda A, rng: A, field="real"),
    "real and imaginary parts side by side": _side_by_side,
    "real and imaginary parts on top of each other": _on_top,
    "masked Fourier, other sign of the exponent": _masked_transform(lambda F, number: F.conj()),
    "masked Fourier, other sign in half of the masks": _masked_transform(
        lambda F, number: F.conj() if number % 2 else F
    ),
    "m = n + 1": few(1.05),
    "m = 2n, told 0": few(2.0, contamination=0.0, noise=0.02),
    "complex, m = 2.2n, told 0": few(2.2, "complex", contamination=0.0),
}
