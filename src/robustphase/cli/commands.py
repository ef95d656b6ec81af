"""What every command is: a function whose failures become one sentence and an exit code, with a help page in groups."""

from __future__ import annotations

import errno
import shlex
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

import click

from robustphase.cli.outputs import written
from robustphase.cli.terminal import one_line, screen, shown
from robustphase.cli.words import in_options

#: Finished, but the answer did not settle.
UNSETTLED = 3
#: Stopped by Ctrl-C, and by a request to terminate: 128 plus the signal's number, as shells have it.
INTERRUPTED, TERMINATED = 130, 143

Function = TypeVar("Function", bound=Callable[..., Any])
#: Where a context keeps what was typed after the name of its command.
_TYPED = "robustphase.typed"
#: Where a context keeps what the library has warned of.
_SAID = "robustphase.said"
#: Warnings that concern programmers and not the person at the terminal.
_FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning, FutureWarning)


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


def general_options(function: Function) -> Function:
    """``--quiet`` and ``--debug``, which every command has."""
    quiet = option(
        "Other options", "--quiet", "-q", is_flag=True, show_default=False, help="Print only what went wrong."
    )
    debug = option(
        "Other options", "--debug", is_flag=True, show_default=False, help="Show the traceback of an error as well."
    )
    return quiet(debug(function))


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
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"no space left on the disk while writing{where or ' the output'}."
        return f"cannot use{where}: {error.strerror}." if where else f"{error.strerror}."
    text = one_line(str(error))
    if isinstance(error, (ValueError, TypeError, RuntimeError, ImportError, OSError)) and text:
        return text
    return f"unexpected {type(error).__name__}: {text or 'no message'}. --debug shows where; please report it."


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
