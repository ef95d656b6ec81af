"""Threads over row blocks, with BLAS held to one thread inside.

Measured on two cores (n=500, m=100000, float64; ``make bench`` repeats it): letting BLAS split each product reads
``A`` once but pays for two synchronisations per block and reached about 75 % of the streaming-read limit; one Python
thread per core, each walking its own blocks with single-threaded products, came within a few percent of it. The
products must be ``np.dot`` or ``np.vecdot``: they always let go of the interpreter lock, whereas ``@`` keeps it while it
computes small results, which made two threads slower than one.

Each thread keeps memory for its blocks (:func:`scratch`): asking the system anew costs more than what is done with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock, local
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")


class _SingleThreadedBlas:
    """Hold BLAS to one thread while anybody needs it, and give back what was there before.

    The setting is global to the process, so nested and concurrent users are counted: the first one in lowers it, the
    last one out restores it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._libraries: list[Any] | None = None
        self._users = 0
        self._before: list[int] = []

    def _controllers(self) -> list[Any]:
        if self._libraries is None:
            self._libraries = list(ThreadpoolController().select(user_api="blas").lib_controllers)
        return self._libraries

    def allowed(self) -> int:
        """How many threads BLAS may use when nobody holds it."""
        with self._lock:
            counts = self._before if self._users else [library.get_num_threads() for library in self._controllers()]
            return max(counts) if counts else (os.cpu_count() or 1)

    def enter(self) -> None:
        """Lower BLAS to one thread."""
        with self._lock:
            libraries = self._controllers()
            if self._users == 0:
                self._before = [library.get_num_threads() for library in libraries]
                for library in libraries:
                    library.set_num_threads(1)
            self._users += 1

    def leave(self) -> None:
        """Undo one :meth:`enter`."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for library, threads in zip(self._controllers(), self._before, strict=True):
                    library.set_num_threads(threads)


_blas = _SingleThreadedBlas()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = Lock()


def _forget_pool() -> None:
    """Threads do not survive a fork: let the child start its own."""
    global _pool, _pool_size, _pool_lock
    _pool, _pool_size, _pool_lock = None, 0, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _shared_pool(workers: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _pool_lock:
        if _pool is None or _pool_size < workers:
            _pool = ThreadPoolExecutor(workers, thread_name_prefix="robustphase")
            _pool_size = workers
        return _pool


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Context with BLAS held to one thread."""
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


def allowed_threads() -> int:
    """How many threads we may use: as many as BLAS was allowed.

    So ``OMP_NUM_THREADS``, ``threadpoolctl`` and the limits that joblib sets in its workers all hold for us too.
    """
    return _blas.allowed()


def run_in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """``[work(t) for t in tasks]``, one thread per task; the calling thread takes the first."""
    if len(tasks) == 1:
        return [work(tasks[0])]
    pool = _shared_pool(len(tasks) - 1)
    others = [pool.submit(work, task) for task in tasks[1:]]
    try:
        first = work(tasks[0])
    finally:
        # An exception in the first part must not leave the others running on the caller's arrays.
        for other in others:
            other.exception()
    return [first, *(other.result() for other in others)]


class _Kept(local):
    """Arrays of one thread, by what they are for."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}


_kept = _Kept()


def scratch(purpose: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of this thread that the next call for the same purpose overwrites; what is in it does not matter."""
    size = int(np.prod(shape))
    array = _kept.arrays.get(purpose)
    if array is None or array.dtype != dtype or array.size < size:
        array = _kept.arrays[purpose] = np.empty(size, dtype)
    return array[:size].reshape(shape)
