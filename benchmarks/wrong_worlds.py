"""Is the library ever wrong in silence? Data that break its model, and data that do not.

``python -m benchmarks wrong_worlds [--right FITS] [--seed FIRST] [--seeds 1] [--only PART]`` fits every wrong world with one
seed or more at two sizes and counts silent failures (error above a quarter, converged, no warning) and certificates below the
error; then right worlds, of which it counts the false alarms. Without ``--only`` it writes docs/_generated/wrong_worlds.md, and
to docs/_generated/check_limits.md what other limits would make of the same fits (:mod:`benchmarks.check_limits`). The checks were
built with first seed 0 and set with seeds 200 to 500, 7001 to 7032, 9000, 9100, 52000 to 63001, 66000 to 66002, 81000, 81001,
140000 to 140039, 410000, 630000, 740000, 850000, 900000 to 900002, 1910000, 2000000 to 2000002, 3100000 and 4100000 (right
worlds: 41, 141 to 143, 1910, 1911, 72000 and 73000 too); other seeds are fresh draws of kinds that the checks know.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import dask.array
import numpy as np
from joblib import Parallel, delayed

import robustphase as rp
from benchmarks.check_limits import Heard, limits_table, listening
from benchmarks.further_worlds import FURTHER
from benchmarks.handling_worlds import HANDLING
from benchmarks.instrument_worlds import INSTRUMENTS
from benchmarks.known_worlds import KNOWN
from benchmarks.laboratory_worlds import LABORATORY
from benchmarks.markdown import table
from benchmarks.mishap_worlds import MISHAPS
from benchmarks.newcomer_worlds import NEWCOMERS
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.world_makers import Array
from robustphase.recover.model import ModelWarning

PAGE, LIMITS = "_generated/wrong_worlds.md", "_generated/check_limits.md"
WORLDS = KNOWN | FURTHER | LABORATORY | INSTRUMENTS | HANDLING | NEWCOMERS | MISHAPS
SIZES = ((30, 600), (60, 3000))
#: Errors above it count as failures.
WRONG = 0.25
#: Certificates count as below the error only beyond rounding.
ROUNDING = 1e-6


class Outcome(NamedTuple):
    """What came of one fit."""

    name: str
    error: float
    converged: bool
    warned: bool
    certificate: float
    failed: tuple[str, ...]
    #: What its check was told; None for what was refused.
    heard: Heard | None = None

    @property
    def silent(self) -> bool:
        """Wrong, and nobody said so."""
        return not self.error <= WRONG and self.converged and not self.warned

    @property
    def overconfident(self) -> bool:
        """The certificate is smaller than the error."""
        return self.certificate + ROUNDING < self.error


def fitted(name: str, A: Any, y: Array, truths: Array, settings: Mapping[str, Any]) -> list[Outcome]:
    """Fit and judge every signal."""
    with warnings.catch_warnings(record=True) as caught, listening() as heard:
        warnings.simplefilter("always")
        try:
            model = rp.RobustPhaseRetrieval(**settings).fit(A, y)
        except ValueError as error:
            return [Outcome(name, np.inf, False, True, np.inf, (f"refused: {error}",))]
    warned = any(issubclass(one.category, ModelWarning) for one in caught)
    checks = model.model_check_ if isinstance(model.model_check_, tuple) else (model.model_check_,)
    # Behind real rows the conjugate of a signal is the same signal.
    real_rows = A.dtype.kind != "c"
    per_signal = zip(
        np.atleast_2d(model.signal_),
        truths,
        checks,
        np.atleast_1d(model.converged_),
        np.atleast_1d(model.certificate_),
        # Of a fit in several rounds, the last ones.
        heard[-len(truths) :],
        strict=True,
    )
    return [
        Outcome(
            name,
            rp.distance(signal, truth, relative=True, conjugate=real_rows),
            bool(converged),
            warned and check.severe,
            float(certificate),
            tuple(("*" if one.severe else "") + one.name for one in check.failed),
            told,
        )
        for signal, truth, check, converged, certificate, told in per_signal
    ]


def one_wrong(name: str, size: tuple[int, int], seed: int) -> Outcome:
    """One fit to a wrong world."""
    data = WORLDS[name](np.random.default_rng([seed, *size]), *size)
    return fitted(name, data.A, data.y, data.truth[np.newaxis], data.told)[0]


class Shape(NamedTuple):
    """A right world's field, unknowns, samples, contamination and noise mean; what the fit is told of it and how it is stored.

    ``design`` is the law of the rows, and ``counts`` the mean count where the responses are photons.
    """

    field: str
    n: int
    m: int
    level: float
    mean: float = 0.0
    stated: float | str | None = None
    signals: int = 1
    stored: str = "memory"
    design: str = "gaussian"
    counts: float = 0.0


#: Attacks that rewrite the samples whose responses tell most clearly that another signal, at this angle, is not there.
HARD = {
    f"by likelihood at {angle}": rp.simulate.ParametricAttack(angle=angle, by_likelihood=-1.0).adversary
    for angle in (0.3, 0.6, 1.0, 1.4)
}
ATTACKS: dict[str, Any] = {name: name for name in ("none", *rp.simulate.ADVERSARIES)} | HARD


def drawn(attack: str, noise: str, shape: Shape, seed: int) -> rp.simulate.World:
    """A right world; counts bring their own noise."""
    told: dict[str, Any] = {
        "contamination": shape.level,
        "attack": ATTACKS[attack],
        "field": shape.field,
        "seed": seed,
    }
    if shape.counts:
        return rp.simulate.make_counts(shape.n, shape.m, mean_count=shape.counts, **told)
    return rp.simulate.make_world(shape.n, shape.m, noise=noise, noise_mean=shape.mean, design=shape.design, **told)


def one_right(attack: str, noise: str, shape: Shape, seed: int) -> list[Outcome]:
    """One fit to a right world: an outcome for each signal."""
    world = drawn(attack, noise, shape, seed)
    told = {
        "contamination": shape.level if shape.stated is None else shape.stated,
        "nonfinite": "drop",
        "noise_mean": "unknown" if shape.mean else "zero",
        "field": shape.field if shape.field == "complex" else "auto",
    }
    name, A, y, truths = f"{attack}, {noise}, {tuple(shape)}, seed {seed}", world.A, world.y, world.truth[np.newaxis]
    if shape.signals > 1:
        # The other signals have clean responses to the same rows, of which some are bad.
        rng = np.random.default_rng(seed)
        truths = np.stack(
            [rp.simulate.random_signal(shape.n, field=shape.field, seed=rng) for _ in range(shape.signals)]
        )
        truths[0] = world.truth
        y = np.abs(A @ truths.T) ** 2 + 0.1 * rng.standard_normal((shape.m, shape.signals))
        y[:, 0] = world.y
    with tempfile.TemporaryDirectory() as folder:
        if shape.stored == "disk":
            np.save(path := Path(folder) / "A.npy", A)
            A = np.load(path, mmap_mode="r")
        elif shape.stored == "dask":
            A = dask.array.from_array(A, chunks=(len(A) // 3, -1))
        return fitted(name, A, y, truths, told)


#: Right worlds of many shapes.
SHAPES = (
    Shape("real", 40, 2000, 0.1),
    Shape("complex", 30, 2000, 0.1),
    Shape("real", 100, 2000, 0.05),
    Shape("real", 40, 2000, 0.2),
    Shape("real", 20, 3000, 0.3),
    Shape("complex", 40, 1600, 0.05),
    Shape("real", 60, 600, 0.05),
    Shape("real", 40, 2000, 0.1, mean=3.0),
    Shape("real", 10, 400, 0.1),
    Shape("complex", 20, 1000, 0.2, stated="auto"),
    Shape("real", 30, 2000, 0.1, stated="auto"),
    Shape("real", 30, 2000, 0.05, stated=0.2),
    Shape("real", 250, 4000, 0.05),
    Shape("real", 20, 1500, 0.1, signals=3),
    Shape("complex", 15, 1500, 0.1, signals=12),
    Shape("real", 40, 2000, 0.1, stored="disk"),
    Shape("complex", 30, 2000, 0.1, stored="dask"),
    Shape("real", 40, 2400, 0.1, design="on_off"),
    Shape("real", 30, 1800, 0.05, stated="auto", design="signs"),
    Shape("complex", 25, 2000, 0.1, design="grey"),
    Shape("complex", 25, 1500, 0.05, design="real_gaussian"),
    Shape("real", 40, 2000, 0.1, design="correlated"),
    Shape("complex", 30, 2000, 0.1, design="4_phases"),
    Shape("real", 30, 2000, 0.05, design="elliptical"),
    Shape("real", 32, 2048, 0.1, design="scrambled_hadamard"),
    Shape("real", 30, 2500, 0.05, counts=4.0),
    Shape("complex", 25, 2500, 0.1, counts=1.0),
    Shape("real", 40, 3000, 0.1, counts=100.0),
)


def right_jobs(count: int, seed: int) -> list[tuple[Any, ...]]:
    """All adversaries and noises, with shapes and seeds in turn."""
    pairs = list(product(ATTACKS, rp.simulate.NOISES))
    order = np.random.default_rng(0).permutation(len(pairs))

    def shape(k: int) -> Shape:
        # Shifted from round to round, so that every pair meets every shape.
        return SHAPES[(k + k // len(pairs)) % len(SHAPES)]

    return [(*pairs[order[k % len(pairs)]], shape(k), 5000 + 10**6 * seed + k) for k in range(count)]


class Tally(NamedTuple):
    """Both batteries."""

    wrong: list[Outcome]
    right: list[Outcome]

    @property
    def complaints(self) -> dict[str, list[Outcome]]:
        """What should not have happened, by name."""
        return {
            "silent failures": [one for one in self.wrong if one.silent],
            "certificates below the error": [one for one in self.wrong if one.overconfident],
            "false alarms": [one for one in self.right if one.warned and one.error <= WRONG],
            "right worlds, silent failures": [one for one in self.right if one.silent],
            "right worlds, certificates below the error": [one for one in self.right if one.overconfident],
        }

    def head(self) -> str:
        """The counts in a sentence."""
        silent, below, alarms, right_silent, right_below = (len(some) for some in self.complaints.values())
        lost = sum(one.warned and not one.error <= WRONG for one in self.right)
        worlds = len({one.name for one in self.wrong})
        return (
            f"{worlds} wrong worlds, {len(self.wrong)} fits: {silent} silent failures, {below} certificates below the error. "
            f"{len(self.right)} answers in right worlds under attack: {alarms} false alarms, {right_silent} silent failures, "
            f"{right_below} certificates below the error, {lost} answers that the attack spoilt and the check caught."
        )

    def limits(self) -> str:
        """What other limits of the check would make of the same fits."""
        wrong = [one.heard for one in (*self.wrong, *self.right) if one.heard and not one.error <= WRONG]
        # Whoever breaks the model and gets a right answer all the same may be warned.
        right = [one.heard for one in self.right if one.heard and one.error <= WRONG]
        return limits_table(wrong, right)

    def table(self) -> str:
        """One line for each wrong world."""
        heads = (
            "wrong world",
            "median error",
            "warned",
            "silent",
            "certificates below the error",
            "failed checks (first fit)",
        )
        lines = []
        for name in dict.fromkeys(one.name for one in self.wrong):
            fits = [one for one in self.wrong if one.name == name]
            cells = (
                name,
                f"{np.median([one.error for one in fits]):.2f}",
                f"{sum(one.warned for one in fits)} of {len(fits)}",
                f"{sum(one.silent for one in fits)}",
                f"{sum(one.overconfident for one in fits)}",
                ", ".join(fits[0].failed)[:160],
            )
            lines.append(cells)
        return table(heads, lines)


def run(right: int = 1000, seed: int = 31_000, seeds: int = 1, only: str = "") -> None:
    """Run both batteries and write the page: so many fits to right worlds; a first seed; seeds of every wrong world and size."""
    names = [name for name in WORLDS if only in name]
    with Parallel(n_jobs=int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        wrong = pool(
            delayed(one_wrong)(name, size, number)
            for name in names
            for size in SIZES
            for number in range(seed, seed + seeds)
        )
        fits = pool(delayed(one_right)(*job) for job in right_jobs(right, seed))
    tally = Tally(wrong, [one for some in fits for one in some])
    for title, some in tally.complaints.items():
        for one in some:
            print(f"{title}: {one.name}, error {one.error:.2f}, certificate {one.certificate:.2g}, {one.failed}")
    print(tally.head())
    if not only:
        publish(PAGE, f"{tally.head()}\n\n{tally.table()}", seeds=[seed, seeds])
        publish(LIMITS, tally.limits(), seeds=[seed, seeds])


if __name__ == "__main__":
    call(run, "wrong_worlds", sys.argv[1:])
