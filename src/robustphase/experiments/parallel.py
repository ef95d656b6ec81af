"""Work in several processes: one per processor, one thread in each."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from functools import partial
from itertools import islice
from numbers import Integral
from typing import TypeVar

from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits

#: Seconds after which workers without a task end.
IDLE = 300
#: What keeps the libraries of a worker in one thread.
ONE_THREAD = {
    f"{library}_THREADS": "1"
    for library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM")
}
#: Workers that wait for further tasks, by their number. The executor that joblib keeps for itself is not for others.
_WAITING: dict[int, ProcessPoolExecutor] = {}

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
    executor, left = _WAITING.pop(processes, None), iter(tasks)
    if executor is None:
        executor = ProcessPoolExecutor(processes, timeout=IDLE, env=ONE_THREAD)
    handed_out: list[Future[Result]] = []
    try:
        while True:
            ahead = 2 * processes - sum(not one.done() for one in handed_out)
            handed_out += [executor.submit(function, task) for task in islice(left, ahead)]
            if not handed_out:
                break
            finished = next((one for one in handed_out[: 1 if ordered else None] if one.done()), None)
            if finished is None:
                wait([one for one in handed_out if not one.done()], return_when=FIRST_COMPLETED)
            else:
                handed_out.remove(finished)
                yield finished.result()
    except BaseException:  # Ctrl-C, an error of a task, or the generator is closed
        _stop(executor, handed_out)
        raise
    if _WAITING.setdefault(processes, executor) is not executor:
        executor.shutdown(wait=False)


def _stop(executor: ProcessPoolExecutor, handed_out: Sequence[Future[Result]]) -> None:
    """End the workers with what they are doing.

    The executor loses its footing where it is stopped before it has passed a task on to its workers, so that is waited for: it
    takes no longer than it takes to send the task, since there is room for all that are handed out.
    """
    while not all(one.running() or one.done() for one in handed_out):
        time.sleep(0.001)
    executor.shutdown(kill_workers=True)


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
