"""Timing by turns: every contestant runs once per round, so a noisy machine is noisy for all of them alike."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence

import numpy as np


def time_by_turns(contestants: Mapping[str, Callable[[], object]], rounds: int = 11) -> dict[str, np.ndarray]:
    """Seconds of each contestant in each round, after one unmeasured round."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for round_ in range(rounds + 1):
        for name, run in contestants.items():
            begin = time.perf_counter()
            run()
            if round_ > 0:
                seconds[name].append(time.perf_counter() - begin)
    return {name: np.array(values) for name, values in seconds.items()}


def ratio(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Ratio of medians, and of minima, of two series from the same rounds."""
    return float(np.median(first) / np.median(second)), float(first.min() / second.min())


def peak_extra_bytes(run: Callable[[], object]) -> int:
    """Most memory that ``run`` held beyond what was there before; NumPy reports its arrays to tracemalloc."""
    run()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def slope(sizes: Sequence[int] | np.ndarray, seconds: Sequence[float] | np.ndarray) -> float:
    """Exponent of growth: least-squares slope in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
