"""Fits of data on disk against the time it takes to read the data: ``python -m benchmarks disk [--kinds .h5] [--big]``.

For every kind of file: seconds of one pure reading (4 MiB at a time, nothing computed), with the page cache of the file dropped
and with the file in the cache; seconds of one pass through the row source; then a fit, with its passes, and the ratio of its time
to that of reading the file as many times. Fits are made as the data comes, so small files are read from the cache.

``--big`` is the experiment with more data than memory: 8 GB (n=1000, m=1000000) and a process that may have 1 GB. The limit
is ``RLIMIT_DATA``, which counts all memory that a process can write to; the page cache, which it does not count, is taken away
twice a second, so that every pass reads from the disk. The kernel's own count of bytes read from storage shows that it did.
Where control groups are at hand, ``systemd-run --user --scope -p MemoryMax=1G python -m benchmarks disk --big`` limits the
cache too.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import numpy as np

import robustphase as rp
from benchmarks.options import call
from robustphase.files import available_memory, memory_needed, open_samples, save_samples
from robustphase.formatting import in_bytes
from robustphase.rows import MemoryRows, project
from robustphase.rows.blocked import BlockedRows

KINDS = (".npz", ".h5", ".zarr", ".parquet")
#: Where large files are written unless told.
TEMPORARY = Path(tempfile.gettempdir())
#: Rows that are made together, from a seed of their own, so that any range of them can be made again.
TOGETHER = 1000
CONTAMINATION = 0.1


class MadeRows(BlockedRows):
    """Covariates made when they are asked for: standard normal, and a tenth of them drawn out along a direction."""

    def __init__(self, m: int, n: int, seed: int = 0) -> None:
        super().__init__(threads=1)
        self.shape, self.dtype, self._seed = (m, n), np.dtype(np.float64), seed
        rng = np.random.default_rng([seed, 1])
        self.truth, self.decoy = rng.standard_normal((2, n)) / np.sqrt(n)

    def bad(self) -> np.ndarray:
        """Which samples are bad: the first tenth of the rows that are made together."""
        return np.arange(self.shape[0]) % TOGETHER < CONTAMINATION * TOGETHER

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows made, or made again."""
        rows = np.empty((stop - start, self.shape[1]))
        for first in range(start - start % TOGETHER, stop, TOGETHER):
            made = np.random.default_rng([self._seed, 2, first]).standard_normal((TOGETHER, self.shape[1]))
            made[: int(CONTAMINATION * TOGETHER)] += 2 * self.decoy
            low, high = max(first, start), min(first + TOGETHER, stop)
            rows[low - start : high - start] = made[low - first : high - first]
        return rows

    def responses(self) -> np.ndarray:
        """Those of the good samples explained by the truth, those of the bad ones by another signal; Student-t noise."""
        projections = project(self, np.stack((self.truth, self.decoy), axis=1))
        noise = 0.3 * np.random.default_rng([self._seed, 3]).standard_t(3, self.shape[0])
        return np.where(self.bad(), projections[:, 1] ** 2, projections[:, 0] ** 2) + noise


def files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def drop_cache(path: Path) -> None:
    """Ask the system to forget the file; pages that somebody has mapped stay."""
    for file in files_of(path):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def read_purely(path: Path) -> float:
    """Seconds to read every byte once, into the same 4 MiB."""
    buffer, began = memoryview(bytearray(4 << 20)), time.perf_counter()
    for file in files_of(path):
        with open(file, "rb", buffering=0) as handle:
            while handle.readinto(buffer):
                pass
    return time.perf_counter() - began


def timed(work: object) -> float:
    began = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - began


def fit(path: Path) -> dict[str, float]:
    """Fit a file; seconds, passes, and how far from the truth."""
    with open_samples(path) as samples:
        estimate = memory_needed(samples.covariates)
        began, first = time.perf_counter(), samples.covariates.passes
        model = rp.RobustPhaseRetrieval(CONTAMINATION).fit(samples.covariates, samples.responses)
        seconds, passes = time.perf_counter() - began, samples.covariates.passes - first
        assert samples.truth is not None
        error = rp.distance(model.signal_, samples.truth, relative=True)
    return {"seconds": seconds, "passes": passes, "error": float(error), "memory_needed": estimate}


def compare(n: int, m: int, kinds: tuple[str, ...]) -> None:
    """All kinds of files, beside the same fit in memory."""
    made = MadeRows(m, n)
    y, vector = made.responses(), np.ones(n)
    A = made.read(0, m)
    in_memory = MemoryRows(A)
    seconds = timed(lambda: rp.RobustPhaseRetrieval(CONTAMINATION).fit(in_memory, y))
    one_pass = min(timed(lambda: project(in_memory, vector)) for _ in range(3))
    print(f"n={n}, m={m}, {in_bytes(A.nbytes)}; in memory: one pass {one_pass:.3f} s, fit {seconds:.2f} s")
    heads = ("read cold", "read warm", "pass cold", "pass warm", "fit", "passes", "/ reading", "/ in memory", "error")
    print(f"{'kind':9s} " + " ".join(f"{head:>11s}" for head in heads))
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="robustphase-disk-") as folder:
            path = Path(folder, f"samples{kind}")
            save_samples(path, A, y, truth=made.truth)
            drop_cache(path)
            cold, warm = read_purely(path), min(read_purely(path) for _ in range(3))
            with open_samples(path) as samples:
                drop_cache(path)
                passes = [timed(lambda: project(samples.covariates, vector)) for _ in range(4)]
            told = fit(path)
            over_reading, over_memory = told["seconds"] / (told["passes"] * warm), told["seconds"] / seconds
            print(
                f"{kind:9s} {cold:9.3f} s {warm:9.3f} s {passes[0]:9.3f} s {min(passes[1:]):9.3f} s {told['seconds']:9.2f} s "
                f"{told['passes']:11.0f} {over_reading:11.2f} {over_memory:11.2f} {told['error']:11.1e}"
            )


# --- more data than memory -------------------------------------------------------------------------------------------


def child(path: Path, limit: int) -> None:
    """What runs under the limit: one pure reading, the fit, another pure reading; tells all as JSON."""
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    before = read_purely(path)
    began = disk_bytes(os.getpid())
    told = fit(path)
    told |= {"read_before": before, "from_disk": disk_bytes(os.getpid()) - began, "read_after": read_purely(path)}
    print(json.dumps(told))


def disk_bytes(process: int) -> int:
    """Bytes that the kernel fetched from storage for a process."""
    fields = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text("ascii").splitlines())
    return int(fields["read_bytes"])


def resident(process: int) -> Iterator[int]:
    """Resident memory of a process as often as asked for."""
    while True:
        try:
            status = Path(f"/proc/{process}/status").read_text("ascii")
            yield next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))
        except (OSError, StopIteration):
            return


def beyond_memory(n: int, m: int, kind: str, limit: int, folder: Path, *, keep_cache: bool) -> None:
    """Write more data than the limit, fit it in a process that has the limit, and remove it."""
    size = 8 * n * m
    path, done = folder / f"robustphase-big-{os.getpid()}{kind}", Event()
    print(
        f"n={n}, m={m}: {in_bytes(size)} in {kind}, limit {in_bytes(limit)}, memory left {in_bytes(available_memory() or 0)}"
    )
    try:
        made = MadeRows(m, n)
        print(
            f"written in {timed(lambda: save_samples(path, made, made.responses(), truth=made.truth)):.0f} s",
            flush=True,
        )
        drop_cache(path)
        if not keep_cache:
            Thread(target=_forget, args=(path, done), daemon=True).start()
        command = [sys.executable, "-m", "benchmarks.disk", "--child", str(path), str(limit)]
        # Every thread of glibc's malloc keeps memory of its own in store; one store is enough here.
        environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            peak = 0
            for now in resident(process.pid):
                peak = max(peak, now)
                if process.poll() is not None:
                    break
                time.sleep(0.05)
            answer = process.stdout.read() if process.stdout else ""
        if process.returncode != 0:
            print(f"the fit failed with exit code {process.returncode} at a peak of {in_bytes(peak)} resident")
            return
        told = json.loads(answer)
        read = 0.5 * (told["read_before"] + told["read_after"])
        ratio = told["seconds"] / (told["passes"] * read)
        print(
            f"pure reading {told['read_before']:.2f} s before and {told['read_after']:.2f} s after the fit "
            f"({in_bytes(int(size / read))}/s)\n"
            f"fit {told['seconds']:.1f} s, {told['passes']:.0f} passes, {told['seconds'] / told['passes']:.2f} s each: "
            f"{ratio:.2f} times the reading; {in_bytes(int(told['from_disk']))} came from storage, "
            f"{told['from_disk'] / (told['passes'] * size):.0%} of what was read\n"
            f"relative error {told['error']:.2e}; peak {in_bytes(peak)} resident; estimate before the fit "
            f"{in_bytes(int(told['memory_needed']))}"
        )
    finally:
        done.set()
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _forget(path: Path, done: Event) -> None:
    while not done.wait(0.5):
        with suppress(OSError):
            drop_cache(path)


def run(
    n: int = 200,
    m: int = 50_000,
    kinds: tuple[str, ...] = KINDS,
    big: bool = False,
    limit: float = 1e9,
    folder: Path = TEMPORARY,
    keep_cache: bool = False,
) -> None:
    """All kinds of files; or, ``big``, one with more data than the ``limit`` of bytes that its process may have."""
    if big:
        sizes = (1000, 1_000_000) if (n, m) == (200, 50_000) else (n, m)
        beyond_memory(*sizes, kinds[0], int(limit), folder, keep_cache=keep_cache)
    else:
        compare(n, m, kinds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        call(run, "disk", sys.argv[1:])
