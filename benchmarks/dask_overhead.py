"""What a pass over a Dask array costs beyond its arithmetic: ``python -m benchmarks dask_overhead``.

1000 blocks on two worker processes of this machine. By turns: a pass over the same rows in memory, with as many threads as there
are workers, and the pass on the cluster; the difference is the overhead. Three passes, by what travels: only a vector;
per-sample arrays that the workers have seen before; per-sample arrays that are new in every pass, and per-sample results. Then
the scheduler: tasks it was given per pass, tasks it knows and memory its process takes as passes go on. That
process is the client's too, and both keep logs of bounded length: what counts is whether growth comes to an end.

For comparison, the same product as an expression of Dask arrays, which makes nodes for every block in every pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np

from benchmarks.options import call
from benchmarks.timing import time_by_turns
from robustphase.rows import DaskRows, MemoryRows, RowSource, project, squared_loss_gradient
from robustphase.rows.source import Parts

WORKERS, BLOCKS, ROWS, COLUMNS = 2, 1000, 100, 200
#: Passes between two looks at the scheduler, and how many looks follow the first.
MANY, LOOKS = 200, 5


def scheduler_state(dask_scheduler: object) -> dict[str, float]:
    """What the scheduler holds: tasks, groups of tasks, transitions so far, and megabytes of memory."""
    import psutil

    return {
        "tasks": len(dask_scheduler.tasks),  # type: ignore[attr-defined]
        "groups": len(dask_scheduler.task_groups),  # type: ignore[attr-defined]
        "transitions": dask_scheduler.transition_counter,  # type: ignore[attr-defined]
        "MB": psutil.Process().memory_info().rss / 1e6,
    }


def only_a_vector(source: RowSource, vector: np.ndarray) -> np.ndarray:
    """``Aᵀ A v``: a vector there, a vector back."""

    def kernel(block: np.ndarray) -> Parts:
        return Parts(sums=(np.dot(np.dot(block, vector), block),))

    return source.reduce(kernel).sums[0]


def run() -> None:
    import dask.array as da
    from distributed import Client, LocalCluster

    m = BLOCKS * ROWS
    rng = np.random.default_rng(0)
    A, y, vector = rng.standard_normal((m, COLUMNS)), rng.standard_normal(m) ** 2, rng.standard_normal(COLUMNS)
    here = MemoryRows(A, threads=WORKERS)

    def load(block_info: dict[int, dict[str, tuple[int, ...]]] | None = None) -> np.ndarray:
        assert block_info is not None
        seed = block_info[None]["chunk-location"][0]  # type: ignore[index]
        return np.random.default_rng([0, seed]).standard_normal((ROWS, COLUMNS))

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        array = da.map_blocks(load, chunks=((ROWS,) * BLOCKS, (COLUMNS,)), dtype=np.float64)
        there, weights = DaskRows(array, client=client), np.ones(m)

        def fresh(source: RowSource) -> None:
            weights[:] = rng.random(m)
            squared_loss_gradient(source, y, vector, weights)

        kinds: dict[str, Callable[[RowSource], object]] = {
            "a vector": lambda source: only_a_vector(source, vector),
            "per-sample results": lambda source: project(source, vector),
            "per-sample arrays, seen before": lambda source: source.reduce(
                lambda block, w: Parts(sums=(np.dot(w, block),)), (y,)
            ),
            "per-sample arrays, new": fresh,
        }
        print(
            f"{BLOCKS} blocks of {ROWS} x {COLUMNS}, {WORKERS} worker processes; milliseconds per pass, median (least)"
        )
        print(f"{os.cpu_count()} cores, {os.getloadavg()[0]:.1f} processes running on average in the last minute")
        print(f"{'what travels':32s} {'in memory':>16s} {'on the cluster':>16s} {'overhead':>16s}")
        for name, work in kinds.items():
            seconds = time_by_turns({"here": lambda: work(here), "there": lambda: work(there)}, rounds=21)  # noqa: B023
            ms = {place: (1e3 * np.median(values), 1e3 * values.min()) for place, values in seconds.items()}
            beyond = (ms["there"][0] - ms["here"][0], ms["there"][1] - ms["here"][1])
            cells = [f"{middle:8.1f} ({least:5.1f})" for middle, least in (ms["here"], ms["there"], beyond)]
            print(f"{name:32s} {cells[0]:>16s} {cells[1]:>16s} {cells[2]:>16s}", flush=True)

        only_a_vector(there, vector)
        looks = [client.run_on_scheduler(scheduler_state)]
        for _ in range(LOOKS):
            for _ in range(MANY):
                project(there, vector)
            looks.append(client.run_on_scheduler(scheduler_state))
        each = (looks[-1]["transitions"] - looks[0]["transitions"]) / (LOOKS * MANY)
        print(
            f"{each:.1f} transitions of tasks per pass in the scheduler; before and after each {MANY} passes it holds"
        )
        for what in ("tasks", "groups", "MB"):
            print(f"  {what:7s}" + "".join(f"{look[what]:8.1f}" for look in looks))

        persisted = array.persist()
        expression = time_by_turns({"expression": lambda: (persisted.T @ (persisted @ vector)).compute()}, rounds=3)
        print(f"as an expression of Dask arrays: {1e3 * np.median(expression['expression']):.0f} ms per pass")


if __name__ == "__main__":
    call(run, "dask_overhead", sys.argv[1:])
