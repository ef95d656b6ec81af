"""Run the experiments, one after the other, each on all processors, and keep what is finished."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from robustphase.atomic import write_text
from robustphase.experiments.parallel import Pool
from robustphase.experiments.reproduce import conditions, descents, end_to_end, lemmas, starts, tables
from robustphase.experiments.reproduce.verdict import Experiment, Verdict

#: The claims, in the order of the paper, each with one experiment or several.
CLAIMS = (
    "Lemma 2.1",
    "Lemma 2.2",
    "Lemma 2.3",
    "Theorem 3.1",
    "Theorem 3.2",
    "Theorem 3.3",
    "Theorem B.1",
    "Theorem B.2",
    "Theorem B.3",
    "Algorithm 4",
    "Table 1, samples",
    "Table 1, error",
    "Paper mode",
)
#: All experiments, in that order.
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    sorted(
        (
            experiment
            for module in (lemmas, starts, conditions, descents, tables, end_to_end)
            for experiment in module.EXPERIMENTS
        ),
        key=lambda experiment: CLAIMS.index(experiment.claim),
    )
)

#: Raised whenever the meaning of a stored verdict changes.
FORMAT = 1


class ReproductionInterrupted(KeyboardInterrupt):
    """An interruption that keeps what was finished.

    Attributes
    ----------
    verdicts : list of Verdict
        The finished ones.
    """

    def __init__(self, message: str, verdicts: list[Verdict]) -> None:
        super().__init__(message)
        self.verdicts = verdicts


def reproduce(
    claims: str | Iterable[str] | None = None,
    *,
    quick: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
    workers: int | None = None,
    draw: Callable[[Verdict], str] | None = None,
    resume: bool = False,
) -> list[Verdict]:
    """Put the paper's claims to the test.

    Parameters
    ----------
    claims : str or iterable of str, optional
        Which claims: names in :data:`CLAIMS` such as ``"Theorem 3.1"``, or one part, ``"Theorem 3.3, error against m"``.
        Default: all.
    quick : bool, default=False
        Fewer seeds and smaller dimensions: minutes where the full version takes most of an hour on two processors.
    folder : path, optional
        Where to keep verdicts (``verdicts-quick.json`` or ``verdicts-full.json``) and drawings; made if it is not there.
    progress : callable, optional
        Called with a sentence now and then.
    workers : int, optional
        Processes, one thread each. Default: one per processor. 1 stays in this process.
    draw : callable, optional
        From a verdict to SVG text, for ``verdict.data["figure"]``. With it and a folder every verdict gets a drawing.
    resume : bool, default=False
        Take over the verdicts that the folder already has from the same version and kind of run, and run only the rest.

    Returns
    -------
    list of Verdict
        In the order of the paper.

    Raises
    ------
    ReproductionInterrupted
        On Ctrl-C; holds the finished verdicts, which are also in the folder.

    Examples
    --------
    >>> from robustphase.experiments.reproduce import reproduce
    >>> verdicts = reproduce("Lemma 2.1", quick=True, workers=1)
    >>> [(verdict.part, verdict.verdict, verdict.erratum) for verdict in verdicts]
    [('strong convexity', 'erratum', 'A1'), ('smoothness', 'holds', None)]
    """
    chosen = choose(claims, quick=quick)
    store = None if folder is None else Store(Path(folder), quick=quick)
    if resume and store is None:
        raise ValueError("resume=True needs the folder that the verdicts are in. Pass folder=...")
    done = store.read() if resume and store is not None else {}
    pool = Pool(workers, progress)

    def finished() -> list[Verdict]:
        return [done[experiment.name] for experiment in chosen if experiment.name in done]

    try:
        for place, experiment in enumerate(chosen, start=1):
            if experiment.name in done:
                continue
            pool.say(f"{place} of {len(chosen)}: {experiment.name}")
            verdict = _timed(experiment, pool, quick)
            if store is not None and draw is not None:
                verdict = store.draw(verdict, draw)
            done[experiment.name] = verdict
            if store is not None:
                store.write(done)
            pool.say(str(verdict))
    except KeyboardInterrupt as interrupt:
        kept = f" They are in {store.path.name}; resume=True continues from there." if store is not None else ""
        raise ReproductionInterrupted(
            f"interrupted after {len(finished())} of {len(chosen)} experiments; finished verdicts are kept.{kept}",
            finished(),
        ) from interrupt
    return finished()


def choose(claims: str | Iterable[str] | None, *, quick: bool) -> list[Experiment]:
    """The experiments of these claims; a part that is asked for by name is run in the quick version too."""
    asked = None if claims is None else [claims] if isinstance(claims, str) else list(claims)
    if asked is None:
        return [experiment for experiment in EXPERIMENTS if experiment.in_quick or not quick]
    wanted = {_plain(name) for name in asked}
    known = {_plain(name) for experiment in EXPERIMENTS for name in (experiment.claim, experiment.name)}
    unknown = [name for name in asked if _plain(name) not in known]
    if unknown or not asked:
        wrong = f"there is no claim {unknown[0]!r}" if unknown else "claims is empty"
        raise ValueError(f"{wrong}. Choose from: {', '.join(CLAIMS)}.")
    return [
        experiment
        for experiment in EXPERIMENTS
        if _plain(experiment.name) in wanted
        or (_plain(experiment.claim) in wanted and (experiment.in_quick or not quick))
    ]


def places(folder: Path, chosen: Iterable[Experiment], *, quick: bool) -> list[Path]:
    """The files that these experiments may write to a folder: that of the verdicts first, then the drawings."""
    return [_verdicts(folder, quick=quick), *(_drawing(folder, experiment.name) for experiment in chosen)]


class Store:
    """Verdicts and drawings in a folder; quick and full verdicts are kept apart."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = _verdicts(folder, quick=quick)

    def read(self) -> dict[str, Verdict]:
        """Finished verdicts by name; none if there is no file."""
        if not self.path.exists():
            return {}
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            if (kept["format"], kept["version"]) != (FORMAT, _version()):
                raise ValueError(f"it is from version {kept['version']}, this is {_version()}")
            verdicts = [Verdict(**fields) for fields in kept["verdicts"]]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{self.path.name} cannot be continued ({error}). Remove it, or choose another folder."
            ) from error
        return {verdict.name: verdict for verdict in verdicts}

    def write(self, verdicts: dict[str, Verdict]) -> None:
        """Keep these verdicts; the file is replaced as a whole."""
        kept = {"format": FORMAT, "version": _version(), "verdicts": [v.to_dict() for v in verdicts.values()]}
        write_text(self.path, json.dumps(kept, ensure_ascii=False, indent=1, allow_nan=True))

    def draw(self, verdict: Verdict, draw: Callable[[Verdict], str]) -> Verdict:
        """Write the drawing of a verdict and say in the verdict where it is."""
        if "figure" not in verdict.data:
            return verdict
        path = _drawing(self.folder, verdict.name)
        write_text(path, draw(verdict))
        return replace(verdict, figure=str(path))


def _verdicts(folder: Path, *, quick: bool) -> Path:
    return folder / f"verdicts-{'quick' if quick else 'full'}.json"


def _drawing(folder: Path, name: str) -> Path:
    return folder / f"{slug(name)}.svg"


def slug(name: str) -> str:
    """A file name: "Theorem 3.3, error against σ" becomes "theorem-3-3-error-against-sigma"."""
    spelled = name.lower().replace("σ", "sigma").replace("ε", "epsilon")
    return re.sub(r"[^a-z0-9]+", "-", spelled).strip("-")


def _timed(experiment: Experiment, pool: Pool, quick: bool) -> Verdict:
    began, before = time.perf_counter(), pool.processor_seconds
    verdict = experiment.run(pool, quick)
    data: dict[str, Any] = {**verdict.data, "processor_seconds": pool.processor_seconds - before}
    return replace(verdict, seconds=time.perf_counter() - began, data=data)


def _plain(name: str) -> str:
    """Names are compared without case and spaces."""
    return "".join(name.lower().split())


def _version() -> str:
    # At call time: this module may be imported while the package is.
    from robustphase import __version__

    return __version__
