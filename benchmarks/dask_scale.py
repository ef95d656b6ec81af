"""What the client of a Dask cluster needs for very many samples: ``python -m benchmarks dask_scale [--most 4e6]``.

Rows and responses are made by two worker processes of this machine, so nothing of their number is ever here. For each number of
samples: peak memory of the client while it fits, what travels in one pass over all samples (bytes on the loopback device, which
workers, scheduler and client talk through), seconds, and the error over what the noise leaves to least squares. The first size
is fitted in memory too, and the answers are compared.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from threading import Event, Thread
from time import perf_counter
from typing import Any

import numpy as np

import robustphase as rp
from benchmarks.markdown import table
from benchmarks.options import call
from benchmarks.render import publish

WORKERS, CHUNK = 2, 50_000
NOISE, BAD, FAR = 0.3, 0.08, 30.0
#: Unknowns, and numbers of samples.
SIZES = ((50, 100_000), (50, 1_000_000), (50, 4_000_000), (20, 10_000_000))
#: Seconds between two looks at the memory.
PAUSE = 0.01


@dataclass
class Watched:
    """Peak memory of this process in MB, and bytes that went through the loopback device in every pass."""

    peak: float = 0.0
    passes: list[float] = field(default_factory=list)


def megabytes() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def loopback_bytes() -> float:
    import psutil

    return float(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def data(n: int, m: int) -> tuple[Any, Any, np.ndarray]:
    """Rows and responses that the workers make, and the truth."""
    import dask.array as da

    truth = np.random.default_rng(7).standard_normal(n) / np.sqrt(n)
    sizes = tuple(min(CHUNK, m - low) for low in range(0, m, CHUNK))

    def rows(block_info: Any = None) -> np.ndarray:
        place = block_info[None]
        return np.random.default_rng([1, place["chunk-location"][0]]).standard_normal(place["chunk-shape"])

    def responses(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        rng = np.random.default_rng([2, block_info[None]["chunk-location"][0]])
        y = (block @ truth) ** 2 + NOISE * rng.standard_normal(len(block))
        return np.where(rng.random(len(block)) < BAD, FAR, y)

    A = da.map_blocks(rows, chunks=(sizes, (n,)), dtype=np.float64)
    return A, A.map_blocks(responses, chunks=(sizes,), drop_axis=1, dtype=np.float64), truth


def watched_fit(A: Any, y: Any) -> tuple[Any, Watched]:
    """The fit, and what it took here."""
    watched, over, before = Watched(megabytes()), Event(), [loopback_bytes()]

    def look() -> None:
        while not over.wait(PAUSE):
            watched.peak = max(watched.peak, megabytes())

    def passed(progress: Any) -> None:
        now = loopback_bytes()
        watched.passes.append(now - before[0])
        before[0] = now

    looking = Thread(target=look)
    looking.start()
    try:
        model = rp.RobustPhaseRetrieval(0.1, callback=passed).fit(A, y)
    finally:
        over.set()
        looking.join()
    return model, watched


def run(most: float = 4e6) -> None:
    from distributed import Client, LocalCluster

    rows: list[list[object]] = []
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        # What is imported by the first fit is not the client's need.
        watched_fit(*data(*SIZES[0])[:2])
        for n, m in SIZES:
            if m > most:
                continue
            A, y, truth = data(n, m)
            begin = perf_counter()
            model, watched = watched_fit(A, y)
            seconds = perf_counter() - begin
            error = rp.distance(model.signal_, truth, relative=True)
            expected = NOISE / (2 * np.linalg.norm(truth) ** 2) * np.sqrt(n / (m * (1 - BAD)))
            last = int(np.median(watched.passes[-3:]))
            rows.append(
                [n, m, f"{watched.peak:.0f} MB", f"{last / 1e3:.0f} kB", f"{seconds:.0f} s", f"{error / expected:.2f}"]
            )
            print(rows[-1], flush=True)
            if (n, m) == SIZES[0]:
                here = rp.RobustPhaseRetrieval(0.1).fit(np.asarray(A), np.asarray(y))
                apart = float(np.linalg.norm(model.signal_ - here.signal_) / np.linalg.norm(here.signal_))
    text = "\n".join(
        (
            f"{WORKERS} worker processes on {os.cpu_count()} cores; {BAD:.0%} of the responses are {FAR:g}, noise {NOISE}. "
            f"What travels is counted for all processes together, heartbeats included. The first answer is that of the same "
            f"samples in memory to {apart:.0e}.",
            "",
            table(
                ["n", "m", "memory of the client", "travels in a pass", "seconds", "error over that of least squares"],
                rows,
            ),
        )
    )
    print(text)
    publish("_generated/dask_scale.md", text, seeds=[1, 2])


if __name__ == "__main__":
    call(run, "dask_scale", sys.argv[1:])
