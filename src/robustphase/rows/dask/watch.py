"""Who of a cluster's workers is there and lives, asked of the scheduler while a pass is under way.

A worker that dies is noticed by Dask. One that freezes (a stopped process, a machine that swaps) keeps its connections and is
waited for by everybody, one whose memory is full takes no more tasks, and when all are gone there is nobody to wait for.
Within a stated time each of these is either mended, by giving up on the worker so that others take over its rows, or an error
that says what has happened.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import Any

from robustphase.constants import budget
from robustphase.formatting import in_bytes


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
    """The workers of a client; see `WATCH` for how long is waited for what.

    Parameters
    ----------
    client : distributed.Client
        The client.

    Attributes
    ----------
    alive : frozenset of str
        Addresses of the workers, as of the last look.
    """

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
