"""The workers of a cluster: whether they run the same robustphase, asked before rows go there, and who of them lives.

Kernels travel by their names, so a worker computes with its own copy of the package. One without it cannot read its tasks, and
one with another version may answer something else without a word. So every worker is asked first which version it has and for a
digest of the sources, and an error says who is different, within seconds. What is asked must not need the package: the function
travels by value and imports only what Python has.

While a pass is under way the scheduler is asked who is there. A worker that dies is noticed by Dask. One that freezes (a stopped
process, a machine that swaps) keeps its connections and is waited for by everybody, one whose memory is full takes no more tasks,
and when all are gone there is nobody to wait for. Within a stated time each of these is either mended, by giving up on the worker
so that others take over its rows, or an error that says what has happened.
"""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass
from time import monotonic
from typing import Any

from robustphase.constants import budget
from robustphase.formatting import in_bytes

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


@dataclass(frozen=True)
class WatchOptions:
    """Seconds; a healthy worker is heard of every half second, and of a thousand workers each every six."""

    beat: float = budget(2.0, "between two looks at the workers: short passes are over before the first")
    frozen: float = budget(
        60.0, "without a sign of life until a worker counts as lost; ten times the longest usual silence"
    )
    paused: float = budget(60.0, "until a worker that takes no tasks because its memory is full is an error")
    absent: float = budget(60.0, "without any worker until that is an error; a nanny restarts one within a few seconds")


WATCH = WatchOptions()


async def _drop(dask_scheduler: Any, addresses: list[str]) -> None:
    for address in addresses:
        await dask_scheduler.remove_worker(address, stimulus_id="robustphase-frozen")


# The scheduler need not have this package: the function travels by value.
_drop.__module__ = "__main__"


class Watch:
    """The workers of a client, ``alive`` as of the last look; see `WATCH` for how long is waited for what."""

    def __init__(self, client: Any) -> None:
        self._client, self._looks = client, 0
        self.alive: frozenset[str] = frozenset()
        self._heard: dict[str, tuple[float, float]] = {}
        self._full: dict[str, float] = {}
        self._nobody: float | None = None

    async def run(self) -> None:
        """Look again and again, and give up on frozen workers, until cancelled; raises where nothing can be mended."""
        self._heard.clear()
        self._full.clear()
        self._nobody = None
        while True:
            await asyncio.sleep(WATCH.beat)
            await self.look()

    async def look(self) -> frozenset[str]:
        """Ask the scheduler once; returns who lives."""
        workers = await self.workers()
        now = monotonic()
        frozen = [address for address, told in workers.items() if self._silence(address, told, now) > WATCH.frozen]
        if frozen:
            await self._give_up(frozen)
        self.alive = frozenset(workers) - frozenset(frozen)
        self._looks += 1
        self._check_memory({address: workers[address] for address in self.alive}, now)
        self._nobody = None if self.alive else self._nobody or now
        if self._nobody is not None and now - self._nobody > WATCH.absent:
            raise RuntimeError(
                f"the Dask cluster has had no workers for {WATCH.absent:g} seconds, so the pass over its rows cannot go "
                "on. Start workers, and fit again; out of memory is the usual reason why all of them are gone."
            )
        return self.alive

    async def gone(self, address: str | None) -> None:
        """Return when a worker is not among the living any more, which only a later look can tell."""
        before = self._looks
        while address is None or self._looks == before or address in self.alive:
            await asyncio.sleep(min(0.5, WATCH.beat))

    async def somebody(self) -> frozenset[str]:
        """The living, once there are any; `look` raises when it takes too long."""
        while not await self.look():
            await asyncio.sleep(min(0.5, WATCH.beat))
        return self.alive

    async def workers(self) -> dict[str, dict[str, Any]]:
        """What the scheduler says about every worker, by address."""
        if self._client.status not in ("running", "connecting"):
            raise RuntimeError(
                "the connection to the Dask scheduler is closed, so the pass cannot go on; connect again."
            )
        try:
            async with asyncio.timeout(WATCH.absent):
                told = await self._client.scheduler.identity()
        except (OSError, TimeoutError) as error:
            raise RuntimeError(
                f"the Dask scheduler does not answer ({type(error).__name__}), so the pass cannot go on; start it again, and the "
                "workers with it."
            ) from error
        workers: dict[str, dict[str, Any]] = told["workers"]
        return workers

    def _silence(self, address: str, told: dict[str, Any], now: float) -> float:
        """Seconds since a worker was last heard of, by the clock of this process."""
        heard = float(told.get("last_seen", 0.0))
        known = self._heard.get(address)
        if known is None or known[0] != heard:
            self._heard[address] = heard, now
        return now - self._heard[address][1]

    def _check_memory(self, workers: dict[str, dict[str, Any]], now: float) -> None:
        for address, told in workers.items():
            if told.get("status") != "paused":
                self._full.pop(address, None)
                continue
            if now - self._full.setdefault(address, now) > WATCH.paused:
                limit = in_bytes(int(told.get("memory_limit") or 0))
                raise RuntimeError(
                    f"the Dask worker {address} has taken no tasks for {WATCH.paused:g} seconds because its memory, "
                    f"{limit}, is full. Give the workers more of it, or use more of them."
                )

    async def _give_up(self, frozen: list[str]) -> None:
        try:
            await self._client._run_on_scheduler(_drop, addresses=frozen)
        except Exception as error:
            raise RuntimeError(
                f"the Dask worker {frozen[0]} has given no sign of life for {WATCH.frozen:g} seconds, and the scheduler "
                f"does not let go of it ({type(error).__name__}); end it, and fit again."
            ) from error
