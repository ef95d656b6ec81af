"""The group of commands, and how it runs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

import click

import robustphase as rp
from robustphase.cli.commands import INTERRUPTED, Terminated

#: Commands in the order a newcomer meets them, with the line ``--help`` lists them by.
COMMANDS = {
    "demo": "Recover a picture from data of which a tenth is bad, and write a report.",
    "simulate": "Write a contaminated data set to a file, to try things on.",
    "fit": "Recover a signal from a file of covariates and responses.",
    "compare": "Run methods against adversaries and tabulate who survives.",
    "reproduce": "Check the paper's claims, one experiment per statement.",
    "plan": "Say how many samples are needed, and what error to expect.",
}


class Application(click.Group):
    """A group that imports a command when it is asked for, so that one command's needs are not another's."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"robustphase.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with `robustphase demo`; `robustphase COMMAND --help` explains a command and ends with an example.",
)
@click.version_option(rp.__version__, prog_name="robustphase", message="%(prog)s %(version)s")
def application() -> None:
    """Recover a signal from phaseless measurements when part of the data is wrong.

    Each measurement is y = (a·x)² + z. The noise z may have heavy tails and an unknown mean, and a fraction of the
    samples may have been rewritten, covariates a and responses y alike.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A file name may hold bytes that are no text, and a pipe may be poor in characters: say it some way, never crash.
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    before = _listen(_terminate)
    try:
        code = application.main(
            None if arguments is None else list(arguments), prog_name="robustphase", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; nothing was written", err=True)
        return INTERRUPTED
    finally:
        _listen(before)
    return code if isinstance(code, int) else 0


def _listen(handler: Any) -> Any:
    """Have SIGTERM handled so, and return how it was handled before; None where that cannot be changed."""
    try:
        return None if handler is None else signal.signal(signal.SIGTERM, handler)
    except ValueError:  # Only the main thread may listen to signals.
        return None


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise Terminated
