"""Kinds of data that break the model, on which the checks were built."""

from __future__ import annotations

from typing import Any

import numpy as np

import robustphase as rp
from benchmarks.world_makers import (
    Array,
    Data,
    Maker,
    bad_majority,
    complex_behind,
    drawn,
    few,
    modes,
    of_norm,
    of_responses,
    of_rows,
    of_told_rows,
)


def one_entry(rng: np.random.Generator, n: int, m: int) -> Data:
    A, _, z = drawn(rng, m, n)
    x = np.eye(n)[0]
    return Data(np.sign(A), (np.sign(A) @ x) ** 2 + z, x)


def two_entries(rng: np.random.Generator, n: int, m: int) -> Data:
    A, _, z = drawn(rng, m, n)
    x = (np.eye(n)[0] + np.eye(n)[1]) / np.sqrt(2)
    return Data(np.sign(A), (np.sign(A) @ x) ** 2 + z, x)


def doubled_complex(rng: np.random.Generator, n: int, m: int) -> Data:
    A = rng.standard_normal((m, n)) + 1j * rng.standard_normal((m, n))
    x = rp.simulate.random_signal(n, field="complex", seed=rng)
    return Data(A, np.abs(A @ x) ** 2 + 0.2 * rng.standard_normal(m), x)


def fourier(rng: np.random.Generator, n: int, m: int) -> Data:
    angles = np.arange(m)[:, np.newaxis] * np.arange(n) / m
    A = np.exp(-2j * np.pi * angles)
    x = rp.simulate.random_signal(n, field="complex", seed=rng)
    return Data(A, np.abs(A @ x) ** 2 + 0.1 * rng.standard_normal(m), x)


def conjugated(rng: np.random.Generator, n: int, m: int) -> Data:
    A, x, z = drawn(rng, m, n, field="complex")
    return Data(A.conj(), np.abs(A @ x) ** 2 + z, x.conj())


def real_part(rng: np.random.Generator, n: int, m: int) -> Data:
    A, x, z = drawn(rng, m, n, field="complex")
    return Data(A.real * np.sqrt(2), np.abs(A @ x) ** 2 + z, x)


def background(level: float) -> Maker:
    return of_responses(lambda y, rng: y + level)


def conditioned(number: float, **told: Any) -> Maker:
    def change(A: Array, rng: np.random.Generator) -> Array:
        n = A.shape[1]
        q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        values = np.geomspace(1, 1 / np.sqrt(number), n)
        scaled: Array = A @ (q * (values / np.sqrt(np.mean(values**2)))) @ q.T
        return scaled

    return of_rows(change, **told)


def ramp(m: int) -> Array:
    return np.linspace(0.0, 1.0, m)


def _constant_column(A: Array, rng: np.random.Generator) -> Array:
    A = A.copy()
    A[:, 0] = 1.0
    return A


def _duplicate_column(A: Array, rng: np.random.Generator) -> Array:
    A = A.copy()
    A[:, 1] = A[:, 0]
    return A


def _decoy(A: Array, y: Array, rng: np.random.Generator) -> Array:
    other = rp.simulate.random_signal(A.shape[1], seed=rng)
    decoyed: Array = (A @ other) ** 2
    return decoyed


#: Kinds on which the checks were built.
KNOWN: dict[str, Maker] = {
    "complex behind Gaussian rows": complex_behind(lambda A: A),
    "complex behind ±1": complex_behind(np.sign),
    "complex behind 0/1": complex_behind(lambda A: (A > 0).astype(float)),
    "complex behind uniform rows": complex_behind(lambda A: np.clip(A, -1.5, 1.5)),
    "real part of complex rows": real_part,
    "responses unrelated": of_responses(lambda y, rng: rng.chisquare(1, y.size)),
    "responses unrelated, auto": of_responses(lambda y, rng: rng.chisquare(1, y.size), contamination="auto"),
    "responses normal": of_responses(lambda y, rng: rng.standard_normal(y.size)),
    "responses shifted by one row": of_responses(lambda y, rng: np.roll(y, 1)),
    "responses shifted, told 0.3": of_responses(lambda y, rng: np.roll(y, 1), contamination=0.3),
    "responses shuffled": of_responses(lambda y, rng: rng.permutation(y)),
    "responses shuffled, auto": of_responses(lambda y, rng: rng.permutation(y), contamination="auto"),
    "responses shuffled, unknown mean": of_responses(lambda y, rng: rng.permutation(y), noise_mean="unknown"),
    "responses reversed": of_responses(lambda y, rng: y[::-1].copy()),
    "responses sorted": of_responses(lambda y, rng: np.sort(y)),
    "half of the responses shifted": of_responses(lambda y, rng: np.r_[y[: y.size // 2], np.roll(y[y.size // 2 :], 1)]),
    "decibels": of_responses(lambda y, rng: 10 * np.log10(np.maximum(y, 1e-3))),
    "decibels, unknown mean": of_responses(lambda y, rng: 10 * np.log10(np.maximum(y, 1e-3)), noise_mean="unknown"),
    "logarithm": of_responses(lambda y, rng: np.log(np.maximum(y, 1e-2))),
    "log1p": of_responses(lambda y, rng: np.log1p(np.maximum(y, 0.0))),
    "clipped at half the mean": of_responses(lambda y, rng: np.minimum(y, 0.5 * y.mean())),
    "clipped at the mean": of_responses(lambda y, rng: np.minimum(y, y.mean())),
    "clipped at half the mean, auto": of_responses(lambda y, rng: np.minimum(y, 0.5 * y.mean()), contamination="auto"),
    "clipped at a tenth": of_responses(lambda y, rng: np.minimum(y, 0.1 * y.mean())),
    "soft saturation": of_responses(lambda y, rng: y / (1 + np.abs(y))),
    "wrapped at the mean": of_responses(lambda y, rng: np.mod(y, y.mean())),
    "magnitudes": of_norm(1.0, np.sqrt),
    "magnitudes, norm 10": of_norm(10.0, np.sqrt),
    "magnitudes, norm 0.1": of_norm(0.1, np.sqrt),
    "magnitudes with noise": of_responses(lambda y, rng: 10 * np.sqrt(np.abs(y)) + 0.3 * rng.standard_normal(y.size)),
    "squares": of_norm(1.0, np.square),
    "squares, norm 3": of_norm(3.0, np.square),
    "cubes": of_norm(2.0, lambda y: y**3),
    "fourth roots": of_norm(4.0, lambda y: y**0.25),
    "negative": of_responses(lambda y, rng: -y),
    "one over": of_responses(lambda y, rng: 1 / (0.1 + np.abs(y))),
    "largest minus": of_responses(lambda y, rng: y.max() - y),
    "rank numbers": of_responses(lambda y, rng: np.argsort(np.argsort(y)).astype(float)),
    "one bit": of_responses(lambda y, rng: (y > 1).astype(float)),
    "two bits": of_responses(lambda y, rng: np.floor(np.clip(y, 0, 3.9))),
    "dead detector": of_responses(lambda y, rng: np.full(y.size, 0.7)),
    "dead detector with noise": of_responses(lambda y, rng: 0.7 + 0.05 * rng.standard_normal(y.size)),
    "half of the readings dead": of_responses(lambda y, rng: np.where(rng.random(y.size) < 0.6, 0.0, y)),
    "m = n": few(1.0),
    "m = 1.5n": few(1.5),
    "m = 1.5n, told 0": few(1.5, contamination=0.0),
    "m = 1.5n, auto": few(1.5, contamination="auto"),
    "m = 2n with noise": few(2.0, noise=0.3),
    "complex, m = n": few(1.0, "complex"),
    "complex, m = 2n": few(2.0, "complex"),
    "complex, m = 2n, told 0": few(2.0, "complex", contamination=0.0),
    "complex, m = 2.5n": few(2.5, "complex"),
    "complex, m = 3n, auto": few(3.0, "complex", contamination="auto"),
    "complex, m = 4n with noise": few(4.0, "complex", noise=0.5),
    "60% decoy, auto": bad_majority(_decoy, 0.6, contamination="auto"),
    "60% decoy, told 0.1": bad_majority(_decoy, 0.6),
    "60% shuffled, auto": bad_majority(lambda A, y, rng: rng.permutation(y), 0.6, contamination="auto"),
    "60% constant, auto": bad_majority(lambda A, y, rng: np.full(y.size, 2.0), 0.6, contamination="auto"),
    "90% shuffled, auto": bad_majority(lambda A, y, rng: rng.permutation(y), 0.9, contamination="auto"),
    "45% decoy, told 0.05": bad_majority(_decoy, 0.45, contamination=0.05),
    "two equal modes": modes((1.0, 1.0)),
    "two modes, 2 to 1": modes((1.0, 0.5)),
    "two complex modes": modes((1.0, 1.0), field="complex"),
    "three modes": modes((1.0, 1.0, 1.0)),
    "ten modes": modes((1.0,) * 10),
    "two modes behind ±1": modes((1.0, 1.0), np.sign),
    "one entry behind ±1": one_entry,
    "two entries behind ±1": two_entries,
    "unit-norm rows": of_rows(lambda A, rng: A / np.linalg.norm(A, axis=1)[:, np.newaxis]),
    "rows of scale 0.5": of_rows(lambda A, rng: 0.5 * A),
    "rows of scale 0.1": of_rows(lambda A, rng: 0.1 * A),
    "rows of scale 1.1": of_rows(lambda A, rng: 1.1 * A),
    "rows of scale 1.6": of_rows(lambda A, rng: 1.6 * A),
    "rows of scale 30": of_rows(lambda A, rng: 30 * A),
    "rows randn + 1j randn": doubled_complex,
    "rows of mean 0.1": of_rows(lambda A, rng: A + 0.1),
    "rows of mean 0.3": of_rows(lambda A, rng: A + 0.3),
    "rows of mean 1": of_rows(lambda A, rng: A + 1.0),
    "rows of mean 5": of_rows(lambda A, rng: A + 5.0),
    "condition number 3": conditioned(3),
    "condition number 10": conditioned(10),
    "condition number 100": conditioned(100),
    "condition number 1000": conditioned(1000),
    "condition number 1000, auto": conditioned(1000, contamination="auto"),
    "columns of unequal scale": of_rows(lambda A, rng: A * np.geomspace(0.1, 3, A.shape[1])),
    "rows of unequal scale": of_rows(lambda A, rng: A * np.exp(rng.standard_normal(len(A)))[:, np.newaxis]),
    "constant column": of_rows(_constant_column),
    "duplicate column": of_rows(_duplicate_column),
    "a column of zeros": of_rows(lambda A, rng: A * (np.arange(A.shape[1]) > 0)),
    "sparse rows": of_rows(lambda A, rng: A * (rng.random(A.shape) < 0.1)),
    "0/1 rows": of_rows(lambda A, rng: (A > 0).astype(float)),
    "heavy-tailed rows": of_rows(lambda A, rng: rng.standard_t(2.5, A.shape)),
    "low-rank rows": of_rows(lambda A, rng: A[:, :5] @ rng.standard_normal((5, A.shape[1])) / np.sqrt(5)),
    "Fourier rows": fourier,
    "told rows shuffled": of_told_rows(lambda A, rng: rng.permutation(A)),
    "told rows half noise": of_told_rows(lambda A, rng: (A + rng.standard_normal(A.shape)) / np.sqrt(2)),
    "told rows all noise": of_told_rows(lambda A, rng: rng.standard_normal(A.shape)),
    "told absolute values": of_told_rows(lambda A, rng: np.abs(A)),
    "told rounded to signs": of_told_rows(lambda A, rng: np.sign(A)),
    "gain drifts to a tenth": of_responses(lambda y, rng: y * (1 - 0.9 * ramp(y.size))),
    "gain doubles": of_responses(lambda y, rng: y * (1 + ramp(y.size))),
    "background drifts by 3": of_responses(lambda y, rng: y + 3 * ramp(y.size)),
    "background of 3": background(3.0),
    "background of −1": background(-1.0),
    "background of 30": background(30.0),
    "cumulative sums": of_responses(lambda y, rng: np.cumsum(y - y.mean())),
    "smoothed over rows": of_responses(lambda y, rng: np.convolve(y, np.full(5, 0.2), "same")),
    "differences": of_responses(lambda y, rng: np.diff(y, prepend=0.0)),
    "noise ten times the signal": of_responses(lambda y, rng: y + 10 * rng.standard_normal(y.size)),
    "conjugated rows": conjugated,
}
