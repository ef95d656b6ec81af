"""Any methods against any adversaries: every world is made once, and every method runs on it.

The unit of work is a world with all methods that have not run on it yet, so that all see the same samples and only small
tables travel between processes. Worlds run in parallel, one thread each. Whatever a method does, raising an error included,
is a row of the result; a comparison that is interrupted keeps its finished rows, and continues from them if it has a file.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from typing import Any, TypeAlias

from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from robustphase import simulate
from robustphase.experiments.comparison import Comparison
from robustphase.experiments.methods import Method, find_methods, oracle_least_squares, read_answer
from robustphase.experiments.parallel import in_processes, worker_count
from robustphase.experiments.store import Outcome, Run, RunStore, Settings, WorldKey, make_run
from robustphase.population import distance

Progress: TypeAlias = Callable[[int, int, str], None]
Task: TypeAlias = tuple[WorldKey, dict[str, Method | None]]


class ComparisonInterrupted(KeyboardInterrupt):
    """An interruption that keeps what was finished.

    Attributes
    ----------
    partial : Comparison
        The runs so far.
    """

    def __init__(self, message: str, partial: Comparison) -> None:
        super().__init__(message)
        self.partial = partial


def compare(
    methods: str | Iterable[str] | Mapping[str, Method],
    attacks: str | Iterable[str],
    contaminations: float | Iterable[float],
    noises: str | Iterable[str] = ("student",),
    *,
    noise_mean: float = 0.0,
    n: int = 100,
    m: int = 5000,
    seeds: int | Sequence[int] = 3,
    noise_std: float = 0.5,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run methods in worlds with adversaries, and tabulate who survives, how accurately, and in what time.

    Parameters
    ----------
    methods : iterable of str, or mapping
        ``"robustphase"``, ``"robustphase-auto"`` (which finds the contamination), ``"oracle"`` (told which samples are clean),
        any key of ``robustphase.baselines.METHODS``; or a mapping from names to functions
        ``method(A, y, contamination, noise_mean_known)`` that return a signal.
    attacks : iterable of str
        Names in ``robustphase.simulate.ADVERSARIES``, ``"none"``, or ``"all"`` for all of the former.
    contaminations : iterable of float
        Fractions that the adversaries may rewrite. Methods that ask for it are told the truth.
    noises : iterable of str, default=("student",)
        Names in ``robustphase.simulate.NOISES``.
    noise_mean : float, default=0.0
        Background relative to ‖x*‖². If it is not zero, methods are told that it is unknown.
    n, m : int
        Dimension and number of samples.
    seeds : int or sequence of int, default=3
        How many worlds of each kind, or their seeds.
    noise_std : float, default=0.5
        Standard deviation of the noise relative to ‖x*‖².
    workers : int, optional
        Processes, one thread each. Default: one per processor. 1 stays in this process.
    out : path, optional
        A ``.csv`` file that keeps finished runs. Called again with the same settings, only what is missing is run.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after every world.

    Returns
    -------
    Comparison

    Raises
    ------
    ComparisonInterrupted
        On Ctrl-C; holds the finished runs as ``partial``, which are also in ``out``.

    Examples
    --------
    >>> import robustphase as rp
    >>> table = compare(["robustphase", "wirtinger_flow"], "decoy", 0.1, n=20, m=600, seeds=1, workers=1)
    >>> [(group.key["method"], group.survived) for group in table.summary(by=["method"])]
    [('robustphase', 1), ('wirtinger_flow', 0)]
    """
    chosen = find_methods(methods)
    settings = Settings(int(n), int(m), float(noise_std), float(noise_mean))
    worlds = list_worlds(attacks, contaminations, noises, seeds)
    store = None if out is None else RunStore(out, settings, _version())
    done = {(run.method, run.world): run for run in store.finished} if store else {}
    tasks = [(w, rest) for w in worlds if (rest := {k: v for k, v in chosen.items() if (k, w) not in done})]

    def collected() -> Comparison:
        return Comparison(tuple(done[name, world] for world in worlds for name in chosen if (name, world) in done))

    finished = len(worlds) - len(tasks)
    try:
        work = partial(_run_task, settings=settings)
        with closing(in_processes(work, tasks, worker_count(workers), ordered=False)) as batches:
            for runs in batches:
                if store is not None:
                    store.append(runs)
                done.update({(run.method, run.world): run for run in runs})
                finished += 1
                if progress is not None:
                    progress(finished, len(worlds), f"{runs[0].attack}, contamination {runs[0].contamination:g}")
    except KeyboardInterrupt as interrupt:
        kept = f" They are in {store.path.name}; the same call continues from there." if store is not None else ""
        raise ComparisonInterrupted(
            f"interrupted after {finished} of {len(worlds)} worlds; finished runs are kept.{kept}", collected()
        ) from interrupt
    finally:
        if store is not None:
            store.close()
    return collected()


def list_worlds(
    attacks: str | Iterable[str],
    contaminations: float | Iterable[float],
    noises: str | Iterable[str],
    seeds: int | Sequence[int],
) -> list[WorldKey]:
    """All worlds of a comparison, checked, in the order of the arguments and without repetition."""
    named: list[str] = []
    for attack in _several(attacks):
        named += list(simulate.ADVERSARIES) if attack == "all" else [attack]
    levels = [float(level) for level in _several(contaminations)]
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    worlds = [WorldKey(*key) for key in dict.fromkeys(product(named, levels, _several(noises), numbers))]
    if not worlds:
        raise ValueError("attacks, contaminations, noises and seeds must each hold at least one value.")
    for attack, level, noise in dict.fromkeys(world[:3] for world in worlds):
        # The smallest world there is: whatever is wrong is said here, and not by a worker hours later.
        simulate.make_world(
            1, 1, attack="none" if attack == "none" else attack, contamination=level, noise=noise, seed=0
        )
    return worlds


def _run_task(task: Task, settings: Settings) -> list[Run]:
    return run_world(*task, settings)


def run_world(world: WorldKey, methods: Mapping[str, Method | None], settings: Settings) -> list[Run]:
    """Make a world and run every method on it, one after the other, each on its own copy of the samples."""
    data = simulate.make_world(
        settings.n,
        settings.m,
        attack=world.attack,
        contamination=world.contamination,
        noise=world.noise,
        noise_std=settings.noise_std,
        noise_mean=settings.noise_mean,
        seed=world.seed,
    )
    known = settings.noise_mean == 0.0
    oracle_error = distance(_oracle(data, known), data.truth, relative=True)
    return [
        make_run(name, world, settings, _attempt(method, data, known), oracle_error) for name, method in methods.items()
    ]


def _attempt(method: Method | None, data: simulate.World, known: bool) -> Outcome:
    """What one method does; an exception is an outcome like any other."""
    A, y = data.A.copy(), data.y.copy()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        began = time.process_time()
        try:
            if method is None:
                answer: Any = _oracle(data, known)
            else:
                answer = method(A, y, data.contamination, known)
            seconds = time.process_time() - began
            signal, converged = read_answer(answer, data.truth.size)
        except Exception as problem:
            return Outcome(float("inf"), time.process_time() - began, False, f"{type(problem).__name__}: {problem}")
    advice = [str(warning.message) for warning in said if issubclass(warning.category, ConvergenceWarning)]
    error = distance(signal, data.truth, relative=True)
    return Outcome(error, seconds, converged, advice[-1] if advice else "")


def _oracle(data: simulate.World, known: bool) -> NDArray[Any]:
    clean = data.clean
    return oracle_least_squares(data.A[clean], data.y[clean], data.truth, background=None if known else data.noise_mean)


def _several(values: Any) -> list[Any]:
    """A list of what was given as one thing or several."""
    return [values] if isinstance(values, (str, float, int)) else list(values)


def _version() -> str:
    # At call time: this module is imported while the package is.
    from robustphase import __version__

    return __version__
