"""Robust covariance, outliers and aggregation beside what scikit-learn offers, on planted poison; writes the docs tables.

R's rrcov and byzfl have environments of their own; ``benchmarks/statistics_peers.py`` stores their figures.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import EllipticEnvelope, LedoitWolf
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import robustphase as rp
from benchmarks.markdown import put_together
from benchmarks.options import call
from benchmarks.poison import FURTHER_KINDS, KINDS, Poisoned, clean_error, operator_error, poisoned
from benchmarks.render import publish
from benchmarks.statistics_peers import AGGREGATORS, COLLUSIONS, colluding
from benchmarks.store import Row
from benchmarks.timing import time_by_turns

Array = NDArray[Any]

PAGE = "_generated/statistics.md"
#: Dimensions up to which MinCovDet is asked everywhere; beyond, a fit takes half a minute.
SMALL = 20
SIZES = ((500, 10), (1000, 20), (100, 50), (50, 100), (200, 100), (800, 200), (5000, 100), (4000, 1000), (1000, 2000))
LEVELS = (0.05, 0.1, 0.2, 0.3)


def our_envelope(points: Array, level: float) -> tuple[Array, Array]:
    """Covariance and outlyingness."""
    model = rp.RobustEnvelope(contamination=level).fit(points)
    return model.covariance_, model.outlyingness_


def elliptic(points: Array, level: float) -> tuple[Array, Array]:
    model = EllipticEnvelope(contamination=level, random_state=0).fit(points)
    return model.covariance_, model.dist_


def shrunk(points: Array, level: float) -> tuple[Array, Array]:
    model = LedoitWolf().fit(points)
    return model.covariance_, model.mahalanobis(points)


def forest(points: Array, level: float) -> tuple[None, Array]:
    return None, -IsolationForest(random_state=0).fit(points).score_samples(points)


Method = Callable[[Array, float], tuple[Array | None, Array]]
METHODS: dict[str, Method] = {
    "`RobustEnvelope`": our_envelope,
    "MinCovDet": elliptic,
    "LedoitWolf": shrunk,
    "IsolationForest": forest,
}


def cell(method: Method, world: Poisoned, level: float) -> str:
    """Error over that of the clean sample covariance, area under the curve, CPU seconds."""
    begin = time.process_time()
    covariance, scores = method(world.points, level)
    seconds = time.process_time() - begin
    error = "" if covariance is None else f"{operator_error(covariance, world.truth) / clean_error(world):.2f}"
    return f"{error or '-'} · {roc_auc_score(world.bad, scores):.3f} · {seconds:.2g} s"


def row(label: str, world: Poisoned, level: float, methods: dict[str, Method]) -> str:
    cells = [cell(METHODS[name], world, level) if name in methods else "" for name in METHODS]
    return f"| {label} | " + " | ".join(cells) + " |"


def head(label: str) -> list[str]:
    return [f"| {label} | " + " | ".join(METHODS) + " |", "|---" * (1 + len(METHODS)) + "|"]


def without(name: str) -> dict[str, Method]:
    return {key: value for key, value in METHODS.items() if key != name}


def kinds_table() -> Iterator[str]:
    yield from head("5000 × 200, 10% bad")
    for spectrum in ("identity", "geometric", "spiked", "toeplitz"):
        for kind in KINDS:
            # MinCovDet takes half a minute here, so it is asked once.
            asked = METHODS if (spectrum, kind) == ("identity", "cluster") else without("MinCovDet")
            yield row(f"{kind}, {spectrum}", poisoned(kind, 5000, 200, 0.1, spectrum), 0.1, asked)


def further_table() -> Iterator[str]:
    yield from head("5000 × 200, 10% bad")
    for kind in FURTHER_KINDS:
        yield row(f"{kind}, spiked", poisoned(kind, 5000, 200, 0.1, "spiked"), 0.1, without("MinCovDet"))


def small_table() -> Iterator[str]:
    yield from head("1000 × 20, 10% bad")
    for kind in KINDS:
        yield row(kind, poisoned(kind, 1000, 20, 0.1, "geometric"), 0.1, METHODS)


def sizes_table() -> Iterator[str]:
    yield from head("tight cluster, 10% bad")
    for count, d in SIZES:
        asked = METHODS if d <= SMALL else without("MinCovDet")
        yield row(f"{count} × {d}", poisoned("cluster", count, d, 0.1, "linear"), 0.1, asked)


def levels_table() -> Iterator[str]:
    yield from head("2000 × 20")
    for kind in ("cluster", "shift", "flip"):
        for level in LEVELS:
            yield row(f"{kind}, {level:.0%} bad", poisoned(kind, 2000, 20, level, "geometric"), level, METHODS)


def real_worlds() -> Iterator[tuple[str, Poisoned]]:
    """Data sets of scikit-learn with a tenth of planted rows.

    A tight group amid the data along a quiet direction, or rows put together from columns of different rows.
    """
    rng = np.random.default_rng(0)
    for name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits), ("wine", load_wine)):
        clean = load().data
        clean = clean[:, clean.std(axis=0) > 0]
        clean = (clean - clean.mean(axis=0)) / clean.std(axis=0)
        values, vectors = np.linalg.eigh(np.cov(clean.T))
        quiet = vectors[:, len(values) // 2]
        planted = clean.mean(axis=0) + 4 * np.sqrt(values[len(values) // 2]) * quiet
        count = len(clean) // 9
        group = planted + 0.1 * clean[rng.choice(len(clean), count)]
        shuffled = rng.permuted(clean, axis=0)[:count]
        for kind, rows in (("group", group), ("shuffled", shuffled)):
            points = np.vstack((clean, rows))
            bad = np.arange(len(points)) >= len(clean)
            label = f"{name}, {points.shape[0]} × {points.shape[1]}, {kind}"
            yield label, Poisoned(points, bad, np.cov(clean.T, bias=True))


def real_table() -> Iterator[str]:
    yield from head("error / largest variance · area · time")
    for label, world in real_worlds():
        cells = []
        for method in METHODS.values():
            begin = time.process_time()
            covariance, scores = method(world.points, 0.1)
            seconds = time.process_time() - begin
            error = (
                "-"
                if covariance is None
                else f"{operator_error(covariance, world.truth) / np.linalg.norm(world.truth, 2):.2f}"
            )
            cells.append(f"{error} · {roc_auc_score(world.bad, scores):.3f} · {seconds:.2g} s")
        yield f"| {label} | " + " | ".join(cells) + " |"


def novel_table() -> Iterator[str]:
    yield "| digits: one class, and a tenth of another | `RobustEnvelope` | EllipticEnvelope | IsolationForest |"
    yield "|---|---|---|---|"
    data, labels = load_digits(return_X_y=True)
    for inside, outside in ((0, 1), (4, 9), (7, 3)):
        good = data[labels == inside]
        points = np.vstack((good, data[labels == outside][: len(good) // 9]))
        points = points[:, points.std(axis=0) > 0]
        bad = np.arange(len(points)) >= len(good)
        areas = [roc_auc_score(bad, method(points, 0.1)[1]) for method in (our_envelope, elliptic, forest)]
        yield (
            f"| {inside} and {outside}, {points.shape[0]} × {points.shape[1]} | "
            + " | ".join(f"{a:.3f}" for a in areas)
            + " |"
        )


def aggregation_table() -> Iterator[str]:
    yield "| updates, colluding | what they send | error of the mean | coordinate median | `aggregate` | time over `X.mean(0)` |"
    yield "|---|---|---|---|---|---|"
    for count, length, bad in ((20, 10**6, 4), (50, 200_000, 10)):
        for kind in COLLUSIONS:
            points = colluding(count, length, bad, kind)
            honest = points[bad:].mean(axis=0, dtype=np.float64)
            size = np.linalg.norm(honest)
            found = rp.aggregate(points, 0.2)
            errors = [
                np.linalg.norm(x - honest) / size for x in (points.mean(axis=0), np.median(points, axis=0), found)
            ]
            seconds = time_by_turns(
                {"mean": lambda p=points: p.mean(axis=0), "ours": lambda p=points: rp.aggregate(p, 0.2)}, rounds=5
            )
            times = np.median(seconds["ours"]) / np.median(seconds["mean"])
            shown = " | ".join(f"{error:.2g}" for error in errors)
            yield f"| {count} × {length}, {bad} | {kind} | {shown} | {times:.0f} |"


def render(page: str, rows: list[Row]) -> str:
    """The tables of our own run, and below them those of software that has an environment of its own."""
    text = put_together([row for row in rows if row["part"] == ""])
    covariances = [row for row in rows if row["part"] == "rrcov"]
    aggregators = [row for row in rows if row["part"] == "byzfl"]
    lines: list[str] = []
    if covariances:
        lines += [
            "R's rrcov 1.7: error over that of good rows · area · CPU seconds of `CovMrcd`, and area · seconds of `PcaHubert` "
            "(10 components), each told the share of bad rows:",
            "",
            "| rows | CovMrcd | PcaHubert |",
            "|---|---|---|",
        ]
        for row in covariances:
            (ours, theirs), (first, second) = row["areas"], row["seconds"]
            lines.append(
                f"| {row['label']} | {row['ratio']:.2f} · {ours:.3f} · {first:.2g} s | {theirs:.3f} · {second:.2g} s |"
            )
    if aggregators:
        lines += ["", "byzfl 0.0.11 on such updates, told how many are bad: error · time over `X.mean(0)`:", ""]
        lines += ["| updates, colluding | what they send | " + " | ".join(AGGREGATORS) + " |"]
        lines += ["|---" * (2 + len(AGGREGATORS)) + "|"]
        for row in aggregators:
            cells = [f"{row['errors'][name]:.2g} · {row['times'][name]:.0f}" for name in AGGREGATORS]
            lines.append(f"| {row['label']} | " + " | ".join(cells) + " |")
    return "\n".join([text.rstrip("\n"), "", *lines]) + "\n" if lines else text


def run() -> None:
    with warnings.catch_warnings():
        # MinCovDet says on many of these that its covariance is not of full rank, or that it did not improve.
        warnings.simplefilter("ignore")
        parts = [
            "Operator-norm error over that of the sample covariance of the good rows · area under the curve for telling bad rows "
            "· CPU seconds on one thread. One draw of each. The column MinCovDet is that of `EllipticEnvelope`, which uses it.",
            "",
            *kinds_table(),
            "",
            "Kinds that the estimators were not made with:",
            "",
            *further_table(),
            "",
            *small_table(),
            "",
            *sizes_table(),
            "",
            *levels_table(),
            "",
            "Data sets that scikit-learn ships, standardised, with a tenth of planted rows: a tight group four deviations along "
            "a direction of middling variance, or rows whose columns come from different rows. Error against the covariance of "
            "the rows that were there before.",
            "",
            *real_table(),
            "",
            "Areas where the outliers are another class, each row its own, and not poison:",
            "",
            *novel_table(),
            "",
            "Aggregation of single-precision updates; errors over the length of the mean of the honest ones.",
            "",
            *aggregation_table(),
        ]
    text = "\n".join(parts) + "\n"
    publish(PAGE, text, seeds=[0, 1])
    print(text)


if __name__ == "__main__":
    call(run, "statistics", sys.argv[1:])
