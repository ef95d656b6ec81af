"""Kill checkpointed fits at random, change the data or not, and resume: ``python -m benchmarks.kill_fits KILLS [--seed S]``.

A fit in a process of its own gets SIGKILL at a random moment. Then, half of the time, one thing is changed: a single row, a
single response, one pass of the checkpoint is damaged, or one is replaced by that of another run. Resumed, it must end with
the bits of a fit that was never cut off, or be refused where the data are no longer the same; never anything else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import robustphase as rp

N, M = 40, 30_000
PROGRAM = """
import sys, numpy as np, robustphase as rp
from robustphase.files import CheckpointError, checkpointed
A, y = np.load("A.npy", mmap_mode="r"), np.load("y.npy")
model = rp.RobustPhaseRetrieval(0.1)
try:
    with checkpointed(sys.argv[1], model, A, y, interval=0) as rows:
        signal = model.fit(rows, y).signal_
except CheckpointError as error:
    print("refused:", error)
    sys.exit(7)
np.save(sys.argv[2], signal)
"""
CHANGES = ("nothing", "nothing", "nothing", "nothing", "a row", "a response", "a pass", "a foreign pass")


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PROGRAM, f"{name}.checkpoint", f"{name}.npy"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(folder: Path, name: str) -> tuple[int, str]:
    process = start(folder, name)
    out, errors = process.communicate()
    return process.returncode, (out + errors).decode()


def change(folder: Path, what: str, rng: np.random.Generator) -> str:
    """Do it, and say what was done: nothing, where there is no pass to harm."""
    passes = sorted((folder / "run.checkpoint").glob("*.pass"))
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
    elif what == "a foreign pass" and passes:
        victim = passes[int(rng.integers(min(20, len(passes))))]
        shutil.copy(folder / "other.checkpoint" / victim.name, victim)
    else:
        return "nothing"
    return what


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_fits")
    parser.add_argument("kills", type=int, nargs="?", default=100, help="default: 100")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    rng = np.random.default_rng(chosen.seed)
    world, other = (rp.simulate.make_world(N, M, contamination=0.1, attack="leverage", seed=seed) for seed in (1, 2))
    counts: Counter[str] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="robustphase-kill-") as place:
        folder = Path(place)

        def restore(data: rp.simulate.World) -> None:
            np.save(folder / "A.npy", data.A)
            np.save(folder / "y.npy", data.y)

        restore(other)
        process = start(folder, "other")
        while len(list((folder / "other.checkpoint").glob("*.pass"))) < 25 and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        restore(world)
        began = time.monotonic()
        assert finish(folder, "straight")[0] == 0
        usual, reference = time.monotonic() - began, np.load(folder / "straight.npy")
        for _ in range(chosen.kills):
            process = start(folder, "run")
            time.sleep(float(rng.uniform(0.3, 1.0)) * usual)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed = process.returncode == -signal.SIGKILL
            done = change(folder, str(rng.choice(CHANGES)), rng) if killed else "nothing (it was done)"
            begun = (folder / "run.checkpoint" / "problem.json").exists()
            code, said = finish(folder, "run")
            if code == 0 and np.array_equal(np.load(folder / "run.npy"), reference):
                outcome = "same bits"
            else:
                outcome = "refused" if code == 7 else f"FAILED with {code}: {said[-300:]}"
            changed = done in ("a row", "a response")
            if changed and not begun and code == 0:
                outcome = "answered, since there was no checkpoint yet"
            counts[f"{done}: {outcome}"] += 1
            bad += outcome != ("refused" if changed and begun else "same bits") and not outcome.startswith("answered")
            shutil.rmtree(folder / "run.checkpoint", ignore_errors=True)
            (folder / "run.npy").unlink(missing_ok=True)
            restore(world)
    for line, count in sorted(counts.items()):
        print(f"{count:4d}  {line}")
    print("same bits, or refused, every time" if not bad else f"{bad} did not end as they should")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
