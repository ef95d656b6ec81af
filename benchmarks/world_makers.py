"""Makers of data that break the model of a fit: rows, responses, what should be found and what the fit is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import robustphase as rp

Array = np.ndarray[Any, Any]


class Data(NamedTuple):
    """Rows, responses, the signal that should be found, and what the fit is told."""

    A: Array
    y: Array
    truth: Array
    told: Mapping[str, Any] = MappingProxyType({})


Maker = Callable[[np.random.Generator, int, int], Data]


def drawn(rng: np.random.Generator, m: int, n: int, *, field: str = "real") -> tuple[Array, Array, Array]:
    """Standard normal rows, a unit signal and noise of a tenth."""
    A = rp.simulate.gaussian_design(m, n, field=field, seed=rng)
    x = rp.simulate.random_signal(n, field=field, seed=rng)
    return A, x, 0.1 * rng.standard_normal(m)


def of_responses(change: Callable[[Array, np.random.Generator], Array], **told: Any) -> Maker:
    """A world whose responses are rewritten."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        return Data(A, change((A @ x) ** 2 + z, rng), x, told)

    return make


def of_rows(change: Callable[[Array, np.random.Generator], Array], **told: Any) -> Maker:
    """A world whose rows are not standard normal; the responses follow them."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        A = change(A, rng)
        scale = float(np.median(np.abs(A @ x) ** 2)) / 0.45
        return Data(A, np.abs(A @ x) ** 2 + scale * z, x, told)

    return make


def of_told_rows(change: Callable[[Array, np.random.Generator], Array], **told: Any) -> Maker:
    """A world in which the rows that are told are not those that were applied."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        return Data(change(A, rng), (A @ x) ** 2 + z, x, told)

    return make


def of_norm(norm: float, change: Callable[[Array], Array]) -> Maker:
    """A world whose noiseless responses to a signal of this norm are rewritten."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, _ = drawn(rng, m, n)
        return Data(A, change((norm * (A @ x)) ** 2), norm * x)

    return make


def modes(weights: tuple[float, ...], change: Callable[[Array], Array] = lambda A: A, field: str = "real") -> Maker:
    """Several signals whose intensities add up."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n, field=field)
        A, total = change(A), z
        signals = [x, *(rp.simulate.random_signal(n, field=field, seed=rng) for _ in weights[1:])]
        for weight, signal in zip(weights, signals, strict=True):
            total = total + weight * np.abs(A @ signal) ** 2
        return Data(A, total, np.sqrt(weights[0]) * x)

    return make


def complex_behind(change: Callable[[Array], Array]) -> Maker:
    """A complex signal behind real patterns."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, _, z = drawn(rng, m, n)
        A = change(A)
        x = rp.simulate.random_signal(n, field="complex", seed=rng)
        return Data(A, np.abs(A @ x) ** 2 + z * np.mean(np.abs(A @ x) ** 2), x)

    return make


def few(ratio: float, field: str = "real", noise: float = 0.0, **told: Any) -> Maker:
    """So many samples per unknown."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, int(ratio * n), n, field=field)
        return Data(A, np.abs(A @ x) ** 2 + 10 * noise * z, x, told)

    return make


def bad_majority(attack: Callable[[Array, Array, np.random.Generator], Array], share: float, **told: Any) -> Maker:
    """More bad responses than any method can stand."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        A, x, z = drawn(rng, m, n)
        y = (A @ x) ** 2 + z
        bad = rng.random(m) < share
        y[bad] = attack(A, y, rng)[bad]
        return Data(A, y, x, told)

    return make
