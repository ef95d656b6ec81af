"""What the client of a Dask cluster needs for very many samples: ``python -m benchmarks dask_scale [--most 1e7]``.

Rows and responses are made by two worker processes of this machine, so nothing of their number is ever here. For each number of
samples, in a client process and a cluster of its own that has made one small fit before: peak memory of the client while it
fits, what travels in one pass over all samples (bytes on the loopback device, which workers, scheduler and client talk through),
seconds, and the error over what the noise leaves to least squares. The first size is fitted in memory too, and the answers are
compared.
"""

from __future__ import annotations

import logging
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from threading import Event, Thread
from time import perf_counter
from typing import Any, NamedTuple

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


class Measured(NamedTuple):
    """One fit on the workers: what it took, its error over that of least squares, and its answer."""

    peak: float
    travelled: float
    seconds: float
    ratio: float
    signal: np.ndarray


def one_size(n: int, m: int) -> Measured:
    """A fit with a cluster of its own."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster),
    ):
        # What is imported by the first fit is not the client's need.
        watched_fit(*data(*SIZES[0])[:2])
        A, y, truth = data(n, m)
        begin = perf_counter()
        model, watched = watched_fit(A, y)
        seconds = perf_counter() - begin
    error = rp.distance(model.signal_, truth, relative=True)
    expected = NOISE / (2 * np.linalg.norm(truth) ** 2) * np.sqrt(n / (m * (1 - BAD)))
    return Measured(watched.peak, float(np.median(watched.passes[-3:])), seconds, error / expected, model.signal_)


def in_memory(n: int, m: int) -> np.ndarray:
    """The answer to the same samples, all of them here."""
    A, y, _ = data(n, m)
    return np.asarray(rp.RobustPhaseRetrieval(0.1).fit(np.asarray(A), np.asarray(y)).signal_)


def run(most: float = 1e7) -> None:
    # A process that has made a large fit keeps some of its memory, so every size has a new one.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        measured = {size: processes.submit(one_size, *size).result() for size in SIZES if size[1] <= most}
        here = processes.submit(in_memory, *SIZES[0]).result()
    apart = float(np.linalg.norm(measured[SIZES[0]].signal - here) / np.linalg.norm(here))
    rows: list[list[object]] = [
        [
            n,
            f"{m:,}",
            f"{one.peak:.0f} MB",
            f"{one.travelled / 1e3:.0f} kB",
            f"{one.seconds:.0f} s",
            f"{one.ratio:.2f}",
        ]
        for (n, m), one in measured.items()
    ]
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
