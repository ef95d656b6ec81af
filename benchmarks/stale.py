"""Which pages of the docs are older than the engine they speak of: ``python -m benchmarks.stale``; exits with 1 if any is.

It needs no repository. A page or picture is stale if the digest that it was measured with is not that of the present sources of
its rooms. Also listed: pages without a stamp, pages and pictures that no benchmark writes or that are missing, and tables of
figures in docs/*.md and README.md that were typed by hand: a benchmark should write them, or ``<!-- not measured -->`` above
them say that they are not measurements.

``--run`` measures what is stale, shortest first, two at a time where one core is enough; ``--minutes`` says how long. What
each took is printed. If one fails, the others go on; the last line names those that failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks import readme
from benchmarks.digest import engine_digest
from benchmarks.markdown import counted
from benchmarks.registry import BENCHMARKS, Benchmark, total_minutes
from benchmarks.stamp import stamp_of
from benchmarks.store import DOCS, picture_digest, stored

#: Above a table of numbers that nobody measured.
NOT_MEASURED = "<!-- not measured -->"
#: Lines with a decimal number from which on a table counts as one of figures.
FIGURES = 2


class Problem(NamedTuple):
    """Something in the docs that need not be true; and the benchmark that would cure it, if one does."""

    where: str
    what: str
    benchmark: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}{f' (python -m benchmarks {self.benchmark})' if self.benchmark else ''}"


def problems(docs: Path | None = None) -> list[Problem]:
    """All that is wrong."""
    docs = docs or DOCS
    found = [problem for one in BENCHMARKS.values() for problem in stale_files(one, docs)]
    return [*found, *unknown_files(docs), *typed_tables(docs), *other_figures(docs)]


def stale_files(benchmark: Benchmark, docs: Path) -> Iterator[Problem]:
    """Pages and pictures of a benchmark that are missing, unstamped, or of another engine."""
    if not benchmark.pages and not benchmark.pictures:
        return
    now = engine_digest(benchmark.rooms)
    drawn = {row["page"]: row for row in stored(benchmark.name) if "picture" in row}
    for name in (*benchmark.pages, *benchmark.pictures):
        if not (docs / name).exists():
            yield Problem(name, "missing", benchmark.name)
            continue
        if name in benchmark.pages:
            stamp = stamp_of((docs / name).read_text("utf-8"))
            engine = stamp.engine if stamp else ""
        else:
            same = name in drawn and drawn[name]["picture"] == picture_digest(docs / name)
            engine = drawn[name]["engine"] if same else ""
        if not engine:
            yield Problem(name, "has no stamp", benchmark.name)
        elif engine != now:
            yield Problem(name, f"measured with engine {engine}, which is now {now}", benchmark.name)


def unknown_files(docs: Path) -> Iterator[Problem]:
    """Generated pages, and pictures shown in the docs, that no benchmark writes."""
    known = {name for one in BENCHMARKS.values() for name in (*one.pages, *one.pictures)}
    for file in sorted((docs / "_generated").iterdir()):
        if f"_generated/{file.name}" not in known:
            yield Problem(f"_generated/{file.name}", "no benchmark writes it")
    for page in sorted(docs.glob("*.md")):
        for name in re.findall(r"!\[[^\]]*\]\((_static/[^)]+)\)", page.read_text("utf-8")):
            if name not in known:
                yield Problem(f"{page.name}, {name}", "no benchmark draws it")


def typed_tables(docs: Path) -> Iterator[Problem]:
    """Tables of figures that stand in the docs themselves, or in the README beside them."""
    for page in sorted((*docs.glob("*.md"), *docs.parent.glob("README.md"))):
        lines = page.read_text("utf-8").split("\n")
        for first, last in _tables(lines):
            figures = sum(bool(re.search(r"\d\.\d", line)) for line in lines[first + 2 : last])
            above = next((line for line in reversed(lines[:first]) if line.strip()), "")
            copied = page.name == "README.md" and readme.BEGIN in lines[:first] and readme.END in lines[last:]
            if figures >= FIGURES and above.strip() != NOT_MEASURED and not copied:
                yield Problem(f"{page.name}:{first + 1}", f"figures typed by hand: {lines[first][:60]}")


def other_figures(docs: Path) -> Iterator[Problem]:
    """Figures in the README that are not those of the page they are taken from."""
    beside, page = docs.parent / "README.md", docs / readme.PAGE
    if beside.exists() and page.exists():
        text = beside.read_text("utf-8")
        if readme.BEGIN in text and readme.filled(text, page.read_text("utf-8")) != text:
            yield Problem("README.md", f"other figures than {readme.PAGE}: python -m benchmarks.readme")


def _tables(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First line, and the one after the last, of every table."""
    first = None
    for number, line in enumerate([*lines, ""]):
        if line.startswith("|"):
            first = number if first is None else first
        elif first is not None:
            yield first, number
            first = None


def to_run(found: Iterable[Problem]) -> list[Benchmark]:
    """Benchmarks that cure problems, shortest first."""
    names = {problem.benchmark for problem in found if problem.benchmark}
    return sorted((BENCHMARKS[name] for name in names), key=lambda one: one.minutes)


def measure(chosen: Iterable[Benchmark], minutes: float) -> list[str]:
    """Run benchmarks, each in a process of its own, for at most so long; the names of those that failed."""
    begin, failed = time.monotonic(), []
    queue = list(chosen)

    def fits(one: Benchmark) -> bool:
        return (time.monotonic() - begin) / 60 + one.minutes <= minutes

    def run(one: Benchmark) -> None:
        if not fits(one):
            print(f"{one.name}: left for later, {one.minutes:g} minutes do not fit", flush=True)
            return
        started = time.monotonic()
        problem = run_alone(one)
        took = f"{time.monotonic() - started:.0f} s, {one.minutes:g} minutes planned"
        if problem:
            failed.append(one.name)
        print(f"{one.name}: failed after {took}; {problem}" if problem else f"{one.name}: {took}", flush=True)

    with ThreadPoolExecutor(2) as pair:
        list(pair.map(run, [one for one in queue if one.cores == 1]))
    for one in queue:
        if one.cores != 1:
            run(one)
    return failed


def run_alone(benchmark: Benchmark) -> str:
    """Run a benchmark in a process of its own; why that failed, or nothing."""
    threads = {} if benchmark.cores == "alone" else {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks", benchmark.name]
    try:
        done = subprocess.run(
            command,
            env=os.environ | threads,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        # One benchmark that cannot be started must not end the others.
        return f"{type(error).__name__}: {error}"
    return "" if done.returncode == 0 else f"exit code {done.returncode}\n{done.stderr[-2000:]}"


def main(arguments: Sequence[str] = ()) -> int:
    parser = ArgumentParser(prog="python -m benchmarks stale", description="Pages that are older than their engine.")
    parser.add_argument("--run", action="store_true", help="measure what is stale, shortest first")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="with --run: start nothing that takes longer"
    )
    asked = parser.parse_args(list(arguments))
    found = problems()
    failed: list[str] = []
    if asked.run:
        failed = measure(to_run(found), asked.minutes)
        found = problems()
    for problem in found:
        print(problem)
    again = to_run(found)
    if again:
        print(f"to run again, {total_minutes(again):.0f} minutes on two cores: python -m benchmarks stale --run")
        print("\n".join(f"  {one.minutes:5g}  {one.name}" for one in again))
    print(f"{len(found)} problems" if found else "every page is of the present engine")
    if failed:
        print(f"{counted(len(failed), 'run')} failed, the others went on: {', '.join(failed)}")
    return 1 if found or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
