"""A file that keeps finished runs, so that a comparison can be interrupted and continued.

A CSV whose first line is a comment with the settings and their fingerprint, then the names of the columns, then one run per
line. A batch of runs is one write to the end of the file. If that write is cut short (power, a full disk), the last line is
damaged and nothing else: it is dropped when the file is opened again, and its run is made anew.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from robustphase.atomic import write_bytes
from robustphase.experiments.runs import Run, Settings, as_text, from_text

#: How the first line of such a file begins.
MARK = "# robustphase comparison "
#: Raised whenever the meaning of a column changes.
FORMAT = 1


class Ledger:
    """Finished runs in a file.

    Parameters
    ----------
    path : path
        The file, with the ending ``.csv``; created if there is none.
    settings : Settings
        What all runs share. A file with other settings is refused.
    version : str
        Version of the package: runs of different versions are not mixed.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Settings, version: str) -> None:
        self.path = Path(path)
        if self.path.suffix != ".csv":
            raise ValueError(f"out must be a file that ends in .csv, got {self.path.name!r}.")
        self._head = _head(settings, version)
        #: Runs that were in the file when it was opened.
        self.finished: list[Run] = []
        if self.path.exists():
            self._read()
        else:
            write_bytes(self.path, self._head.encode())

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
            write_bytes(self.path, self._head.encode())
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
            write_bytes(self.path, "\n".join([*lines[:last], ""]).encode())


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
