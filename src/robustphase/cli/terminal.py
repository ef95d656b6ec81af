"""What a person sees: results on standard output; progress, warnings and errors on standard error.

On a terminal, progress is a live line and warnings have colour (unless ``NO_COLOR`` is set). Everywhere else both are plain
lines that a log can keep. Text from outside, such as a file name, is shown with its control characters spelled out and is
never taken for markup.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from threading import Event, Thread
from time import perf_counter
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

#: Columns of tables that go to a file or a pipe.
PLAIN_WIDTH = 120
#: Seconds until the first line of progress outside a terminal; each later one takes twice as long, up to the second number.
FIRST_LINE, LONGEST_SILENCE = 10.0, 300.0
#: Upper half of a cell: its colour is the upper pixel, the background the lower one.
HALF = "▀"
#: Cells between two pictures.
GAP = 3
#: Where a context keeps its screen.
_SCREEN = "robustphase.screen"

#: ``tell(done, total, text)``: how far a number of runs has come.
Tell = Callable[[int, int, str], None]


def shown(path: object) -> str:
    """A path or other text from outside with its control characters spelled out."""
    text = os.fsdecode(path) if isinstance(path, (bytes, os.PathLike)) else str(path)
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def one_line(text: str) -> str:
    """The same words without line breaks or control characters."""
    return shown(" ".join(text.split()))


class Screen:
    """The two consoles of a command; a quiet one shows errors and warnings only."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)

    @property
    def live(self) -> bool:
        """Whether progress may move about: a terminal that can."""
        return self.err.is_terminal and not self.err.is_dumb_terminal and not self.quiet

    def say(self, text: str | RenderableType = "") -> None:
        """Print a result."""
        if not self.quiet:
            # A sentence is left to the terminal to fold, so that it can be copied and searched as one line.
            text = Text(text) if isinstance(text, str) else text
            self.out.print(text, soft_wrap=isinstance(text, Text))

    def note(self, text: str) -> None:
        """Print a remark about the run itself."""
        self.err.print(Text(text), soft_wrap=True)

    def warning(self, text: str) -> None:
        """Print a warning in one line."""
        self.err.print(Text.assemble(("warning: ", "yellow"), text), soft_wrap=True)

    def error(self, text: str) -> None:
        """Print an error in one line."""
        self.err.print(Text.assemble(("error: ", "bold red"), text), soft_wrap=True)

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print names and values in two columns."""
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            self.say(Text.assemble((name.ljust(width), "dim"), "  ", value))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> None:
        """Print a table; columns not named in ``left`` are numbers, to the right."""
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
        for column in columns:
            side: Literal["left", "right"] = "left" if column in left else "right"
            # The name of a row stays whole; what is too long for the terminal folds further right.
            table.add_column(Text(column), justify=side, overflow="fold", no_wrap=column == columns[0])
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self.say()
        if self.out.is_terminal:
            self.say(table)
        else:
            self.say("\n".join(line.rstrip() for line in _rendered(table).splitlines()))
        self.say()

    @contextmanager
    def watching(self, what: str, state: Callable[[], str], left: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Show that work goes on, while the block runs.

        ``state`` and ``left`` say how far it is, and what can be said about the time left; both are asked again and again from
        another thread.
        """
        began = perf_counter()

        def line() -> str:
            return ", ".join(filter(None, (f"{what}: {state()}", f"{perf_counter() - began:.0f} s", left())))

        if self.quiet:
            yield
        elif self.live:
            with Progress(SpinnerColumn(), _Living(line), console=self.err, transient=True) as progress:
                progress.add_task(what, total=None)
                yield
        else:
            with _in_lines(lambda: self.note(line())):
                yield

    @contextmanager
    def counting(self, what: str) -> Iterator[Tell]:
        """Show how many of a number of runs are done; yields ``tell(done, total, text)``."""
        if self.quiet:
            yield lambda done, total, text: None
        elif self.live:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=30),
                _Count(),
                _TimeLeft(),
                TextColumn("{task.fields[text]}", markup=False),
            )
            with Progress(*columns, console=self.err, transient=True) as progress:
                task = progress.add_task(what, total=None, text="")

                def tell(done: int, total: int, text: str) -> None:
                    progress.update(task, completed=done, total=max(total, 1), text=one_line(text))

                yield tell
        else:
            yield self._line_teller(what)

    @contextmanager
    def talking(self) -> Iterator[Callable[[str], None]]:
        """Show what is going on, while the block runs; yields ``tell(sentence)``."""
        if self.quiet:
            yield lambda sentence: None
        elif self.live:
            state, began = [""], perf_counter()
            with Progress(
                SpinnerColumn(),
                _Living(lambda: f"{state[0]}, {perf_counter() - began:.0f} s"),
                console=self.err,
                transient=True,
            ) as progress:
                progress.add_task("", total=None)

                def tell(sentence: str) -> None:
                    state[0] = one_line(sentence)

                yield tell
        else:
            yield self.note

    def _line_teller(self, what: str) -> Tell:
        """Lines for a log: not one per run, which may be thousands, but one per tenth."""
        tenths = -1

        def tell(done: int, total: int, text: str) -> None:
            nonlocal tenths
            now = 10 * done // max(total, 1)
            if now > tenths and done:
                tenths = now
                self.note(f"{what}: {done}/{total} {one_line(text)}".rstrip())

        return tell


def screen() -> Screen:
    """The screen of the current command, which knows whether it was asked to be quiet."""
    context = click.get_current_context(silent=True)
    if context is None:
        return Screen()
    # One per command: a warning must go through the console that draws the progress, or they overwrite each other.
    found = context.meta.setdefault(_SCREEN, Screen(quiet=bool(context.params.get("quiet"))))
    assert isinstance(found, Screen)
    return found


class _Living(TextColumn):
    """A text that is asked for anew whenever it is drawn."""

    def __init__(self, line: Callable[[], str]) -> None:
        super().__init__("", markup=False)
        self._line = line

    def render(self, task: Task) -> Text:
        return Text(self._line())


class _Count(TextColumn):
    """How many of how many, once that is known."""

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}")


class _TimeLeft(TextColumn):
    """Time gone and, once it can be told, time left."""

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        return Text(f"{task.elapsed or 0:.0f} s" + (f", about {left:.0f} s left" if left else ""))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        # No terminal, no width: never fold what a program may read.
        console = Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=PLAIN_WIDTH, no_color=True)
    return console


def _rendered(table: Table) -> str:
    console = Console(file=StringIO(), width=PLAIN_WIDTH, no_color=True)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


@contextmanager
def _in_lines(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` from another thread, at growing intervals, while the block runs."""
    done = Event()

    def work() -> None:
        wait = FIRST_LINE
        while not done.wait(wait):
            tell()
            wait = min(2 * wait, LONGEST_SILENCE)

    thread = Thread(target=work, name="robustphase-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def side_by_side(pictures: Mapping[str, NDArray[Any]], low: float, high: float) -> Text:
    """Small grey pictures of one size with their titles above them, two pixels to a character cell.

    ``low`` is black and ``high`` is white.
    """
    grey = [_grey_levels(picture, low, high) for picture in pictures.values()]
    width = grey[0].shape[1]
    text = Text((" " * GAP).join(title[:width].ljust(width) for title in pictures) + "\n")
    for row in range(0, grey[0].shape[0], 2):
        for position, picture in enumerate(grey):
            text.append(" " * (GAP if position else 0))
            for upper, lower in zip(picture[row], picture[row + 1], strict=True):
                text.append(HALF, f"rgb({upper},{upper},{upper}) on rgb({lower},{lower},{lower})")
        text.append("\n")
    return text


def _grey_levels(picture: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    grey = np.clip((picture - low) / (high - low), 0.0, 1.0) * 255
    if grey.shape[0] % 2:
        grey = np.vstack((grey, np.zeros((1, grey.shape[1]))))
    return grey.astype(np.uint8)
