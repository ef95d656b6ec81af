"""Kill Dask workers at random in the middle of fits: ``python -m benchmarks.kill_workers KILLS [--seed S]``.

A cluster of real worker processes, each with a nanny that starts it again, fits the same data over and over. In every fit one
worker, or all of them, get SIGKILL after a number of passes that is drawn at random, and a moment later that is drawn too: kills
land inside fits however busy the machine is. Half of the fits talk to the workers directly, half only through the scheduler.
Every fit must end with the bits of a fit that nobody disturbed. In the last fit there are no nannies, and nobody comes back: it
must end with a clear error within the stated time.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np

import robustphase as rp
from robustphase.rows import DaskRows
from robustphase.rows.dask.workers import WATCH

WORKERS, N, M = 2, 30, 20_000
#: Longest wait after the last pass that a fit was allowed, in seconds: a few passes long.
LONGEST_WAIT = 0.1
#: Seconds that nannies get to bring everybody back.
PATIENCE = 120.0
#: Kills until a new cluster is begun.
MOST_KILLS = 25
#: What the process imports from which workers are forked, so that they are there again within a second.
PRELOADED = ["distributed", "dask.array", "robustphase.estimator", "robustphase.rows.dask.cluster"]
CLEAR = "RuntimeError"


class Kill(NamedTuple):
    """Whom to kill, after how many passes, and how long after the last of them."""

    victims: list[int]
    passes: int
    wait: float


class Outcome(NamedTuple):
    """What came of a fit; ``killed`` says whether the kill came before its end."""

    what: str
    seconds: float
    signal: np.ndarray | None
    killed: bool
    passes: int


def one_fit(world: rp.simulate.World, client: Any, kill: Kill | None = None) -> Outcome:
    """A fit in which some processes are killed after a while."""
    import dask.array as da

    rows, over, killed = DaskRows(da.from_array(world.A, chunks=(M // 8, N)), client=client), Event(), Event()

    def killer(kill: Kill) -> None:
        while rows.passes < kill.passes:
            if over.wait(0.002):
                return
        if over.wait(kill.wait):
            return
        killed.set()
        for pid in kill.victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    thread = None if kill is None else Thread(target=killer, args=(kill,))
    began = time.monotonic()
    if thread is not None:
        thread.start()
    signal_ = None
    try:
        signal_ = rp.RobustPhaseRetrieval(0.1).fit(rows, world.y).signal_
        what = "answered"
    except RuntimeError as error:
        what = f"{CLEAR}: {str(error)[:90]}"
    except Exception as error:  # Whatever else a fit ends with is the failure that is looked for.
        what = f"FAILED with {type(error).__name__}: {str(error)[:200]}"
    over.set()
    if thread is not None:
        thread.join()
    rows.close()
    return Outcome(what, time.monotonic() - began, signal_, killed.is_set(), rows.passes)


def all_there(cluster: Any, client: Any, killed: set[int]) -> list[int]:
    """Processes of all workers, once those killed are replaced and known to the scheduler; none if that takes too long."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        nannies = list(cluster.workers.values())
        pids = [nanny.pid for nanny in nannies if nanny.pid is not None and nanny.pid not in killed]
        known = set(client.scheduler_info(n_workers=-1)["workers"])
        if len(pids) == WORKERS and known == {nanny.worker_address for nanny in nannies}:
            return pids
        time.sleep(0.1)
    return []


def session(kills: int, rng: np.random.Generator, direct: bool | None) -> Counter[str]:
    """Fits on one cluster, each with a kill."""
    import dask
    import distributed

    world = rp.simulate.make_world(N, M, contamination=0.1, attack="leverage", seed=1)
    counts: Counter[str] = Counter()
    options = {
        "n_workers": WORKERS,
        "threads_per_worker": 1,
        "dashboard_address": ":0",
        "silence_logs": logging.CRITICAL,
    }
    dask.config.set(
        {
            "distributed.worker.multiprocessing-method": "forkserver",
            # A cluster closes a nanny whose worker is missing so long after it was missed before: here they go again and again.
            "distributed.deploy.lost-worker-timeout": "1 hour",
        }
    )
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, direct_to_workers=direct) as client,
    ):
        reference = one_fit(world, client)
        assert reference.signal is not None, reference.what
        counts["passes of a fit"] = reference.passes
        killed: set[int] = set()
        while counts["kills"] < kills:
            pids = all_there(cluster, client, killed)
            if not pids:
                # A nanny has not brought its worker back. With fewer workers the sums are cut elsewhere: a new cluster begins.
                counts["nannies lost"] += 1
                break
            everybody = rng.random() < 0.25
            victims = pids if everybody else [int(rng.choice(pids))]
            kill = Kill(victims, int(rng.integers(reference.passes)), float(rng.uniform(0, LONGEST_WAIT)))
            found = one_fit(world, client, kill)
            if not found.killed:
                counts["done before the kill"] += 1
                continue
            killed.update(victims)
            counts["kills"] += 1
            counts["of everybody"] += everybody
            same = found.signal is not None and np.array_equal(found.signal, reference.signal)
            counts["same bits" if same else "OTHER BITS" if found.signal is not None else found.what] += 1
            counts["longest, s"] = max(counts["longest, s"], round(found.seconds))
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
        client.wait_for_workers(WORKERS, timeout=PATIENCE)
        kill = Kill([process.pid for process in started], int(rng.integers(3, 20)), float(rng.uniform(0, LONGEST_WAIT)))
        found = one_fit(world, client, kill)
        for process in started:
            process.kill()
            process.wait()
    late = found.seconds > 2 * WATCH.absent + 60
    return Counter({f"{'LATE ' if late else ''}{found.what} ({found.seconds:.0f} s)": 1})


def run(kills: int = 100, seed: int = 0) -> None:
    """Kill workers in so many fits; any that does not end as it should ends this with exit code 1."""
    rng, bad = np.random.default_rng(seed), 0
    for direct, count in ((None, -(-kills // 2)), (False, kills // 2)):
        left = count
        while left:
            counts = session(min(left, MOST_KILLS), rng, direct)
            print(f"direct_to_workers={direct}: {dict(counts)}", flush=True)
            bad += counts["kills"] - counts["same bits"]
            left -= max(1, counts["kills"])
    last = nobody_left(rng)
    print(f"nobody left: {dict(last)}")
    bad += not all(text.startswith(CLEAR) for text in last)
    if bad:
        raise SystemExit(f"{bad} fits did not end right")
    print("every fit ended right")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_workers")
    parser.add_argument("kills", type=int, nargs="?", default=100, help="fits with a kill (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    run(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
