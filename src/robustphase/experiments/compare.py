"""Any methods against any adversaries: every world is made once, and every method runs on it.

The unit of work is a world with all methods that have not run on it yet, so that all see the same samples and only small
tables travel between processes. Worlds run in parallel, one thread each. Whatever a method does, raising an error included,
is a row of the result; a comparison that is interrupted keeps its finished rows, and continues from them if it has a file.

What was found is tidy rows, of which there are summaries and tables.
"""

from __future__ import annotations

import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from robustphase import simulate
from robustphase.atomic import replacing
from robustphase.experiments.methods import ORACLE, OURS, Method, find_methods, oracle_least_squares, read_answer
from robustphase.experiments.parallel import in_processes, worker_count
from robustphase.experiments.store import Outcome, Run, RunStore, Settings, WorldKey, make_run
from robustphase.formatting import short_number
from robustphase.options import with_defaults
from robustphase.population import distance

#: The method in whose time all times are given.
PLAIN = "wirtinger_flow"


class Group(NamedTuple):
    """Summary of the runs that share some fields.

    Attributes
    ----------
    key : dict
        The fields and their values.
    runs, survived, raised : int
        How many runs, how many ended with an error of at most 0.25, how many raised an error.
    survival : float
        Share of the runs that survived.
    median_ratio, worst_ratio : float
        Of the error over the oracle's; infinite where a method raised.
    median_seconds : float
        Processor time.
    time_ratio : float
        Median of the time over that of Wirtinger flow in the same world; NaN if that was not run.
    converged : float
        Share of the runs that say they converged.
    """

    key: dict[str, Any]
    runs: int
    survived: int
    raised: int
    survival: float
    median_ratio: float
    worst_ratio: float
    median_seconds: float
    time_ratio: float
    converged: float


class Loss(NamedTuple):
    """A world in which our method is lost and some rival is not."""

    world: WorldKey
    error: float
    rivals: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods in the same worlds.

    Attributes
    ----------
    runs : tuple of Run
        One per method and world.
    """

    runs: tuple[Run, ...]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the order of their first runs."""
        return tuple(dict.fromkeys(run.method for run in self.runs))

    def columns(self) -> dict[str, list[Any]]:
        """The runs as columns: ``pandas.DataFrame(comparison.columns())`` is the tidy table."""
        return {name: [getattr(run, name) for run in self.runs] for name in Run._fields}

    def only(self, **fields: Any) -> Comparison:
        """The runs whose fields have these values, for example ``only(method="robustphase", contamination=0.1)``."""
        _check_fields(fields)
        return Comparison(tuple(r for r in self.runs if all(getattr(r, k) == v for k, v in fields.items())))

    def summary(self, by: Sequence[str] = ("method", "contamination")) -> list[Group]:
        """Survival, accuracy and time of every group of runs.

        Parameters
        ----------
        by : sequence of str
            Fields of `Run` that make a group.

        Returns
        -------
        list of Group
            In the order in which the groups first occur.
        """
        by = (by,) if isinstance(by, str) else tuple(by)
        _check_fields(by)
        plain = {run.world: run.seconds for run in self.runs if run.method == PLAIN}
        groups: dict[tuple[Any, ...], list[Run]] = {}
        for run in self.runs:
            groups.setdefault(tuple(getattr(run, name) for name in by), []).append(run)
        return [_summarise(dict(zip(by, key, strict=True)), runs, plain) for key, runs in groups.items()]

    def losses(self, method: str = OURS[0]) -> list[Loss]:
        """Worlds in which ``method`` is lost although a rival survives; the oracle and our other forms are no rivals."""
        by_world: dict[WorldKey, list[Run]] = {}
        for run in self.runs:
            by_world.setdefault(run.world, []).append(run)
        found = []
        for world, runs in by_world.items():
            rivals = tuple(r.method for r in runs if r.survived and r.method not in (ORACLE, *OURS, method))
            found += [Loss(world, r.error, rivals) for r in runs if r.method == method and not r.survived and rivals]
        return found

    def markdown(self, by: Sequence[str] = ("method", "contamination")) -> str:
        """The summary as a table in Markdown, time beside accuracy."""
        by = (by,) if isinstance(by, str) else tuple(by)
        columns: dict[str, Callable[[Group], str]] = {
            "survived": lambda g: f"{g.survived} of {g.runs} ({g.survival:.0%})",
            "median ratio": lambda g: short_number(g.median_ratio),
            "worst ratio": lambda g: short_number(g.worst_ratio),
            "median seconds": lambda g: short_number(g.median_seconds),
            "time / Wirtinger flow": lambda g: short_number(g.time_ratio),
            "raised": lambda g: str(g.raised) if g.raised else "",
        }
        groups = self.summary(by)
        return table(
            [*by, *columns], [[*map(str, g.key.values()), *(show(g) for show in columns.values())] for g in groups]
        )

    def attack_table(self, methods: Sequence[str] | None = None) -> str:
        """Who survives which attack, as a table in Markdown.

        A cell is a tick where all runs survive, and otherwise the number of survivors at each contamination, separated by
        strokes. Bold: more survivors than ours in the same row.
        """
        chosen = [m for m in self.methods if m != ORACLE] if methods is None else list(methods)
        groups = {tuple(g.key.values()): g for g in self.summary(("attack", "method", "contamination"))}
        levels = list(dict.fromkeys(run.contamination for run in self.runs))
        attacks = list(dict.fromkeys(run.attack for run in self.runs))

        def survivors(attack: str, method: str) -> list[Group]:
            return [groups[attack, method, level] for level in levels if (attack, method, level) in groups]

        def cell(attack: str, method: str) -> str:
            row = survivors(attack, method)
            text = "✓" if all(g.survived == g.runs for g in row) else "/".join(str(g.survived) for g in row)
            ours = survivors(attack, OURS[0])
            better = method not in OURS and any(g.survived > o.survived for g, o in zip(row, ours, strict=False))
            return f"**{text}**" if better else text

        return table(
            ["attack", *chosen], [[attack, *(cell(attack, method) for method in chosen)] for attack in attacks]
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table, as ``.csv`` or ``.parquet``; the file appears whole or not at all."""
        path = Path(path)
        writers = {".csv": self._write_csv, ".parquet": self._write_parquet}
        if path.suffix not in writers:
            raise ValueError(f"path must end in .csv or .parquet, got {path.name!r}.")
        with replacing(path) as temporary:
            writers[path.suffix](temporary)

    def _write_csv(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Run._fields)
            writer.writerows(self.runs)

    def _write_parquet(self, path: Path) -> None:
        try:
            # By name: the package has no types, and need not be there.
            pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise ImportError(
                "a .parquet file needs pyarrow; install it with: pip install 'robustphase[parquet]', or write a .csv file."
            ) from error
        parquet.write_table(pyarrow.table(self.columns()), path)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _summarise(key: dict[str, Any], runs: list[Run], plain: dict[WorldKey, float]) -> Group:
    times = [run.seconds / max(plain[run.world], 1e-9) for run in runs if run.world in plain]
    survived = sum(run.survived for run in runs)
    return Group(
        key=key,
        runs=len(runs),
        survived=survived,
        raised=sum(run.raised for run in runs),
        survival=survived / len(runs),
        median_ratio=float(np.median([run.ratio for run in runs])),
        worst_ratio=max(run.ratio for run in runs),
        median_seconds=float(np.median([run.seconds for run in runs])),
        time_ratio=float(np.median(times)) if times else np.nan,
        converged=sum(run.converged for run in runs) / len(runs),
    )


def _check_fields(names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in Run._fields]
    if unknown:
        raise ValueError(f"a run has no field {unknown[0]!r}; its fields are {', '.join(Run._fields)}.")


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


class CompareOptions(TypedDict, total=False):
    """What all worlds of a comparison share, and how it is run; described by :func:`compare`."""

    n: int
    m: int
    noise_std: float
    noise_mean: float
    workers: int | None
    progress: Progress | None


DEFAULTS = CompareOptions(n=100, m=5000, noise_std=0.5, noise_mean=0.0, workers=None, progress=None)


def compare(
    methods: str | Iterable[str] | Mapping[str, Method],
    attacks: str | Iterable[str],
    contaminations: float | Iterable[float],
    noises: str | Iterable[str] = ("student",),
    *,
    seeds: int | Sequence[int] = 3,
    out: str | os.PathLike[str] | None = None,
    **options: Unpack[CompareOptions],
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
    seeds : int or sequence of int, default=3
        How many worlds of each kind, or their seeds.
    out : path, optional
        A ``.csv`` file that keeps finished runs. Called again with the same settings, only what is missing is run.

    Other Parameters
    ----------------
    n, m : int, default=100 and 5000
        Dimension and number of samples.
    noise_std : float, default=0.5
        Standard deviation of the noise relative to ‖x*‖².
    noise_mean : float, default=0.0
        Background relative to ‖x*‖². If it is not zero, methods are told that it is unknown.
    workers : int, optional
        Processes, one thread each. Default: one per processor. 1 stays in this process.
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
    given = with_defaults(DEFAULTS, options, compare)
    chosen, progress = find_methods(methods), given["progress"]
    settings = Settings(int(given["n"]), int(given["m"]), float(given["noise_std"]), float(given["noise_mean"]))
    worlds = list_worlds(attacks, contaminations, noises, seeds)
    store = None if out is None else RunStore(out, settings, _version())
    done = {(run.method, run.world): run for run in store.finished} if store else {}
    tasks = [(w, rest) for w in worlds if (rest := {k: v for k, v in chosen.items() if (k, w) not in done})]

    def collected() -> Comparison:
        return Comparison(tuple(done[name, world] for world in worlds for name in chosen if (name, world) in done))

    finished = len(worlds) - len(tasks)
    try:
        work = partial(_run_task, settings=settings)
        with closing(in_processes(work, tasks, worker_count(given["workers"]), ordered=False)) as batches:
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
