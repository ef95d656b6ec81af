"""Is the library ever wrong in silence? Data that break its model, and data that do not.

``python -m benchmarks.wrong_worlds [right fits]`` fits every wrong world with three seeds at two sizes and counts silent failures
(error above a quarter, converged, no warning) and certificates below the error; then right worlds, of which it counts the false
alarms. It writes docs/_generated/wrong_worlds.md.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from itertools import islice, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.stamp import stamped
from robustphase.atomic import write_text
from robustphase.recover.model_check import ModelWarning

PAGE = Path(__file__).parents[1] / "docs" / "_generated" / "wrong_worlds.md"
SEEDS = (0, 1, 2)
SIZES = ((30, 600), (60, 3000))
#: Errors above it count as failures.
WRONG = 0.25
#: Certificates count as below the error only beyond rounding.
ROUNDING = 1e-6
Array = np.ndarray[Any, Any]


class Data(NamedTuple):
    """Rows, responses, the signal that should be found, and what the fit is told."""

    A: Array
    y: Array
    truth: Array
    told: Mapping[str, Any] = MappingProxyType({})


class Outcome(NamedTuple):
    """What came of one fit."""

    name: str
    error: float
    converged: bool
    warned: bool
    certificate: float
    failed: tuple[str, ...]

    @property
    def silent(self) -> bool:
        """Wrong, and nobody said so."""
        return not self.error <= WRONG and self.converged and not self.warned

    @property
    def overconfident(self) -> bool:
        """The certificate is smaller than the error."""
        return self.certificate + ROUNDING < self.error


Maker = Callable[[np.random.Generator, int, int], Data]
WORLDS: dict[str, Maker] = {}


def world(name: str) -> Callable[[Maker], Maker]:
    """Register a wrong world."""

    def keep(maker: Maker) -> Maker:
        WORLDS[name] = maker
        return maker

    return keep


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


WORLDS |= {
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


def distance(found: Array, data: Data) -> float:
    """Relative error; of a complex signal behind real rows also up to conjugation."""
    truth = data.truth
    error = float(rp.distance(found, truth, relative=True))
    if np.iscomplexobj(truth) and np.isrealobj(data.A):
        error = min(error, float(rp.distance(found, truth.conj(), relative=True)))
    return error


def outcome(name: str, data: Data) -> Outcome:
    """Fit and judge."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = rp.RobustPhaseRetrieval(**data.told).fit(data.A, data.y)
        except ValueError as error:
            return Outcome(name, np.inf, False, True, np.inf, (f"refused: {error}",))
    warned = any(issubclass(one.category, ModelWarning) for one in caught)
    failed = tuple(("*" if check.severe else "") + check.name for check in model.model_check_.failed)
    return Outcome(name, distance(model.signal_, data), model.converged_, warned, float(model.certificate_), failed)


def one_wrong(name: str, size: tuple[int, int], seed: int) -> Outcome:
    """One fit to a wrong world."""
    return outcome(name, WORLDS[name](np.random.default_rng([seed, *size]), *size))


def one_right(attack: str, noise: str, shape: tuple[str, int, int, float, float], seed: int) -> Outcome:
    """One fit to a right world."""
    field, n, m, level, mean = shape
    drawn_ = rp.simulate.make_world(
        n, m, contamination=level, attack=attack, noise=noise, noise_mean=mean, field=field, seed=seed
    )
    told = {"contamination": level, "nonfinite": "drop", "noise_mean": "unknown" if mean else "zero"}
    return outcome(f"{attack}, {noise}, {shape}", Data(drawn_.A, drawn_.y, drawn_.truth, told))


#: Field, unknowns, samples, contamination and noise mean of right worlds.
SHAPES = (
    ("real", 40, 2000, 0.1, 0.0),
    ("complex", 30, 2000, 0.1, 0.0),
    ("real", 100, 2000, 0.05, 0.0),
    ("real", 40, 2000, 0.2, 0.0),
    ("real", 20, 3000, 0.3, 0.0),
    ("complex", 40, 1600, 0.05, 0.0),
    ("real", 60, 600, 0.05, 0.0),
    ("real", 40, 2000, 0.1, 3.0),
)


def right_jobs(count: int) -> list[tuple[Any, ...]]:
    """All adversaries and noises, with shapes and seeds in turn."""
    pairs = list(product(["none", *rp.simulate.ADVERSARIES], rp.simulate.NOISES))
    order = np.random.default_rng(0).permutation(len(pairs))
    endless = ((*pairs[order[k % len(pairs)]], SHAPES[k % len(SHAPES)], 5000 + k) for k in range(10**9))
    return list(islice(endless, count))


def main(right: int) -> None:
    """Run both batteries and write the page."""
    with Parallel(n_jobs=int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        wrong = pool(delayed(one_wrong)(name, size, seed) for name in WORLDS for size in SIZES for seed in SEEDS)
        fine = pool(delayed(one_right)(*job) for job in right_jobs(right))
    silent, over = [one for one in wrong if one.silent], [one for one in wrong if one.overconfident]
    alarms = [one for one in fine if one.warned]
    for title, some in (("silent", silent), ("certificate below the error", over), ("false alarm", alarms)):
        for one in some:
            print(f"{title}: {one.name}, error {one.error:.2f}, certificate {one.certificate:.2g}, {one.failed}")
    below = sum(one.overconfident for one in fine)
    head = (
        f"{len(WORLDS)} wrong worlds, {len(wrong)} fits: {len(silent)} silent failures, {len(over)} certificates below the "
        "error. "
        f"{len(fine)} fits to right worlds: {len(alarms)} false alarms, {below} certificates below the error.\n\n"
        "| wrong world | median error | warned | silent | certificates below the error | failed checks (first fit; * severe) |\n"
        "|---|---|---|---|---|---|\n"
    )
    lines = []
    for name in WORLDS:
        fits = [one for one in wrong if one.name == name]
        lines.append(
            f"| {name} | {np.median([one.error for one in fits]):.2f} | {sum(one.warned for one in fits)} of {len(fits)} | "
            f"{sum(one.silent for one in fits)} | {sum(one.overconfident for one in fits)} | {', '.join(fits[0].failed)[:160]} |"
        )
    print(head.splitlines()[0])
    write_text(PAGE, stamped(head + "\n".join(lines) + "\n"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
