"""What a comparison found: tidy rows, summaries, tables."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robustphase.atomic import replacing
from robustphase.experiments.methods import ORACLE, OURS
from robustphase.experiments.store import Run, WorldKey
from robustphase.formatting import short_number

#: The method in whose time all times are given.
PLAIN = "wirtinger_flow"


class Group(NamedTuple):
    """Summary of the runs that share some fields.

    Attributes
    ----------
    key : dict
        The fields and their values.
    runs, survived, raised : int
        How many runs, how many ended with an error of at most 0.25, how many raised an error.
    survival : float
        Share of the runs that survived.
    median_ratio, worst_ratio : float
        Of the error over the oracle's; infinite where a method raised.
    median_seconds : float
        Processor time.
    time_ratio : float
        Median of the time over that of Wirtinger flow in the same world; NaN if that was not run.
    converged : float
        Share of the runs that say they converged.
    """

    key: dict[str, Any]
    runs: int
    survived: int
    raised: int
    survival: float
    median_ratio: float
    worst_ratio: float
    median_seconds: float
    time_ratio: float
    converged: float


class Loss(NamedTuple):
    """A world in which our method is lost and some rival is not."""

    world: WorldKey
    error: float
    rivals: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods in the same worlds.

    Attributes
    ----------
    runs : tuple of Run
        One per method and world.
    """

    runs: tuple[Run, ...]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the order of their first runs."""
        return tuple(dict.fromkeys(run.method for run in self.runs))

    def columns(self) -> dict[str, list[Any]]:
        """The runs as columns: ``pandas.DataFrame(comparison.columns())`` is the tidy table."""
        return {name: [getattr(run, name) for run in self.runs] for name in Run._fields}

    def only(self, **fields: Any) -> Comparison:
        """The runs whose fields have these values, for example ``only(method="robustphase", contamination=0.1)``."""
        _check_fields(fields)
        return Comparison(tuple(r for r in self.runs if all(getattr(r, k) == v for k, v in fields.items())))

    def summary(self, by: Sequence[str] = ("method", "contamination")) -> list[Group]:
        """Survival, accuracy and time of every group of runs.

        Parameters
        ----------
        by : sequence of str
            Fields of `Run` that make a group.

        Returns
        -------
        list of Group
            In the order in which the groups first occur.
        """
        by = (by,) if isinstance(by, str) else tuple(by)
        _check_fields(by)
        plain = {run.world: run.seconds for run in self.runs if run.method == PLAIN}
        groups: dict[tuple[Any, ...], list[Run]] = {}
        for run in self.runs:
            groups.setdefault(tuple(getattr(run, name) for name in by), []).append(run)
        return [_summarise(dict(zip(by, key, strict=True)), runs, plain) for key, runs in groups.items()]

    def losses(self, method: str = OURS[0]) -> list[Loss]:
        """Worlds in which ``method`` is lost although a rival survives; the oracle and our other forms are no rivals."""
        by_world: dict[WorldKey, list[Run]] = {}
        for run in self.runs:
            by_world.setdefault(run.world, []).append(run)
        found = []
        for world, runs in by_world.items():
            rivals = tuple(r.method for r in runs if r.survived and r.method not in (ORACLE, *OURS, method))
            found += [Loss(world, r.error, rivals) for r in runs if r.method == method and not r.survived and rivals]
        return found

    def markdown(self, by: Sequence[str] = ("method", "contamination")) -> str:
        """The summary as a table in Markdown, time beside accuracy."""
        by = (by,) if isinstance(by, str) else tuple(by)
        columns: dict[str, Callable[[Group], str]] = {
            "survived": lambda g: f"{g.survived} of {g.runs} ({g.survival:.0%})",
            "median ratio": lambda g: short_number(g.median_ratio),
            "worst ratio": lambda g: short_number(g.worst_ratio),
            "median seconds": lambda g: short_number(g.median_seconds),
            "time / Wirtinger flow": lambda g: short_number(g.time_ratio),
            "raised": lambda g: str(g.raised) if g.raised else "",
        }
        groups = self.summary(by)
        return table(
            [*by, *columns], [[*map(str, g.key.values()), *(show(g) for show in columns.values())] for g in groups]
        )

    def attack_table(self, methods: Sequence[str] | None = None) -> str:
        """Who survives which attack, as a table in Markdown.

        A cell is a tick where all runs survive, and otherwise the number of survivors at each contamination, separated by
        strokes. Bold: more survivors than ours in the same row.
        """
        chosen = [m for m in self.methods if m != ORACLE] if methods is None else list(methods)
        groups = {tuple(g.key.values()): g for g in self.summary(("attack", "method", "contamination"))}
        levels = list(dict.fromkeys(run.contamination for run in self.runs))
        attacks = list(dict.fromkeys(run.attack for run in self.runs))

        def survivors(attack: str, method: str) -> list[Group]:
            return [groups[attack, method, level] for level in levels if (attack, method, level) in groups]

        def cell(attack: str, method: str) -> str:
            row = survivors(attack, method)
            text = "✓" if all(g.survived == g.runs for g in row) else "/".join(str(g.survived) for g in row)
            ours = survivors(attack, OURS[0])
            better = method not in OURS and any(g.survived > o.survived for g, o in zip(row, ours, strict=False))
            return f"**{text}**" if better else text

        return table(
            ["attack", *chosen], [[attack, *(cell(attack, method) for method in chosen)] for attack in attacks]
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table, as ``.csv`` or ``.parquet``; the file appears whole or not at all."""
        path = Path(path)
        writers = {".csv": self._write_csv, ".parquet": self._write_parquet}
        if path.suffix not in writers:
            raise ValueError(f"path must end in .csv or .parquet, got {path.name!r}.")
        with replacing(path) as temporary:
            writers[path.suffix](temporary)

    def _write_csv(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Run._fields)
            writer.writerows(self.runs)

    def _write_parquet(self, path: Path) -> None:
        try:
            # By name: the package has no types, and need not be there.
            pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise ImportError(
                "a .parquet file needs pyarrow; install it with: pip install 'robustphase[parquet]', or write a .csv file."
            ) from error
        parquet.write_table(pyarrow.table(self.columns()), path)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _summarise(key: dict[str, Any], runs: list[Run], plain: dict[WorldKey, float]) -> Group:
    times = [run.seconds / max(plain[run.world], 1e-9) for run in runs if run.world in plain]
    survived = sum(run.survived for run in runs)
    return Group(
        key=key,
        runs=len(runs),
        survived=survived,
        raised=sum(run.raised for run in runs),
        survival=survived / len(runs),
        median_ratio=float(np.median([run.ratio for run in runs])),
        worst_ratio=max(run.ratio for run in runs),
        median_seconds=float(np.median([run.seconds for run in runs])),
        time_ratio=float(np.median(times)) if times else np.nan,
        converged=sum(run.converged for run in runs) / len(runs),
    )


def _check_fields(names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in Run._fields]
    if unknown:
        raise ValueError(f"a run has no field {unknown[0]!r}; its fields are {', '.join(Run._fields)}.")
