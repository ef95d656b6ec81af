"""Clusters whose workers are not what they should be: other versions, dead, frozen or full ones; all in real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.effort import THOROUGH
from tests.processes import DASK_WORKER, quiet, start

import robustphase
from robustphase.constants import varied
from robustphase.rows import DaskRows, Parts, project
from robustphase.rows.dask import workers as preflight
from robustphase.rows.dask.workers import WATCH

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

M, N = 803, 5
A = np.random.default_rng(5).standard_normal((M, N))
#: Long enough for the slowest machine, short beside the time that a hang would take.
SOON = 60.0


def rows_on(client):
    return DaskRows(da.from_array(A, chunks=(50, N)), client=client)


def slow_pass(rows, w):
    """A pass that takes a while; its kernel travels by value, since the workers do not have this module."""

    def slowly(block, w):
        time.sleep(0.02)
        return Parts(sums=(np.dot(w, block),), rows=(np.dot(block, block[0]) * w,))

    return rows.reduce(slowly, (w,))


@contextmanager
def scheduler(**options):
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster, **options) as client,
    ):
        yield client


@contextmanager
def workers(client, count, *options, python_path=None, nanny=False):
    """Worker processes, by address; with a nanny they are started again when they die."""
    before = set(client.nthreads())
    command = ["--nthreads", "1", "--no-dashboard", "--nanny" if nanny else "--no-nanny", *options]
    with quiet() as streams:
        if python_path is None:
            started = [start(DASK_WORKER, *command, client.scheduler.address, **streams) for _ in range(count)]
        else:
            # Another package is a matter of imports, so these are made from scratch.
            program = [sys.executable, "-m", "distributed.cli.dask_worker", *command, client.scheduler.address]
            environment = os.environ | {"PYTHONPATH": str(python_path)}
            started = [subprocess.Popen(program, env=environment, **streams) for _ in range(count)]
    try:
        client.wait_for_workers(len(before) + count, timeout=SOON)
        yield {address: pid for address, pid in client.run(os.getpid).items() if address not in before}
    finally:
        for process in started:
            # A stopped process dies, too; a nanny takes its worker with it if it is asked.
            process.send_signal(signal.SIGCONT)
            (process.terminate if nanny else process.kill)()
        for process in started:
            try:
                process.wait(15)
            except (subprocess.TimeoutExpired, TimeoutError):
                process.kill()
                process.wait()


@contextmanager
def within(seconds):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@pytest.fixture
def packages(tmp_path):
    """Folders for PYTHONPATH: one that hides the package, and one with a changed kernel."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['robustphase'] = None\n")
    shutil.copytree(Path(robustphase.__file__).parent, tmp_path / "changed" / "robustphase")
    passes = tmp_path / "changed" / "robustphase" / "rows" / "passes.py"
    passes.write_text(passes.read_text().replace("return", "return  "))
    return tmp_path


def test_workers_without_the_package_or_with_another_are_named_at_once(packages):
    with scheduler() as client:
        for folder, said in (("hidden", "has none"), ("changed", "with other sources")):
            with (
                workers(client, 1),
                workers(client, 1, python_path=packages / folder) as wrong,
                within(SOON),
                pytest.raises(RuntimeError, match=f"1 of the 2 Dask workers do not run .*{next(iter(wrong))} .*{said}"),
            ):
                project(rows_on(client), np.ones(N))


def test_the_same_sources_have_the_same_digest_wherever_they_are(packages, monkeypatch):
    here = preflight.identify()
    monkeypatch.syspath_prepend(str(packages / "changed"))
    monkeypatch.delitem(sys.modules, "robustphase")
    there = preflight.identify()
    assert here["version"] == there["version"] == robustphase.__version__
    assert here["digest"] != there["digest"]
    original = Path(robustphase.__file__).parent / "rows" / "passes.py"
    shutil.copy(original, packages / "changed" / "robustphase" / "rows" / "passes.py")
    assert preflight.identify()["digest"] == here["digest"]


def test_all_workers_killed_and_brought_back_go_on(case):
    w = np.linspace(0, 1, M)
    with scheduler() as first, workers(first, 2, nanny=True):
        # Clients that do not reach the workers themselves lose one in the next test.
        for direct in (None, False) if THOROUGH else (None,):
            with case(direct), distributed.Client(first.scheduler.address, direct_to_workers=direct) as client:
                client.wait_for_workers(2, timeout=SOON)
                processes = client.run(os.getpid)
                rows = rows_on(client)
                before = slow_pass(rows, w)
                for pid in processes.values():
                    os.kill(pid, signal.SIGKILL)
                with within(2 * SOON):
                    after = slow_pass(rows, w)
                assert not set(processes) & set(client.nthreads())
                assert_array_equal(after.sums[0], before.sums[0])
                assert_array_equal(after.rows[0], before.rows[0])


@pytest.mark.parametrize("direct", [None, False])
def test_a_worker_killed_in_the_middle_of_passes_changes_nothing(direct):
    w = np.linspace(0, 1, M)
    with scheduler(direct_to_workers=direct) as client, workers(client, 1), workers(client, 2) as victims:
        rows = rows_on(client)
        before = slow_pass(rows, w)
        for pid, delay in zip(victims.values(), (0.0, 0.05), strict=True):
            killer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
            killer.start()
            for _ in range(3):
                assert_array_equal(slow_pass(rows, w).sums[0], before.sums[0])
            killer.join()


def test_a_frozen_worker_is_given_up():
    w = np.linspace(0, 1, M)
    with scheduler() as client, workers(client, 1), workers(client, 1) as victim:
        rows = rows_on(client)
        before = slow_pass(rows, w)
        ((address, pid),) = victim.items()
        os.kill(pid, signal.SIGSTOP)
        with varied(WATCH, frozen=3.0, beat=0.5), within(SOON):
            after = slow_pass(rows, w)
        assert address not in client.nthreads()
        assert_array_equal(after.sums[0], before.sums[0])


def test_a_worker_that_is_frozen_from_the_start_gets_no_rows(monkeypatch):
    monkeypatch.setattr(preflight, "PATIENCE", 3.0)
    with scheduler() as client, workers(client, 1), workers(client, 1) as victim:
        os.kill(next(iter(victim.values())), signal.SIGSTOP)
        # A block of the array may be meant for it all the same, until the watch gives it up.
        with (
            varied(WATCH, frozen=3.0, beat=0.5),
            within(SOON),
            pytest.warns(UserWarning, match="1 of the 2 Dask workers have not answered within 3 seconds"),
        ):
            assert_array_equal(project(rows_on(client), np.eye(N)), A)


def test_when_nobody_is_left_an_error_says_so():
    with scheduler() as client, workers(client, 2) as victims:
        rows = rows_on(client)
        project(rows, np.ones(N))
        for pid in victims.values():
            os.kill(pid, signal.SIGKILL)
        with (
            varied(WATCH, absent=2.0, beat=0.5),
            within(SOON),
            pytest.raises(RuntimeError, match="no workers for 2 seconds"),
        ):
            project(rows, np.ones(N))


def test_rows_that_do_not_fit_a_worker_are_refused_before_they_are_sent():
    with scheduler() as client, workers(client, 1, "--memory-limit", "200MB"):
        large = da.zeros((300_000, 100), chunks=(10_000, 100))
        with (
            within(SOON),
            pytest.raises(RuntimeError, match=r"the rows need 2.*MB on the Dask worker .*may take 2.*MB in all"),
        ):
            project(DaskRows(large, client=client), np.ones(100))
