"""A look at the workers before rows go to them: whether they run the same robustphase.

Kernels travel by their names, so a worker computes with its own copy of the package. One without it cannot read its tasks,
and one with another version may answer something else without a word. So every worker is asked first which version it has and
for a digest of the sources, and an error says who is different, within seconds.

What is asked must not need the package: the function travels by value and imports only what Python has.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

#: Seconds until a worker that does not answer is left out.
PATIENCE = 20.0
#: How many workers an error lists.
LISTED = 5


def identify() -> dict[str, Any]:
    """Version and digest of the package in this process, and what else must agree; no version where there is no package."""
    import hashlib
    import importlib.util
    import os
    import re
    import sys

    found: dict[str, Any] = {
        "python": "{}.{}".format(*sys.version_info),
        "version": None,
        "digest": None,
        "stale": False,
    }
    spec = importlib.util.find_spec("robustphase")
    if spec is None or not spec.submodule_search_locations:
        return found
    top, newest, digest = next(iter(spec.submodule_search_locations)), 0.0, hashlib.blake2b(digest_size=16)
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                newest = max(newest, os.stat(path).st_mtime)
                with open(path, "rb") as file:
                    source = file.read().replace(b"\r\n", b"\n")
                digest.update(f"{os.path.relpath(path, top)} {len(source)}\n".replace(os.sep, "/").encode())
                digest.update(source)
                if folder == top and name == "__init__.py":
                    version = re.search(rb'__version__ = "([^"]+)"', source)
                    found["version"] = version[1].decode() if version else "?"
    found["digest"] = digest.hexdigest()
    if "robustphase" in sys.modules:
        try:
            # Dask brings it. What was imported may be older than files that have changed since the process began.
            process = importlib.import_module("psutil").Process()
            found["stale"] = newest > process.create_time()
        except Exception:  # It cannot be told.
            return found
    return found


# A function of a module that the other side does not have travels by value, not by name.
identify.__module__ = "__main__"


async def check_workers(client: Any, workers: list[str]) -> list[str]:
    """Those of some workers that run what this process runs; the others are an error, and the silent ones a warning.

    Parameters
    ----------
    client : distributed.Client
        The client; to be called in its event loop.
    workers : list of str
        Addresses.

    Raises
    ------
    RuntimeError
        If a worker has no robustphase or another one, or if none answers.
    """
    ours = identify()
    answers = await asyncio.gather(*(_ask(client, worker) for worker in workers))
    silent = [worker for worker, answer in zip(workers, answers, strict=True) if answer is None]
    different = {
        worker: said
        for worker, answer in zip(workers, answers, strict=True)
        if answer is not None and (said := _difference(ours, answer))
    }
    if different:
        listed = "; ".join(f"{worker} {said}" for worker, said in list(different.items())[:LISTED])
        more = f"; and {len(different) - LISTED} more" if len(different) > LISTED else ""
        raise RuntimeError(
            f"{len(different)} of the {len(workers)} Dask workers do not run the robustphase of this process "
            f"({ours['version']}, Python {ours['python']}): {listed}{more}. Install the same version everywhere and restart the "
            "workers."
        )
    if len(silent) == len(workers):
        raise RuntimeError(
            f"none of the {len(workers)} Dask workers has answered within {PATIENCE:g} seconds; look after them, or restart them."
        )
    if silent:
        warnings.warn(
            f"{len(silent)} of the {len(workers)} Dask workers have not answered within {PATIENCE:g} seconds and get no rows: "
            f"{', '.join(silent[:LISTED])}.",
            UserWarning,
            stacklevel=2,
        )
    return [worker for worker in workers if worker not in silent]


async def _ask(client: Any, worker: str) -> Any:
    """The answer of a worker: a dictionary, an exception, or None if there is none in time."""
    try:
        async with asyncio.timeout(PATIENCE):
            answers = await client._run(identify, workers=[worker], on_error="return")
    except (TimeoutError, OSError):
        return None
    return answers.get(worker)


def _difference(ours: dict[str, Any], theirs: Any) -> str:
    """What is different about a worker; empty if nothing is."""
    if not isinstance(theirs, dict):
        # Gone since it was listed: others will hold its rows.
        return (
            "" if isinstance(theirs, (OSError, TimeoutError)) else f"says {type(theirs).__name__}: {str(theirs)[:80]}"
        )
    if theirs["version"] is None:
        return "has none"
    if theirs["version"] != ours["version"]:
        return f"has {theirs['version']}"
    if theirs["digest"] != ours["digest"]:
        return f"has {theirs['version']} with other sources"
    if theirs["python"] != ours["python"]:
        return f"has Python {theirs['python']}"
    if theirs["stale"]:
        return "has loaded sources that have changed since it was started"
    return ""
