"""Processes that have imported everything before they begin.

Most of the time of a new Python process goes into imports: two seconds for a fit, three for a Dask worker. The processes here are
forked from one that has made them already, the fork server of :mod:`multiprocessing`, which itself does nothing else. They are
processes all the same, with streams, signals, exit codes and a death of their own. What a test says about imports or about the
environment of the interpreter needs a process from scratch, by :mod:`subprocess`.
"""

from __future__ import annotations

import io
import logging
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: What fits, reports, the command line and Dask workers import.
IMPORTED = (
    "tests.processes",
    "robustphase.cli.app",
    "robustphase.cli.compare",
    "robustphase.cli.fit",
    "robustphase.cli.fit_outcome",
    "robustphase.estimator",
    "robustphase.report",
    "robustphase.files",
    "h5py",
    "dask.array",
    "distributed.cli.dask_worker",
    "distributed.nanny",
    "matplotlib.backends.backend_svg",
    "sklearn.linear_model",
)
#: The command line as a console script calls it.
COMMAND_LINE = "import sys; from robustphase.cli import main; sys.exit(main())"
#: Makes nannies of Dask start their workers from the same server.
DASK_SETTINGS = {"distributed.worker.multiprocessing-method": "forkserver"}
DASK_WORKER = f"import dask; dask.config.set({DASK_SETTINGS}); from distributed.cli.dask_worker import main; main()"


def context() -> multiprocessing.context.ForkServerContext:
    """Whatever starts processes by this context gets them with all imports made."""
    found = multiprocessing.get_context("forkserver")
    # Only before the server runs; then it stays as it is, whoever would have it import something else.
    found.set_forkserver_preload(list(IMPORTED))
    forkserver.ensure_running()
    return found


class Process:
    """A running program; the part of :class:`subprocess.Popen` that tests use."""

    def __init__(
        self, process: multiprocessing.context.ForkServerProcess, streams: dict[str, io.TextIOWrapper]
    ) -> None:
        self._process, self._streams = process, streams
        self.pid = process.pid
        self.stdout = streams.get("stdout")
        self.stderr = streams.get("stderr")

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal; an error if it does not end in time."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} has not ended within {timeout} seconds")
        return self._process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it writes until it ends, on both streams; nothing on one that was given to it."""
        with ThreadPoolExecutor(2) as pool:
            told, said = (
                pool.submit(stream.read) if stream is not None and not stream.closed else None
                for stream in (self.stdout, self.stderr)
            )
            try:
                self.wait(timeout)
            except TimeoutError:
                self.kill()
                raise
            texts = tuple("" if found is None else found.result(timeout) for found in (told, said))
        self.close()
        return texts

    def send_signal(self, sent: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sent)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()


def start(
    program: str,
    *arguments: str,
    cwd: str | Path | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    env: Mapping[str, str] | None = None,
) -> Process:
    """Run a program, as ``python -c program arguments`` would; streams that are not given are read by ``communicate``."""
    streams, theirs = {}, []
    for name, given in (("stdout", stdout), ("stderr", stderr)):
        if given is None:
            mine, given = os.pipe()
            streams[name] = open(mine, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        else:
            given = os.dup(given)
        theirs.append(Connection(given, readable=False))
    where = os.getcwd() if cwd is None else str(cwd)
    running = context().Process(target=_run, args=(program, arguments, where, env, *theirs))
    running.start()
    for stream in theirs:
        stream.close()
    return Process(running, streams)


@contextmanager
def forking_dask() -> Iterator[None]:
    """Clusters of Dask that are made inside fork their workers from the same server."""
    import dask
    import distributed  # noqa: F401 - its own settings have to be there before one is changed

    context()
    with dask.config.set(DASK_SETTINGS):
        yield


@contextmanager
def local_cluster(**options: Any) -> Iterator[Any]:
    """A client of Dask's own cluster on this machine: two processes, started again when they die, unless told otherwise."""
    import distributed

    usual = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "silence_logs": logging.CRITICAL}
    with (
        forking_dask(),
        distributed.LocalCluster(**usual | {"dashboard_address": ":0"} | options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextmanager
def quiet() -> Iterator[dict[str, int]]:
    """Streams that lead nowhere, for `start`."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        yield {"stdout": nowhere, "stderr": nowhere}
    finally:
        os.close(nowhere)


def _run(
    program: str,
    arguments: tuple[str, ...],
    cwd: str,
    env: Mapping[str, str] | None,
    stdout: Connection,
    stderr: Connection,
) -> None:
    """In the new process: make it look as if the interpreter had been started for this program."""
    os.chdir(cwd)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    for number, given in ((1, stdout), (2, stderr)):
        os.dup2(given.fileno(), number)
        given.close()
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    # A shell starts background jobs deaf to Ctrl-C; whoever runs these tests may have been started so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["-c", *arguments]
    try:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
