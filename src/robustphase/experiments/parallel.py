"""Work in several processes: one per processor, one thread in each."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from numbers import Integral
from typing import TypeVar

from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

Task = TypeVar("Task")
Result = TypeVar("Result")


def worker_count(workers: int | None) -> int:
    """How many processes: what was asked for, or one per processor."""
    if workers is None:
        return os.cpu_count() or 1
    if isinstance(workers, bool) or not isinstance(workers, Integral) or workers < 1:
        raise ValueError(
            f"workers must be a positive integer or None, got {workers!r}. Pass workers=1 to stay in one process."
        )
    return int(workers)


def in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, *, ordered: bool = True
) -> Generator[Result]:
    """``function(task)`` for every task, in their order or as they are finished; close the generator to stop early.

    Function and tasks must be picklable, unless one process does it all: one worker is this process.
    """
    processes = min(workers, len(tasks))
    if processes <= 1:
        for task in tasks:
            with threadpool_limits(1):
                result = function(task)
            yield result
        return
    with parallel_config("loky", inner_max_num_threads=1):
        # Not as a context: a pool that is kept for further calls would start new workers when it is stopped.
        pool = Parallel(processes, return_as="generator" if ordered else "generator_unordered", max_nbytes=None)
        results = pool(delayed(function)(task) for task in tasks)
    try:
        # Not "yield from", which would close the pool before its advice can be silenced.
        for result in results:
            yield result
    finally:
        with warnings.catch_warnings():
            # The pool's advice about unused work is not for somebody who has pressed Ctrl-C.
            warnings.simplefilter("ignore", UserWarning)
            results.close()


class Pool:
    """Applies functions to tasks in several processes, counts their ``processor_seconds``, and says how far it is.

    There is one process per processor by default; 1 stays in this one. ``progress`` is called with a sentence now and then.
    """

    def __init__(self, workers: int | None = None, progress: Callable[[str], None] | None = None) -> None:
        self.workers = worker_count(workers)
        self.progress = progress
        self.processor_seconds = 0.0

    def say(self, sentence: str) -> None:
        """Tell whoever listens."""
        if self.progress is not None:
            self.progress(sentence)

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
        """``[function(task) for task in tasks]``; function and tasks must be picklable. Warnings are not shown."""
        results = []
        with closing(in_processes(partial(_timed, function), list(tasks), self.workers)) as outcomes:
            for result, seconds in outcomes:
                self.processor_seconds += seconds
                results.append(result)
        return results


def _timed(function: Callable[[Task], Result], task: Task) -> tuple[Result, float]:
    with warnings.catch_warnings():
        # What the library warns of (a negative scale, a printed step) is counted in the result.
        warnings.simplefilter("ignore", UserWarning)
        began = time.process_time()
        result = function(task)
        return result, time.process_time() - began
