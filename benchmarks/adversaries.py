"""Measure what every adversary does to two plain methods, and write the table that docs/adversaries.md includes.

The methods are the textbook ones without any protection: the spectral start (leading eigenvector of Σ y a aᵀ, scaled by
the mean of y), and descent on the least-squares loss, from that start and from the truth itself. The second start shows
whether the truth is still a minimum at all. A line search makes every step a descent step, so a bad number is the fault
of the data and not of a step size. Run with ``python -m benchmarks adversaries``; it takes about twenty seconds.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.options import call
from benchmarks.render import publish
from robustphase.simulate import ADVERSARIES, World, make_world

LEVELS = (0.05, 0.1, 0.2)
SEEDS = (1, 2, 3, 4, 5)
SIZE = {"n": 60, "m": 2400, "noise": "student", "noise_std": 0.5}
PAGE = "_generated/adversaries.md"


def plain_start(A, y):
    moment = (A.T * y) @ A / len(y)
    if not np.isfinite(moment).all():
        return np.full(A.shape[1], np.nan)
    return np.linalg.eigh(moment)[1][:, -1] * np.sqrt(max(y.mean(), 0.0))


def loss(A, y, x):
    return np.mean(((A @ x) ** 2 - y) ** 2)


def plain_descent(A, y, x, steps=300):
    value = loss(A, y, x)
    length = 0.1 / max(x @ x, 1e-12)
    for _ in range(steps):
        s = A @ x
        gradient = A.T @ ((s**2 - y) * s) * (4 / len(y))
        square = gradient @ gradient
        if not np.isfinite(square):
            return np.full_like(x, np.nan)
        while (new := loss(A, y, x - length * gradient)) > value - 0.5 * length * square and length > 1e-300:
            length /= 2
        if value - new <= 1e-10 * value:
            break
        x, value, length = x - length * gradient, new, 1.5 * length
    return x


def error(x, truth):
    """Relative distance up to sign; a result that is not finite counts as infinitely wrong."""
    distance = min(np.linalg.norm(x - truth), np.linalg.norm(x + truth)) / np.linalg.norm(truth)
    return distance if np.isfinite(distance) else np.inf


def errors(world: World) -> tuple[float, float, float]:
    A, y, truth = world.A, world.y, world.truth
    with np.errstate(all="ignore"):
        start = plain_start(A, y)
        results = (start, plain_descent(A, y, start), plain_descent(A, y, truth))
        return tuple(error(x, truth) for x in results)


def measure(attack: str, contamination: float) -> np.ndarray:
    worlds = (make_world(**SIZE, attack=attack, contamination=contamination, seed=seed) for seed in SEEDS)
    return np.median([errors(world) for world in worlds], axis=0)


def harmful(measured: np.ndarray, clean: np.ndarray) -> np.ndarray:
    """Start more than 1.5 times, or descent more than twice, as wrong as on clean data."""
    return measured > np.array([1.5, 2.0, 2.0]) * clean


def cell(value: float, bad: bool) -> str:
    text = "not finite" if np.isinf(value) else f"{value:.2f}" if value < 10 else f"{value:.0f}"
    return f"**{text}**" if bad else text


def line(name: str, group: str, measured: list[np.ndarray], clean: np.ndarray) -> str:
    cells = [cell(v, b) for errors in measured for v, b in zip(errors, harmful(errors, clean), strict=True)]
    return "| " + " | ".join([name, group, *cells]) + " |"


def table() -> tuple[str, list[str]]:
    """Return the table, and the names of the adversaries that harm nothing at any level."""
    clean = measure("none", 0.0)
    results = {name: [measure(name, level) for level in LEVELS] for name in ADVERSARIES}
    headings = [f"{what}, ε={level:g}" for level in LEVELS for what in ("start", "descent", "from truth")]
    lines = [
        f"Median relative error over {len(SEEDS)} seeds, n = {SIZE['n']}, m = {SIZE['m']}, Student noise with "
        f"σ = {SIZE['noise_std']:g}‖x*‖². Bold: start more than 1.5 times, or descent more than twice, as wrong as on "
        "clean data.",
        "",
        "| " + " | ".join(["adversary", "group", *headings]) + " |",
        "|---" * (2 + len(headings)) + "|",
        line("none (clean data)", "", [clean] * len(LEVELS), clean),
    ]
    lines += [line(f"`{name}`", ADVERSARIES[name].group, measured, clean) for name, measured in results.items()]
    harmless = [name for name, measured in results.items() if not any(harmful(e, clean).any() for e in measured)]
    return "\n".join(lines) + "\n", harmless


def run() -> None:
    text, harmless = table()
    publish(PAGE, text, seeds=[SEEDS[0], len(SEEDS)])
    print(text)
    if harmless:
        raise SystemExit(f"These adversaries harm neither method at any level; strengthen or drop them: {harmless}")


if __name__ == "__main__":
    call(run, "adversaries", sys.argv[1:])
