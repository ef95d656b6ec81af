"""What the engine's empirical constants are worth: each halved and doubled, on data that none was chosen on.

``python -m benchmarks constants [--seeds 2]`` writes docs/_generated/constants.md: all constants with their kind and reason, and
for every empirical one how many fits survive and what the worst ratio is when it is halved and doubled. ``python -m
benchmarks.constants listing`` measures nothing: it writes the list anew below what was measured.

The data are kept out of all tuning: attacks in the name of a second signal (:mod:`benchmarks.two_signals`) and four attacks
made up here, none of which is in ``simulate``; sizes, noise levels and noise laws that no other benchmark uses.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from benchmarks.markdown import put_together
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.store import DOCS, Row
from robustphase import distance
from robustphase.atomic import write_text
from robustphase.constants import KINDS, Constant, constants, varied
from robustphase.experiments.methods import oracle_least_squares
from robustphase.recover import recover
from robustphase.rows import MemoryRows
from robustphase.validation import Samples

PAGE = "_generated/constants.md"
#: Where the options of each stage live, in the order of the data flow.
STAGES = (
    "likelihood.bad_responses.DENSITY",
    "likelihood.comparison.COMPARISON",
    "likelihood.noise_model.NOISE",
    "likelihood.shared_evidence.SHARED",
    "problem.PROBLEM",
    "initialise.standardise.STANDARD",
    "initialise.screening.SCREENING",
    "initialise.block_davidson.SEARCH",
    "initialise.rank_spectra.SPECTRA",
    "initialise.rank_spectra.HIDDEN",
    "initialise.start.NORMS",
    "initialise.start.START",
    "descend.newton.NEWTON",
    "descend.acceleration.ACCELERATION",
    "descend.candidate_steps.STEPS",
    "descend.objective.OBJECTIVE",
    "descend.shared_weights.SHARING",
    "descend.amplitude_flow.AMPLITUDE",
    "descend.amplitude_flow.LEVERAGE",
    "descend.climb.CLIMB",
    "descend.likelihood_fit.FIT",
    "descend.consistency.CONSISTENCY",
    "recover.selection.SELECTION",
    "recover.contradiction.CONTRADICTION",
    "recover.second_opinion.OPINION",
    "recover.election.ELECTION",
    "recover.certificate.CERTIFICATE",
    "recover.law.under_law.CENSORING",
    "recover.engine.ENGINE",
)
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


def make_data(shape: Any, level: float, noise: Any, attack: str, seed: int) -> tuple[np.ndarray, ...]:
    """Covariates, responses, the signal, and which samples are clean."""
    n, m, is_complex = shape
    rng = np.random.default_rng(seed)

    def normal(*size: int) -> np.ndarray:
        drawn = rng.standard_normal(size)
        return (drawn + 1j * rng.standard_normal(size)) / np.sqrt(2) if is_complex else drawn

    A, x = normal(m, n), normal(n)
    x /= np.linalg.norm(x)
    y = np.abs(A @ x) ** 2 + draw_noise(noise[0], m, noise[1], rng)
    other = normal(n)
    other = 0.7 * x + 0.9 * other / np.linalg.norm(other)
    difference = np.abs(A @ other) ** 2 - np.abs(A @ x) ** 2
    bad = np.argsort(-np.abs(difference) * rng.uniform(0.3, 1, m))[: int(level * m)]
    if attack == "second signal":
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


def grid(seeds: int) -> list[tuple[Any, ...]]:
    """All attacks at every shape; levels and noises in turn, so that each meets every attack and every shape."""
    cases = product(range(seeds), enumerate(SHAPES), enumerate(ATTACKS))
    return [
        (shape, *LEVELS[(i + k + seed) % len(LEVELS)], NOISES[(i + 2 * k + seed) % len(NOISES)], attack, SEED + index)
        for index, (seed, (i, shape), (k, attack)) in enumerate(cases)
    ]


def fits(cases: list[tuple[Any, ...]], stage: str | None, changes: dict[str, Any]) -> Outcome:
    """All fits with some constants of one stage changed."""
    if stage is not None:
        with varied(_options(stage), **changes):
            return fits(cases, None, {})
    errors, ratios = [], []
    for shape, level, told, noise, attack, seed in cases:
        A, y, x, clean = make_data(shape, level, noise, attack, seed)
        samples = Samples(MemoryRows(A), y, np.zeros(y.size, bool))
        found = recover(samples, told, unknown_mean=False)
        error = distance(found.signal, x, relative=True)
        informed = oracle_least_squares(A[clean], y[clean], x)
        errors.append(error)
        ratios.append(error / distance(informed, x, relative=True))
    return Outcome(np.array(errors), np.array(ratios))


def changed(value: Any, factor: float) -> Any:
    """A number halved or doubled; between zero and one its distance to the nearer end; the parts of a tuple each."""
    if isinstance(value, tuple):
        return tuple(changed(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    if 0.5 < value < 1:
        return 1 - min(0.5, (1 - value) * factor)
    if value in (0.0, 1.0):
        return value
    return value * factor


def _options(stage: str) -> Any:
    module, name = stage.rsplit(".", 1)
    return getattr(importlib.import_module(f"robustphase.{module}"), name)


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def all_constants() -> list[tuple[str, Constant]]:
    return [(stage, constant) for stage in STAGES for constant in constants(_options(stage))]


def table(seeds: int) -> str:
    cases = grid(seeds)
    rows = [(stage, constant) for stage, constant in all_constants() if constant.kind == "empirical"]
    jobs: list[tuple[str | None, dict[str, Any]]] = [(None, {})]
    for stage, constant in rows:
        jobs += [(stage, {constant.name: changed(constant.value, factor)}) for factor in (0.5, 2.0)]
    outcomes = Parallel(n_jobs=-1)(delayed(fits)(cases, *job) for job in jobs)
    usual = outcomes[0]
    lines = [
        f"{len(cases)} fits in each cell: {len(SHAPES)} shapes × {len(ATTACKS)} attacks × {seeds} seeds, with "
        f"{len(LEVELS)} levels and {len(NOISES)} noises in turn, none of which a constant was chosen on. As shipped: "
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


def run(seeds: int = 2) -> None:
    publish(PAGE, table(seeds), seeds=[SEED, seeds])


if __name__ == "__main__":
    if sys.argv[1:] == ["listing"]:
        write_listing()
    else:
        call(run, "constants", sys.argv[1:])
