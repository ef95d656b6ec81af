"""``robustphase compare``: methods against adversaries, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from robustphase.cli.app import as_command, as_request, file_option, flag, general_options, option
from robustphase.cli.options import ATTACKS, COUNT, NOISES, Level, Listed, Name, workers, world_noise, world_size
from robustphase.cli.outputs import check_distinct, check_outputs, check_writable, note_written, replacing
from robustphase.cli.terminal import Screen, screen, shown
from robustphase.experiments import Comparison, ComparisonInterrupted
from robustphase.experiments import compare as run_comparison
from robustphase.experiments.methods import known_methods
from robustphase.formatting import number

WHO, WHERE, SIZE, OUTPUT = "Who takes part", "Against what", "In which worlds", "Output"
#: Ours, the plain method, and the strongest rivals.
USUAL = "robustphase,wirtinger_flow,median_reshaped_wirtinger_flow,cauchy_least_squares"


@dataclass(frozen=True)
class ComparisonRequest:
    """What ``robustphase compare`` is asked for; ``settings`` are the other arguments of the comparison."""

    methods: tuple[str, ...]
    attacks: tuple[str, ...]
    contaminations: tuple[float, ...]
    noises: tuple[str, ...]
    out: Path | None
    table: Path | None
    overwrite: bool
    settings: dict[str, Any]

    @property
    def runs(self) -> Path | None:
        """The file that is written run by run, if there is one."""
        return self.out if self.out is not None and self.out.suffix == ".csv" else None

    def check_outputs(self) -> None:
        """Refuse files of no known form, one for two things, what is there already, or where nothing can be written.

        Runs in a .csv are continued and never written over: the comparison refuses a file that it cannot continue.
        """
        if self.out is not None and self.out.suffix not in (".csv", ".parquet"):
            raise click.UsageError(f"--out must end in .csv or .parquet; {shown(self.out.name)} does not.")
        check_distinct(**{"--out": self.out, "--table": self.table})
        if self.runs is not None:
            check_writable(self.runs)
        check_outputs(None if self.runs is not None else self.out, self.table, overwrite=self.overwrite)


@as_command(
    "compare",
    notes=f"Methods: {', '.join(known_methods())}. Attacks and noises: robustphase simulate --list.",
    example="""
robustphase compare --attacks decoy,leverage,erase --contaminations 0.05,0.1,0.2 --seeds 2 --out runs.csv
robustphase compare --methods all --attacks all --out runs.csv --table table.md
""",
)
@option(
    WHO,
    "--methods",
    type=Listed(Name(known_methods()), everything=known_methods()),
    default=USUAL,
    help="Which methods; listed below.",
)
@option(
    WHERE,
    "--attacks",
    type=Listed(Name(ATTACKS), everything=ATTACKS[1:]),
    default="all",
    help="What the adversary does.",
)
@option(
    WHERE,
    "--contaminations",
    type=Listed(Level(), metavar="LEVEL,..."),
    default="0.1",
    help="Shares of the samples it may rewrite.",
)
@option(WHERE, "--noises", type=Listed(Name(NOISES)), default="student", help="Laws of the noise.")
@world_noise(WHERE)
@world_size(SIZE, n=100, m=5000)
@option(SIZE, "--seeds", type=COUNT, metavar="COUNT", default=3, help="Worlds of each kind.")
@workers(SIZE)
@file_option(
    OUTPUT,
    "--out",
    metavar="RUNS.csv",
    help="Keep every run: .csv is written run by run and continued by the same command; .parquet is written at the end.",
)
@file_option(
    OUTPUT,
    "--table",
    metavar="TABLE.md",
    help="Write the summary, and who survives which attack, in Markdown.",
)
@flag(
    OUTPUT,
    "--overwrite",
    help="Write over a table or .parquet file that is there already. Runs in a .csv are continued, never written over.",
)
@general_options
def compare(**options: Any) -> None:
    """Run methods against adversaries and tabulate who survives.

    Every method sees the same worlds. A run survives if its relative error is at most 0.25. Ratios are to the oracle, which is
    told the samples that are clean; below 1 is possible where noise has heavy tails.
    """
    asked = as_request(ComparisonRequest, options)
    asked.check_outputs()
    see, grid = screen(), (asked.methods, asked.attacks, asked.contaminations, asked.noises)
    try:
        with see.counting("comparing") as tell:
            found = run_comparison(*grid, out=asked.runs, progress=tell, **asked.settings)
    except ComparisonInterrupted as stop:
        _tabulate(see, stop.partial)
        kept = (
            "nothing was written"
            if asked.runs is None
            else f"the runs so far are in {shown(asked.runs)}, and the same command continues"
        )
        raise KeyboardInterrupt(kept) from stop
    if asked.out is not None:
        if asked.runs is None:
            found.write(asked.out)
        note_written(asked.out)
    if asked.table is not None:
        _write_table(asked.table, found)
    _tabulate(see, found)
    for path, what in ((asked.out, "runs"), (asked.table, "table")):
        if path is not None:
            see.say(f"{what}: {shown(path)}")


def _tabulate(see: Screen, found: Comparison) -> None:
    """Survival, accuracy and time of every method, and what it is lost under."""
    columns: dict[str, Callable[[Any], str]] = {
        "method": lambda g: str(g.key["method"]),
        "level": lambda g: f"{g.key['contamination']:g}",
        "survived": lambda g: f"{g.survived}/{g.runs}",
        "median ratio": lambda g: number(g.median_ratio),
        "worst": lambda g: number(g.worst_ratio),
        "seconds": lambda g: number(g.median_seconds, 2),
        "lost under": lambda g: lost.get((g.key["method"], g.key["contamination"]), ""),
    }
    groups = found.summary(("method", "contamination"))
    if not groups:
        return
    lost = _lost_under(found)
    rows = [[show(group) for show in columns.values()] for group in groups]
    see.table(tuple(columns), rows, left=("method", "lost under"))
    for loss in found.losses():
        world = loss.world
        see.say(
            f"robustphase is lost under {world.attack} at {world.contamination:g} ({world.noise}, seed {world.seed}), where "
            f"{' and '.join(loss.rivals)} survive{'s' if len(loss.rivals) == 1 else ''}."
        )


def _lost_under(found: Comparison) -> dict[tuple[str, float], str]:
    """Attacks that a method does not always survive, by method and level."""
    lost: dict[tuple[str, float], list[str]] = {}
    for group in found.summary(("method", "contamination", "attack")):
        if group.survived < group.runs:
            key = (group.key["method"], group.key["contamination"])
            lost.setdefault(key, []).append(str(group.key["attack"]))
    return {key: _shortened(names) for key, names in lost.items()}


def _shortened(names: list[str], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _write_table(path: Path, found: Comparison) -> None:
    text = f"{found.markdown()}\n{found.attack_table()}"
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
