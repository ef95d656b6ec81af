"""The cost model of docs/performance.md against runs: ``python -m benchmarks cost_model``.

The seconds that every stage takes for a pass and a gigabyte are read off one fit in memory. Fits of other sizes, and one on a
Dask cluster of two worker processes, are then predicted from the passes they make, the bytes these read, and for the cluster
the overhead of a pass; of very many samples the pilot's passes read its own rows alone. Beside each prediction stands what was
measured. Writes docs/_generated/cost_model.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import robustphase as rp
from benchmarks.options import call
from benchmarks.render import publish
from robustphase.recover.pilot import pilot_rows
from robustphase.rows import DaskRows, MemoryRows, RowSource, project
from robustphase.simulate import World, make_world

PAGE = "_generated/cost_model.md"
#: Unknowns and samples: of the fit that sets the prices, and of the predicted ones.
PRICED, PREDICTED = (500, 20000), ((100, 20000), (200, 100000), (1000, 40000), (500, 80000), (2000, 30000))
ON_CLUSTER = (500, 40000)
ROUNDS = 3


def world_of(size: tuple[int, int]) -> World:
    return make_world(*size, contamination=0.1, attack="decoy", seed=0)


def fit(rows: object, world: World) -> rp.RobustPhaseRetrieval:
    return rp.RobustPhaseRetrieval(0.1).fit(rows, world.y)


def stages(model: rp.RobustPhaseRetrieval) -> dict[str, tuple[int, float]]:
    """Passes and seconds of each stage."""
    found: dict[str, tuple[int, float]] = {}
    passes, seconds = 0, 0.0
    for line in model.history_:
        before = found.get(line.stage, (0, 0.0))
        found[line.stage] = (before[0] + line.passes - passes, before[1] + line.seconds - seconds)
        passes, seconds = line.passes, line.seconds
    return found


def fastest(run: Callable[[], rp.RobustPhaseRetrieval]) -> tuple[float, rp.RobustPhaseRetrieval]:
    """Least seconds of a few runs after one that is not counted, and the model of the fastest."""
    run()
    timed = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        model = run()
        timed.append((time.perf_counter() - begin, model))
    return min(timed, key=lambda pair: pair[0])


class Prices(NamedTuple):
    """Seconds for a pass and a byte of each stage, and how many passes the priced fit made."""

    seconds: dict[str, float]
    passes: dict[str, int]


def predicted(model: rp.RobustPhaseRetrieval, world: World, prices: Prices) -> float:
    """Seconds, from the passes that the stages made; those of a pilot are taken to be as many as in the priced fit."""
    made, known = stages(model), prices.seconds | {"all samples": prices.seconds["likelihood"]}
    total = sum(passes * world.A.nbytes * known[name] for name, (passes, _) in made.items() if passes)
    if "all samples" in made:
        pilot = pilot_rows(*world.A.shape, 0)
        assert pilot is not None
        searched = sum(prices.passes[name] * prices.seconds[name] for name in made if name in prices.passes)
        total += pilot.size / len(world.A) * world.A.nbytes * searched
    return total


def overhead(there: RowSource, here: RowSource) -> float:
    """Seconds of a pass beyond its arithmetic, with numbers per sample coming back."""
    vector, differences = np.ones(here.shape[1]), []
    for _ in range(10):
        begin = time.perf_counter()
        project(there, vector)
        middle = time.perf_counter()
        project(here, vector)
        differences.append(2 * middle - begin - time.perf_counter())
    return float(np.median(differences))


def run() -> None:
    world = world_of(PRICED)
    _, model = fastest(lambda: fit(world.A, world))
    made = {name: parts for name, parts in stages(model).items() if parts[0]}
    seconds_of = {name: s / (passes * world.A.nbytes) for name, (passes, s) in made.items()}
    prices = Prices(seconds_of, {name: passes for name, (passes, _) in made.items() if name != "certificate"})
    lines = [
        "Seconds for a pass and a GB, read off n = {}, m = {}: {}.".format(
            *PRICED, ", ".join(f"{name} {price * 1e9:.2f}" for name, price in prices.seconds.items())
        ),
        "",
        "| n | m | where | passes | predicted | measured |",
        "|---|---|---|---|---|---|",
    ]
    for size in PREDICTED:
        world = world_of(size)
        seconds, model = fastest(lambda: fit(world.A, world))  # noqa: B023
        lines.append(
            f"| {size[0]} | {size[1]} | memory | {model.history_[-1].passes} | {predicted(model, world, prices):.2f} s | "
            f"{seconds:.2f} s |"
        )
        print(lines[-1], flush=True)
    lines.append(on_cluster(prices))
    print("\n".join(lines))
    publish(PAGE, "\n".join(lines) + "\n", seeds=[0, 1])


def on_cluster(prices: Prices) -> str:
    """The line of a fit on two worker processes."""
    import dask.array as da
    from distributed import Client, LocalCluster

    world = world_of(ON_CLUSTER)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        there = DaskRows(da.from_array(world.A, chunks=(1000, ON_CLUSTER[0])), client=client)
        extra = overhead(there, MemoryRows(world.A))
        before = there.passes
        seconds, model = fastest(lambda: fit(there, world))
    made = (there.passes - before) // (ROUNDS + 1)
    expected = predicted(model, world, prices) + made * extra
    return f"| {ON_CLUSTER[0]} | {ON_CLUSTER[1]} | 2 workers | {made} | {expected:.2f} s | {seconds:.2f} s |"


if __name__ == "__main__":
    call(run, "cost_model", sys.argv[1:])
