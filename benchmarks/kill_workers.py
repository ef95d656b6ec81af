"""Kill Dask workers at random in the middle of fits: ``python -m benchmarks.kill_workers KILLS [--seed S]``.

A cluster of real worker processes, each with a nanny that starts it again, fits the same data over and over. In every fit one
worker, or all of them, get SIGKILL at a random moment; half of the fits talk to the workers directly, half only through the
scheduler. Every fit must end with the bits of a fit that nobody disturbed. In the last fits the nannies are killed first, so
that nobody comes back: they must end with a clear error within the stated time, or with the right answer if they were done
before.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import numpy as np

import robustphase as rp
from robustphase.rows import DaskRows
from robustphase.rows.dask.watch import WATCH

WORKERS, N, M = 2, 60, 60_000


def one_fit(
    world: rp.simulate.World, client: Any, kill: list[int], delay: float
) -> tuple[str, float, np.ndarray | None]:
    """What came of a fit in which some processes are killed after a while, how long it took, and its signal."""
    import dask.array as da

    rows, over = DaskRows(da.from_array(world.A, chunks=(M // 8, N)), client=client), Event()

    def killer() -> None:
        if not over.wait(delay):
            for pid in kill:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    thread = Thread(target=killer)
    began = time.monotonic()
    thread.start()
    try:
        signal_ = rp.RobustPhaseRetrieval(0.1).fit(rows, world.y).signal_
        outcome = "answered"
    except RuntimeError as error:
        signal_, outcome = None, f"RuntimeError: {str(error)[:90]}"
    except Exception as error:
        signal_, outcome = None, f"FAILED with {type(error).__name__}: {str(error)[:200]}"
    over.set()
    thread.join()
    rows.close()
    return outcome, time.monotonic() - began, signal_


def all_there(client: Any) -> list[int]:
    """Processes of all workers, once each has answered; fewer if that takes more than a minute."""
    pids: list[int] = []
    until = time.monotonic() + 60
    while len(pids) < WORKERS and time.monotonic() < until:
        time.sleep(1)  # Until the scheduler has noticed who was killed last.
        pids = [pid for pid in client.run(os.getpid, on_error="ignore").values() if isinstance(pid, int)]
    return pids


def session(kills: int, rng: np.random.Generator, direct: bool | None) -> Counter[str]:
    """Fits on one cluster, each with a kill."""
    import distributed

    world = rp.simulate.make_world(N, M, contamination=0.1, attack="leverage", seed=1)
    counts: Counter[str] = Counter()
    options = {
        "n_workers": WORKERS,
        "threads_per_worker": 1,
        "dashboard_address": ":0",
        "silence_logs": logging.CRITICAL,
    }
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, direct_to_workers=direct) as client,
    ):
        _, usual, reference = one_fit(world, client, [], 1e9)
        for _ in range(kills):
            pids = all_there(client)
            if len(pids) < WORKERS:
                # A nanny has not brought its worker back. With fewer workers the sums are cut elsewhere: a new cluster begins.
                counts["nannies lost"] += 1
                break
            counts["kills"] += 1
            victims = pids if rng.random() < 0.25 else [int(rng.choice(pids))]
            outcome, seconds, found = one_fit(world, client, victims, float(rng.uniform(0, usual)))
            same = found is not None and reference is not None and np.array_equal(found, reference)
            counts["same bits" if same else "OTHER BITS" if found is not None else outcome] += 1
            counts["longest, s"] = max(counts["longest, s"], round(seconds))
    return counts


def nobody_left(rng: np.random.Generator) -> Counter[str]:
    """A fit whose workers are all killed for good."""
    import subprocess

    import distributed

    world = rp.simulate.make_world(N, M, contamination=0.1, attack="leverage", seed=1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=logging.CRITICAL) as cluster,
        distributed.Client(cluster) as client,
    ):
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            "--no-nanny",
            "--nthreads",
            "1",
            cluster.scheduler_address,
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started = [subprocess.Popen(command, **quiet) for _ in range(WORKERS)]
        client.wait_for_workers(WORKERS, timeout=120)
        outcome, seconds, _ = one_fit(world, client, [process.pid for process in started], float(rng.uniform(0.2, 1.0)))
        for process in started:
            process.kill()
            process.wait()
    late = seconds > 2 * WATCH.absent + 60
    return Counter({f"{'LATE ' if late else ''}{outcome} ({seconds:.0f} s)": 1})


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_workers")
    parser.add_argument("kills", type=int, nargs="?", default=100, help="fits with a kill (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    rng, bad = np.random.default_rng(chosen.seed), 0
    for direct, count in ((None, -(-chosen.kills // 2)), (False, chosen.kills // 2)):
        left = count
        while left:
            counts = session(left, rng, direct)
            print(f"direct_to_workers={direct}: {dict(counts)}", flush=True)
            bad += counts["kills"] - counts["same bits"]
            left -= max(1, counts["kills"])
    last = nobody_left(rng)
    print(f"nobody left: {dict(last)}")
    bad += any(text.startswith(("LATE", "FAILED")) for text in last)
    print("every fit ended right" if not bad else f"{bad} fits did not end right")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
