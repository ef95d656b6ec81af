"""The performance dashboard: ``python -m benchmarks dashboard``, part of ``make bench``.

All ratios are of times measured by turns in one run. The figures go to docs/_generated/performance.md and the picture to
docs/_static/performance.svg; the figures of earlier runs stay in the store, so that a slower commit shows: on the page, and in
``python -m benchmarks history dashboard``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import robustphase as rp
from benchmarks.costs import plain_wirtinger_flow
from benchmarks.history import history_table
from benchmarks.markdown import table
from benchmarks.naive import robust_step
from benchmarks.options import call
from benchmarks.render import publish_rows
from benchmarks.store import DOCS, Row, keep_figures, keep_picture, stored
from benchmarks.timing import peak_extra_bytes, ratio, slope, time_by_turns
from robustphase.atomic import write_text
from robustphase.baselines import METHODS
from robustphase.initialise.start import plain_spectral_start
from robustphase.paper import iterations_for
from robustphase.report.charts import Axis, Series, line_chart, standalone_svg
from robustphase.rows import MemoryRows, project
from robustphase.simulate import World, make_world

PAGE, PICTURE = "_generated/performance.md", "_static/performance.svg"
N, M, LEVEL = 500, 20000, 0.1
#: Sizes of the growth: samples at n = 500, unknowns at m = 20000.
SAMPLES, UNKNOWNS, SAMPLES_FOR_UNKNOWNS = (10000, 20000, 40000), (100, 200, 500, 1000, 2000), 20000
#: Steps of Algorithm 2 at σ = 0.5‖x*‖² (Remark 3.5); of the naive implementation one is measured.
PAPER_STEPS = iterations_for(2.0)


def ours(world: World) -> rp.RobustPhaseRetrieval:
    return rp.RobustPhaseRetrieval(LEVEL).fit(world.A, world.y)


def run() -> None:
    figures: dict[str, Any] = {}
    clean, bad = (make_world(N, M, contamination=e, attack=a, seed=0) for e, a in ((0.0, "none"), (LEVEL, "decoy")))
    source = MemoryRows(bad.A)
    vector = np.random.default_rng(0).standard_normal(N)
    seconds = time_by_turns(
        {
            "ours": lambda: ours(bad),
            "plain": lambda: plain_wirtinger_flow(clean.A, clean.y),
            "median": lambda: METHODS["median_reshaped_wirtinger_flow"](bad.A, bad.y),
            "one pass": lambda: project(source, vector),
            "read": lambda: bad.A.sum(),
        },
        rounds=7,
    )
    model = ours(bad)
    passes = model.history_[-1].passes
    figures["seconds"] = float(np.median(seconds["ours"]))
    figures["passes"] = passes
    figures["error"] = rp.distance(model.signal_, bad.truth, relative=True)
    figures["over plain Wirtinger flow"], figures["the same, best rounds"] = ratio(seconds["ours"], seconds["plain"])
    figures["over median reshaped Wirtinger flow"] = ratio(seconds["ours"], seconds["median"])[0]
    figures["over one pass, for each pass made"] = ratio(seconds["ours"], seconds["one pass"])[0] / passes
    figures["over one reading of A by one thread, for each pass made"] = (
        ratio(seconds["ours"], seconds["read"])[0] / passes
    )
    figures["extra memory, share of A"] = peak_extra_bytes(lambda: ours(bad)) / bad.A.nbytes
    figures["Cauchy least squares over ours"] = cauchy_seconds(bad) / figures["seconds"]
    figures["naive implementation of the paper over ours, at least"] = naive_seconds(bad) / figures["seconds"]
    figures |= complex_figures()
    figures |= growth()
    published(figures)


def cauchy_seconds(world: World) -> float:
    """``scipy.optimize.least_squares(loss="cauchy")`` from a plain spectral start."""
    start = plain_spectral_start(MemoryRows(world.A), world.y)
    begin = time.perf_counter()
    least_squares(
        lambda x: (world.A @ x) ** 2 - world.y,
        start,
        lambda x: 2 * (world.A @ x)[:, np.newaxis] * world.A,
        loss="cauchy",
        f_scale=0.5,
        method="trf",
        xtol=1e-6,
    )
    return time.perf_counter() - begin


def naive_seconds(world: World) -> float:
    """Time of one naive step near the signal, times the steps of a descent; the start would come on top."""
    begin = time.perf_counter()
    robust_step(world.A, world.y, 1.1 * world.truth, LEVEL)
    return PAPER_STEPS * (time.perf_counter() - begin)


def complex_figures() -> dict[str, Any]:
    """Ours in the complex case, against solvephase where it is installed."""
    world = make_world(256, 8192, contamination=0.05, attack="decoy", field="complex", seed=0)
    contestants: dict[str, Any] = {"ours": lambda: rp.RobustPhaseRetrieval(0.05).fit(world.A, world.y)}
    try:
        import solvephase
    except ImportError:
        print("solvephase is not installed (pip install solvephase): not compared")
    else:
        operator = solvephase.MatrixOperator(world.A)
        y = np.maximum(world.y, 0.0)
        for method in ("raf", "taf", "wf"):
            contestants[method] = lambda method=method: solvephase.wirtinger(operator, y, method=method, seed=0)
    seconds = time_by_turns(contestants, rounds=3)
    found = {"complex, n=256, m=8192: seconds": float(np.median(seconds["ours"]))}
    for name in seconds.keys() - {"ours"}:
        found[f"complex: solvephase {name} over ours"] = ratio(seconds[name], seconds["ours"])[0]
    return found


def growth() -> dict[str, Any]:
    """Times and exponents of growth, ours and plain Wirtinger flow."""
    found: dict[str, Any] = {}
    for name, sizes in (("m", [(N, m) for m in SAMPLES]), ("n", [(n, SAMPLES_FOR_UNKNOWNS) for n in UNKNOWNS])):
        times = {"ours": [], "plain": []}
        for n, m in sizes:
            bad = make_world(n, m, contamination=LEVEL, attack="decoy", seed=0)
            clean = make_world(n, m, contamination=0.0, attack="none", seed=0)
            seconds = time_by_turns(
                {"ours": lambda: ours(bad), "plain": lambda: plain_wirtinger_flow(clean.A, clean.y)},  # noqa: B023
                rounds=2,
            )
            for contestant, values in seconds.items():
                times[contestant].append(float(values.min()))
            if not rp.distance(plain_wirtinger_flow(clean.A, clean.y), clean.truth, relative=True) < 1:
                print(f"n={n}, m={m}: plain Wirtinger flow diverged")
                times["plain"][-1] = np.nan
            print(f"n={n}, m={m}: ours {times['ours'][-1]:.2f} s, plain {times['plain'][-1]:.2f} s", flush=True)
        where = [n if name == "n" else m for n, m in sizes]
        found[f"growth in {name}"] = slope(where, times["ours"])
        settled = np.isfinite(times["plain"])
        found[f"growth in {name}, plain"] = slope(np.array(where)[settled], np.array(times["plain"])[settled])
        found[f"sizes {name}"] = where
        found[f"times {name}"] = {who: [t if np.isfinite(t) else None for t in took] for who, took in times.items()}
    return found


def published(figures: dict[str, Any]) -> None:
    """Print, and write the page, the picture and the history."""
    plain = {name: float(value) for name, value in figures.items() if np.isscalar(value)}
    print(*(f"{name}: {value:.3g}" for name, value in plain.items()), sep="\n")
    keep_figures("dashboard", plain)
    publish_rows(PAGE, [{"seeds": [0, 1], "name": name, "value": value} for name, value in plain.items()])
    series = [
        Series(words, np.array(figures["sizes n"]), np.array(figures["times n"][name], dtype=float), style="both")
        for name, words in (("ours", "robustphase under attack"), ("plain", "plain Wirtinger flow"))
    ]
    chart = line_chart(
        series,
        title=f"Whole fit, m = {SAMPLES_FOR_UNKNOWNS}",
        x=Axis("unknowns n", log=True),
        y=Axis("seconds", log=True),
    )
    write_text(DOCS / PICTURE, standalone_svg(chart))
    keep_picture("dashboard", PICTURE)


def render(page: str, rows: Sequence[Row]) -> str:
    """The figures of the last run, and those that are watched of the runs before."""
    words = f"n={N}, m={M}, ε={LEVEL} unless said, {rows[0]['machine']['cores']} cores."
    now = table(["figure", "value"], [(row["name"], row["value"]) for row in rows])
    return f"{words}\n\n{now}\nThe last runs, each with its own engine:\n\n{history_table(stored('dashboard'))}"


if __name__ == "__main__":
    call(run, "dashboard", sys.argv[1:])
