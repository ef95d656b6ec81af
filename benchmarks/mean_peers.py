"""Robust means that can be installed from PyPI, beside ours: accuracy, their known failures, and time.

``python -m benchmarks mean_peers`` runs what is importable, reports the rest as not installed with the command that would
install it, and writes ``docs/_generated/mean_peers.md``. The peers pin versions that contradict each other and ours, so
give them an environment of their own::

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install numpy scipy scikit-learn torch pyod geom-median robust-stats robpy statsmodels
    /tmp/peers/bin/pip install --no-deps byzfl byzpy
    PYTHONPATH=src:. /tmp/peers/bin/python -m benchmarks mean_peers

Every cell runs in a process of its own, so that a crash or an endless loop is a cell of the table.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mean_worlds import MeanWorld, anisotropic, dkk, far, heavy_subtle, scaled, subtle
from robustphase.means import robust_mean

Array = np.ndarray
TARGET = Path(__file__).parents[1] / "docs" / "_generated" / "mean_peers.md"
SECONDS_PER_CELL = 100.0
SEEDS = 2


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
    """A submodule without running the root of its package, which may need things that the submodule does not."""
    if package not in sys.modules:
        spec = find_spec(package)
        stub = ModuleType(package)
        stub.__path__ = list(spec.submodule_search_locations or []) if spec is not None else []
        sys.modules[package] = stub
    return import_module(f"{package}.{module}")


def _byzfl(name: str) -> Callable[[Array, float], Any]:
    def estimate(points: Array, eps: float) -> Any:
        aggregators = _part_of("byzfl", "aggregators.aggregators")
        chosen = getattr(aggregators, name)
        aggregator = chosen() if name == "GeometricMedian" else chosen(f=round(eps * len(points)))
        return aggregator(points)

    return estimate


def _byzpy_caf(points: Array, eps: float) -> Any:
    import torch
    from byzpy.aggregators.norm_wise.caf import CAF

    return CAF(round(eps * len(points))).aggregate([torch.from_numpy(row) for row in points])


def _pyod(module: str, name: str) -> Callable[[Array, float], Any]:
    def estimate(points: Array, eps: float) -> Any:
        model = getattr(import_module(f"pyod.models.{module}"), name)(contamination=eps)
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


def _min_cov_det(points: Array, eps: float) -> Any:
    from sklearn.covariance import MinCovDet

    return MinCovDet(random_state=0).fit(points).location_


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
    "MinCovDet (scikit-learn)": Peer("sklearn", "scikit-learn", _min_cov_det),
    "geometric median (geom-median)": Peer("geom_median", "geom-median", _geom_median),
    "byzfl GeometricMedian": Peer("byzfl", "--no-deps byzfl", _byzfl("GeometricMedian")),
    "byzfl MultiKrum": Peer("byzfl", "--no-deps byzfl", _byzfl("MultiKrum")),
    "byzfl Meamed": Peer("byzfl", "--no-deps byzfl", _byzfl("Meamed")),
    "byzfl MoNNA": Peer("byzfl", "--no-deps byzfl", _byzfl("MoNNA")),
    "byzfl CAF": Peer("byzfl", "--no-deps byzfl", _byzfl("CAF")),
    "byzpy CAF": Peer("byzpy", "--no-deps byzpy", _byzpy_caf),
    "pyod PCA, drop ε": Peer("pyod", "pyod", _pyod("pca", "PCA")),
    "pyod IForest, drop ε": Peer("pyod", "pyod", _pyod("iforest", "IForest")),
    "pyod ECOD, drop ε": Peer("pyod", "pyod", _pyod("ecod", "ECOD")),
    "robust-stats heuristic": Peer("robust_stats", "robust-stats", _robust_stats("heuristic")),
    "robust-stats filter": Peer("robust_stats", "robust-stats", _robust_stats("filter")),
    "robust-stats pgd": Peer("robust_stats", "robust-stats", _robust_stats("pgd")),
    "robpy Wrapping": Peer("robpy", "robpy", _robpy_wrapping),
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


def _measure(peer: Peer, case: Case, send: Any) -> None:
    """In a child process: errors over the oracle's, and time over that of the plain mean."""
    warnings.simplefilter("ignore")
    ratios, times = [], []
    # Imports and compilation are not what is measured.
    with suppress(Exception):
        peer.estimate(subtle(200, 10, case.told, 0).points, case.told)
    try:
        for seed in range(SEEDS):
            world = case.make(seed)
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
    except Exception as problem:
        send.send((ratios, times, type(problem).__name__))


def cell(peer: Peer, case: Case) -> tuple[str, float]:
    """What to write in the table, and the time over that of the plain mean (NaN if there is none)."""
    context = get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(peer, case, send), daemon=True)
    child.start()
    send.close()
    ratios, times, problem = [], [], ""
    deadline = time.monotonic() + SECONDS_PER_CELL
    try:
        while len(ratios) < SEEDS and not problem and receive.poll(max(0.0, deadline - time.monotonic())):
            ratios, times, problem = receive.recv()
    except EOFError:
        problem = "crash"
    child.terminate()
    child.join()
    if problem:
        return problem, np.nan
    if not ratios:
        return f"> {SECONDS_PER_CELL:.0f} s", np.nan
    value = float(np.median(ratios))
    return ("NaN" if np.isnan(value) else f"{value:.2f}"), float(np.median(times))


def run() -> None:
    rows = []
    for name, peer in PEERS.items():
        if find_spec(peer.package) is None:
            rows.append([name, f"not installed: pip install {peer.install}", *[""] * len(CASES)])
            continue
        cells, times = [], []
        for case_name, case in CASES.items():
            text, over_plain = cell(peer, case)
            cells.append(text)
            if case_name in ("subtle", "dkk", "far") and np.isfinite(over_plain):
                times.append(over_plain)
        rows.append([name, *cells, f"{np.median(times):.0f}" if times else ""])
        print("  ".join(rows[-1]), flush=True)
    head = ["estimator", *CASES, "time / np.mean"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(r) + " |" for r in rows)]
    intro = (
        "Error over that of the mean of the inliers, contamination 0.1 (medians of "
        f"{SEEDS} seeds; d=200, N=4000, from the shift on d=100, N=2000, and 200 points in 400 dimensions). A name in place of "
        "a number is the error that was raised; NaN is a silent one. Time: processor time, median of the first three columns.\n\n"
    )
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(intro + "\n".join(lines) + "\n")
    print(f"written: {TARGET.name}")
