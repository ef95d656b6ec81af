"""Open an HDF5 file in a process of its own first: a damaged one can crash the HDF5 library, or keep it busy without end.

No exception is raised then, and the process is gone with everything in it. So before a file that was given by its path is
opened here, a child process does with it what will be done here: finds the datasets, walks through the index of their chunks,
reads their ends. What the child does not survive is not tried again. It costs a quarter of a second for each file, once as
long as the file does not change.

The notes beside the samples, which no fit needs, are only ever read by the child.

This file is also the program that the child runs, on its own: ``python -I hdf5_probe.py``, with the task on its standard input.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from threading import Lock
from typing import Any

#: Seconds of computing, and seconds in all, after which the child is ended: an intact file takes a fraction of a second.
COMPUTING, PATIENCE = 10, 60
#: Bytes of address space that the child may take beyond what it has after its imports.
ROOM = 1 << 30
#: Names of datasets that are looked for at once, whichever is asked for first.
CUSTOMARY = ("A", "y", "truth")
#: The attribute with the notes, and how many characters of it are read.
NOTES, MOST_NOTES = "metadata", 1 << 20
#: What the child has to say about the notes.
_NOTES = "the notes"
#: Links from one name to another that are followed before it must be a circle.
MOST_LINKS = 16

_found: dict[tuple[Any, ...], dict[str, Any]] = {}
_guard = Lock()


class OutsideError(ValueError):
    """A name that leads to another file."""


def probe(path: str | os.PathLike[str], name: str | None) -> str | None:
    """Why a dataset must not be opened, as part of a sentence; None if it may. Without a name only the file counts."""
    answers = _answers(path, () if name is None else (name,))
    failed = answers["failed"]
    if failed is None or (name is not None and name in answers["done"]) or (name is None and answers["opened"]):
        return None
    return str(failed)


def notes_of(path: str | os.PathLike[str]) -> str:
    """The notes in a file; empty where there are none or they cannot be read."""
    return str(_answers(path, ())["done"].get(_NOTES) or "")


def resolved(file: Any, name: str, h5py: Any) -> Any:
    """The object of a name in a file, or None; links within the file are followed, links out of it are an `OutsideError`."""
    followed = 0
    waiting, here = [part for part in name.split("/") if part], file
    while waiting:
        part = waiting.pop(0)
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if isinstance(link, h5py.ExternalLink):
            raise OutsideError(
                f"{name} is a link to another file, which is not followed; copy the dataset into this file"
            )
        if isinstance(link, h5py.SoftLink):
            followed += 1
            if followed > MOST_LINKS:
                return None
            waiting = [step for step in link.path.split("/") if step] + waiting
            here = file if link.path.startswith("/") else here
            continue
        if link is None:
            return None
        here = here[part]
    return here


def _answers(path: str | os.PathLike[str], names: tuple[str, ...]) -> dict[str, Any]:
    status = os.stat(path)
    key = (os.path.realpath(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    with _guard:
        known = _found.get(key)
    if known is not None and set(names) <= known["asked"]:
        return known
    asked = [*dict.fromkeys((*names, *CUSTOMARY))]
    answers = _ask(os.fspath(path), asked) | {"asked": {*asked}}
    with _guard:
        if len(_found) > 64:
            _found.clear()
        _found[key] = answers
    return answers


def _ask(path: str, names: list[str]) -> dict[str, Any]:
    """What the child says: whether it could open the file, what it has done, and what went wrong with the rest."""
    answers: dict[str, Any] = {"opened": False, "done": {}, "failed": None}
    if not sys.executable or sys.platform in ("emscripten", "wasi") or not os.path.isfile(__file__):
        return answers  # No other process can be had.
    task = json.dumps({"path": os.path.abspath(path), "names": names, "sys.path": [p for p in sys.path if p]})
    command = [sys.executable, "-I", os.path.abspath(__file__)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(command, input=task.encode(), capture_output=True, timeout=PATIENCE, env=environment)
        output, code = ended.stdout, ended.returncode
    except subprocess.TimeoutExpired as late:
        output, code = late.stdout or b"", None
    except OSError:  # No process can be started just now: the file is opened as it is.
        return answers
    finished = False
    for line in output.splitlines():
        try:
            said, value = json.loads(line)
        except (ValueError, TypeError):
            continue
        if said == "opened":
            answers["opened"] = True
        elif said == "end":
            finished = True
        else:
            answers["done"][said] = value
    if not finished:
        answers["failed"] = _cause(code)
    return answers


def _cause(code: int | None) -> str:
    hung = code is None or (code < 0 and -code == getattr(signal, "SIGXCPU", 0))
    return "the HDF5 library " + (
        "did not come to an end with it; the file is damaged" if hung else "crashed on it; the file is damaged"
    )


def _say(said: str, value: Any = None) -> None:
    print(json.dumps([said, value]), flush=True)


def _look(file: Any, name: str, h5py: Any) -> None:
    """Do with a dataset what a fit will do with it."""
    dataset = resolved(file, name, h5py)
    if not isinstance(dataset, h5py.Dataset):
        return
    dataset.dtype, dataset.is_virtual, dataset.external  # noqa: B018
    plist = dataset.id.get_create_plist()
    for index in range(plist.get_nfilters()):
        plist.get_filter(index)
    if not dataset.shape or 0 in dataset.shape or dataset.is_virtual or dataset.external:
        return
    dataset.id.get_storage_size()
    if dataset.chunks is not None:
        dataset.id.get_num_chunks()
        if hasattr(dataset.id, "chunk_iter"):
            dataset.id.chunk_iter(lambda _: None)
    else:
        dataset.id.get_offset()
    if dataset.chunks is not None and len(dataset.chunks) == len(dataset.shape):
        # What it unpacks to is not known yet, and is found before it is read here: only where it lies is asked for.
        dataset.id.get_chunk_info_by_coord(tuple(0 for _ in dataset.shape))
        return
    ends = tuple(size - 1 for size in dataset.shape)
    dataset[tuple(0 for _ in ends)], dataset[ends]


def _limit() -> None:
    import resource  # Not on Windows.

    used = 0
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm", encoding="ascii") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
    for kind, most in ((resource.RLIMIT_CPU, COMPUTING), (resource.RLIMIT_AS, used + ROOM), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, hard))


def _main() -> None:
    """What the child does."""
    task = json.loads(sys.stdin.buffer.read())
    sys.path[:] = task["sys.path"]
    h5py = import_module("h5py")
    if sys.platform != "win32":
        _limit()
    with h5py.File(task["path"], "r") as file:
        _say("opened")
        for name in task["names"]:
            with suppress(Exception):  # It will be raised again where there is somebody to tell.
                _look(file, name, h5py)
            _say(name)
        with suppress(Exception):
            text = file.attrs.get(NOTES, "")
            _say(_NOTES, text[:MOST_NOTES] if isinstance(text, str) else "")
        _say("end")


if __name__ == "__main__":
    try:
        _main()
    except Exception:  # Not a crash: the same error is raised where the file is opened next.
        _say("opened")
        _say("end")
