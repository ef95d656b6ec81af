"""``robustphase plan``: what a measurement will need, before anything is measured."""

from __future__ import annotations

import warnings
from typing import Any

import click

from robustphase.cli.app import as_command, general_options, option
from robustphase.cli.options import NOISE_MEANS, Level
from robustphase.cli.terminal import screen
from robustphase.experiments import PlanWarning
from robustphase.experiments import plan as make_plan

PROBLEM, QUESTION = "The problem", "The question"


@as_command(
    "plan",
    notes="Without --m and --target-error: the least number of samples, and the error to expect with it.",
    example="""
robustphase plan --n 400 --noise-std 0.5 --contamination 0.1
robustphase plan --n 400 --contamination 0.1 --target-error 0.05
""",
)
@option(
    PROBLEM,
    "--n",
    "n",
    type=click.IntRange(min=1),
    metavar="COUNT",
    required=True,
    show_default=False,
    help="Unknowns: entries of the signal.",
)
@option(
    PROBLEM,
    "--noise-std",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    default=0.5,
    help="Standard deviation of the noise, in units of the signal's squared norm.",
)
@option(PROBLEM, "--contamination", type=Level(), default=0.1, help="Share of the samples that may be bad.")
@option(
    PROBLEM,
    "--noise-mean",
    type=click.Choice(NOISE_MEANS),
    default="zero",
    help="Whether a background has to be found as well.",
)
@option(
    PROBLEM,
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="NUMBER",
    default=0.01,
    help="Probability with which it may fail.",
)
@option(
    QUESTION,
    "--m",
    "m",
    type=click.IntRange(min=1),
    metavar="COUNT",
    help="What error to expect from this many samples.",
)
@option(
    QUESTION,
    "--target-error",
    type=click.FloatRange(min=0, min_open=True),
    metavar="NUMBER",
    help="How many samples it takes to get below this relative error.",
)
@general_options
def plan(n: int, m: int | None, target_error: float | None, quiet: bool, debug: bool, **settings: Any) -> None:
    """Say how many samples are needed, and what error to expect.

    The formulas are those of the theorems, their constants are calibrated by experiments with every adversary of the library;
    the answer says so. Passes, time and memory are for this machine.
    """
    if m is not None and target_error is not None:
        raise click.UsageError("give --m or --target-error, not both: one is the question and the other the answer.")
    # What it warns of, it also says.
    warnings.simplefilter("ignore", PlanWarning)
    screen().say(str(make_plan(n, m=m, target_error=target_error, **settings)))
