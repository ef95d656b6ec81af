"""What the engine's empirical constants are worth: each halved and doubled, on data that none was chosen on.

``python -m benchmarks constants [--seeds 1]`` writes docs/_generated/constants.md: all constants with their kind and reason, and
for every empirical one how many fits survive and what the worst ratio is when it is halved and doubled. ``python -m
benchmarks.constants listing`` measures nothing: it writes the list anew below what was measured.

The data are kept out of all tuning: attacks in the name of a second signal (:mod:`benchmarks.two_signals`) and five attacks
made up here, none of which is in ``simulate``; sizes, noise levels and noise laws that no other benchmark uses. Constants of a
second opinion were chosen on attacks that resemble one of the five, which turns the clearest evidence round.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse.linalg import aslinearoperator

from benchmarks.check_limits import changed
from benchmarks.markdown import put_together
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.store import DOCS, Row
from robustphase import distance
from robustphase.atomic import write_text
from robustphase.constants import KINDS, Constant, constants, varied
from robustphase.experiments.methods import oracle_least_squares
from robustphase.recover import recover
from robustphase.rows import MemoryRows, OperatorRows
from robustphase.validation import Samples

PAGE = "_generated/constants.md"
#: The rooms of the engine, in the order of the data flow. What the model check goes by has a page of its own
#: (:mod:`benchmarks.check_limits`), and moves no signal.
ROOMS, ELSEWHERE = ("likelihood", "problem", "initialise", "descend", "recover"), "recover.model."
#: n, m, complex; contamination as done and as told; scale of the noise over the mean response; noise law.
SHAPES = ((37, 1500, False), (64, 6000, False), (25, 1400, True))
LEVELS = ((0.07, 0.07), (0.15, 0.15), (0.12, "auto"))
NOISES = (("laplace", 0.3), ("uniform", 0.8), ("two-sided gamma", 0.15))
ATTACKS = ("second signal", "halved", "tilted rows", "copied", "swollen")
#: An error above this fraction of the norm is a failure.
LOST = 0.25
SEED = 41000


class Outcome(NamedTuple):
    """Relative errors of all fits, and their ratios to informed least squares."""

    errors: np.ndarray
    ratios: np.ndarray

    @property
    def survived(self) -> float:
        """Share of the fits that found the signal."""
        return float(np.mean(self.errors <= LOST))

    @property
    def worst(self) -> float:
        """Largest ratio."""
        return float(self.ratios.max())


def draw_noise(law: str, m: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    if law == "laplace":
        return scale / np.sqrt(2) * rng.laplace(size=m)
    if law == "uniform":
        return scale * np.sqrt(3) * rng.uniform(-1, 1, m)
    return scale * rng.choice((-1.0, 1.0), m) * rng.gamma(0.5, size=m) / np.sqrt(0.75)


class Case(NamedTuple):
    """One fit of the table."""

    shape: tuple[int, int, bool]
    level: float
    told: float | str
    noise: tuple[str, float]
    attack: str
    seed: int
    signals: int = 1
    #: Ratio of the lengths of the columns of a linear operator; 1 for rows as they are.
    uneven: float = 1.0


def make_data(case: Case) -> tuple[np.ndarray, ...]:
    """Covariates, responses, the signal, and which samples are clean."""
    (n, m, is_complex), level, noise, attack = case.shape, case.level, case.noise, case.attack
    rng = np.random.default_rng(case.seed)

    def normal(*size: int) -> np.ndarray:
        drawn = rng.standard_normal(size)
        return (drawn + 1j * rng.standard_normal(size)) / np.sqrt(2) if is_complex else drawn

    A, x = normal(m, n) * np.geomspace(1.0, 1 / case.uneven, n), normal(n)
    x /= np.linalg.norm(x)
    y = np.abs(A @ x) ** 2 + draw_noise(noise[0], m, noise[1], rng)
    other = normal(n)
    other = 0.7 * x + 0.9 * other / np.linalg.norm(other)
    difference = np.abs(A @ other) ** 2 - np.abs(A @ x) ** 2
    bad = np.argsort(-np.abs(difference) * rng.uniform(0.3, 1, m))[: int(level * m)]
    if attack == "evidence turned round":
        # The samples that tell most clearly which of the two signals is there.
        near = 0.85 * x + 0.5 * other / np.linalg.norm(other)
        said = np.abs(y - np.abs(A @ near) ** 2) - np.abs(y - np.abs(A @ x) ** 2)
        bad = np.argsort(-said)[: int(level * m)]
        y[bad] = np.abs(A[bad] @ near) ** 2 + draw_noise(noise[0], bad.size, 0.3 * noise[1], rng)
    elif attack == "second signal":
        y[bad] = np.abs(A[bad] @ other) ** 2 + draw_noise(noise[0], bad.size, noise[1], rng)
    elif attack == "halved":
        y[bad] *= 0.5
    elif attack == "tilted rows":
        A[bad] += 0.8 * np.outer(np.sign(difference[bad]), other.conj())
    elif attack == "copied":
        A[bad], y[bad] = A[bad[0]], y[bad[0]] + 0.3
    else:
        y[bad] += 2.5 * noise[1] * (1 + np.abs(A[bad] @ x))
    clean = np.ones(m, bool)
    clean[bad] = False
    return A, y, x, clean


def grid(seeds: int) -> list[Case]:
    """All attacks at every shape; levels and noises in turn, so that each meets every attack and every shape.

    Then what single signals with such attacks do not lead to: answers that are heard again, many signals in common passes, more
    samples than a search looks at, columns of an operator that differ much.
    """
    cases = product(range(seeds), enumerate(SHAPES), enumerate(ATTACKS))
    found = [
        Case(
            shape, *LEVELS[(i + k + seed) % len(LEVELS)], NOISES[(i + 2 * k + seed) % len(NOISES)], attack, SEED + index
        )
        for index, (seed, (i, shape), (k, attack)) in enumerate(cases)
    ]
    seed = SEED + len(found)
    return [
        *found,
        *(
            Case(shape, level, level, ("laplace", 0.4), "evidence turned round", seed)
            for shape in (SHAPES[0], SHAPES[-1])
            for level in (0.1, 0.17)
        ),
        Case((21, 1100, False), 0.14, "auto", ("uniform", 0.5), "halved", seed, signals=11),
        Case((33, 1600, True), 0.09, 0.09, ("laplace", 0.02), "swollen", seed, uneven=25.0),
        Case((12, 70_000, False), 0.11, 0.11, ("laplace", 0.5), "second signal", seed),
    ]


def fits(cases: list[Case], stage: str | None, changes: dict[str, Any]) -> Outcome:
    """All fits with some constants of one stage changed."""
    if stage is not None:
        with varied(_options(stage), **changes):
            return fits(cases, None, {})
    errors, ratios = [], []
    for case in cases:
        A, y, truths, clean = _with_others(case, *make_data(case))
        source = MemoryRows(A) if case.uneven == 1 else OperatorRows(aslinearoperator(A))
        samples = Samples(source, y if case.signals > 1 else y[:, 0], np.zeros(len(y), bool))
        found = recover(samples, case.told, unknown_mean=False)
        for signal, x, heard, good in zip(found.signals.T, truths.T, y.T, clean.T, strict=True):
            error = distance(signal, x, relative=True)
            informed = oracle_least_squares(A[good], heard[good], x)
            errors.append(error)
            ratios.append(error / distance(informed, x, relative=True))
    return Outcome(np.array(errors), np.array(ratios))


def _with_others(case: Case, A: np.ndarray, *column: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same rows, with columns of other signals and other bad samples beside the first."""
    # The rows are drawn first, and an attack on responses leaves them alone: other seeds would have other rows.
    columns = [column]
    rng = np.random.default_rng(case.seed + 10**6)
    for _ in range(1, case.signals):
        y, x, clean = column
        order, turn = rng.permutation(len(y)), np.linalg.qr(rng.standard_normal((x.size, x.size)))[0]
        other = turn @ x
        noise = (y - np.abs(A @ x) ** 2)[order]
        columns.append((np.where(clean[order], np.abs(A @ other) ** 2 + noise, y[order]), other, clean[order]))
    y, x, clean = (np.stack(parts, axis=1) for parts in zip(*columns, strict=True))
    return A, y, x, clean


def stages() -> list[str]:
    """Where the options of every stage live: frozen dataclasses that modules of the engine hold under a name in capitals."""
    found = []
    for room in ROOMS:
        name = f"robustphase.{room}"
        path = getattr(importlib.import_module(name), "__path__", ())
        for module in (name, *sorted(info.name for info in pkgutil.walk_packages(path, f"{name}."))):
            held = [
                key
                for key, value in vars(importlib.import_module(module)).items()
                if key.isupper() and is_dataclass(value) and type(value).__module__ == module
            ]
            found += [f"{module}.{key}".removeprefix("robustphase.") for key in held]
    return [stage for stage in found if not stage.startswith(ELSEWHERE)]


def _options(stage: str) -> Any:
    module, name = stage.rsplit(".", 1)
    return getattr(importlib.import_module(f"robustphase.{module}"), name)


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def all_constants() -> list[tuple[str, Constant]]:
    return [(stage, constant) for stage in stages() for constant in constants(_options(stage))]


def table(seeds: int) -> str:
    cases = grid(seeds)
    rows = [(stage, constant) for stage, constant in all_constants() if constant.kind == "empirical"]
    jobs: list[tuple[str | None, dict[str, Any]]] = [(None, {})]
    for stage, constant in rows:
        jobs += [(stage, {constant.name: changed(constant.value, factor)}) for factor in (0.5, 2.0)]
    outcomes = Parallel(n_jobs=-1)(delayed(fits)(cases, *job) for job in jobs)
    usual = outcomes[0]
    lines = [
        f"{usual.errors.size} signals in each cell: {len(SHAPES)} shapes × {len(ATTACKS)} attacks × {seeds} seeds, with "
        f"{len(LEVELS)} levels and {len(NOISES)} noises in turn, none of which a constant was chosen on; then "
        "answers that are heard again, many signals, an operator with uneven columns, and more samples than a search looks at. "
        "As shipped: "
        f"{usual.survived:.1%} survive (error ≤ {LOST}), median ratio to informed least squares {np.median(usual.ratios):.3f}, "
        f"worst {usual.worst:.2f}.\n",
        "| constant | value | halved: survive, median change, worst | doubled: survive, median change, worst | reason |",
        "|---|---|---|---|---|",
    ]
    for index, (stage, constant) in enumerate(rows):
        cells = []
        for outcome in outcomes[1 + 2 * index : 3 + 2 * index]:
            change = float(np.median(outcome.ratios / usual.ratios)) - 1
            cells.append(f"{outcome.survived:.1%}, {change:+.1%}, {outcome.worst:.2f}")
        lines.append(
            f"| `{stage}.{constant.name}` | {_shown(constant.value)} | {cells[0]} | {cells[1]} | {constant.reason} |"
        )
    return "\n".join(lines) + "\n"


def listing() -> str:
    found = all_constants()
    counts = ", ".join(f"{sum(c.kind == kind for _, c in found)} {kind}" for kind in KINDS)
    lines = [f"{len(found)} constants: {counts}.\n", "| constant | kind | value | reason |", "|---|---|---|---|"]
    lines += [f"| `{stage}.{c.name}` | {c.kind} | {_shown(c.value)} | {c.reason} |" for stage, c in found]
    return "\n".join(lines) + "\n"


def render(page: str, rows: Sequence[Row]) -> str:
    """What was measured, above the list of the present code."""
    return put_together(rows) + "\n" + listing()


def write_listing() -> None:
    """Write the list anew; what was measured stands above it, and stays."""
    file = DOCS / PAGE
    above = re.split(r"^\d+ constants: ", file.read_text("utf-8"), maxsplit=1, flags=re.MULTILINE)[0]
    write_text(file, above + listing())


def run(seeds: int = 1) -> None:
    publish(PAGE, table(seeds), seeds=[SEED, seeds])


if __name__ == "__main__":
    if sys.argv[1:] == ["listing"]:
        write_listing()
    else:
        call(run, "constants", sys.argv[1:])
