"""``robustphase attack``: search for the attack that hurts a method most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from robustphase.cli.app import as_command, command_line, file_option, flag, general_options, option
from robustphase.cli.options import COUNT, NOISES, Level, Name, workers, world_noise, world_size
from robustphase.cli.outputs import check_distinct, check_outputs, check_writable, note_written, replacing
from robustphase.cli.terminal import Screen, screen, shown
from robustphase.experiments import RedTeamInterrupted, RedTeamResult
from robustphase.experiments import red_team as search
from robustphase.experiments.methods import ATTACKABLE, find_estimator

WHO, WORLDS, EFFORT, OUTPUT = "Who is attacked", "In which worlds", "How hard", "Output"


@as_command(
    "attack",
    notes=f"Methods: {', '.join(ATTACKABLE)}. Noises: robustphase simulate --list. Any method of your own can be attacked from "
    "Python: robustphase.experiments.red_team.",
    example="""
robustphase attack --contamination 0.1 --budget 300 --store search.json
robustphase attack --method median_reshaped_wirtinger_flow --n 20 --m 1000 --budget 150 --report worst.md
""",
)
@option(
    WHO,
    "--method",
    type=Name(ATTACKABLE),
    default="ours",
    help="Who is attacked: ours, the paper's own algorithm, or a baseline; listed below.",
)
@option(
    WORLDS,
    "--contamination",
    type=Level(),
    default=0.1,
    help="Share of the samples that attacks may rewrite; the method is told.",
)
@world_size(WORLDS, n=50, m=2500)
@option(WORLDS, "--noise", type=Name(NOISES), default="gaussian", help="Law of the noise.")
@world_noise(WORLDS)
@option(WORLDS, "--field", type=click.Choice(("real", "complex")), default="real", help="Field of the signal.")
@option(
    EFFORT,
    "--budget",
    type=COUNT,
    metavar="COUNT",
    default=300,
    help="Most fits of the search; more find worse attacks.",
)
@option(
    EFFORT,
    "--confirm",
    type=click.IntRange(min=0),
    metavar="COUNT",
    default=8,
    help="Fresh worlds in which the five worst attacks are run again, so many fits each.",
)
@option(
    EFFORT,
    "--seeds-per-attack",
    type=COUNT,
    metavar="COUNT",
    default=3,
    help="Worlds over which the error of an attack is averaged.",
)
@option(EFFORT, "--restarts", type=COUNT, metavar="COUNT", default=3, help="Searches that share the budget.")
@option(EFFORT, "--seed", type=click.IntRange(min=0), metavar="NUMBER", default=0, help="The same seed finds the same.")
@workers(EFFORT)
@file_option(
    OUTPUT,
    "--store",
    metavar="SEARCH.json",
    help="Keep every attack that was tried; after an interruption the same command goes on from there.",
)
@file_option(
    OUTPUT,
    "--report",
    metavar="REPORT.md",
    help="Write the worst attacks in Markdown, with the lines that make the worst one again.",
)
@flag(
    OUTPUT,
    "--overwrite",
    help="Write over a report that is there already. What --store names is continued, never written over.",
)
@general_options
def attack(
    method: str, store: Path | None, report: Path | None, overwrite: bool, quiet: bool, debug: bool, **settings: Any
) -> None:
    """Search for the attack that hurts a method most.

    Many attacks are tried on simulated data, each changing what it rewrites and how, and the search learns from those under which
    the method erred most. Errors are relative to the signal: 0.1 is good, 1 is lost. The last line says what no method avoids.
    """
    check_distinct(**{"--store": store, "--report": report})
    if store is not None:
        check_writable(store)
    check_outputs(report, overwrite=overwrite)
    if settings["budget"] < 2 * settings["seeds_per_attack"]:
        raise click.UsageError(
            f"--budget must be at least {2 * settings['seeds_per_attack']}, twice --seeds-per-attack."
        )
    see = screen()
    attacked = find_estimator(method, settings["contamination"], noise_mean_known=settings["noise_mean"] == 0)
    try:
        with see.counting("attacking") as tell:
            found = search(attacked, store=store, progress=tell, **settings)
    except RedTeamInterrupted as stop:
        if stop.partial is not None:
            _show(see, method, stop.partial)
        raise KeyboardInterrupt(_how_to_go_on(store)) from stop
    if store is not None:
        note_written(store)
    if report is not None:
        with replacing(report) as temporary:
            temporary.write_text(found.report(), encoding="utf-8")
    _show(see, method, found)
    for path, what in ((store, "search"), (report, "report")):
        if path is not None:
            see.say(f"{what}: {shown(path)}")


def _how_to_go_on(store: Path | None) -> str:
    if store is None:
        return "nothing was written. With --store SEARCH.json a search can be continued"
    return f"what was tried is in {shown(store)}. To go on: {command_line()}"


def _show(see: Screen, method: str, found: RedTeamResult) -> None:
    rows = [
        [
            str(number),
            f"{attack.error:.3f}" if attack.fresh_errors else "not run",
            f"{sum(attack.search_errors) / len(attack.search_errors):.3f}",
            attack.attack.describe(),
        ]
        for number, attack in enumerate(found.attacks, 1)
    ]
    see.table(("attack", "fresh worlds", "search", "what it does"), rows, left=("what it does",))
    see.facts(
        [
            ("attacked", method),
            ("fits", str(found.fits)),
            ("error without an attack", f"{found.clean_error:.3f}"),
            ("error under the worst attack", f"{found.error:.3f}"),
            ("error that no method avoids", f"{found.unavoidable_error:.3f}"),
        ]
    )
