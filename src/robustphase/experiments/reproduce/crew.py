"""Runs in parallel: one process per processor, one thread in each, and a count of the processor time."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import TypeVar

from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

Task = TypeVar("Task")
Result = TypeVar("Result")


class Crew:
    """Applies functions to tasks in several processes.

    Parameters
    ----------
    workers : int, optional
        Processes. Default: one per processor. 1 stays in this process.
    progress : callable, optional
        Called with a sentence now and then.

    Attributes
    ----------
    processor_seconds : float
        Processor time of all tasks so far.
    """

    def __init__(self, workers: int | None = None, progress: Callable[[str], None] | None = None) -> None:
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise ValueError(
                f"workers must be a positive integer or None, got {workers!r}. Pass workers=1 to stay in one process."
            )
        self.workers = os.cpu_count() or 1 if workers is None else workers
        self.progress = progress
        self.processor_seconds = 0.0

    def say(self, sentence: str) -> None:
        """Tell whoever listens."""
        if self.progress is not None:
            self.progress(sentence)

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
        """``[function(task) for task in tasks]``; function and tasks must be picklable. Warnings are not shown."""
        results = []
        with closing(self._timed(function, list(tasks))) as outcomes:
            for result, seconds in outcomes:
                self.processor_seconds += seconds
                results.append(result)
        return results

    def _timed(self, function: Callable[[Task], Result], tasks: list[Task]) -> Generator[tuple[Result, float]]:
        processes = min(self.workers, len(tasks))
        if processes <= 1:
            for task in tasks:
                with threadpool_limits(1):
                    outcome = _run(function, task)
                yield outcome
            return
        with (
            parallel_config("loky", inner_max_num_threads=1),
            Parallel(processes, return_as="generator", max_nbytes=None) as pool,
        ):
            outcomes = pool(delayed(_run)(function, task) for task in tasks)
            try:
                yield from outcomes
            finally:
                with warnings.catch_warnings():
                    # The pool's advice about unused work is not for somebody who has pressed Ctrl-C.
                    warnings.simplefilter("ignore", UserWarning)
                    outcomes.close()


def _run(function: Callable[[Task], Result], task: Task) -> tuple[Result, float]:
    with warnings.catch_warnings():
        # What the library warns of (a negative scale, a printed step) is counted in the result.
        warnings.simplefilter("ignore", UserWarning)
        began = time.process_time()
        result = function(task)
        return result, time.process_time() - began
