"""The runs of a comparison, and the file that keeps them, so that it can be interrupted and continued.

A run is one line: what a method did in a world, and against which yardstick it is read. The file is a CSV whose first line is
a comment with the settings and their fingerprint, then the names of the columns, then one run per line. A batch of runs is one
write to the end of the file. If that write is cut short (power, a full disk), the last line is damaged and nothing else: it is
dropped when the file is opened again, and its run is made anew.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from robustphase.atomic import write_text

try:
    import fcntl
except ImportError:  # Windows: two processes with the same file are not told apart there.
    fcntl = None  # type: ignore[assignment]

#: A run whose relative error is at most this counts as survived: the estimate still points to the signal.
SURVIVED = 0.25
#: Without noise the oracle is exact and a ratio to it says nothing; errors are then read in units of this.
LEAST_ORACLE = 1e-6
#: Longest message kept of an exception or a warning.
LONGEST_MESSAGE = 300
#: How the first line of such a file begins.
MARK = "# robustphase comparison "
#: Raised whenever the meaning of a column changes.
FORMAT = 1


class WorldKey(NamedTuple):
    """What distinguishes one world of a comparison from another.

    Attributes
    ----------
    attack : str
        A name in ``robustphase.simulate.ADVERSARIES``, or ``"none"``.
    contamination : float
        Fraction that the adversary may rewrite, which the methods are told.
    noise : str
        A name in ``robustphase.simulate.NOISES``.
    seed : int
        Source of all its randomness.
    """

    attack: str
    contamination: float
    noise: str
    seed: int


class Settings(NamedTuple):
    """What all worlds of a comparison share: sizes, and the moments of the noise relative to ‖x*‖²."""

    n: int
    m: int
    noise_std: float
    noise_mean: float


class Run(NamedTuple):
    """One method in one world.

    Attributes
    ----------
    method, attack, contamination, noise, noise_mean, noise_std, n, m, seed
        What was run, and where.
    error : float
        Relative distance to the truth; infinite if the method raised an error or returned no numbers.
    oracle_error : float
        The same for least squares told which samples are clean.
    ratio : float
        ``error`` over ``oracle_error``.
    survived : bool
        Whether the error is at most 0.25.
    seconds : float
        Processor time of the method on one thread, so that other work on the machine does not count.
    converged : bool
        What the method says of itself.
    message : str
        What it warned of, or the error that it raised.
    """

    method: str
    attack: str
    contamination: float
    noise: str
    noise_mean: float
    noise_std: float
    n: int
    m: int
    seed: int
    error: float
    oracle_error: float
    ratio: float
    survived: bool
    seconds: float
    converged: bool
    message: str

    @property
    def world(self) -> WorldKey:
        """The world it ran in."""
        return WorldKey(self.attack, self.contamination, self.noise, self.seed)

    @property
    def raised(self) -> bool:
        """Whether there is no answer at all."""
        return math.isinf(self.error)


class Outcome(NamedTuple):
    """What a method did: its relative error, processor time, and what it says of itself, as in :class:`Run`."""

    error: float
    seconds: float
    converged: bool
    message: str


def make_run(method: str, world: WorldKey, settings: Settings, outcome: Outcome, oracle_error: float) -> Run:
    """A run with its verdicts; an error that is no number is a loss."""
    error = outcome.error if math.isfinite(outcome.error) else math.inf
    return Run(
        method=method,
        attack=world.attack,
        contamination=world.contamination,
        noise=world.noise,
        noise_mean=settings.noise_mean,
        noise_std=settings.noise_std,
        n=settings.n,
        m=settings.m,
        seed=world.seed,
        error=error,
        oracle_error=oracle_error,
        ratio=error / max(oracle_error, LEAST_ORACLE),
        survived=error <= SURVIVED,
        seconds=outcome.seconds,
        converged=outcome.converged,
        message=one_line(outcome.message),
    )


def one_line(text: str) -> str:
    """The same words on one line, so that a line of a file is a run; the end of a long text is left out."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_MESSAGE else words[: LONGEST_MESSAGE - 1] + "…"


def as_text(run: Run) -> list[str]:
    """The fields as they are written to a file; numbers can be read back exactly."""
    return [repr(value) if isinstance(value, float) else str(value) for value in run]


def from_text(fields: list[str]) -> Run:
    """A run from the fields of a line; raises ValueError where they are not those of a run."""
    if len(fields) != len(Run._fields):
        raise ValueError(f"a run has {len(Run._fields)} fields, not {len(fields)}")
    kinds = get_type_hints(Run).values()
    values: list[Any] = [_truth(text) if kind is bool else kind(text) for kind, text in zip(kinds, fields, strict=True)]
    return Run(*values)


def _truth(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError(f"neither True nor False: {text!r}")
    return text == "True"


class RunStore:
    """Finished runs in a ``.csv`` file, created if there is none.

    A file with other settings, or of another version of the package, is refused: such runs are not mixed.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Settings, version: str) -> None:
        self.path = Path(path)
        if self.path.suffix != ".csv":
            raise ValueError(f"out must be a file that ends in .csv, got {self.path.name!r}.")
        self._head = _head(settings, version)
        #: Runs that were in the file when it was opened.
        self.finished: list[Run] = []
        if not self.path.exists():
            write_text(self.path, self._head)
        self._descriptor = _locked(self.path)
        try:
            self._read()
            if self._descriptor is not None and not os.path.samestat(os.fstat(self._descriptor), self.path.stat()):
                # What was repaired is another file now.
                self.close()
                self._descriptor = _locked(self.path)
        except BaseException:  # Nobody gets this object, so nobody else could let go of the lock.
            self.close()
            raise

    def close(self) -> None:
        """Let others use the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def append(self, runs: Iterable[Run]) -> None:
        """Add a batch of runs in one write; a write that fails leaves the file as it was."""
        data = _lines(as_text(run) for run in runs).encode()
        with self.path.open("ab", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            try:
                written = file.write(data)
                if written != len(data):
                    raise OSError(f"only {written} of {len(data)} bytes could be written to {self.path.name}")
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    file.truncate(end)
                raise

    def _read(self) -> None:
        text = self.path.read_bytes().decode("utf-8", errors="replace")
        if text.startswith(self._head):
            self._read_runs(text.split("\n"), first=self._head.count("\n"))
        elif self._head.startswith(text):
            # Empty, or cut short within its first lines.
            write_text(self.path, self._head)
        else:
            raise ValueError(_refusal(text.split("\n")[0], self._head.split("\n")[0], self.path.name))

    def _read_runs(self, lines: list[str], *, first: int) -> None:
        """Runs from line ``first`` on. What follows the last line break, or cannot be read at the end, is dropped."""
        last = len(lines) - 1
        damaged = lines[last] != ""
        for number in range(first, last):
            try:
                self.finished.append(from_text(next(csv.reader([lines[number]]))))
            except (ValueError, StopIteration, csv.Error) as error:
                if number < last - 1 or damaged:
                    raise ValueError(
                        f"line {number + 1} of {self.path.name} is not a run ({error}). "
                        "Remove it, or choose another name for out."
                    ) from error
                last, damaged = number, True
        if damaged:
            write_text(self.path, "\n".join([*lines[:last], ""]))


def _locked(path: Path) -> int | None:
    """Keep a second process from making the same runs; the system lets go of the file when this one ends."""
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise ValueError(
            f"{path.name} is in use by another comparison; wait for it, or choose another name."
        ) from error
    except OSError:  # Some network drives have no locks.
        os.close(descriptor)
        return None
    return descriptor


def _head(settings: Settings, version: str) -> str:
    known = {"format": FORMAT, "version": version, **settings._asdict()}
    told = json.dumps(known, sort_keys=True)
    fingerprint = hashlib.sha256(told.encode()).hexdigest()[:12]
    return f"{MARK}{fingerprint} {told}\n" + _lines([list(Run._fields)])


def _refusal(found: str, asked: str, name: str) -> str:
    """Why a file with the first line ``found`` cannot be continued where ``asked`` is needed."""
    if not found.startswith(MARK):
        return f"{name} is not a file of comparisons; it was left as it is. Choose another name for out."
    try:
        before, now = (dict(json.loads(line.removeprefix(MARK).split(" ", 1)[1])) for line in (found, asked))
        differences = [
            f"{key}={before.get(key)!r} there, {key}={now[key]!r} here" for key in now if before.get(key) != now[key]
        ]
    except (ValueError, IndexError, TypeError):
        differences = []
    return (
        f"{name} belongs to a comparison with other settings ({'; '.join(differences) or 'its first lines differ'}). "
        "Pass the same settings to continue it, or choose another name for out."
    )


def _lines(rows: Iterable[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
