"""The group of commands, and what every command is.

A command is a function whose failures become one sentence, in the words of its options, and an honest exit code, with a help page
in groups. The group loads a command when it is asked for.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, TypeVar

import click

import robustphase as rp
from robustphase.atomic import FULL
from robustphase.cli.exit_codes import INTERRUPTED, TERMINATED
from robustphase.cli.outputs import written
from robustphase.cli.terminal import one_line, screen, shown

#: Commands in the order a newcomer meets them, with the line ``--help`` lists them by.
COMMANDS = {
    "demo": "Recover a picture from data of which a tenth is bad, and write a report.",
    "simulate": "Write a contaminated data set to a file, to try things on.",
    "fit": "Recover a signal from a file of covariates and responses.",
    "report": "Write a report to look at from the result of a fit.",
    "compare": "Run methods against adversaries and tabulate who survives.",
    "attack": "Search for the attack that hurts a method most.",
    "reproduce": "Check the paper's claims, one experiment per statement.",
    "plan": "Say how many samples are needed, and what error to expect.",
}

#: Options that every command has.
GENERAL = ("quiet", "debug")

Function = TypeVar("Function", bound=Callable[..., Any])
Request = TypeVar("Request")
#: Where a context keeps what was typed after the name of its command.
_TYPED = "robustphase.typed"
#: Where a context keeps what the library has warned of.
_SAID = "robustphase.said"
#: Warnings that concern programmers and not the person at the terminal.
_FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning, FutureWarning)
#: A keyword argument with its value, as messages spell it.
_KEYWORD = re.compile(r"""\b(?P<name>[a-z][a-z_]*)=(?P<value>"[^"]*"|'[^']*'|True|False|\.\.\.|[-+\w]+(?:\.\w+)?)""")
#: An argument without a value.
_NAME = re.compile(r"(?P<before>\b[Pp]ass )(?P<name>[a-z][a-z_]*)(?= to\b)")
#: Arguments of the library whose option has another name.
_OTHER_NAMES = {"random_state": "seed", "polish": "no_polish"}


class Terminated(KeyboardInterrupt):
    """The system asked the process to end (SIGTERM)."""


class Failure(click.ClickException):
    """An error that has its sentence; exit code 1."""

    def show(self, file: Any = None) -> None:
        """Print the sentence."""
        screen().error(self.message)


class Option(click.Option):
    """An option that belongs to a group on the help page."""

    def __init__(self, *args: Any, group: str = "Other options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class Command(click.Command):
    """A command that ends in one sentence and an honest exit code, and whose help ends with an example."""

    def __init__(self, *args: Any, example: str, notes: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example, self.notes = example, notes

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments and keep them, so that a report can say how it was made."""
        ctx.meta[_TYPED] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever goes wrong becomes a sentence."""
        debug = bool(ctx.params.get("debug"))
        try:
            with _plain_warnings(self):
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, BrokenPipeError):
            raise
        except KeyboardInterrupt as stop:
            ended = _was_terminated(stop)
            kept = one_line(str(stop)) or _what_was_written()
            screen().note(f"{'terminated' if ended else 'interrupted'}; {kept}")
            ctx.exit(TERMINATED if ended else INTERRUPTED)
        except Exception as error:
            if debug:
                traceback.print_exc()
            said = in_options(sentence(error), self)
            raise Failure(f"{said} Before that, {_what_was_written()}." if written() else said) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under the heading of their group, in the order in which they were declared."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            # What an argument is, the text above the options says.
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups.setdefault(getattr(parameter, "group", "Other options"), []).append(record)
        groups["Other options"] = groups.pop("Other options", [])
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Notes, and the example as it would be typed."""
        if self.notes:
            formatter.write_paragraph()
            formatter.write_text(self.notes)
        formatter.write_paragraph()
        formatter.write("Example:\n")
        for line in self.example.strip().splitlines():
            formatter.write(f"  {line}\n")


def as_command(name: str, *, example: str, notes: str = "") -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function."""
    return click.command(name, cls=Command, example=example, notes=notes)


def option(group: str, *declarations: str, **settings: Any) -> Callable[[Function], Function]:
    """An option of a group."""
    settings.setdefault("show_default", True)
    return click.option(*declarations, cls=Option, group=group, **settings)


def flag(group: str, *declarations: str, help: str) -> Callable[[Function], Function]:
    """An option of a group that is given or not."""
    return option(group, *declarations, is_flag=True, show_default=False, help=help)


def file_option(group: str, *declarations: str, **settings: Any) -> Callable[[Function], Function]:
    """An option of a group that names a file or folder."""
    return option(group, *declarations, type=click.Path(path_type=Path), **settings)


def general_options(function: Function) -> Function:
    """``--quiet`` and ``--debug``, which every command has."""
    quiet = flag("Other options", "--quiet", "-q", help="Print only what went wrong.")
    debug = flag("Other options", "--debug", help="Show the traceback of an error as well.")
    return quiet(debug(function))


def as_request(kind: type[Request], options: Mapping[str, Any]) -> Request:
    """What was asked of a command, as one object of a dataclass.

    Options go to the fields of their names, and all others to the field ``settings`` if there is one. ``--quiet`` and
    ``--debug`` are for the terminal and not part of a request.
    """
    described: Any = kind
    names = {field.name for field in fields(described)}
    own = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names and name not in GENERAL}
    rest = {"settings": others} if "settings" in names else others
    return kind(**own, **rest)


def command_line() -> str:
    """The command as it was typed, to type again."""
    ctx = click.get_current_context()
    return shlex.join(["robustphase", str(ctx.info_name), *ctx.meta.get(_TYPED, [])])


def warnings_said() -> str:
    """What the library has warned of so far."""
    return " ".join(click.get_current_context().meta.get(_SAID, []))


def sentence(error: BaseException) -> str:
    """What happened, in one line."""
    if isinstance(error, MemoryError):
        return f"not enough memory. {one_line(str(error))}".strip()
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f" {shown(error.filename)}"
        if error.errno in FULL and (where or error.strerror == os.strerror(error.errno)):
            return f"no space left on the disk while writing{where or ' the output'}."
        return f"cannot use{where}: {error.strerror}." if where else f"{error.strerror}."
    text = one_line(str(error))
    if isinstance(error, (ValueError, TypeError, RuntimeError, ImportError, OSError)) and text:
        return text
    return f"unexpected {type(error).__name__}: {text or 'no message'}. --debug shows where; please report it."


def in_options(message: str, command: click.Command) -> str:
    """Rewrite ``name="value"`` as ``--name value``, and ``pass name to`` likewise, wherever the command has such an option.

    The library says ``pass nonfinite="drop"``; somebody who has typed a command wants to read ``--nonfinite drop``. Arguments
    that are no option of this command stay as they are.
    """
    options = {option.name: option for option in command.params if isinstance(option, click.Option)}

    def rewrite(match: re.Match[str]) -> str:
        name = _OTHER_NAMES.get(match["name"], match["name"])
        option = options.get(name)
        if option is None:
            return match[0]
        value = match["value"].strip("\"'")
        if not option.is_flag:
            return f"{option.opts[-1]} {value}"
        return option.opts[-1] if (value == "False") == name.startswith("no_") else match[0]

    def name_only(match: re.Match[str]) -> str:
        option = options.get(match["name"])
        return match[0] if option is None else f"{match['before']}{option.opts[-1]}"

    return _NAME.sub(name_only, _KEYWORD.sub(rewrite, message))


@contextmanager
def _plain_warnings(command: Command) -> Iterator[None]:
    """Warnings as one line each, in the words of options."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = in_options(one_line(str(message)), command)
        click.get_current_context().meta.setdefault(_SAID, []).append(text)
        screen().warning(text)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _FOR_PROGRAMMERS:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show
        yield


def _was_terminated(stop: BaseException | None) -> bool:
    """Whether a request to terminate is behind an interruption, which the library may have wrapped."""
    while stop is not None and not isinstance(stop, Terminated):
        stop = stop.__cause__
    return stop is not None


def _what_was_written() -> str:
    names = written()
    return f"{' and '.join(names)} {'were' if len(names) > 1 else 'was'} written" if names else "nothing was written"


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
