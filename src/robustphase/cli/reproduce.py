"""``robustphase reproduce``: the paper's claims as experiments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from robustphase.cli.app import as_command, as_request, file_option, flag, general_options, option
from robustphase.cli.options import workers
from robustphase.cli.outputs import OutputError, check_distinct, check_new, check_outputs, check_writable, replacing
from robustphase.cli.terminal import Screen, screen, shown
from robustphase.experiments.reproduce import CLAIMS, ReproductionInterrupted, Verdict, write_page
from robustphase.experiments.reproduce import reproduce as run_claims
from robustphase.experiments.reproduce.run import choose, places
from robustphase.experiments.reproduce.verdict import Experiment
from robustphase.report import Axis, Series, line_chart, standalone_svg

WHAT, OUTPUT = "What to run", "Output"
#: Exit code when a claim agrees neither with the paper nor with a known correction.
CONTRADICTED = 1
#: How the library announces an experiment.
_NEXT = re.compile(r"\d+ of \d+: ")


@dataclass(frozen=True)
class ReproductionRequest:
    """What ``robustphase reproduce`` is asked for."""

    claims: tuple[str, ...]
    quick: bool
    workers: int | None
    resume: bool
    folder: Path | None
    page: Path | None
    overwrite: bool

    def check_usage(self) -> None:
        """Refuse claims that there are not, options that do not go together, and what cannot or must not be written."""
        if self.resume and self.folder is None:
            raise click.UsageError("--resume needs the --folder that the verdicts are in.")
        try:
            chosen = choose(self.claims or None, quick=self.quick)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        check_outputs(self.page, overwrite=self.overwrite)
        if self.folder is not None:
            self._check_folder(self.folder, chosen)

    def _check_folder(self, folder: Path, chosen: Sequence[Experiment]) -> None:
        """Refuse to write over verdicts that are not continued, and over drawings that no verdicts tell of."""
        verdicts, *drawings = places(folder, chosen, quick=self.quick)
        for path in (verdicts, *drawings):
            check_distinct(**{"--page": self.page, "--folder": path})
        if not verdicts.exists():
            for path in drawings:
                check_new(path, overwrite=self.overwrite)
            return
        check_writable(verdicts)
        if not self.resume and not self.overwrite:
            raise OutputError(
                f"{shown(verdicts)} holds verdicts already and is left as it is. Add --resume to take them over, choose another "
                "folder, or add --overwrite."
            )


@as_command(
    "reproduce",
    notes=f"Claims: {'; '.join(CLAIMS)}. A claim holds; or it is an erratum, where what is printed is wrong and the correction "
    "in the errata agrees with the measurement; or it fails, and the exit code is 1.",
    example="""
robustphase reproduce --quick
robustphase reproduce "Theorem 3.1" "Lemma 2.1" --folder reproduced
""",
)
@click.argument("claims", metavar="[CLAIM]...", nargs=-1)
@flag(WHAT, "--quick", help="Small sizes: under three minutes on two cores.")
@workers(WHAT)
@flag(
    WHAT,
    "--resume",
    help="Take over the verdicts that --folder already has, and run only the rest.",
)
@option(
    OUTPUT,
    "--folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the verdicts, with their numbers, and the figures go.",
)
@file_option(
    OUTPUT,
    "--page",
    metavar="PAGE.md",
    help="Write the verdicts as a table in Markdown.",
)
@flag(
    OUTPUT,
    "--overwrite",
    help="Write over a page, and over verdicts and figures in --folder, that are there already.",
)
@general_options
def reproduce(**options: Any) -> None:
    """Check the paper's claims, one experiment per statement.

    CLAIM is a name such as "Theorem 3.1"; without any, all are checked, which takes under an hour on two cores. Each prints the
    claim, what was measured with its confidence interval, and the verdict.
    """
    asked = as_request(ReproductionRequest, options)
    asked.check_usage()
    see, folder = screen(), asked.folder
    try:
        with see.talking() as tell:
            verdicts = run_claims(
                asked.claims or None,
                quick=asked.quick,
                folder=folder,
                progress=_teller(see, tell),
                workers=asked.workers,
                draw=drawing,
                resume=asked.resume,
            )
    except ReproductionInterrupted as stop:
        _print(see, stop.verdicts)
        count = len(stop.verdicts)
        those = f"{count} verdict{' is' if count == 1 else 's are'}"
        kept = "nothing was written" if folder is None else f"{those} in {shown(folder)}, and --resume goes on"
        raise KeyboardInterrupt(kept) from stop
    _print(see, verdicts)
    if asked.page is not None:
        with replacing(asked.page) as temporary:
            heading = f"{'Quick' if asked.quick else 'Full'} version."
            temporary.write_text(write_page(verdicts, heading=heading), encoding="utf-8")
        see.say(f"page: {shown(asked.page)}")
    if folder is not None:
        see.say(f"verdicts and figures: {shown(folder)}")
    if any(verdict.verdict == "fails" for verdict in verdicts):
        click.get_current_context().exit(CONTRADICTED)


def _teller(see: Screen, tell: Callable[[str], None]) -> Callable[[str], None]:
    """What is going on is shown while it goes on; what was found stays."""

    def said(sentence: str) -> None:
        if _NEXT.match(sentence):
            tell(sentence)
        elif not see.quiet:
            see.note(sentence)

    return said


def _print(see: Screen, verdicts: Sequence[Verdict]) -> None:
    """Claim, measurement and verdict, and how many hold."""
    for verdict in verdicts:
        said = verdict.verdict if verdict.erratum is None else f"erratum {verdict.erratum}"
        see.say()
        see.say(f"{verdict.name}: {said} ({verdict.seconds:.0f} s)")
        see.facts(
            [("  claimed", verdict.statement), ("  measured", verdict.measured), ("  interval", verdict.interval)]
            + ([] if verdict.figure is None else [("  figure", shown(verdict.figure))])
        )
    counts = Counter(verdict.verdict for verdict in verdicts)
    words = {"holds": "hold", "erratum": "errata", "fails": "fail"}
    see.say()
    see.say(f"{len(verdicts)} statements; " + ", ".join(f"{word}: {counts[key]}" for key, word in words.items()))


def drawing(verdict: Verdict) -> str:
    """The chart of a verdict, from ``data["figure"]`` as the experiments fill it, as a complete SVG document."""
    figure: dict[str, Any] = dict(verdict.data["figure"])
    said = verdict.verdict if verdict.erratum is None else f"erratum {verdict.erratum}"
    chart = line_chart(
        [_series(line) for line in figure["series"]],
        title=figure["title"],
        x=Axis(figure["x_label"], log=figure["log_x"]),
        y=Axis(figure["y_label"], log=figure["log_y"]),
        note=f"{verdict.name}: {said}",
    )
    return standalone_svg(chart)


def _series(line: dict[str, Any]) -> Series:
    low, high = (None if line[key] is None else np.asarray(line[key]) for key in ("low", "high"))
    return Series(line["name"], np.asarray(line["x"]), np.asarray(line["y"]), low, high, line["style"])
