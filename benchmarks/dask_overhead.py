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
from time import perf_counter

import numpy as np

from benchmarks.markdown import table
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.timing import time_by_turns
from robustphase.rows import DaskRows, MemoryRows, RowSource, project, squared_loss_gradient
from robustphase.rows.source import Parts

WORKERS, BLOCKS, ROWS, COLUMNS = 2, 1000, 100, 200
ROUNDS = 11
#: Passes between two looks at the scheduler, and how many looks follow the first.
MANY, LOOKS = 100, 3


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

    busy, m = os.getloadavg()[0], BLOCKS * ROWS
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
            "per-sample results, 0.8 MB": lambda source: project(source, vector),
            "per-sample arrays that the workers know": lambda source: source.reduce(
                lambda block, w: Parts(sums=(np.dot(w, block),)), (y,)
            ),
            "new per-sample arrays, 0.8 MB in and out": fresh,
        }
        rows: list[list[object]] = []
        for name, work in kinds.items():
            seconds = time_by_turns({"here": lambda: work(here), "there": lambda: work(there)}, rounds=ROUNDS)  # noqa: B023
            ms = {place: (1e3 * np.median(values), 1e3 * values.min()) for place, values in seconds.items()}
            beyond = (ms["there"][0] - ms["here"][0], ms["there"][1] - ms["here"][1])
            cells = [f"{middle:.1f} ({least:.1f})" for middle, least in (ms["here"], ms["there"], beyond)]
            rows.append([name, *cells])
            print(rows[-1], flush=True)

        only_a_vector(there, vector)
        looks = [client.run_on_scheduler(scheduler_state)]
        for _ in range(LOOKS):
            for _ in range(MANY):
                project(there, vector)
            looks.append(client.run_on_scheduler(scheduler_state))
        each = (looks[-1]["transitions"] - looks[0]["transitions"]) / (LOOKS * MANY)

        persisted = array.persist()
        begin = perf_counter()
        (persisted.T @ (persisted @ vector)).compute()
        expression = perf_counter() - begin
    rows.append(["(the whole pass, as an expression of Dask arrays)", "", f"{1e3 * expression:.0f}", ""])
    held = [[what, *(f"{look[what]:.1f}" for look in looks)] for what in ("tasks", "groups", "MB")]
    text = "\n".join(
        (
            f"{BLOCKS} blocks of {ROWS} × {COLUMNS} on {WORKERS} worker processes and {os.cpu_count()} cores, with "
            f"{busy:.0f} processes running on average in the minute before; milliseconds per pass, median (least) of {ROUNDS}.",
            "",
            table(["what travels", "in memory", "on the cluster", "overhead"], rows),
            f"{each:.1f} transitions of tasks per pass in the scheduler. What it holds, before and after each {MANY} passes:",
            "",
            table(["", "before", *(f"after {MANY * (k + 1)}" for k in range(LOOKS))], held),
        )
    )
    print(text)
    publish("_generated/dask_overhead.md", text, seeds=[0, 1])


if __name__ == "__main__":
    call(run, "dask_overhead", sys.argv[1:])
