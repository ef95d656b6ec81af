"""The whole fit of complex data under every adversary: ``python -m benchmarks complex_recovery [--seeds 1] [--settings 0 4]``.

Writes docs/_generated/complex_recovery.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.options import call
from benchmarks.recovery import Settings, measure, page_text
from benchmarks.store import Row

PAGE = "_generated/complex_recovery.md"
SETTINGS: Settings = (
    {"contamination": 0.05},
    {"contamination": 0.1},
    {"contamination": 0.05, "noise_mean": 3.0},
    {"contamination": 0.1, "noise_mean": 3.0},
    {"contamination": 0.05, "m": 1000},
    {"contamination": 0.05, "told": 0.025},
    {"contamination": 0.05, "told": 0.1},
    {"contamination": 0.05, "told": "auto"},
)
#: Settings that are measured unless told: complex fits take long.
USUAL = (0, 1, 3, 4, 7)


def render(page: str, rows: Sequence[Row]) -> str:
    return page_text("Complex data", SETTINGS, rows)


def run(seeds: int = 1, settings: tuple[int, ...] = USUAL) -> None:
    measure("complex_recovery", PAGE, "complex", seeds, tuple(SETTINGS[index] for index in settings))


if __name__ == "__main__":
    call(run, "complex_recovery", sys.argv[1:])
