"""Software beside robustphase that has an environment of its own: R's rrcov and byzfl, on the worlds of the statistics page.

Their figures are stored once and stay, since a change of ours does not change them. rrcov needs ``Rscript`` and the package
(Debian: ``r-cran-rrcov``); byzfl is asked with the Python that has it::

    python -m venv peers
    peers/bin/pip install byzfl scikit-learn threadpoolctl
    python -m benchmarks.statistics_peers rrcov
    PYTHONPATH=src:. peers/bin/python -m benchmarks.statistics_peers byzfl

Both write to the store of ``python -m benchmarks statistics``, which puts the page together.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.poison import KINDS, Poisoned, clean_error, operator_error, poisoned
from benchmarks.render import publish_rows
from benchmarks.store import Row

Array = NDArray[Any]

PAGE = "_generated/statistics.md"
COLLUSIONS = ("opposite", "a little", "half", "far")
AGGREGATORS = ("TrMean", "GeometricMedian", "MultiKrum", "Meamed", "CenteredClipping", "CAF")
#: What R is asked: covariance and distances of CovMrcd, distances of PcaHubert, and the time of both.
SCRIPT = """
suppressMessages(library(rrcov))
size <- scan("size.txt", quiet = TRUE)
X <- matrix(readBin("points.bin", "double", size[1] * size[2]), size[1], size[2], byrow = TRUE)
level <- size[3]
taken <- function(start) sum((proc.time() - start)[1:2])
begin <- proc.time()
found <- CovMrcd(X, alpha = 1 - level)
spent <- taken(begin)
begin <- proc.time()
components <- PcaHubert(X, k = min(10, size[2] - 1), alpha = max(0.5, 1 - level))
spent <- c(spent, taken(begin))
outlying <- pmax(components@sd / components@cutoff.sd, components@od / components@cutoff.od)
writeBin(c(as.vector(getCov(found)), getDistance(found), outlying, spent), "found.bin")
"""


def worlds() -> Iterator[tuple[str, Poisoned, float]]:
    """What rrcov is asked on."""
    for kind in KINDS:
        yield f"{kind}, 1000 × 20, 10% bad", poisoned(kind, 1000, 20, 0.1, "geometric"), 0.1
    for level in (0.2, 0.3):
        yield f"cluster, 2000 × 20, {level:.0%} bad", poisoned("cluster", 2000, 20, level, "geometric"), level
    for count, d in ((500, 10), (100, 50), (50, 100), (200, 100)):
        yield f"cluster, {count} × {d}, 10% bad", poisoned("cluster", count, d, 0.1, "linear"), 0.1


def by_rrcov(world: Poisoned, level: float) -> Row:
    """Ratio of errors, areas and seconds of CovMrcd and PcaHubert."""
    count, d = world.points.shape
    with TemporaryDirectory() as folder:
        here = Path(folder)
        world.points.tofile(here / "points.bin")
        (here / "size.txt").write_text(f"{count} {d} {level}\n")
        (here / "ask.R").write_text(SCRIPT)
        subprocess.run(["Rscript", "ask.R"], cwd=here, check=True, capture_output=True, timeout=120)
        found = np.fromfile(here / "found.bin")
    covariance, distances, outlying, seconds = np.split(found, np.cumsum((d * d, count, count)))
    return {
        "ratio": operator_error(covariance.reshape(d, d), world.truth) / clean_error(world),
        "areas": [float(roc_auc_score(world.bad, score)) for score in (distances, outlying)],
        "seconds": seconds.tolist(),
    }


def colluding(count: int, length: int, bad: int, kind: str) -> Array:
    """Updates of which the first few agree on something else."""
    rng = np.random.default_rng(0)
    signal = rng.standard_normal(length, np.float32)
    points = signal + rng.standard_normal((count, length), np.float32)
    honest = points[bad:]
    if kind == "opposite":
        points[:bad] = -honest.mean(axis=0)
    elif kind == "a little":
        points[:bad] = honest.mean(axis=0) - 0.3 * honest.std(axis=0)
    elif kind == "half":
        points[:bad] = 0.5 * honest.mean(axis=0)
    else:
        points[:bad] = 1e4
    return points


def by_byzfl(count: int, length: int, bad: int, kind: str) -> Row:
    """Errors of byzfl's aggregators over the length of the honest mean, and their times over that of the mean."""
    import byzfl

    points = colluding(count, length, bad, kind)
    honest = points[bad:].mean(axis=0, dtype=np.float64)
    usual = seconds_of(lambda: points.mean(axis=0))
    errors, times = {}, {}
    for name in AGGREGATORS:
        rule = byzfl.CenteredClipping(L=10) if name == "CenteredClipping" else None
        if rule is None:
            rule = byzfl.GeometricMedian() if name == "GeometricMedian" else getattr(byzfl, name)(f=bad)
        begin = time.process_time()
        found = np.asarray(rule(points))
        times[name] = (time.process_time() - begin) / usual
        errors[name] = float(np.linalg.norm(found - honest) / np.linalg.norm(honest))
    return {"errors": errors, "times": times}


def seconds_of(task: Callable[[], object]) -> float:
    """CPU time, median of three rounds."""
    taken = []
    for _ in range(3):
        begin = time.process_time()
        task()
        taken.append(time.process_time() - begin)
    return float(np.median(taken))


def main(which: str) -> None:
    if which == "rrcov":
        rows = [{"label": label, **by_rrcov(world, level)} for label, world, level in worlds()]
    elif which == "byzfl":
        rows = [{"label": f"50 × 200000, 10 | {kind}", **by_byzfl(50, 200_000, 10, kind)} for kind in COLLUSIONS]
    else:
        raise SystemExit("python -m benchmarks.statistics_peers rrcov|byzfl")
    publish_rows(PAGE, rows, part=which, foreign=True)
    print(*rows, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
