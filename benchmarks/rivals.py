"""The methods of the literature beside ours, on thirteen settings of clean, noisy and corrupted data.

``python -m benchmarks rivals [--seeds 3]`` writes docs/_generated/rivals.md. Every method runs with its defaults; ours is
told the contamination (5% also where there is none) and nothing else, the others need not be told anything. Settings 5 to 10t
were chosen before our method existed, in search of what breaks the others.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import robustphase as rp
from benchmarks.options import call
from benchmarks.render import publish
from benchmarks.timing import ratio, time_by_turns
from robustphase.experiments.methods import oracle_least_squares

PAGE = "_generated/rivals.md"
N, M = 100, 2000
NOISE = rp.simulate.student(4.1)
#: Errors below this are shown as exact; larger ones than this as lost altogether.
EXACT, LOST = 1e-5, 1e3
OURS = ("**robustphase**", '**robustphase**, `noise_mean="unknown"`')
ORACLES = ("oracle: least squares without bad rows", "oracle with background")


class Sample(NamedTuple):
    """Data, the signal behind it, and which rows nobody rewrote."""

    A: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    clean: np.ndarray


class Setting(NamedTuple):
    """Noise of the clean samples, and what the adversary does to the others: ``corrupt(A, y, x, w, u, rng)`` in place.

    A and y are the bad samples; x is the signal, w a unit vector orthogonal to it, u any unit vector.
    """

    words: str
    noise_std: float = 0.0
    noise_mean: float = 0.0
    corrupt: Callable[..., None] | None = None


def large_responses(A, y, x, w, u, rng):
    y[:] = 100


def one_direction(A, y, x, w, u, rng):
    A[:] = 10 * u + 0.01 * rng.standard_normal(A.shape)
    y[:] = 100


def one_direction_moderate(A, y, x, w, u, rng):
    A[:] = 10 * u
    y[:] = 8


def erased_signal(A, y, x, w, u, rng):
    A[:] = 10 * x
    y[:] = 0


def decoy(A, y, x, w, u, rng):
    other = rng.standard_normal(x.size)
    y[:] = (A @ (2 * other / np.linalg.norm(other))) ** 2


def component(A, y, x, w, u, rng):
    A += np.outer(3 - A @ w, w)
    y[:] = 5


def leverage(A, y, x, w, u, rng, size=10):
    A[:] = size * w + x
    y[:] = 2.5


def strong_leverage(A, y, x, w, u, rng):
    leverage(A, y, x, w, u, rng, size=100)


SETTINGS = {
    "1": Setting("noiseless"),
    "2": Setting("Student-t noise (4.1 degrees of freedom), σ = 0.5", 0.5),
    "2b": Setting("the same, σ = 2", 2.0),
    "2c": Setting("as 2, noise mean 1", 0.5, 1.0),
    "3": Setting("bad samples have y = 100", corrupt=large_responses),
    "4": Setting("a = 10u + tiny, y = 100", corrupt=one_direction),
    "4t": Setting("as 4, noise of 2", 0.5, corrupt=one_direction),
    "5": Setting("a = 10u, y = 8", corrupt=one_direction_moderate),
    "6": Setting("a = 10x, y = 0", corrupt=erased_signal),
    "7": Setting("y from another signal of norm 2", corrupt=decoy),
    "8": Setting("component 3 of a along w, y = 5", corrupt=component),
    "9t": Setting("a = 10w + x, y = 2.5, noise of 2", 0.5, corrupt=leverage),
    "10t": Setting("a = 100w + x, y = 2.5, noise of 2", 0.5, corrupt=strong_leverage),
}
USUAL = [(0.05, name) for name in SETTINGS]
MORE = [
    (0.1, "5"),
    (0.2, "5"),
    (0.3, "5"),
    (0.2, "7"),
    (0.2, "4t"),
    (0.1, "9t"),
    (0.2, "9t"),
    (0.3, "9t"),
    (0.2, "10t"),
]


def draw(name: str, contamination: float, seed: int) -> Sample:
    setting, rng = SETTINGS[name], np.random.default_rng([seed, 20260])
    x, u, w = (vector / np.linalg.norm(vector) for vector in rng.standard_normal((3, N)))
    w -= (w @ x) * x
    w /= np.linalg.norm(w)
    A = rng.standard_normal((M, N))
    y = (A @ x) ** 2 + rp.simulate.draw_noise(NOISE, M, std=setting.noise_std, mean=setting.noise_mean, seed=rng)
    clean = np.ones(M, bool)
    if setting.corrupt:
        bad = rng.permutation(M)[: int(contamination * M)]
        rows, responses = A[bad], y[bad]
        setting.corrupt(rows, responses, x, w, u, rng)
        A[bad], y[bad], clean[bad] = rows, responses, False
    return Sample(A, y, x, clean)


def ours(sample: Sample, contamination: float, noise_mean: str) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rp.RobustPhaseRetrieval(contamination, noise_mean=noise_mean).fit(sample.A, sample.y).signal_


def oracle(sample: Sample, background: bool) -> np.ndarray:
    """Least squares from the truth, told which rows are clean."""
    start = 0.0 if background else None
    return oracle_least_squares(sample.A[sample.clean], sample.y[sample.clean], sample.truth, background=start)


Contestant = Callable[[Sample, float], np.ndarray]


def contestants() -> dict[str, Contestant]:
    rivals: dict[str, Contestant] = {
        f"`{name}`": lambda sample, _, method=method: method(sample.A, sample.y).signal
        for name, method in rp.baselines.METHODS.items()
    }
    return (
        rivals
        | {name: lambda s, e, mean=mean: ours(s, e, mean) for name, mean in zip(OURS, ("zero", "unknown"), strict=True)}
        | {name: lambda s, e, free=free: oracle(s, free) for name, free in zip(ORACLES, (False, True), strict=True)}
    )


def one_run(name: str, contamination: float, seed: int) -> list[float]:
    """Error of every contestant."""
    sample = draw(name, contamination, seed)
    return [rp.distance(solve(sample, contamination), sample.truth) for solve in contestants().values()]


def measure(cells: list[tuple[float, str]], seeds: int, pool: Parallel) -> np.ndarray:
    """Errors, shape (cells, seeds, contestants)."""
    jobs = [(name, level, seed) for level, name in cells for seed in range(seeds)]
    flat = pool(delayed(one_run)(*job) for job in jobs)
    return np.array(flat).reshape(len(cells), seeds, -1)


def shown(errors: np.ndarray) -> str:
    """Median over the seeds, and the largest where it stands out."""
    middle, most = float(np.median(errors)), float(errors.max())
    stands_out = most > 3 * max(middle, EXACT) and number(most) != number(middle)
    return number(middle) + (f" (max {number(most)})" if stands_out else "")


def number(error: float) -> str:
    if error < EXACT:
        return "exact"
    if error > LOST:
        return "div"
    return f"{error:.3f}" if error >= 0.001 else f"{error:.0e}"


def times() -> dict[str, float]:
    """Time of every contestant over that of plain Wirtinger flow, in setting 2."""
    sample = draw("2", 0.05, 0)
    runs = {
        name: lambda solve=solve: solve(sample, 0.05) for name, solve in contestants().items() if name not in ORACLES
    }
    with threadpool_limits(1):
        seconds = time_by_turns(runs, rounds=5)
    plain = next(iter(seconds.values()))
    return {name: ratio(taken, plain)[0] for name, taken in seconds.items()}


def table(title: str, heads: list[str], errors: np.ndarray, last: dict[str, float] | None) -> list[str]:
    ends = ["time / WF"] if last is not None else []
    lines = [
        title,
        "",
        "| " + " | ".join(["method", *heads, *ends]) + " |",
        "|---" * (1 + len(heads) + len(ends)) + "|",
    ]
    for index, name in enumerate(contestants()):
        cells = [shown(cell[:, index]) for cell in errors]
        end = [f"{last[name]:.1f}" if name in last else "-"] if last is not None else []
        lines.append("| " + " | ".join([name, *cells, *end]) + " |")
    return lines


def beaten(heads: list[str], errors: np.ndarray) -> list[str]:
    """Where a rival was closer to the signal than one of our two rows on every seed, with the median of the ratios."""
    names = list(contestants())
    first = names.index(OURS[0])
    found = []
    for head, cell in zip(heads, np.maximum(errors, EXACT), strict=True):
        for ours_at, words in ((first, ""), (first + 1, ", mean unknown")):
            ratios = cell[:, :first] / cell[:, ours_at : ours_at + 1]
            found += [
                f"{head}{words}: {names[rival]} by {1 - np.median(ratios[:, rival]):.1%}"
                for rival in np.flatnonzero((ratios < 1).all(axis=0))
            ]
    return found


def run(seeds: int = 3) -> None:
    with Parallel(n_jobs=os.cpu_count()) as pool:
        usual, more = measure(USUAL, seeds, pool), measure(MORE, seeds, pool)
    heads = [name for _, name in USUAL]
    more_heads = [f"{level:.0%}, {name}" for level, name in MORE]
    lines = [
        f"n = {N}, m = {M}, ‖x‖ = 1, real Gaussian rows, {seeds} seeds. Median error; the largest in brackets where it is more "
        f"than three times that. *exact*: below {EXACT:.0e}; *div*: above {LOST:.0f}. Every method with its defaults; ours is "
        "told the contamination, 5% also in the settings without any. Time: setting 2, one thread, over plain Wirtinger flow.",
        "",
        "Settings: " + "; ".join(f"**{name}** {setting.words}" for name, setting in SETTINGS.items()) + ".",
        "",
        *table("**5% of the samples are bad** (none in 1, 2, 2b, 2c)", heads, usual, times()),
        "",
        *table("**More of them**", more_heads, more, None),
        "",
    ]
    worse = beaten(heads, usual) + beaten(more_heads, more)
    lines += [
        f"Where a rival was better than ours on each of the {seeds} seeds: " + ("; ".join(worse) or "nowhere") + "."
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    publish(PAGE, text, seeds=[0, seeds])


if __name__ == "__main__":
    call(run, "rivals", sys.argv[1:])
