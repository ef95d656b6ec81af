"""``robustphase demo``: a picture behind bad data, recovered by ours and by the best baselines, side by side."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import robustphase as rp
from robustphase.cli.app import as_command, command_line, file_option, flag, general_options, option
from robustphase.cli.demo_data import BACKGROUND, CONTAMINATION, SIDE, forged_world, grin, unit
from robustphase.cli.exit_codes import UNSETTLED
from robustphase.cli.outputs import check_outputs, note_written
from robustphase.cli.terminal import Screen, screen, shown, side_by_side
from robustphase.experiments.methods import oracle_least_squares
from robustphase.formatting import number
from robustphase.report import FitDiagnostics, require_report, write_report

OURS, ORACLE = "robustphase", "oracle"
#: How the data are called in the report, by which an earlier one is known.
DATA_NAME = "the demo of robustphase"
#: The rivals, and where a limit keeps the demo short: on clean data of this size SciPy needs 20 evaluations,
#: not 30; on a variant of this forgery it settled after 168, no nearer to the truth.
RIVALS: dict[str, dict[str, Any]] = {
    "wirtinger_flow": {},
    "truncated_wirtinger_flow": {},
    "median_reshaped_wirtinger_flow": {},
    "reweighted_amplitude_flow": {},
    "geometric_subgradient": {},
    "cauchy_least_squares": {"max_iter": 30},
}
#: Relative error up to which a picture counts as recovered, and ratio up to which it is as good as the oracle's.
RECOVERED, AS_GOOD = 0.25, 1.1
#: Cosine with the forged picture from which on a method has been fooled.
FOOLED = 0.5


@dataclass(frozen=True)
class Outcome:
    """What a method made of the data; an empty signal if it gave none."""

    method: str
    signal: NDArray[Any]
    error: float
    ratio: float
    seconds: float
    verdict: str


@as_command(
    "demo",
    notes="Takes well under a minute on two cores. Exit codes: 0 converged, 3 finished without converging, 1 error, "
    "130 interrupted.",
    example="robustphase demo",
)
@file_option(
    "Output",
    "--report",
    metavar="REPORT.html",
    default=Path("robustphase-demo.html"),
    help="Where the report goes.",
)
@flag(
    "Output",
    "--overwrite",
    help="Write over any file that is there already. A report of the demo is written again without it.",
)
@option("Data", "--seed", type=click.IntRange(min=0), metavar="SEED", default=0, help="Other data of the same kind.")
@general_options
def demo(report: Path, overwrite: bool, seed: int, quiet: bool, debug: bool) -> None:
    """Recover a picture from data of which a tenth is bad, and write a report.

    The picture is measured without phase, with heavy-tailed noise and an unknown background. An adversary then rewrites a
    tenth of the samples, covariates and responses, so that they show another picture. Our method and the best
    baselines see the same data; the last row is least squares told which samples are clean.
    """
    require_report()
    check_outputs(report, overwrite=overwrite or _made_by_the_demo(report))
    see = screen()
    world = forged_world(seed)
    _explain(see, world)
    truth, model = world.truth, rp.RobustPhaseRetrieval(CONTAMINATION, noise_mean="unknown")
    runs: dict[str, Callable[[], Any]] = {OURS: lambda: model.fit(world.A, world.y).signal_}
    for name, limits in RIVALS.items():
        runs[name] = _rival(name, world, limits)
    clean = world.clean
    runs[ORACLE] = lambda: oracle_least_squares(world.A[clean], world.y[clean], truth, background=world.noise_mean)
    found = _run(see, runs, world)
    see.say("Relative error of the recovered picture, and processor time on one thread:")
    _tabulate(see, found)
    _show(see, found, truth)
    diagnostics = FitDiagnostics.of(model, world.A, world.y, truth=truth, image_shape=(SIDE, SIDE)).from_where(
        f"{DATA_NAME}: a boat in {SIDE} x {SIDE} pixels, {CONTAMINATION:.0%} of the samples forged",
        command=command_line(),
    )
    write_report(report, diagnostics, [_row(outcome) for outcome in found])
    note_written(report)
    see.say(f"report: {shown(report.resolve())}")
    if not model.converged_:
        click.get_current_context().exit(UNSETTLED)


def _made_by_the_demo(path: Path) -> bool:
    """Whether a file is a report of the demo: what it made itself, it may make anew."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f"<title>robustphase: {DATA_NAME}".encode() in file.read(4096)


def _explain(see: Screen, world: rp.simulate.World) -> None:
    m, n = world.A.shape
    bad = int(world.touched.sum())
    see.say(f"A picture of {SIDE} x {SIDE} pixels, seen through {m} measurements y = (a·x)² + z of {n} unknowns.")
    see.say("The noise has heavy tails and a background.")
    see.say(f"An adversary has rewritten {bad} samples, a and y alike, in the name of another picture.")
    see.say("The baselines are told the background; robustphase has to find it.")


def _rival(name: str, world: rp.simulate.World, limits: dict[str, Any]) -> Callable[[], Any]:
    method = rp.baselines.METHODS[name]
    return lambda: method(world.A, world.y - BACKGROUND, **limits).signal


def _run(see: Screen, runs: dict[str, Callable[[], Any]], world: rp.simulate.World) -> list[Outcome]:
    """Run all methods on the same data."""
    answers: dict[str, tuple[NDArray[Any], float]] = {}
    with see.counting("recovering") as tell:
        for done, (name, run) in enumerate(runs.items()):
            tell(done, len(runs), name)
            # One thread each: times can be compared, and threads do not wait for each other on a busy machine.
            with threadpool_limits(1):
                answers[name] = _timed(run, strict=name in (OURS, ORACLE))
        tell(len(runs), len(runs), "done")
    best = rp.distance(answers[ORACLE][0], world.truth, relative=True)
    return [_judged(name, signal, seconds, world.truth, best) for name, (signal, seconds) in answers.items()]


def _timed(run: Callable[[], Any], *, strict: bool) -> tuple[NDArray[Any], float]:
    """An answer and its processor time; a rival that raises an error has none, and may warn as it likes."""
    began = time.process_time()
    if strict:
        signal = np.asarray(run())
    else:
        with warnings.catch_warnings():
            # Rivals overflow and fail to settle on such data; the table says how far off they end.
            warnings.simplefilter("ignore")
            try:
                signal = np.asarray(run())
            except (ValueError, ArithmeticError, np.linalg.LinAlgError):
                signal = np.empty(0)
    return signal, time.process_time() - began


def _judged(name: str, signal: NDArray[Any], seconds: float, truth: NDArray[Any], best: float) -> Outcome:
    """Put an answer beside the truth and the oracle."""
    if not signal.size or not np.isfinite(signal).all():
        return Outcome(name, np.empty(0), np.inf, np.inf, seconds, "gave no answer")
    error = rp.distance(signal, truth, relative=True)
    return Outcome(name, signal, error, error / best, seconds, verdict(name, signal, error, error / best))


def verdict(name: str, signal: NDArray[Any], error: float, ratio: float) -> str:
    """What to say of an answer, in a few words."""
    if name == ORACLE:
        return "told what is clean"
    if error <= RECOVERED:
        return "as good as the oracle" if ratio <= AS_GOOD else "recovered"
    forged = abs(float(signal @ unit(grin(SIDE)))) / max(float(np.linalg.norm(signal)), np.finfo(float).tiny)
    return "fooled by the forgery" if forged >= FOOLED else "lost"


def _tabulate(see: Screen, found: list[Outcome]) -> None:
    columns = ("method", "relative\nerror", "ratio to\nthe oracle", "seconds", "verdict")
    rows = [(o.method, f"{o.error:.1%}", number(o.ratio), f"{o.seconds:.1f}", o.verdict) for o in found]
    see.table(columns, rows, left=("method", "verdict"))


def _show(see: Screen, found: list[Outcome], truth: NDArray[Any]) -> None:
    """The truth, ours and the best rival, where the terminal has colours."""
    if see.out.color_system not in ("truecolor", "256") or see.out.width < 3 * (SIDE + 3):
        return
    best = min((o for o in found if o.method in RIVALS), key=lambda o: o.error)
    named = {"truth": truth} | {o.method: o.signal for o in (found[0], best) if o.signal.size}
    pictures = {name: (signal * np.sign(signal @ truth)).reshape(SIDE, SIDE) for name, signal in named.items()}
    see.say(side_by_side(pictures, 0.0, float(truth.max())))


def _row(outcome: Outcome) -> dict[str, Any]:
    """An outcome in the terms of a report."""
    return {
        "method": outcome.method,
        "relative_error": outcome.error,
        "seconds": outcome.seconds,
        "verdict": outcome.verdict
        if outcome.method == ORACLE
        else f"{outcome.verdict} ({number(outcome.ratio)} times the oracle's error)",
        "signal": outcome.signal if outcome.signal.size else None,
        "highlight": outcome.method == OURS,
    }
