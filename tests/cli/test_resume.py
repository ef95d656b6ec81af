"""A fit that is killed goes on where it was: real processes, real kills."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.processes import COMMAND_LINE, Process, start

import robustphase as rp
from robustphase.cli import fit as fit_command
from robustphase.cli.fit import Progress, say_costs
from robustphase.cli.terminal import Screen
from robustphase.estimator.progress import USUAL_PASSES, usual_passes
from robustphase.files.checkpoint import count_passes
from robustphase.formatting import duration
from robustphase.report import load_result

from .conftest import leftovers

#: All that a result says, except for times and the command.
ARRAYS = ("signal", "initial_signal", "weights", "covariate_weights", "responses", "predictions", "squared_norms")
NUMBERS = (
    "contamination_used",
    "noise_mean",
    "noise_scale",
    "certificate",
    "converged",
    "message",
    "passes",
    "fingerprint",
)


@pytest.fixture(scope="module")
def long_run(tmp_path_factory) -> Path:
    """A folder with data whose fit takes many passes, and the result of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("long")
    world = rp.simulate.make_world(n=20, m=10_000, contamination=0.1, attack="leverage", seed=2)
    np.save(folder / "A.npy", world.A)
    np.save(folder / "y.npy", world.y)
    whole = [*fit_to("whole.npz"), "--checkpoint", "whole.checkpoint", "--keep-checkpoint"]
    process = start(COMMAND_LINE, *whole, cwd=folder)
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 0
    return folder


def fit_to(out: str) -> list[str]:
    return ["fit", "A.npy", "--responses", "y.npy", "--out", out]


def passes_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.pass"))


def wait_for(process: Process, folder: Path, count: int) -> None:
    """Until so many passes are kept, or the process has ended."""
    deadline = time.monotonic() + 60
    while process.poll() is None and len(passes_in(folder)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def assert_same_result(one: Path, other: Path) -> None:
    left, right = load_result(one), load_result(other)
    for name in ARRAYS:
        assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
    for name in NUMBERS:
        assert getattr(left, name) == getattr(right, name), name
    for name in left.history:
        if name != "seconds":
            assert_array_equal(left.history[name], right.history[name], err_msg=name)


#: Two while the command starts or reads what was kept, four after some passes; benchmarks.kill_fits kills a hundred.
KILLS = 6


def test_killed_at_random_moments_it_ends_with_the_same_answer_and_no_corrupt_file(long_run):
    rng = random.Random(7)
    checkpoint, out = long_run / "killed.checkpoint", long_run / "killed.npz"
    command = [*fit_to("killed.npz"), "--resume", "--checkpoint-every", "0"]
    kills, kept = 0, 0
    while kills < KILLS:
        process = start(COMMAND_LINE, *command, cwd=long_run)
        # Some die while they start or read what was kept, the others after a few more passes; all at a random moment of it.
        if kills % 3:
            wait_for(process, checkpoint, kept + rng.randint(1, 9))
            time.sleep(rng.uniform(0, 0.03))
        else:
            time.sleep(rng.uniform(0, 0.1))
        process.kill()
        _, said = process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said
        kills += 1
        names = passes_in(checkpoint)
        assert names == [f"{number:06d}.pass" for number in range(len(names))]
        assert len(names) >= kept, "what was kept once must not be lost"
        assert not names or count_passes(checkpoint) == len(names)
        assert not out.exists()
        kept = len(names)
    assert kills == KILLS
    assert kept >= KILLS
    process = start(COMMAND_LINE, *command, cwd=long_run)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert_same_result(out, long_run / "whole.npz")
    assert not checkpoint.exists()
    assert not leftovers(long_run)


def test_a_kill_while_the_result_is_written_or_the_folder_removed_is_no_harm(run, long_run, monkeypatch):
    monkeypatch.chdir(long_run)
    program = """
import os, signal, sys
from robustphase.cli import main
real, left = os.{call}, int(sys.argv.pop(1))
def fatal(*arguments, **settings):
    global left
    if {when}:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **settings)
os.{call} = fatal
sys.exit(main(sys.argv[1:]))
"""
    command = [*fit_to("late.npz"), "--resume"]
    for call, when, left in (
        ("replace", "str(arguments[1]).endswith('late.npz')", 0),
        ("unlink", "str(arguments[0]).endswith('.pass')", 5),
        ("rmdir", "True", 0),
    ):
        # The passes of this run are written when there is no time between writes.
        code = program.format(call=call, when=when)
        process = start(code, str(left), *command, "--checkpoint-every", "0", cwd=long_run)
        _, said = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, (call, said)
        if call != "replace":
            assert_same_result(long_run / "late.npz", long_run / "whole.npz")
            (long_run / "late.npz").unlink()
        run(*command)
        assert_same_result(long_run / "late.npz", long_run / "whole.npz")
        (long_run / "late.npz").unlink()
        assert not (long_run / "late.checkpoint").exists()
        assert not leftovers(long_run)


@pytest.mark.parametrize(
    ("sent", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_an_interruption_keeps_the_passes_and_says_how_to_go_on(run, long_run, monkeypatch, sent, code, word):
    monkeypatch.chdir(long_run)
    command = [*fit_to("stopped.npz"), "--checkpoint", "kept", "--checkpoint-every", "0"]
    process = start(COMMAND_LINE, *command, cwd=long_run)
    wait_for(process, long_run / "kept", 8)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    found = re.fullmatch(f"{word}; the passes so far are in kept; to go on: robustphase (.*) --resume\n", said)
    assert found, said
    assert len(passes_in(long_run / "kept")) >= 8
    again = shlex.split(found[1])
    assert again == command
    said = run(*again, code=1).stderr
    assert "holds the checkpoint of an earlier run. Pass --resume to go on from it" in said
    run(*again, "--resume")
    assert_same_result(long_run / "stopped.npz", long_run / "whole.npz")
    (long_run / "stopped.npz").unlink()
    assert not (long_run / "kept").exists()


def test_a_checkpoint_is_called_after_the_result_and_can_be_kept(run, tmp_path, data):
    run("fit", data, "--resume", "--keep-checkpoint", "--out", "mine.npz")
    names = passes_in(tmp_path / "mine.checkpoint")
    assert len(names) > 20
    first = load_result(tmp_path / "mine.npz")
    run("fit", data, "--resume", "--out", "mine.npz")
    assert not (tmp_path / "mine.checkpoint").exists()
    assert_array_equal(load_result(tmp_path / "mine.npz").signal, first.signal)


def test_other_settings_are_refused_in_the_words_of_options(run, tmp_path, data):
    run("fit", data, "--checkpoint", "kept", "--keep-checkpoint")
    said = run("fit", data, "--checkpoint", "kept", "--resume", "--contamination", 0.2, code=1).stderr
    assert "belongs to another problem: contamination was 0.1 and is 0.2 now" in said
    assert len(passes_in(tmp_path / "kept")) > 20


def test_an_error_in_the_data_leaves_no_checkpoint(run, tmp_path, world):
    A = world.A.copy()
    A[0, 0] = np.inf
    np.savez(tmp_path / "bad.npz", A=A, y=world.y)
    assert "NaN or infinite" in run("fit", "bad.npz", "--resume", code=1).stderr
    assert os.listdir(tmp_path) == ["bad.npz"]


@pytest.mark.parametrize("folder", ["data.npz", "result.npz", "nowhere/kept"])
def test_a_folder_that_cannot_be_is_refused(run, data, folder):
    result = run("fit", data, "--out", "result.npz", "--checkpoint", folder, code=1 if "/" in folder else 2)
    assert "nowhere/kept' cannot be made" in result.stderr or "name the same file" in result.stderr


class Counted(rp.rows.MemoryRows):
    """Rows that have been swept so often."""

    recalled = 0


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(fit_command, "perf_counter", lambda: now[0])
    return now


def test_the_time_left_follows_from_the_passes_that_were_made(clock):
    rows = Counted(np.zeros((5, 2)))
    progress = Progress(rp.RobustPhaseRetrieval(), rows)
    assert progress.state() == "0 passes over 5 samples"
    rows.passes = rows.recalled = 20
    assert progress.state() == "20 passes over 5 samples (20 of them from the checkpoint)"
    clock[0] += 1000  # Reading a checkpoint is no measure of the passes to come.
    assert progress.left() == ""
    rows.passes = 22
    assert progress.left() == ""
    clock[0] += 4 * 3.5
    rows.passes = 24
    low, high = USUAL_PASSES
    assert progress.left() == f"usually {4 * (low - 23)} s to {duration(4 * (high - 23))} more"
    rows.passes = low + 10
    assert progress.left().startswith("usually done within")
    rows.passes = high + 1
    assert progress.left() == ""


@pytest.mark.parametrize("settings", [{"step": "paper"}, {"batches": 4}, {"init": "covariance"}])
def test_nothing_is_promised_about_a_descent(clock, settings):
    rows = Counted(np.zeros((5, 2)))
    progress = Progress(rp.RobustPhaseRetrieval(**settings), rows)
    rows.passes = 10
    assert progress.left() == ""


def test_the_passes_that_fits_take_are_usual():
    """The range on which the time left is based, on worlds of several shapes."""
    for n, m, settings in ((10, 400, {}), (30, 3000, {"noise_mean": "unknown"}), (60, 1500, {"whiten": True})):
        world = rp.simulate.make_world(n=n, m=m, contamination=0.1, attack="decoy", seed=1)
        source = rp.rows.MemoryRows(world.A)
        model = rp.RobustPhaseRetrieval(**settings).fit(source, world.y)
        usual = usual_passes(model)
        assert usual is not None
        assert usual[0] / 2 <= source.passes <= 2 * usual[1]


def said_about(capsys, monkeypatch, *, memory=10**12, disk=10**12, folder=None, quiet=False) -> str:
    monkeypatch.setattr(fit_command, "available_memory", lambda: memory)
    monkeypatch.setattr(fit_command.shutil, "disk_usage", lambda place: SimpleNamespace(free=disk))
    rows = rp.rows.MemoryRows(np.broadcast_to(np.zeros(1), (1_000_000, 100)))
    say_costs(Screen(quiet), rp.RobustPhaseRetrieval(), rows, folder)
    return capsys.readouterr().err


def test_a_long_run_says_what_it_needs(capsys, monkeypatch, tmp_path):
    said = said_about(capsys, monkeypatch, folder=tmp_path / "kept")
    assert re.fullmatch(
        r"memory needed beyond the data: about [\d.]+ [MG]B of 1\.0 TB that are free; "
        r"the checkpoint grows to about [\d.]+ [MG]B of 1\.0 TB that are free on its disk\n",
        said,
    )
    assert "checkpoint" not in said_about(capsys, monkeypatch)
    assert said_about(capsys, monkeypatch, quiet=True) == ""


def test_what_will_not_fit_is_a_warning(capsys, monkeypatch, tmp_path):
    assert "warning: memory needed" in said_about(capsys, monkeypatch, memory=10**6)
    said = said_about(capsys, monkeypatch, disk=5 * 10**8, folder=tmp_path / "kept", quiet=True)
    assert said.startswith("warning: ")
    assert "will not hold the whole run" in said
