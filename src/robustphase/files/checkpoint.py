"""A folder that keeps the finished passes of a fit, so that after a kill it goes on where it was.

``problem.json`` says what is being computed: data, settings, versions, and a word drawn at random for this run. Each pass is
a file beside it (see ``passes``), and they form a chain: the checksum of a pass is keyed with the problem and with the pass
before it, so that a pass of another run, on other data or after another past, is as good as none wherever it was copied from.
Every file is written under another name and moved, so at whatever moment the process dies, a file is whole or absent; what
the disk itself damages is noticed by its checksum and made again. Only regular files are read, replaced or removed: with a
link, a pipe or a device under a name of ours the folder is refused, and hidden files that are not ours are left alone.

Results wait in memory, up to 64 MB of them, and are written together every half minute: a short fit writes next to nothing,
and a long one loses half a minute at most.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import scipy

import robustphase
from robustphase.atomic import NotRegularFileError, open_regular, require_regular, write_text, written_for
from robustphase.files.fingerprint import digest_by_rows, fingerprint
from robustphase.files.passes import SealedPass, read_pass, seal_pass, write_pass
from robustphase.rows import Parts, ReplayedRows, RowSource, as_source
from robustphase.rows.io.limits import DataError, reason
from robustphase.rows.source import Array
from robustphase.rows.threads import allowed_threads

try:
    import fcntl
except ImportError:  # Windows: two processes with the same folder are not told apart there.
    fcntl = None  # type: ignore[assignment]

#: Raised whenever the meaning of the folder changes.
FORMAT = 2
#: Seconds between writes, and bytes of results that may wait for the next one.
INTERVAL, MOST_WAITING = 30.0, 64 << 20
#: The file that makes a folder a checkpoint.
PROBLEM = "problem.json"
#: Settings that do not change the answer.
IRRELEVANT = frozenset({"verbose", "callback"})
_OURS = re.compile(r"\d{6,}\.pass|problem\.json")


class CheckpointError(DataError):
    """A checkpoint that cannot be used: one plain sentence that says why, and what to do."""


@contextmanager
def checkpointed(
    folder: str | os.PathLike[str],
    model: Any,
    covariates: Any,
    responses: Any,
    *,
    interval: float = INTERVAL,
    resume: bool = True,
    keep: bool = False,
) -> Iterator[ReplayedRows]:
    """Rows to fit a model to, whose passes are kept in a folder: after a kill, the same lines go on where they were.

    The answer is that of a fit which was not interrupted, bit for bit: passes already made are answered from the folder, and
    everything between them is done again. When the block ends well the folder is removed. After an interruption or a failure
    of the disk it stays; a mistake in the data or the settings, which no second attempt would mend, removes it as well.

    Parameters
    ----------
    folder : path
        Where to keep the passes; created if there is none. See :func:`~robustphase.files.checkpoint_needed` for its size.
    model : estimator or mapping
        What will be computed: an estimator with ``get_params``, or a dictionary of settings. A folder that was begun with other
        settings is refused.
    covariates : RowSource or array-like of shape (m, n), or path
        ``A``; other data in a second attempt is refused (see :func:`~robustphase.files.fingerprint`).
    responses : array-like of shape (m,)
        ``y``.
    interval : float, default=30
        Seconds between writes, at most these are lost. 0 writes after every pass.
    resume : bool, default=True
        Go on from what the folder holds. False: refuse a folder that holds a checkpoint.
    keep : bool, default=False
        Leave the folder in place at the end.

    Yields
    ------
    ReplayedRows
        What to give to ``fit`` in place of the covariates. Its attribute ``recalled`` counts the passes that needed no work.

    Raises
    ------
    CheckpointError
        If the folder belongs to another problem or version, is in use, or holds something else: other files, or links, pipes or
        devices in place of its own.

    Examples
    --------
    >>> import tempfile, pathlib, robustphase as rp
    >>> world = rp.simulate.make_world(n=10, m=500, contamination=0.1, attack="decoy", seed=0)
    >>> model = rp.RobustPhaseRetrieval(contamination=0.1)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with checkpointed(pathlib.Path(place, "run"), model, world.A, world.y) as rows:
    ...         signal = model.fit(rows, world.y).signal_
    >>> bool(rp.distance(signal, world.truth, relative=True) < 0.2)
    True
    """
    source = as_source(covariates)
    checkpoint = Checkpoint(folder, problem_of(model, source, responses), interval=interval, resume=resume)
    try:
        yield ReplayedRows(source, checkpoint)
    except BaseException as error:  # Ctrl-C included: what was computed so far is kept.
        if isinstance(error, (ValueError, TypeError)) and not isinstance(error, DataError) and not checkpoint.resumed:
            checkpoint.remove()
        else:
            checkpoint.flush()
        raise
    else:
        if keep:
            checkpoint.flush()
        else:
            checkpoint.remove()
    finally:
        checkpoint.close()


class Checkpoint:
    """The passes of one fit in a folder; a :class:`~robustphase.rows.replay.ReplayLog`.

    The folder is created if there is none; with ``resume`` it may hold a checkpoint of the same problem (see
    :func:`problem_of`) already, and ``resumed`` says whether it did. There are ``interval`` seconds between writes.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        problem: dict[str, Any],
        *,
        interval: float = INTERVAL,
        resume: bool = True,
    ) -> None:
        if not interval >= 0:
            raise ValueError(f"interval must be zero or a positive number of seconds, got {interval!r}.")
        self.folder, self.interval = Path(os.path.abspath(folder)), interval
        self._waiting: list[tuple[int, SealedPass]] = []
        self._waiting_bytes = 0
        self._following = self._keeping = True
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"the folder '{self.folder}' cannot be made for the checkpoint: {error.strerror or reason(error)}."
            ) from error
        self._lock = _Lock(self.folder)
        try:
            self.resumed = self._open(problem, resume)
        except BaseException:  # Ctrl-C included: nobody gets this object, so nobody else could let go of the lock.
            self._lock.release()
            raise
        self._written = monotonic()

    def _open(self, problem: dict[str, Any], resume: bool) -> bool:
        names = sorted(path.name for path in self.folder.iterdir())
        halves = [name for name in names if _OURS.fullmatch(written_for(name) or "")]
        strangers = [name for name in names if not name.startswith(".") and not _OURS.fullmatch(name)]
        if strangers:
            raise CheckpointError(
                f"'{self.folder}' holds {strangers[0]} and so is no folder of ours; choose another for the checkpoint."
            )
        try:
            for name in names:
                if name in halves or _OURS.fullmatch(name):
                    require_regular(self.folder / name)
        except NotRegularFileError as error:
            raise CheckpointError(f"the checkpoint '{self.folder}' cannot be used: {error}.") from error
        for name in halves:  # From when the process was killed.
            (self.folder / name).unlink(missing_ok=True)
        if PROBLEM not in names:
            # Nothing can be said about passes without a problem.
            self._clear()
            begun = problem | {"run": secrets.token_hex(16)}
            self._begin_chain(begun)
            write_text(self.folder / PROBLEM, json.dumps(begun, indent=1) + "\n", follow=False)
            return False
        if not resume:
            raise CheckpointError(
                f"'{self.folder}' holds the checkpoint of an earlier run. Pass resume=True to go on from it, or remove it."
            )
        found = _read_problem(self.folder)
        _compare(found, problem, self.folder)
        self._begin_chain(found)
        return True

    def _begin_chain(self, problem: dict[str, Any]) -> None:
        self._key = chain_key(problem)
        self._link = next_link(self._key, b"")

    def recall(self, number: int, call: str) -> Parts | None:
        """The result of a pass, if it is on the disk and asks for the same; see :class:`~robustphase.rows.replay.ReplayLog`."""
        if not self._following or not self.resumed:
            return None
        found = read_pass(self._path(number), number, self._link)
        if found is None:
            return None
        recorded, parts, checksum = found
        if recorded == call:
            self._link = next_link(self._key, checksum)
            return parts
        self._following = False
        warnings.warn(
            f"the run agrees with its checkpoint up to pass {number} and takes another way from there, as it can on another "
            "machine or with another number of threads; the rest is computed anew.",
            UserWarning,
            stacklevel=2,
        )
        return None

    def record(self, number: int, call: str, parts: Parts) -> None:
        """Keep the result of a pass; see :class:`~robustphase.rows.replay.ReplayLog`."""
        if not self._keeping:
            return
        size = sum(array.nbytes for array in (*parts.sums, *parts.rows))
        due = monotonic() - self._written >= self.interval or self._waiting_bytes + size > MOST_WAITING
        if not due:
            # The arrays belong to the caller, who may compute in them.
            parts = Parts(tuple(a.copy("K") for a in parts.sums), tuple(a.copy("K") for a in parts.rows))
        sealed = seal_pass(number, call, parts, self._link)
        self._link = next_link(self._key, sealed.checksum)
        self._waiting.append((number, sealed))
        self._waiting_bytes += size
        if due:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting. A disk that is full or gone ends the keeping, not the fit: a warning says so."""
        try:
            while self._waiting:
                number, sealed = self._waiting[0]
                write_pass(self._path(number), sealed)
                del self._waiting[0]
        except OSError as error:
            self._keeping = False
            self._waiting.clear()
            warnings.warn(
                f"the checkpoint cannot be kept any further, and the fit goes on without it: {reason(error)}.",
                UserWarning,
                stacklevel=2,
            )
        self._waiting_bytes = sum(array.nbytes for _, sealed in self._waiting for array in sealed.arrays)
        self._written = monotonic()

    def remove(self) -> None:
        """Delete the folder: the passes first, so that a kill meanwhile leaves a checkpoint that can be used."""
        self._keeping = False
        self._waiting.clear()
        self._clear()
        with suppress(OSError):
            (self.folder / PROBLEM).unlink(missing_ok=True)
            self.folder.rmdir()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.release()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.pass"

    def _clear(self) -> None:
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.name != PROBLEM and _OURS.fullmatch(path.name):
                    path.unlink(missing_ok=True)


def chain_key(problem: dict[str, Any]) -> bytes:
    """What all passes of a run have in common: a digest of everything that ``problem.json`` says."""
    return hashlib.blake2b(json.dumps(problem, sort_keys=True).encode("utf-8"), digest_size=32).digest()


def next_link(key: bytes, checksum: bytes) -> bytes:
    """The key for the checksum of a pass, from that of the pass before it."""
    return hashlib.blake2b(checksum, key=key, digest_size=32).digest()


def count_passes(folder: str | os.PathLike[str]) -> int:
    """How many passes of a checkpoint, from the first one on, are whole and of its own run."""
    key = chain_key(_read_problem(Path(folder)))
    link, number = next_link(key, b""), 0
    while (found := read_pass(Path(folder) / f"{number:06d}.pass", number, link)) is not None:
        link, number = next_link(key, found[2]), number + 1
    return number


def problem_of(model: Any, source: RowSource, responses: Any) -> dict[str, Any]:
    """What is being computed, as JSON can hold it: data, settings, and the versions that compute it."""
    settings = model if isinstance(model, Mapping) else model.get_params(deep=False)
    m, n = source.shape
    return {
        "format": FORMAT,
        "versions": {"robustphase": robustphase.__version__, "numpy": np.__version__, "scipy": scipy.__version__},
        "data": {"samples": m, "unknowns": n, "type": source.dtype.name, "fingerprint": _data_name(source, responses)},
        "settings": {name: _plain(name, settings[name]) for name in sorted(settings) if name not in IRRELEVANT},
        "threads": getattr(source, "threads", None) or allowed_threads(),
    }


def _data_name(source: RowSource, responses: Any) -> str:
    try:
        return fingerprint(source, responses)
    except TypeError:
        # Rows on other machines cannot be read in order, but one pass looks at all of them.
        return digest_by_rows(source, responses)


def _plain(name: str, value: Any) -> Any:
    """A setting as JSON can hold it; arrays by their content."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.random.RandomState) or hasattr(value, "bit_generator"):
        raise CheckpointError(
            f"{name} must be None or a whole number for a run with a checkpoint: a generator would be in another state when "
            "the run goes on."
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        array: Array = np.asarray(value)
        if array.dtype.kind in "fciub":
            digest = hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()
            return f"array {array.dtype.str} {array.shape} {digest[:16]}"
    raise CheckpointError(
        f"{name} is a {type(value).__name__}, and a run with a checkpoint needs settings that are numbers, words or arrays."
    )


def _read_problem(folder: Path) -> dict[str, Any]:
    try:
        with open_regular(folder / PROBLEM) as file:
            found = json.loads(file.read().decode("utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no description")
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"'{folder / PROBLEM}' cannot be read, so nobody knows what the checkpoint is about: {reason(error)}. Remove the "
            "folder to begin anew."
        ) from error
    return found


def _compare(found: dict[str, Any], wanted: dict[str, Any], folder: Path) -> None:
    """Refuse to go on with another problem; warn where only the last digits may differ."""
    anew = "or begin anew in another folder."
    if found.get("format") != wanted["format"]:
        raise CheckpointError(
            f"the checkpoint '{folder}' was written in format {found.get('format')}, and this version uses {wanted['format']}. "
            f"Finish with the version it was made by, {anew}"
        )
    versions = _differences(found, wanted, "versions")
    if versions:
        raise CheckpointError(
            f"the checkpoint '{folder}' was made by other versions, whose passes may mean something else: {versions}. Finish "
            f"with those, {anew}"
        )
    others = "; ".join(filter(None, (_differences(found, wanted, part) for part in ("data", "settings"))))
    if others:
        raise CheckpointError(
            f"the checkpoint '{folder}' belongs to another problem: {others}. Go on with the same data and settings, {anew}"
        )
    if found.get("threads") != wanted["threads"]:
        warnings.warn(
            f"the checkpoint was made with {found.get('threads')} threads, now there are {wanted['threads']}: the last digits "
            "of the answer may differ from those of a run that was not interrupted.",
            UserWarning,
            stacklevel=2,
        )


def _differences(found: dict[str, Any], wanted: dict[str, Any], part: str) -> str:
    """What is not the same, in words."""
    before, now = found.get(part), wanted[part]
    if not isinstance(before, dict):
        return f"its {part} are missing"
    return "; ".join(
        f"{name} was {_short(before.get(name))} and is {_short(now.get(name))} now"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name) or (name in before) != (name in now)
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"


class _Lock:
    """Keeps a second process away from a folder; the system lets go of it when this one dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        if fcntl is None:
            return
        self._descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise CheckpointError(f"the checkpoint '{folder}' is in use by another process; wait for it.") from error
        except OSError:
            # Some network drives have no locks.
            self.release()

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
