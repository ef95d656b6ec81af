"""What a robust mean costs, in units of the plain mean of the same array."""

from __future__ import annotations

import numpy as np

from benchmarks.mean_worlds import subtle
from benchmarks.timing import peak_extra_bytes, ratio, slope, time_by_turns
from robustphase.means import robust_mean
from robustphase.means.simultaneous import column_means
from robustphase.rows import MemoryRows
from robustphase.rows.threads import allowed_threads

EPS = 0.1
SIZES = ((10_000, 1_000), (100_000, 500))
#: For the slopes: doublings of one size with the other fixed.
COUNTS, DIMENSION = (10_000, 20_000, 40_000, 80_000), 250
DIMENSIONS, COUNT = (125, 250, 500, 1_000), 20_000


def run() -> None:
    print(f"robust means, subtle cluster, contamination {EPS}, float64, {allowed_threads()} threads; medians (minima)")
    for N, d in SIZES:
        costs(N, d)
    for name, sizes in (("N", [(N, DIMENSION) for N in COUNTS]), ("d", [(COUNT, d) for d in DIMENSIONS])):
        growth(name, sizes)
    all_columns()


def costs(N: int, d: int) -> None:
    """Filter over plain mean, mmw over filter, and the memory that each needs."""
    X = subtle(N, d, EPS, 0).points
    contestants = {
        "plain": lambda: X.mean(axis=0),
        "filter": lambda: robust_mean(X, EPS),
        "mmw": lambda: robust_mean(X, EPS, "mmw", random_state=0),
    }
    seconds = time_by_turns(contestants, rounds=7)
    print(f"  N={N}, d={d}: X.mean(axis=0) takes {np.median(seconds['plain']) * 1e3:.1f} ms")
    for name, other in (("filter", "plain"), ("mmw", "filter"), ("mmw", "plain")):
        median, least = ratio(seconds[name], seconds[other])
        print(f"    {name:6s} / {other:6s} {median:6.1f} ({least:.1f})")
    for name in ("filter", "mmw"):
        print(f"    {name:6s} extra memory {peak_extra_bytes(contestants[name]) / X.nbytes:.1%} of X")


def growth(name: str, sizes: list[tuple[int, int]]) -> None:
    """Exponent of growth in one size."""
    varied = [N if name == "N" else d for N, d in sizes]
    clouds = [subtle(N, d, EPS, 0).points for N, d in sizes]
    for method in ("filter", "mmw"):
        runs = {str(k): (lambda X=X, m=method: robust_mean(X, EPS, m, random_state=0)) for k, X in enumerate(clouds)}
        seconds = time_by_turns(runs, rounds=5)
        least = [float(values.min()) for values in seconds.values()]
        print(f"  {method}: time grows like {name}^{slope(varied, least):.2f} over {varied[0]}..{varied[-1]}")


def all_columns(m: int = 46_000, n: int = 100) -> None:
    """The n means of Procedure 1's mean configuration at once."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((m, n)), rng.standard_normal(n) / np.sqrt(n)
    y = (A @ x) ** 2 + rng.standard_t(3, m)
    bad = rng.choice(m, m // 20, replace=False)
    A[bad], y[bad] = 0.5 * A[bad] + 3 / np.sqrt(n), 9.0
    seconds = time_by_turns({"columns": lambda: column_means(MemoryRows(A), y, 0.05)}, rounds=1)["columns"]
    print(f"  {n} column means of {m} samples simultaneously: {seconds[0]:.1f} s")
