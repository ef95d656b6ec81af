"""What is told of a fit while it runs: to a callback, and as a live line.

A callback is called after every pass over the data. It ends the fit by returning True, or by raising; what the fit has found so
far is kept. Where nothing has been found yet, an end that was asked for comes with the first answer, a few passes later.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, TextIO

from robustphase.formatting import duration
from robustphase.rows.source import Array

#: Passes that the default engine needs as a rule, from the least to the most; whitening needs about these more.
USUAL_PASSES, WHITENING = (30, 70), (20, 50)
#: From fewer passes than this nothing is told about the time of one.
FEW_PASSES = 3
#: Seconds between two live lines.
PAUSE = 0.1
#: What follows a stage that has ended, as a rule.
NEXT = {
    "": "start",
    "start": "selection",
    "selection": "selection",
    "finalists": "likelihood",
    "likelihood": "certificate",
    "second opinion": "certificate",
    "all samples": "certificate",
    "descent": "descent",
}


class Progress(NamedTuple):
    """How far a fit is.

    Attributes
    ----------
    stage : str
        What is being done, as far as is known: the stage that follows the last one that ended; see ``history_``.
    passes : int
        Sweeps over the data so far.
    seconds : float
        Time so far.
    seconds_left : (float, float) or None
        What is left as a rule, from the least to the most; None where nobody can tell.
    """

    stage: str
    passes: int
    seconds: float
    seconds_left: tuple[float, float] | None = None

    def __str__(self) -> str:
        parts = (f"{self.stage}: {self.passes} passes", f"{self.seconds:.0f} s", say_left(self.seconds_left))
        return ", ".join(filter(None, parts))


Callback = Callable[[Progress], Any]


def usual_passes(model: Any) -> tuple[int, int] | None:
    """Least and most passes that a fit takes as a rule; None where that depends on the steps of a descent."""
    if model.step != "newton" or model.batches > 1 or (isinstance(model.init, str) and model.init != "auto"):
        return None
    low, high = USUAL_PASSES
    return (low + WHITENING[0], high + WHITENING[1]) if model.whiten is True else (low, high)


def seconds_left(usual: tuple[int, int] | None, done: int, each: float) -> tuple[float, float] | None:
    """Time that is left as a rule after so many passes of so many seconds; None where nobody can tell."""
    if usual is None or done > usual[1]:
        return None
    low, high = (each * max(0, passes - done + 1) for passes in usual)
    return low, high


def say_left(left: tuple[float, float] | None) -> str:
    """The time left, for a person; empty where nobody can tell."""
    if left is None:
        return ""
    low, high = left
    return f"usually {duration(low)} to {duration(high)} more" if low else f"usually done within {duration(high)}"


class Stopped(Exception):  # noqa: N818
    """The callback has ended the fit, and there is an answer."""


class Watch:
    """Looks on while a fit runs: counts passes, asks the callback, which ends the fit by True, keeps the last answers.

    ``usual`` are the passes that such a fit takes as a rule.
    """

    def __init__(self, callback: Callback, usual: tuple[int, int] | None) -> None:
        self._callback, self._usual = callback, usual
        #: Signals that an answer has.
        self.signal_count = 1
        self._began, self._stage, self._passes, self._ending = perf_counter(), "", 0, False
        #: Answers so far, and what the callback raised.
        self.signals: Array | None = None
        self.error: BaseException | None = None

    def passed(self) -> None:
        """Ask the callback."""
        self._passes += 1
        if not self._ending:
            try:
                self._ending = bool(self._callback(self.progress))
            except BaseException as error:  # Ctrl-C included: fit raises it again once it has kept the answer.
                if self.signals is None:
                    raise
                self.error, self._ending = error, True
        if self._ending and self.signals is not None:
            raise Stopped

    @property
    def progress(self) -> Progress:
        """How far the fit is."""
        seconds = perf_counter() - self._began
        left = None if self._passes < FEW_PASSES else seconds_left(self._usual, self._passes, seconds / self._passes)
        return Progress(NEXT.get(self._stage, self._stage), self._passes, seconds, left)

    def finished(self, stage: str) -> None:
        """Note what follows."""
        self._stage = stage

    def found(self, signals: Array) -> None:
        """Keep the answers; those of a part of the signals are none."""
        if signals.shape[1] == self.signal_count:
            self.signals = signals


class LiveLine:
    """A callback that keeps one line on a terminal up to date; where there is none it writes nothing.

    Another one, ``inner``, decides. The terminal is ``sys.stderr`` by default.
    """

    def __init__(self, inner: Callback | None = None, file: TextIO | None = None) -> None:
        self._inner, self._file = inner, sys.stderr if file is None else file
        self._shown, self._last = 0, -PAUSE
        self._live = bool(getattr(self._file, "isatty", lambda: False)())

    def __call__(self, progress: Progress) -> Any:
        """Show the line, and ask the other callback."""
        if self._live and progress.seconds - self._last >= PAUSE:
            self._last = progress.seconds
            self._write(f"fitting: {progress}")
        return None if self._inner is None else self._inner(progress)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write("")
            self._file.write("\r")
            self._file.flush()
            self._shown = 0

    def _write(self, line: str) -> None:
        self._file.write("\r" + line.ljust(self._shown))
        self._file.flush()
        self._shown = len(line)
