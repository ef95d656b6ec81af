"""Rows on the workers of a Dask cluster, and passes over them: one task per worker and pass.

The rows are brought to the workers once, as one *shard* on each. A pass sends every worker the kernel and its own slices of the
per-sample arrays, and takes back sums and per-sample values; the sums are added in the order of the shards, not of their arrival.
Nothing in the scheduler grows with the number of blocks or of passes.

What is small travels with the task, through the scheduler. What is large goes directly from here to the worker, and per-sample
arrays stay there for a while under a hash of their content, because passes often come with the arrays of the pass before.

A worker may die at any time. Its shard is then made again elsewhere, from the recipe of the array; what had been sent to the
worker is sent again from here, and only the part of the pass that is missing is repeated. Shards stay what they are, so the sums
do as well. Who dies, freezes or is full is for ``workers`` to see, which asks beforehand whether they run the same version.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from robustphase.formatting import in_bytes
from robustphase.rows.blocked import MIN_BYTES_PER_THREAD
from robustphase.rows.dask.partition import (
    Beside,
    Place,
    called,
    cuts_of,
    in_place,
    make_shard,
    partition,
    put,
    remake_shard,
    sweep_shard,
    take,
)
from robustphase.rows.dask.serialise import serialise
from robustphase.rows.dask.workers import Watch, check_workers
from robustphase.rows.io.limits import reason, require
from robustphase.rows.source import Array, Kernel, Parts, add_sums

#: Up to this size things travel with the task. The scheduler sees all of it once in and once out.
INLINE_BYTES = 64 << 10
#: How many bytes of per-sample arrays a worker keeps: this share of its rows, or these bytes per row if that is more.
KEPT_SHARE, KEPT_PER_ROW = 1 / 8, 64
#: How often a part of a pass is tried. Dask itself gives each try several workers.
TRIES = 3
#: Seconds to wait for a worker that does not answer before asking where its rows are now.
PATIENCE = 3.0
#: Name of everything that comes and goes with a pass; Dask files it together.
TASK = "robustphase-pass"
#: How many rows passes may see together: the library pairs its samples.
PAIRING = 2
#: Share of a worker's memory that its rows may take: beyond it Dask lets the worker take no more tasks.
MOST_OF_MEMORY = 0.8

Answer = TypeVar("Answer")


class Slice(NamedTuple):
    """A worker's part of a per-sample array; large ones with a name made of their content. Or what it holds already."""

    values: Array | Beside
    digest: bytes | None

    @property
    def nbytes(self) -> int:
        """What has to be sent."""
        return 0 if isinstance(self.values, Beside) else self.values.nbytes


class Part:
    """One shard of the rows, those of its place."""

    def __init__(self, place: Place, shard: Any) -> None:
        self.place, self.shard = place, shard
        #: Where the shard was seen last; None while nobody has it.
        self.worker: str | None = place.worker
        #: Per-sample slices on the worker, by digest, the one used last at the end.
        self.kept: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
        #: What the worker holds beside its rows, by name.
        self.beside: dict[str, Any] = {}
        #: Whether a worker that held it is gone.
        self.lost = False

    def keep_at_most(self, most: int) -> None:
        """Let go of the slices that were not used for longest."""
        total = sum(size for _, size in self.kept.values())
        while self.kept and total > most:
            _, (_, size) = self.kept.popitem(last=False)
            total -= size


class Cluster:
    """A Dask array, with one chunk across the columns, on the workers of a client; computed with in ``dtype``.

    For ``block_rows`` and ``threads`` of each worker see :class:`~robustphase.rows.blocked.BlockedRows`.
    """

    def __init__(
        self,
        array: Any,
        client: Any,
        dtype: np.dtype[Any],
        *,
        block_rows: int | None = None,
        threads: int | None = None,
    ) -> None:
        if client.asynchronous:
            raise TypeError("a fit waits for its passes; give it a client that was not made with asynchronous=True.")
        self.array, self.client, self.dtype = array, client, dtype
        self.block_rows, self.threads = block_rows, threads
        self.parts: list[Part] = []
        self._edges = [0, *np.cumsum(array.chunks[0]).tolist()]
        self._pairing = 0
        self._direct = False
        self._anchor: Any = None
        self._lock = Lock()
        self._lost = _losses()
        self._watch = Watch(client)

    def reduce(self, kernel: Kernel, per_row: Sequence[Array | Beside], pairing: int) -> Parts:
        """One pass; see :meth:`robustphase.rows.source.RowSource.reduce`. Nothing is sent of what workers hold beside rows."""
        with self._lock:  # Passes of several threads may come first at the same time.
            self._lay_out(pairing)
            parts = self.parts
        serialised = serialise(kernel)
        orders = [[_slice(values, part.place.swept(pairing)) for values in per_row] for part in parts]
        found = self.client.sync(self._watched, self._sweep(parts, serialised, orders, pairing))
        return combined(parts, found, self.array.shape[0] // pairing, pairing)

    def close(self) -> None:
        """Let the workers forget the rows."""
        self.parts, self._pairing, self._anchor = [], 0, None

    # --- before the first pass -----------------------------------------------------------------------------------------

    def _lay_out(self, pairing: int) -> None:
        """Bring the rows to the workers, unless they are there in a way that serves such a pairing."""
        if self.parts and pairing in (1, self._pairing):
            return
        self.close()
        workers = self.client.nthreads()
        if not workers:
            raise RuntimeError(
                "the Dask cluster has no workers to hold the rows. Start some, and wait for them with "
                "client.wait_for_workers(n): the rows are spread over the workers that are there when a fit begins."
            )
        usable = set(self.client.sync(check_workers, self.client, list(workers)))
        workers = {address: threads for address, threads in workers.items() if address in usable}
        in_memory = self._chunk_futures(self.array)
        if in_memory is not None and pairing == 1:
            holders = self._holders(in_memory)
            places, self._pairing = in_place(self._edges, holders, workers), 1
        else:
            self._pairing = max(pairing, PAIRING)
            places = partition(self._edges, workers, self._pairing)
            self._check_memory(places)
        self.parts = [Part(place, self._build(place, self.array)) for place in places]
        self._await_shards()
        self._direct = self.client.sync(self._reaches_workers)
        # The scheduler keeps a record of every group of tasks that it has seen the end of. While one task is left, the group
        # of the passes has no end, and there is one record and not one for every pass.
        self._anchor = self.client.submit(int, key=f"{TASK}-{uuid.uuid4().hex}")

    def _chunk_futures(self, array: Any) -> list[Any] | None:
        """The chunks of an array that was persisted with this client, in order."""
        distributed = require("distributed", extra="dask", purpose="fitting on a Dask cluster")
        futures = {future.key: future for future in distributed.futures_of(array) if future.client is self.client}
        keys = [key for (key,) in array.__dask_keys__()]
        return [futures[key] for key in keys] if all(key in futures for key in keys) else None

    def _holders(self, chunks: list[Any]) -> list[str]:
        """Who holds each chunk, asked once."""
        distributed = require("distributed", extra="dask", purpose="fitting on a Dask cluster")
        distributed.wait(chunks)
        who_has = self.client.who_has(chunks)
        for chunk in chunks:
            if not who_has.get(chunk.key):
                chunk.result()  # Raises what went wrong with it.
                who_has = self.client.who_has(chunks)
        return [min(who_has[chunk.key]) for chunk in chunks]

    def _build(self, place: Place, array: Any, *, again: bool = False) -> Any:
        """Ask for a shard of an array with the chunks of the rows; the answer comes at once, the shard when it is made."""
        dask = require("dask", extra="dask", purpose="fitting on a Dask cluster")
        chunks = self._chunk_futures(array)
        bytes_held = place.rows * array.shape[1] * self.dtype.itemsize
        cuts = [cut for start, stop in place.ranges for cut in cuts_of(self._edges, start, stop)]
        options = {
            "owned": chunks is None or self._pairing > 1,
            "block_rows": self.block_rows,
            "threads": self.threads or int(max(1, min(place.threads, bytes_held // MIN_BYTES_PER_THREAD))),
        }
        described = (cuts, array.shape[1], array.dtype)
        where = {"workers": [place.worker], "allow_other_workers": True}
        key = f"robustphase-shard-{uuid.uuid4().hex}"
        if chunks is not None:
            held = [chunks[cut.chunk] for cut in cuts]
            return self.client.submit(make_shard, held, *described, **options, **where, key=key)
        # One expression for each range and not for the whole array, which would be sent to the scheduler for every worker.
        wanted = [[cut.chunk for cut in cuts_of(self._edges, start, stop)] for start, stop in place.ranges]
        # Chunks without rows are no part of any cut.
        ranges = [array.blocks[[*indices]] for indices in wanted if indices]
        if again and not self._futures_in(ranges):
            # As one task: what was asked for before, under its name, may be waiting for a worker that never comes back.
            return self.client.submit(remake_shard, _recipe(ranges), *described, **options, **where, key=key)
        held = [one for blocks in ranges for one in blocks.to_delayed().ravel()]
        make = dask.delayed(make_shard, pure=False)
        return self.client.compute(make(held, *described, **options, dask_key_name=key), **where)

    def _futures_in(self, arrays: list[Any]) -> bool:
        """Whether some of what the arrays are made of is on the workers already."""
        distributed = require("distributed", extra="dask", purpose="fitting on a Dask cluster")
        return any(distributed.futures_of(array) for array in arrays)

    def _await_shards(self) -> None:
        try:
            self.client.sync(self._watched, self._all_made())
        except BaseException:  # Ctrl-C included: the workers would keep rows that nobody asks for any more.
            self.close()
            raise

    async def _all_made(self) -> None:
        for found in await asyncio.gather(*map(self._made, self.parts), return_exceptions=True):
            if isinstance(found, BaseException):
                raise found

    async def _made(self, part: Part) -> None:
        """Wait for a shard; if its worker is gone before it is made, it is made elsewhere."""
        await self._until_done(part, lambda: self._finished(part.shard))

    async def _finished(self, shard: Any) -> None:
        await shard._state.wait()
        if shard.status == "error":
            raise await shard._exception()
        if shard.status != "finished":
            raise CancelledError(shard.status)

    def _check_memory(self, places: Sequence[Place]) -> None:
        """Refuse rows that a worker has no memory for, before they are brought there."""
        told = self.client.sync(self._watch.workers)
        for place in places:
            needed = place.rows * self.array.shape[1] * self.dtype.itemsize
            limit = int(told.get(place.worker, {}).get("memory_limit") or 0)
            if limit and needed > MOST_OF_MEMORY * limit:
                raise RuntimeError(
                    f"the rows need {in_bytes(needed)} on the Dask worker {place.worker}, which may take {in_bytes(limit)} in "
                    "all. Give the workers more memory, or use more of them."
                )

    async def _watched(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do something while the workers are watched, which ends it where it could only wait for ever."""
        doing, watching = asyncio.ensure_future(work), asyncio.ensure_future(self._watch.run())
        try:
            await asyncio.wait({doing, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                watching.result()
            return await doing
        finally:
            for task in (doing, watching):
                task.cancel()
            await asyncio.gather(doing, watching, return_exceptions=True)

    async def _while_there(self, part: Part, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do something with a worker; a `TimeoutError` if it is gone before that is done."""
        doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._watch.gone(part.worker))
        try:
            await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise TimeoutError(f"the worker {part.worker} is gone")
            return await doing
        finally:
            for task in (doing, leaving):
                task.cancel()
            await asyncio.gather(doing, leaving, return_exceptions=True)

    def _is_loss(self, error: BaseException) -> bool:
        """Whether an error means that a worker is gone. Dask sometimes only says that it does not know its address."""
        unknown = isinstance(error, (KeyError, ValueError)) and "://" in str(error)
        return isinstance(error, self._lost) or unknown

    async def _reaches_workers(self) -> bool:
        """Whether the workers can be talked to from here, or only through the scheduler."""
        told: bool | None = self.client.direct_to_workers
        if told is not None:
            return told
        try:
            async with asyncio.timeout(PATIENCE):
                await self.client.rpc(self.parts[0].worker).identity()
        except (OSError, TimeoutError):
            return False
        return True

    # --- a pass ----------------------------------------------------------------------------------------------------------

    async def _sweep(
        self, parts: list[Part], serialised: bytes, orders: list[list[Slice]], pairing: int
    ) -> list[Parts]:
        work = [self._sweep_part(part, serialised, order, pairing) for part, order in zip(parts, orders, strict=True)]
        # All are waited for even if one fails: nobody shall be left computing for a caller that has gone.
        found = await asyncio.gather(*work, return_exceptions=True)
        for result in found:
            if isinstance(result, BaseException):
                raise result
        return [result for result in found if isinstance(result, Parts)]

    async def _sweep_part(self, part: Part, serialised: bytes, order: list[Slice], pairing: int) -> Parts:
        return await self._until_done(part, lambda: self._try_part(part, serialised, order, pairing))

    async def _until_done(self, part: Part, work: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Do something with the worker of a shard; if it is gone before that is done, with the one that has it next."""
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._while_there(part, work())
            except Exception as error:
                if not self._is_loss(error):
                    raise
                if not tries_left:
                    raise RuntimeError(_gave_up(error)) from error
                await self._find_again(part)
        raise AssertionError("unreachable")

    async def _try_part(self, part: Part, serialised: bytes, order: list[Slice], pairing: int) -> Parts:
        arguments = await self._send(part, serialised, order)
        where = {"workers": [part.worker], "allow_other_workers": True} if part.worker else {}
        key = f"{TASK}-{uuid.uuid4().hex}"
        done = self.client.submit(sweep_shard, part.shard, arguments[0], pairing, *arguments[1:], **where, key=key)
        try:
            parts: Parts = await self.client.gather(done, direct=self._direct, asynchronous=True)
        finally:
            done.release()
        return parts

    async def _send(self, part: Part, serialised: bytes, order: list[Slice]) -> list[Any]:
        """What a task is called with: small things themselves, and futures of what is on the worker."""
        arguments: list[Any] = [serialised, *(values for values, _ in order)]
        missing = [0] if len(serialised) > INLINE_BYTES else []
        for position, (_, digest) in enumerate(order, start=1):
            held = arguments[position]
            if isinstance(held, Beside):
                arguments[position] = self._held_beside(part, held)
            if digest is None:
                continue
            future, size = part.kept.pop(digest, (None, 0))
            if future is not None and future.status == "finished":
                part.kept[digest] = future, size
                arguments[position] = future
            else:
                missing.append(position)
        if missing:
            names = [f"{TASK}-{uuid.uuid4().hex}" for _ in missing]
            sent = await self.client.scatter(
                {name: arguments[position] for name, position in zip(names, missing, strict=True)},
                workers=[part.worker] if part.worker else None,
                direct=self._direct,
                timeout=PATIENCE,
                asynchronous=True,
            )
            for position, future in zip(missing, (sent[name] for name in names), strict=True):
                digest = order[position - 1].digest if position else None
                if digest is not None:
                    part.kept[digest] = future, order[position - 1].nbytes
                arguments[position] = future
        per_row = max(KEPT_SHARE * self.array.shape[1] * self.dtype.itemsize, KEPT_PER_ROW)
        part.keep_at_most(int(per_row * part.place.rows))
        return arguments

    def _held_beside(self, part: Part, values: Beside) -> Any:
        """What a worker holds beside its rows; made on it, and made again where that is gone."""
        known = part.beside.get(values.name)
        if known is None or known.status in ("lost", "cancelled", "error"):
            place = part.place if part.worker is None else part.place._replace(worker=part.worker)
            part.beside[values.name] = self._build(place, values.array, again=part.lost or known is not None)
        return part.beside[values.name]

    async def _find_again(self, part: Part) -> None:
        """After a loss: forget what was sent, and have the shard made anew unless somebody who lives has it."""
        part.kept.clear()
        part.beside.clear()
        part.lost = True
        alive = await self._watch.somebody()
        if part.shard.status == "finished":
            who_has = await self.client.who_has([part.shard])
            holders = alive.intersection(who_has.get(part.shard.key) or ())
            if holders:
                part.worker = min(holders)
                return
        # Not left to Dask: what it had meant for a worker that is gone it never gives to one that comes later.
        usual, others = part.place.worker, sorted(alive)
        part.worker = usual if usual in alive else others[self.parts.index(part) % len(others)]
        part.shard = self._build(part.place._replace(worker=part.worker), self.array, again=True)


def _recipe(arrays: list[Any]) -> bytes:
    """How to make the chunks of some arrays, one after the other, without a scheduler."""
    dask = require("dask", extra="dask", purpose="fitting on a Dask cluster")
    local = require("dask.local", extra="dask", purpose="fitting on a Dask cluster")
    made = []
    for array in dask.optimize(*arrays):
        keys = [key for (key,) in array.__dask_keys__()]
        made.append(partial(local.get_sync, dict(array.__dask_graph__()), keys))
    return serialise(partial(called, made))


def combined(parts: list[Part], found: list[Parts], count: int, pairing: int) -> Parts:
    """Sums added in the order of the shards, and per-sample values put where they belong."""
    totals: tuple[Array, ...] = ()
    rows: tuple[Array, ...] = ()
    for part, result in zip(parts, found, strict=True):
        totals = add_sums(totals, result.sums)
        rows = rows or tuple(np.empty((count, *values.shape[1:]), values.dtype) for values in result.rows)
        for out, values in zip(rows, result.rows, strict=True):
            put(out, part.place.swept(pairing), values)
    return Parts(totals, rows)


def _slice(values: Array | Beside, ranges: Sequence[tuple[int, int]]) -> Slice:
    if isinstance(values, Beside):
        return Slice(values, None)
    values = np.ascontiguousarray(take(values, ranges))
    if values.nbytes <= INLINE_BYTES:
        return Slice(values, None)
    digest = hashlib.sha256(f"{values.dtype.str} {values.shape}".encode("ascii"))
    digest.update(values.reshape(-1).view(np.uint8).data)
    return Slice(values, digest.digest())


def _losses() -> tuple[type[Exception], ...]:
    """What it looks like from here when a worker is gone."""
    distributed = require("distributed", extra="dask", purpose="fitting on a Dask cluster")
    return (CancelledError, distributed.scheduler.KilledWorker, OSError, TimeoutError)


def _gave_up(error: BaseException) -> str:
    return (
        f"a part of a pass over the Dask array was lost {TRIES} times ({type(error).__name__}: {reason(error)}). Workers that "
        "run out of memory are the usual cause: give them more of it, or use more of them. Rows that were scattered, and "
        "not computed from a file or a function, cannot be brought back after the worker that held them is gone."
    )
