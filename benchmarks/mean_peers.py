"""Robust means that can be installed from PyPI, beside ours: accuracy, their known failures, and time.

``python -m benchmarks mean_peers`` measures ours, and of the others what is importable and has not been measured, and writes
``docs/_generated/mean_peers.md``; with ``--again`` it measures all that are importable. What is stored of the others stays, since
a change of ours does not change them. The peers pin versions that contradict each other and ours, so
give them an environment of their own::

    python -m venv peers
    peers/bin/pip install numpy scipy scikit-learn torch pyod geom-median robust-stats robpy robustat-py
    peers/bin/pip install --no-deps byzfl byzpy
    OMP_NUM_THREADS=1 PYTHONPATH=src:. peers/bin/python -m benchmarks mean_peers --again

Every cell runs in a process of its own, so that a crash or an endless loop is a cell of the table. Each peer is told the
contamination in its own words (``f`` of ``N`` vectors, ``support_fraction``, ``alpha``, ``coverage``, ``contamination``) and
is otherwise called as its documentation does, with more iterations where it offers them.

Not in the table: byzfl and byzpy MDA and SMEA go through all subsets of N - f points, which at these sizes never ends;
scikit-learn-extra, hdmedians and linlearn do not import beside a current NumPy.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from multiprocessing import get_context
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.markdown import table
from benchmarks.mean_worlds import MeanWorld, anisotropic, dkk, far, heavy_subtle, scaled, subtle
from benchmarks.options import call
from benchmarks.render import publish_rows
from benchmarks.store import Row, stored
from robustphase.means import robust_mean

Array = np.ndarray
PAGE = "_generated/mean_peers.md"
SECONDS_PER_CELL = 100.0
SEEDS = 5
#: Differences of medians below this share are noise.
NOISE = 0.01


class Peer(NamedTuple):
    """An estimator: where it comes from, and how it is called with points and a contamination."""

    package: str
    install: str
    estimate: Callable[[Array, float], Any]


class Case(NamedTuple):
    """A world, and the contamination that the estimator is told."""

    make: Callable[[int], MeanWorld]
    told: float


def _part_of(package: str, module: str) -> ModuleType:
    """A submodule without running the root of its package.

    ``import byzfl`` also imports its training framework, which needs a torchvision built for the installed torch; the
    aggregators need NumPy, SciPy and torch alone. A module made from its specification but never executed stands in for the
    root, so that the submodules are found and run as they were shipped.
    """
    if package not in sys.modules:
        spec = find_spec(package)
        if spec is None:
            raise ModuleNotFoundError(package)
        sys.modules[package] = module_from_spec(spec)
    return import_module(f"{package}.{module}")


def _byzfl(name: str, **settings: Any) -> Callable[[Array, float], Any]:
    """An aggregator of byzfl that is told how many of the vectors may be bad."""

    def estimate(points: Array, eps: float) -> Any:
        aggregators = _part_of("byzfl", "aggregators.aggregators")
        return getattr(aggregators, name)(f=round(eps * len(points)), **settings)(points)

    return estimate


def _byzfl_geometric_median(points: Array, eps: float) -> Any:
    # Three iterations are its default; a hundred are enough for Weiszfeld's method to settle.
    return _part_of("byzfl", "aggregators.aggregators").GeometricMedian(nu=1e-6, T=100)(points)


def _byzfl_centered_clipping(points: Array, eps: float) -> Any:
    # Its start must be left at the origin: any other is refused with a TypeError. A radius that half of the points reach.
    radius = float(np.median(np.linalg.norm(points - np.median(points, axis=0), axis=1)))
    return _part_of("byzfl", "aggregators.aggregators").CenteredClipping(L=100, tau=radius)(points)


def _byzpy_caf(**settings: Any) -> Callable[[Array, float], Any]:
    def estimate(points: Array, eps: float) -> Any:
        import torch
        from byzpy.aggregators.norm_wise.caf import CAF

        # It refuses NumPy rows in this setting; tensors share their memory.
        return CAF(round(eps * len(points)), **settings).aggregate([torch.from_numpy(row) for row in points])

    return estimate


def _pyod(module: str, name: str, **settings: Any) -> Callable[[Array, float], Any]:
    def estimate(points: Array, eps: float) -> Any:
        model = getattr(import_module(f"pyod.models.{module}"), name)(contamination=eps, **settings)
        model.fit(points)
        return points[model.labels_ == 0].mean(axis=0)

    return estimate


def _robust_stats(method: str) -> Callable[[Array, float], Any]:
    def estimate(points: Array, eps: float) -> Any:
        from robust_stats import robust_mean as theirs

        return theirs(points.astype(np.float32), eps, method)

    return estimate


def _geom_median(points: Array, eps: float) -> Any:
    from geom_median.numpy import compute_geometric_median

    return compute_geometric_median(points).median


def _robpy_wrapping(points: Array, eps: float) -> Any:
    from robpy.covariance.wrapping import WrappingCovariance

    return WrappingCovariance().fit(points).location_


def _robpy_fast_mcd(points: Array, eps: float) -> Any:
    from robpy.covariance.mcd import FastMCD

    return FastMCD(alpha=1.0 - eps).fit(points).location_


def _robustat_mcd(points: Array, eps: float) -> Any:
    from robustat_py import Mcd

    return Mcd(coverage=1.0 - eps, seed=0).fit(points).location


def _min_cov_det(points: Array, eps: float) -> Any:
    from sklearn.covariance import MinCovDet

    return MinCovDet(support_fraction=1.0 - eps, random_state=0).fit(points).location_


def _trim_mean(points: Array, eps: float) -> Any:
    from scipy.stats import trim_mean

    return trim_mean(points, eps, axis=0)


def _ours(method: str) -> Callable[[Array, float], Any]:
    return lambda points, eps: robust_mean(points, eps, method, nonfinite="drop", random_state=0).location


def _sample_mean(points: Array, eps: float) -> Any:
    return points.mean(axis=0)


PEERS = {
    "**robustphase filter**": Peer("robustphase", "robustphase", _ours("filter")),
    "**robustphase mmw**": Peer("robustphase", "robustphase", _ours("mmw")),
    "sample mean (NumPy)": Peer("numpy", "numpy", _sample_mean),
    "trimmed mean (SciPy)": Peer("scipy", "scipy", _trim_mean),
    "geometric median (geom-median)": Peer("geom_median", "geom-median", _geom_median),
    "byzfl GeometricMedian": Peer("byzfl", "--no-deps byzfl", _byzfl_geometric_median),
    "byzfl TrMean": Peer("byzfl", "--no-deps byzfl", _byzfl("TrMean")),
    "byzfl MultiKrum": Peer("byzfl", "--no-deps byzfl", _byzfl("MultiKrum")),
    "byzfl Meamed": Peer("byzfl", "--no-deps byzfl", _byzfl("Meamed")),
    "byzfl MoNNA": Peer("byzfl", "--no-deps byzfl", _byzfl("MoNNA")),
    "byzfl CenteredClipping": Peer("byzfl", "--no-deps byzfl", _byzfl_centered_clipping),
    "byzfl CAF": Peer("byzfl", "--no-deps byzfl", _byzfl("CAF")),
    "byzpy CAF": Peer("byzpy", "--no-deps byzpy", _byzpy_caf()),
    "byzpy CAF, power_iters=30": Peer("byzpy", "--no-deps byzpy", _byzpy_caf(power_iters=30)),
    "pyod PCA, drop ε": Peer("pyod", "pyod", _pyod("pca", "PCA", random_state=0)),
    "pyod IForest, drop ε": Peer("pyod", "pyod", _pyod("iforest", "IForest", random_state=0)),
    "pyod ECOD, drop ε": Peer("pyod", "pyod", _pyod("ecod", "ECOD")),
    "robust-stats heuristic": Peer("robust_stats", "robust-stats", _robust_stats("heuristic")),
    "robust-stats filter": Peer("robust_stats", "robust-stats", _robust_stats("filter")),
    "robust-stats pgd": Peer("robust_stats", "robust-stats", _robust_stats("pgd")),
    "robpy Wrapping": Peer("robpy", "robpy", _robpy_wrapping),
    "robpy FastMCD": Peer("robpy", "robpy", _robpy_fast_mcd),
    "robustat-py Mcd": Peer("robustat_py", "robustat-py", _robustat_mcd),
    "MinCovDet (scikit-learn)": Peer("sklearn", "scikit-learn", _min_cov_det),
}


def _moved(world: MeanWorld, shift: float) -> MeanWorld:
    return MeanWorld(world.points + shift, world.bad, world.truth + shift)


def _with_nan(world: MeanWorld) -> MeanWorld:
    points = world.points.copy()
    first_good = int(np.flatnonzero(~world.bad)[0])
    points[first_good, 0] = np.nan
    return MeanWorld(points, world.bad | (np.arange(len(points)) == first_good), world.truth)


CASES = {
    "far": Case(lambda seed: far(4000, 200, 0.1, seed), 0.1),
    "subtle": Case(lambda seed: subtle(4000, 200, 0.1, seed), 0.1),
    "dkk": Case(lambda seed: dkk(4000, 200, 0.1, seed), 0.1),
    "heavy + subtle": Case(lambda seed: heavy_subtle(4000, 200, 0.1, seed), 0.1),
    "scaled by 5": Case(lambda seed: scaled(4000, 200, 0.1, seed), 0.1),
    "anisotropic": Case(lambda seed: anisotropic(4000, 200, 0.1, seed), 0.1),
    "shifted by 1e6": Case(lambda seed: _moved(subtle(2000, 100, 0.1, seed), 1e6), 0.1),
    "told 0.02": Case(lambda seed: subtle(2000, 100, 0.1, seed), 0.02),
    "one NaN": Case(lambda seed: _with_nan(subtle(2000, 100, 0.1, seed)), 0.1),
    "n < d": Case(lambda seed: subtle(200, 400, 0.1, seed), 0.1),
}


class Cell(NamedTuple):
    """What one peer did in one world: median error over the oracle's and time over the plain mean's, or its failure."""

    finished: int
    ratio: float
    time: float
    problem: str

    def __str__(self) -> str:
        if self.problem and not self.finished:
            return self.problem
        text = "NaN" if np.isnan(self.ratio) else f"{self.ratio:.2f}"
        return text if self.finished == SEEDS else f"{text} ({self.finished})"


def _measure(peer: Peer, case: Case, send: Any) -> None:
    """In a child process: errors over the oracle's, and time over that of the plain mean."""
    warnings.simplefilter("ignore")
    ratios, times = [], []
    # Imports and compilation are not what is measured; a peer that fails here fails again below, where that is noted.
    with suppress(Exception):
        peer.estimate(subtle(200, 10, case.told, 0).points, case.told)
    try:
        for seed in range(SEEDS):
            world = case.make(seed)
            # Some peers draw from the global generator.
            np.random.seed(seed)  # noqa: NPY002
            # Seconds of this process, not of the clock: the cells may share the machine with other work.
            begin = time.process_time()
            location = np.asarray(peer.estimate(world.points, case.told), dtype=float)
            seconds = time.process_time() - begin
            begin = time.process_time()
            for _ in range(20):
                world.points.mean(axis=0)
            plain = (time.process_time() - begin) / 20
            ratios.append(world.error(location.ravel()) / world.oracle())
            times.append(seconds / plain)
            send.send((ratios, times, ""))
    except BaseException as problem:  # A peer may fail in any way; a panic of Rust is no Exception.
        send.send((ratios, times, type(problem).__name__))


def cell(peer: Peer, case: Case) -> Cell:
    """Run one peer in one world, ``SEEDS`` times or as often as ``SECONDS_PER_CELL`` allows."""
    context = get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(peer, case, send), daemon=True)
    child.start()
    send.close()
    ratios: list[float] = []
    times: list[float] = []
    problem = ""
    deadline = time.monotonic() + SECONDS_PER_CELL
    try:
        while len(ratios) < SEEDS and not problem:
            if not receive.poll(max(0.0, deadline - time.monotonic())):
                problem = f"> {SECONDS_PER_CELL:.0f} s"
            else:
                ratios, times, problem = receive.recv()
    except EOFError:
        problem = "crash"
    child.terminate()
    child.join()
    if not ratios:
        return Cell(0, np.nan, np.nan, problem)
    return Cell(len(ratios), float(np.median(ratios)), float(np.median(times)), problem)


def stored_cells(rows: Sequence[Row]) -> dict[tuple[str, str], Cell]:
    """The cells of stored rows, one row for each estimator."""
    return {
        (row["part"], case): Cell(finished, *(np.nan if x is None else x for x in numbers), problem)
        for row in rows
        for case, (finished, *numbers, problem) in row["cells"].items()
    }


def _as_row(cells: dict[str, Cell]) -> Row:
    finite = {
        case: [None if isinstance(x, float) and not np.isfinite(x) else x for x in c] for case, c in cells.items()
    }
    return {"seeds": [0, SEEDS], "cells": finite}


def _row(name: str, cells: dict[tuple[str, str], Cell]) -> list[str]:
    row = [cells.get((name, case)) for case in CASES]
    if None in row:
        return [name, f"not measured: pip install {PEERS[name].install}", *[""] * len(CASES)]
    times = [c.time for c in row[:3] if np.isfinite(c.time)]
    return [name, *map(str, row), f"{np.median(times):.0f}" if times else ""]


def exceptions(cells: dict[tuple[str, str], Cell], noise: float = NOISE) -> list[str]:
    """Where a peer is better than ``filter`` by more than ``noise``."""
    ours = next(iter(PEERS))
    return [
        f"{case}: {name} {peer.ratio:.3f}, filter {cells[ours, case].ratio:.3f}"
        for (name, case), peer in cells.items()
        if name != ours and peer.ratio * (1.0 + noise) < cells[ours, case].ratio
    ]


def render(page: str, rows: Sequence[Row]) -> str:
    cells = stored_cells(rows)
    better = exceptions(cells)
    verdict = (
        f"No peer is better than `filter` by more than {NOISE:.0%} in any column."
        if not better
        else f"Better than `filter` by more than {NOISE:.0%}: " + "; ".join(better) + "."
    )
    intro = (
        f"Error over that of the mean of the inliers, contamination 0.1 (medians of {SEEDS} seeds; d=200, N=4000, from the "
        "shift on d=100, N=2000, and 200 points in 400 dimensions). Every estimator is told the contamination in its own words; "
        'in "told 0.02" it is told too little. A name in place of a number is the error that the peer raised; NaN is a silent '
        f"one; a number in brackets says how many seeds were finished within {SECONDS_PER_CELL:.0f} s. Time: processor time, "
        "median of the first three columns. The stamp is that of ours; other packages were measured when they were last "
        "installed.\n\n"
    )
    measured = table(["estimator", *CASES, "time / np.mean"], [_row(name, cells) for name in PEERS])
    return f"{intro}{measured}\n{verdict}\n"


def run(again: bool = False) -> None:
    """Measure ours, and other estimators that are importable and not stored yet, or ``again``."""
    known = {row["part"] for row in stored("mean_peers")}
    for name, peer in PEERS.items():
        foreign = peer.package != "robustphase"
        if find_spec(peer.package) is None or (foreign and name in known and not again):
            continue
        cells = {}
        for case, world in CASES.items():
            cells[case] = cell(peer, world)
            print(f"{name:32} {case:16} {cells[case]!s:>14} {cells[case].time:9.0f}", flush=True)
        publish_rows(PAGE, [_as_row(cells)], part=name, foreign=foreign)
    print(*exceptions(stored_cells(stored("mean_peers"))), sep="\n")


if __name__ == "__main__":
    call(run, "mean_peers", sys.argv[1:])
