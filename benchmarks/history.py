"""Figures of earlier runs, and which became worse: ``python -m benchmarks history [NAME ...]``.

It exits with 1 if a watched figure became worse in the last run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.markdown import table
from benchmarks.registry import BENCHMARKS
from benchmarks.store import Row, stored

#: Figures of which more is worse, that must not grow by more than a quarter from one run to the next.
WATCHED = ("over plain Wirtinger flow", "the same, best rounds")
WORSE = 1.25


def figures(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each figure, oldest first."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if "figure" in row:
            found.setdefault(row["figure"], []).append(row)
    return found


def regressed(runs: Sequence[Row]) -> bool:
    """Whether the last run of a watched figure is worse than the one before; runs on another number of cores are not compared."""
    if len(runs) < 2 or runs[-1]["figure"] not in WATCHED:
        return False
    before, after = runs[-2:]
    return before["machine"]["cores"] == after["machine"]["cores"] and after["value"] > WORSE * before["value"]


def history_table(rows: Iterable[Row], names: Sequence[str] = WATCHED, last: int = 8) -> str:
    """The last runs of some figures, one line for each run, with what became worse in bold."""
    found = figures(rows)
    runs: dict[tuple[Any, ...], dict[str, str]] = {}
    for name in names:
        series = found.get(name, [])
        for number, row in enumerate(series):
            shown = f"{row['value']:.3g}"
            worse = regressed(series[: number + 1])
            key = (row["date"], row["commit"], row["engine"], row["machine"]["cores"])
            runs.setdefault(key, {})[name] = f"**{shown}, slower**" if worse else shown
    lines = [[*map(str, key), *(cells.get(name, "") for name in names)] for key, cells in list(runs.items())[-last:]]
    return table(["date", "commit", "engine", "cores", *names], lines)


def main(names: Sequence[str] = ()) -> int:
    """Print the last four runs of every figure beside each other; 1 if a watched one became worse, otherwise 0."""
    found = 0
    for name in names or BENCHMARKS:
        for figure, runs in figures(stored(name)).items():
            values = " -> ".join(f"{row['value']:.3g}" for row in runs[-4:])
            worse = regressed(runs)
            found += worse
            print(f"{name}, {figure}: {values}{'  WORSE' if worse else ''}")
    return 1 if found else 0
