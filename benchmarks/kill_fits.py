"""Kill checkpointed fits at random, change the data or not, and resume: ``python -m benchmarks.kill_fits KILLS [--seed S]``.

A fit in a process of its own gets SIGKILL when it has written a number of passes that is drawn at random, and a moment later that
is drawn too: kills land inside fits however busy the machine is. Then, half of the time, one thing is changed: a single row, a
single response, one pass of the checkpoint is damaged, or one is replaced by that of another run. Resumed, the fit must end with
the bits of one that was never cut off, or be refused where the data are no longer the same; never anything else.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import NamedTuple

import numpy as np

import robustphase as rp

N, M = 40, 20_000
#: Exit code of a fit whose checkpoint was refused.
REFUSED = 7
#: What is changed, by turns.
CHANGES = ("nothing", "a row", "nothing", "a response", "nothing", "a pass", "nothing", "a foreign pass")
#: Longest wait after the last pass that a fit was allowed, in seconds: a few passes long.
LONGEST_WAIT = 0.05
#: Passes of the other run, from which foreign ones are taken.
OTHERS = 20
#: Seconds until a fit counts as hanging.
PATIENCE = 120.0


class Outcome(NamedTuple):
    """How a fit that nobody killed has ended."""

    code: int | None
    signal: np.ndarray
    recalled: int
    said: str


def fit(folder: str, name: str) -> None:
    """Fit the data in a folder, or go on with it; the exit code says whether the checkpoint was refused."""
    from robustphase.files import CheckpointError, checkpointed

    place = Path(folder)
    with open(place / f"{name}.txt", "w", encoding="utf-8") as said, redirect_stderr(said):
        A, y = np.load(place / "A.npy", mmap_mode="r"), np.load(place / "y.npy")
        model = rp.RobustPhaseRetrieval(0.1)
        try:
            with checkpointed(place / f"{name}.checkpoint", model, A, y, interval=0) as rows:
                signal = model.fit(rows, y).signal_
        except CheckpointError as error:
            said.write(str(error))
            sys.exit(REFUSED)
        np.savez(place / f"{name}.npz", signal=signal, recalled=rows.recalled)


def passes_of(folder: Path, name: str) -> list[Path]:
    """The passes that a run has written so far."""
    return sorted((folder / f"{name}.checkpoint").glob("*.pass"))


class Fits:
    """Fits in processes of their own, forked from one that has imported everything: a fit begins at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Sums of one thread are the same every time; the server and all that it forks inherit this.
        os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["robustphase.estimator", "robustphase.files", "robustphase.simulate"])

    def start(self, name: str) -> ForkServerProcess:
        """Begin a fit, or go on with it."""
        process = self._context.Process(target=fit, args=(str(self._folder), name), daemon=True)
        process.start()
        return process

    def finish(self, name: str) -> Outcome:
        """Run a fit to its end."""
        process = self.start(name)
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
            return Outcome(None, np.empty(0), 0, f"no end within {PATIENCE:g} seconds")
        said = (self._folder / f"{name}.txt").read_text("utf-8")
        if process.exitcode:
            return Outcome(process.exitcode, np.empty(0), 0, said)
        with np.load(self._folder / f"{name}.npz") as kept:
            return Outcome(0, kept["signal"], int(kept["recalled"]), said)

    def kill(self, name: str, passes: int, wait: float) -> bool:
        """Kill a fit so long after it has written so many passes; whether it was still running."""
        process = self.start(name)
        while process.exitcode is None and len(passes_of(self._folder, name)) < passes:
            time.sleep(0.001)
        time.sleep(wait)
        process.kill()
        process.join()
        return process.exitcode != 0


def change(folder: Path, what: str, rng: np.random.Generator) -> str:
    """Do it, and say what was done: nothing, where there is no pass to harm."""
    passes, other = passes_of(folder, "run"), folder / "other.checkpoint"
    if what == "a row":
        A = np.load(folder / "A.npy", mmap_mode="r+")
        A[int(rng.integers(M)), int(rng.integers(N))] += 1e-6
        A.flush()
    elif what == "a response":
        y = np.load(folder / "y.npy")
        y[int(rng.integers(M))] += 1e-6
        np.save(folder / "y.npy", y)
    elif what == "a pass" and passes:
        victim = passes[int(rng.integers(len(passes)))]
        data = bytearray(victim.read_bytes())
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        victim.write_bytes(bytes(data))
    elif what == "a foreign pass" and (both := [one for one in passes if (other / one.name).exists()]):
        victim = both[int(rng.integers(len(both)))]
        shutil.copy(other / victim.name, victim)
    else:
        return "nothing"
    return what


def judged(found: Outcome, reference: np.ndarray, *, refuse: bool, anew: bool) -> tuple[str, bool]:
    """What came of a resumed fit, and whether that is right.

    ``refuse``: the data have changed since the checkpoint was begun. ``anew``: they have changed, but before that.
    """
    if found.code == 0:
        if np.array_equal(found.signal, reference):
            return "same bits", not refuse
        return ("answered anew", True) if anew else ("OTHER BITS", False)
    if found.code == REFUSED:
        return "refused", refuse
    return f"FAILED with {found.code}: {found.said[-300:]}", False


def run(kills: int = 100, seed: int = 0) -> None:
    """Kill so many fits; any that does not end as it should ends this with exit code 1."""
    rng = np.random.default_rng(seed)
    world, other = (rp.simulate.make_world(N, M, contamination=0.1, attack="leverage", seed=seed) for seed in (1, 2))
    counts: Counter[str] = Counter()
    made = bad = too_late = 0
    recalled: list[int] = []
    with tempfile.TemporaryDirectory(prefix="robustphase-kill-") as place:
        folder = Path(place)
        fits = Fits(folder)

        def restore(data: rp.simulate.World) -> None:
            np.save(folder / "A.npy", data.A)
            np.save(folder / "y.npy", data.y)

        def clear(name: str) -> None:
            shutil.rmtree(folder / f"{name}.checkpoint", ignore_errors=True)
            (folder / f"{name}.npz").unlink(missing_ok=True)

        restore(other)
        if not fits.kill("other", OTHERS, 0.0):
            raise RuntimeError(f"the fit took fewer than {OTHERS} passes")
        restore(world)
        reference = fits.finish("straight")
        assert reference.code == 0, reference.said
        usual = _passes_of_a_whole_fit(world)
        while made < kills:
            clear("run")
            if not fits.kill("run", int(rng.integers(usual)), float(rng.uniform(0, LONGEST_WAIT))):
                too_late += 1
                continue
            begun = (folder / "run.checkpoint" / "problem.json").exists()
            done = change(folder, CHANGES[made % len(CHANGES)], rng)
            changed = done in ("a row", "a response")
            found = fits.finish("run")
            outcome, right = judged(found, reference.signal, refuse=changed and begun, anew=changed and not begun)
            made += 1
            bad += not right
            counts[f"{done}: {outcome}"] += 1
            if found.code == 0:
                recalled.append(found.recalled)
            if changed:
                restore(world)
    print(f"{made} kills inside of fits of {usual} passes; {too_late} fits were done before they could be killed")
    for line, count in sorted(counts.items()):
        print(f"{count:4d}  {line}")
    if recalled:
        print(f"passes that needed no work after a kill: {np.mean(recalled):.0f} on average, {max(recalled)} at most")
    if bad:
        raise SystemExit(f"{bad} did not end as they should")
    print("same bits, or refused, every time")


def _passes_of_a_whole_fit(world: rp.simulate.World) -> int:
    rows = rp.rows.as_source(world.A)
    rp.RobustPhaseRetrieval(0.1).fit(rows, world.y)
    return rows.passes


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_fits")
    parser.add_argument("kills", type=int, nargs="?", default=100, help="default: 100")
    parser.add_argument("--seed", type=int, default=0)
    run(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
