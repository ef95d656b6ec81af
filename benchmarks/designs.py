"""Designs that are not standard normal: what still works.

``python -m benchmarks.designs`` fits worlds with other designs under three attacks and writes docs/_generated/designs.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import robustphase as rp
from benchmarks.stamp import stamped
from robustphase.atomic import write_text

N, M, CONTAMINATION, SEEDS, FIRST_SEED = 50, 2500, 0.1, 3, 600
ATTACKS = ("none", "decoy", "huge")
#: Standard deviation of the noise, Student with three degrees of freedom, in units of the mean response.
NOISE = 0.5
#: An error above this is a failure.
LOST = 0.25
PAGE = Path(__file__).parents[1] / "docs" / "_generated" / "designs.md"
Draw = Callable[[np.random.Generator], np.ndarray]


class Case(NamedTuple):
    """A design, the signal behind it, and how it is fitted."""

    name: str
    design: Draw
    signal: Draw
    options: dict[str, Any]


def gaussian(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((M, N))


def scaled(factor: float) -> Draw:
    return lambda rng: factor * gaussian(rng)


def correlated(condition: float) -> Draw:
    """Covariance with eigenvalues from 1 to 1/condition, evenly in logarithms, in random directions."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        rotation = np.linalg.qr(rng.standard_normal((N, N)))[0]
        return gaussian(rng) * np.sqrt(np.geomspace(1.0, 1.0 / condition, N)) @ rotation.T

    return draw


def quantised(levels: int) -> Draw:
    """Normal entries in cells of equal width between -2.5 and 2.5, each at the centre of its cell, of unit variance."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        width = 5.0 / levels
        cells = np.clip(np.floor((gaussian(rng) + 2.5) / width), 0, levels - 1)
        values = (cells + 0.5) * width - 2.5
        return values / np.sqrt(np.mean(values**2))

    return draw


def signs(rng: np.random.Generator) -> np.ndarray:
    return rng.choice([-1.0, 1.0], (M, N))


def three_levels(rng: np.random.Generator) -> np.ndarray:
    """Zero and ±√3, the values that have the fourth moment of a normal variable."""
    return np.sqrt(3.0) * rng.choice([-1.0, 0.0, 1.0], (M, N), p=[1 / 6, 2 / 3, 1 / 6])


def phases(rng: np.random.Generator) -> np.ndarray:
    return np.exp(2j * np.pi * rng.random((M, N)))


def random_signal(rng: np.random.Generator) -> np.ndarray:
    return rp.simulate.random_signal(N, seed=rng)


def random_phasors(rng: np.random.Generator) -> np.ndarray:
    return rp.simulate.random_signal(N, field="complex", seed=rng)


def flat(rng: np.random.Generator) -> np.ndarray:
    return rng.choice([-1.0, 1.0], N) / np.sqrt(N)


def sparse(support: int) -> Draw:
    """Equal magnitudes on a few entries."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        signal = np.zeros(N)
        signal[rng.choice(N, support, replace=False)] = rng.choice([-1.0, 1.0], support) / np.sqrt(support)
        return signal

    return draw


WHITEN = {"whiten": True}
CASES = (
    Case("Gaussian, as the library expects", gaussian, random_signal, {}),
    Case("Gaussian × 3", scaled(3.0), random_signal, {}),
    Case("Gaussian × 3, `whiten=True`", scaled(3.0), random_signal, WHITEN),
    Case("Gaussian × 1.1", scaled(1.1), random_signal, {}),
    Case("Gaussian × 1.1, `whiten=True`", scaled(1.1), random_signal, WHITEN),
    Case("Gaussian, condition number 1, `whiten=True`", gaussian, random_signal, WHITEN),
    Case("Gaussian, condition number 10", correlated(10.0), random_signal, {}),
    Case("Gaussian, condition number 10, `whiten=True`", correlated(10.0), random_signal, WHITEN),
    Case("Gaussian, condition number 100", correlated(100.0), random_signal, {}),
    Case("Gaussian, condition number 100, `whiten=True`", correlated(100.0), random_signal, WHITEN),
    Case("8 levels", quantised(8), random_signal, {}),
    Case("4 levels", quantised(4), random_signal, {}),
    Case("2 levels, that is ±1", quantised(2), random_signal, {}),
    Case("unit modulus, random phases (complex)", phases, random_phasors, {}),
    Case("±1, flat signal", signs, flat, {}),
    Case("±1, 5 equal entries", signs, sparse(5), {}),
    Case("±1, 2 equal entries", signs, sparse(2), {}),
    Case("±1, 1 entry", signs, sparse(1), {}),
    Case("0 and ±√3, 1 entry", three_levels, sparse(1), {}),
    Case("0 and ±√3, 2 equal entries", three_levels, sparse(2), {}),
    Case("Gaussian, 1 entry", gaussian, sparse(1), {}),
)


def informed_error(A: np.ndarray, y: np.ndarray, clean: np.ndarray, truth: np.ndarray) -> float:
    """Relative error of least squares started at the truth and told which samples are clean."""
    A, y, x = A[clean], y[clean], truth
    for _ in range(30):
        s = A @ x
        residual = y - np.abs(s) ** 2
        design = 2 * s.conj()[:, np.newaxis] * A
        if np.iscomplexobj(A):
            # Real and imaginary parts are separate unknowns; the global phase is free, and lstsq does not move along it.
            step = np.linalg.lstsq(np.hstack((design.real, -design.imag)), residual, rcond=1e-9)[0]
            x = x + step[:N] + 1j * step[N:]
        else:
            step = np.linalg.lstsq(design, residual, rcond=None)[0]
            x = x + step
        if np.linalg.norm(step) < 1e-10:
            break
    return rp.distance(x, truth, relative=True)


class Run(NamedTuple):
    """Relative error, its ratio to that of informed least squares, the certificate, and the warnings."""

    error: float
    ratio: float
    certificate: float
    said: list[str]


def one_run(case: Case, attack: str, seed: int) -> Run:
    rng = np.random.default_rng(seed)
    truth, A = case.signal(rng), case.design(rng)
    y = np.abs(A @ truth) ** 2
    std = NOISE * float(y.mean())
    y = y + rp.simulate.draw_noise("student", M, std=std, seed=rng)
    world = rp.simulate.corrupt(A, y, truth, attack=attack, contamination=CONTAMINATION, noise_std=std, seed=rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = rp.RobustPhaseRetrieval(CONTAMINATION, nonfinite="drop", **case.options).fit(world.A, world.y)
    error = rp.distance(model.signal_, truth, relative=True)
    ratio = error / informed_error(A, y, ~world.touched, truth)
    return Run(error, ratio, model.certificate_, [str(w.message) for w in caught])


def line(case: Case) -> str:
    """One line of the table: for each attack the median error and ratio, and how many runs were lost."""
    cells: list[str] = []
    said: list[str] = []
    radii: list[float] = []
    for attack in ATTACKS:
        runs = [one_run(case, attack, seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]
        lost = sum(run.error > LOST for run in runs)
        error, ratio = (float(np.median([getattr(run, name) for run in runs])) for name in ("error", "ratio"))
        cells.append(f"{error:.3f} ({ratio:.2f})" + (f", {lost} of {SEEDS} lost" if lost else ""))
        radii += [run.certificate for run in runs]
        said += [words for run in runs for words in run.said]
    warned = sorted({_short(words) for words in said})
    return f"| {case.name} | {' | '.join(cells)} | {np.median(radii):.2g} | {'; '.join(warned) or 'none'} |"


def _short(words: str) -> str:
    """The beginning of a warning, up to its first stop."""
    return words.split(". ")[0].split(", so ")[0].split(":")[0]


def run(numbers: tuple[int, ...] = ()) -> None:
    """All designs, and the page; or some of them."""
    table = [f"| design | {' | '.join(ATTACKS)} | certificate | warnings |", "|---" * (len(ATTACKS) + 3) + "|"]
    for case in [CASES[number] for number in numbers] or CASES:
        table.append(line(case))
        print(table[-1], flush=True)
    if not numbers:
        write_text(PAGE, stamped("\n".join(table) + "\n"))


if __name__ == "__main__":
    run(tuple(map(int, sys.argv[1:])))
