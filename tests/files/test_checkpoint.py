"""A fit that was cut off goes on where it was, with the same answer, and only with the same problem."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from tests.effort import THOROUGH

import robustphase as rp
from robustphase.constants import varied
from robustphase.files import CheckpointError, DataError, checkpoint, checkpoint_needed, checkpointed, save_samples
from robustphase.files.checkpoint import count_passes
from robustphase.recover.pilot import PILOT
from robustphase.rows import MemoryRows, open_rows_at, replay

ANSWER = ("signal_", "initial_signal_", "weights_", "residual_weights_", "noise_mean_", "noise_scale_", "certificate_")
WAYS = [
    {},
    {"noise_mean": "unknown", "contamination": "auto"},
    {"whiten": True},
    {"step": "paper", "max_iter": 5},
    {"step": "paper", "batches": 3, "mean_estimator": "mmw", "random_state": 3},
    {"step": "paper", "noise_mean": "unknown", "init": "mean", "max_iter": 5},
    {"polish": False, "init": "spectral"},
]


@pytest.fixture(scope="module")
def world():
    return rp.simulate.make_world(n=8, m=600, contamination=0.1, attack="leverage", noise_mean=1.0, seed=4)


@pytest.fixture(scope="module")
def straight(world):
    """The default fit, never cut off."""
    return fit(world, world.A)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


class PulledPlugError(Exception):
    """The plug is pulled."""


class Mortal(MemoryRows):
    """Rows of a process that dies after a number of passes."""

    def __init__(self, array, lives):
        super().__init__(array)
        self.lives = lives

    def _reduce(self, *arguments):
        if not self.lives:
            raise PulledPlugError
        self.lives -= 1
        return super()._reduce(*arguments)


def fit(world, rows, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return rp.RobustPhaseRetrieval(**settings).fit(rows, world.y)


def attempt(world, folder, *, lives=-1, interval=0.0, keep=False, **settings):
    """One run, and how many passes it did not have to make; None if it died."""
    source = Mortal(world.A, lives)
    model = rp.RobustPhaseRetrieval(**settings)
    try:
        with checkpointed(folder, model, source, world.y, interval=interval, keep=keep) as rows:
            return fit(world, rows, **settings), rows.recalled
    except PulledPlugError:
        return None


def assert_same(one, other):
    for name in ANSWER:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert [(r.stage, r.passes) for r in one.history_] == [(r.stage, r.passes) for r in other.history_]


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_every_way_to_fit_goes_on_to_the_same_answer(world, folder, settings):
    straight = fit(world, world.A, **settings)
    # Death comes twice on the way, or after every 25 passes.
    lives = 25 if THOROUGH else straight.history_[-1].passes // 3 + 1
    done, deaths = None, 0
    while done is None:
        done = attempt(world, folder, lives=lives, **settings)
        deaths += done is None
    model, recalled = done
    assert deaths >= 1
    assert recalled == lives * deaths
    assert_same(model, straight)
    assert not folder.exists()


def test_a_fit_by_a_pilot_goes_on_to_the_same_answer(world, folder):
    with varied(PILOT, fewest=200, per_unknown=20):
        straight = fit(world, world.A)
        assert "all samples" in [record.stage for record in straight.history_]
        assert attempt(world, folder, lives=4) is None
        model, recalled = attempt(world, folder)
    assert recalled == 4
    assert_same(model, straight)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_several_threads_add_in_the_same_order_every_time(world, folder, tmp_path, kind):
    np.save(tmp_path / "A.npy", world.A)

    def rows():
        few = {"block_rows": 16, "threads": 3}
        return MemoryRows(world.A, **few) if kind == "memory" else open_rows_at(tmp_path / "A.npy", **few)

    straight, model = fit(world, rows()), rp.RobustPhaseRetrieval()
    with checkpointed(folder, model, rows(), world.y, keep=True) as first:
        assert_same(fit(world, first), straight)
    with checkpointed(folder, model, rows(), world.y) as again:
        assert_same(fit(world, again), straight)
    # The rows of a model check are read from the file anew: kept with the passes they would be most of them.
    assert again.recalled == again.passes - (kind == "disk")
    assert again.passes == first.passes


def test_passes_wait_for_the_interval_and_are_written_at_the_end_of_a_run_that_dies(world, folder):
    assert attempt(world, folder, lives=10, interval=3600) is None
    assert sorted(os.listdir(folder)) == [*(f"{number:06d}.pass" for number in range(10)), "problem.json"]
    done = attempt(world, folder, interval=3600)
    assert done is not None
    assert done[1] == 10


def test_a_short_run_writes_no_pass(world, folder, monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(checkpoint, "write_pass", refuse)
    assert attempt(world, folder, interval=3600) is not None


def test_what_waits_is_bounded(world, straight, folder, monkeypatch):
    monkeypatch.setattr(checkpoint, "MOST_WAITING", 50_000)
    written = []
    real = checkpoint.write_pass

    def watched(path, sealed):
        written.append(int(path.stem))
        real(path, sealed)

    monkeypatch.setattr(checkpoint, "write_pass", watched)
    assert_same(attempt(world, folder, interval=3600, keep=True)[0], straight)
    assert written == list(range(len(written)))
    assert_same(attempt(world, folder)[0], straight)


def test_a_checkpoint_can_be_kept(world, folder):
    first, none = attempt(world, folder, interval=3600, keep=True)
    again, all_ = attempt(world, folder, keep=True)
    assert (none, all_) == (0, len(list(folder.glob("*.pass"))))
    assert_same(first, again)


@pytest.fixture(scope="module")
def cut_off(world, tmp_path_factory):
    """What a run that died after thirty passes left."""
    folder = tmp_path_factory.mktemp("cut_off") / "run"
    assert attempt(world, folder, lives=30) is None
    return folder


HARMS = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "one byte wrong": lambda path: path.write_bytes(path.read_bytes()[:300] + b"\xff" + path.read_bytes()[301:]),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_harmed_pass_is_made_again(world, straight, cut_off, tmp_path, harm, case):
    turns = ((0, 13), (1, 29))
    for number in sum(turns, ()) if THOROUGH else turns[[*HARMS].index(harm) % 2]:
        folder = shutil.copytree(cut_off, tmp_path / str(number))
        HARMS[harm](folder / f"{number:06d}.pass")
        with case(f"pass {number}"):
            model, recalled = attempt(world, folder, keep=True)
            assert recalled == 29
            assert_same(model, straight)
            assert count_passes(folder) == len(list(folder.glob("*.pass")))


def test_what_a_kill_left_half_written_is_swept_away(world, folder):
    assert attempt(world, folder, lives=5) is None
    (folder / ".000005.pass.0123456789ab.tmp").write_bytes(b"half")
    assert attempt(world, folder, lives=0) is None
    assert not [name for name in os.listdir(folder) if name.startswith(".")]


IN_THE_WAY = {
    "link": lambda path, precious: path.symlink_to(precious),
    "link to nothing": lambda path, precious: path.symlink_to(precious.with_name("nothing")),
    "pipe": lambda path, precious: os.mkfifo(path),
    "folder": lambda path, precious: path.mkdir(),
}


@pytest.mark.skipif(sys.platform == "win32", reason="no such links and pipes there")
@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_what_is_no_regular_file_is_refused_and_nothing_is_written_through_it(world, cut_off, tmp_path, kind, case):
    for name in ("problem.json", "000002.pass", "000037.pass", ".000002.pass.0123456789ab.tmp"):
        folder, precious = shutil.copytree(cut_off, tmp_path / f"run {name}"), tmp_path / f"precious {name}"
        path = folder / name
        # What a link points to may even be what would be there: it is not ours to replace.
        precious.write_bytes(path.read_bytes() if path.exists() else b"years of work")
        before = precious.read_bytes()
        path.unlink(missing_ok=True)
        IN_THE_WAY[kind](path, precious)
        there, others = path.lstat(), sorted(os.listdir(folder))
        said = rf"{name}' is .*{kind.split()[0]} and not a regular file.*remove it"
        with case(name):
            with pytest.raises(CheckpointError, match=said):
                attempt(world, folder)
            assert precious.read_bytes() == before
            assert not precious.with_name("nothing").exists()
            assert path.lstat().st_ino == there.st_ino
            assert sorted(os.listdir(folder)) == others


@pytest.mark.skipif(sys.platform == "win32", reason="no such links there")
def test_a_link_that_appears_during_the_fit_ends_the_keeping_and_not_the_fit(world, folder):
    precious = folder.with_name("precious")
    precious.write_text("years of work")
    model = rp.RobustPhaseRetrieval()

    def run():
        with checkpointed(folder, model, world.A, world.y, interval=0) as rows:
            (folder / "000000.pass").symlink_to(precious)
            model.fit(rows, world.y)

    with pytest.warns(UserWarning, match=r"goes on without it: .*000000\.pass' is a symbolic link"):
        run()
    assert_same(model, fit(world, world.A))
    assert precious.read_text() == "years of work"


@pytest.mark.parametrize("begun", [True, False])
def test_hidden_files_of_others_are_left_alone(world, folder, begun):
    if begun:
        assert attempt(world, folder, lives=5) is None
    else:
        folder.mkdir()
    names = [".mine.tmp", ".mine.0123456789ab.tmp", ".problem.json.tmp", ".000001.pass.swp"]
    for name in names:
        (folder / name).write_text("mine")
    model, recalled = attempt(world, folder)
    assert recalled == (5 if begun else 0)
    assert_same(model, fit(world, world.A))
    assert sorted(os.listdir(folder)) == sorted(names)
    assert {(folder / name).read_text() for name in names} == {"mine"}


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions there")
def test_a_pass_that_is_made_again_is_as_private_as_before(world, folder):
    assert attempt(world, folder, lives=5) is None
    (folder / "000002.pass").write_bytes(b"")
    (folder / "000002.pass").chmod(0o600)
    assert attempt(world, folder, keep=True) is not None
    assert (folder / "000002.pass").stat().st_mode & 0o777 == 0o600
    assert (folder / "000002.pass").stat().st_size > 0


def test_a_folder_whose_problem_was_not_written_yet_is_begun_anew(world, straight, folder):
    folder.mkdir()
    (folder / ".problem.json.0123456789ab.tmp").write_bytes(b"{")
    (folder / "000000.pass").write_bytes(b"of unknown origin")
    model, recalled = attempt(world, folder)
    assert recalled == 0
    assert_same(model, straight)


def test_other_settings_are_refused(case, world, folder):
    assert attempt(world, folder, lives=5) is None
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for settings, said in [
        ({"contamination": 0.2}, r"contamination was 0\.1 and is 0\.2 now"),
        ({"noise_mean": "unknown"}, "noise_mean was zero and is unknown now"),
        ({"random_state": 5}, "random_state was None and is 5 now"),
        ({"init": np.ones(8)}, "init was auto and is array"),
    ]:
        with case(said):
            with pytest.raises(CheckpointError, match=f"belongs to another problem: {said}.*another folder"):
                attempt(world, folder, **settings)
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_saying_more_or_less_is_no_other_problem(world, folder):
    assert attempt(world, folder, lives=5) is None
    with checkpointed(folder, rp.RobustPhaseRetrieval(verbose=True), world.A, world.y) as rows:
        assert rows.log.resumed


def test_other_data_is_refused(case, world, folder):
    assert attempt(world, folder, lives=5) is None
    for what in ["A", "y", "shape", "type"]:
        with case(what):
            A, y = world.A.copy(), world.y.copy()
            if what == "A":
                A[17, 3] += 1e-9
            elif what == "y":
                y[17] += 1e-9
            elif what == "shape":
                A, y = A[:-1], y[:-1]
            else:
                A = A.astype(np.float32)
            said = {"shape": "samples was 600 and is 599", "type": "type was float64 and is float32"}.get(
                what, "fingerprint was"
            )
            with (
                pytest.raises(CheckpointError, match=f"another problem: .*{said}"),
                checkpointed(folder, rp.RobustPhaseRetrieval(), A, y),
            ):
                pass


def edit(folder, **changes):
    problem = json.loads((folder / "problem.json").read_text())
    (folder / "problem.json").write_text(json.dumps(problem | changes))


def test_another_version_is_refused(world, folder):
    assert attempt(world, folder, lives=5) is None
    versions = json.loads((folder / "problem.json").read_text())["versions"]
    edit(folder, versions=versions | {"robustphase": "0.0.7"})
    with pytest.raises(CheckpointError, match=r"other versions.*robustphase was 0\.0\.7 and is .* now"):
        attempt(world, folder)
    edit(folder, versions=versions, format=99)
    with pytest.raises(CheckpointError, match="written in format 99"):
        attempt(world, folder)


def test_a_problem_that_cannot_be_read_is_refused(case, world, folder):
    assert attempt(world, folder, lives=5) is None
    for content in [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000]:
        with case(content):
            (folder / "problem.json").write_bytes(content)
            with pytest.raises(CheckpointError, match=r"cannot be read.*Remove the folder"):
                attempt(world, folder)


@pytest.mark.parametrize("part", ["versions", "data", "settings"])
def test_a_problem_without_its_parts_is_refused(world, folder, part):
    assert attempt(world, folder, lives=5) is None
    edit(folder, **{part: None})
    with pytest.raises(CheckpointError, match=f"its {part} are missing"):
        attempt(world, folder)


def test_another_number_of_threads_is_a_warning(world, folder):
    assert attempt(world, folder, lives=5) is None
    edit(folder, threads=64)
    with pytest.warns(UserWarning, match="made with 64 threads"):
        assert attempt(world, folder) is not None


def test_a_run_that_takes_another_way_is_computed_anew_from_there(world, straight, folder, monkeypatch):
    """As with other hardware, whose rounding leads to other directions: from pass 12 on, all ask for something else."""
    attempt(world, folder, keep=True)
    asked, digest = [], replay.pass_digest

    def otherwise(*call):
        asked.append(call)
        return digest(*call) if len(asked) <= 12 else digest(*call)[::-1]

    monkeypatch.setattr(replay, "pass_digest", otherwise)
    with pytest.warns(UserWarning, match="agrees with its checkpoint up to pass 12 "):
        model, recalled = attempt(world, folder, keep=True)
    assert recalled == 12
    assert_same(model, straight)
    asked.clear()
    assert attempt(world, folder)[1] == len(asked)


def test_a_folder_with_other_things_in_it_is_left_alone(world, folder):
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(CheckpointError, match=r"holds thesis\.tex"):
        attempt(world, folder)
    assert (folder / "thesis.tex").read_text() == "years of work"


def test_a_file_in_the_way_and_a_missing_parent_are_named(world, tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "nowhere" / "run"):
        with pytest.raises(CheckpointError, match=rf"{place.name}' cannot be made"):
            attempt(world, place)


def test_going_on_must_be_asked_for_where_resume_is_false(world, folder):
    assert attempt(world, folder, lives=5) is None
    with (
        pytest.raises(CheckpointError, match="earlier run"),
        checkpointed(folder, rp.RobustPhaseRetrieval(), world.A, world.y, resume=False),
    ):
        pass
    assert attempt(world, folder)[1] == 5


HOLDING = """
import sys, numpy as np
from robustphase.files import checkpointed
with checkpointed(sys.argv[1], {}, np.eye(3), np.ones(3)):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_two_processes_do_not_share_a_folder_and_the_dead_hold_none(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError, match="in use"), checkpointed(folder, {}, np.eye(3), np.ones(3)):
            pass
        process.kill()
    with checkpointed(folder, {}, np.eye(3), np.ones(3)) as rows:
        assert rows.log.resumed


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_ends_the_keeping_and_not_the_fit(world, straight, folder, monkeypatch, call):
    assert attempt(world, folder, lives=5) is None
    real, left = getattr(os, call), [3]

    def full(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.warns(UserWarning, match=r"goes on without it: .*No space left on device") as said:
            model, recalled = attempt(world, folder, keep=True)
    assert len(said) == 1
    assert recalled == 5
    assert_same(model, straight)
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
    # What was kept before is still good.
    assert attempt(world, folder)[1] >= 6


def test_a_mistake_that_no_second_attempt_would_mend_leaves_no_folder(world, folder):
    A = world.A.copy()
    A[3, 3] = np.nan
    model = rp.RobustPhaseRetrieval()

    def run():
        with checkpointed(folder, model, A, world.y) as rows:
            model.fit(rows, world.y)

    with pytest.raises(ValueError, match="NaN"):
        run()
    assert not folder.exists()


def test_a_file_that_cannot_be_read_for_a_while_leaves_the_checkpoint(world, straight, folder):
    model = rp.RobustPhaseRetrieval()

    class Gone(Mortal):
        def read(self, start, stop):
            if self.lives <= 10:
                raise DataError("the network is gone")
            return super().read(start, stop)

    def run(source):
        with checkpointed(folder, model, source, world.y) as rows:
            return model.fit(rows, world.y), rows.recalled

    with pytest.raises(DataError, match="network"):
        run(Gone(world.A, 20))
    model, recalled = run(MemoryRows(world.A))
    assert recalled == 9
    assert_same(model, straight)


def test_a_generator_is_refused(case, world, folder):
    for state in [np.random.RandomState(0), np.random.default_rng(0)]:
        with case(state):
            with pytest.raises(CheckpointError, match="random_state must be None or a whole number"):
                attempt(world, folder, random_state=state)
            assert not folder.exists()


def test_an_interval_that_makes_no_sense_is_refused(world, folder):
    with pytest.raises(ValueError, match="interval"):
        attempt(world, folder, interval=-1)
    assert not folder.exists()


def test_rows_that_cannot_be_read_in_any_order_are_recognised_by_a_few_of_them(world, folder):
    class Remote(rp.rows.RowSource):
        def __init__(self, array):
            self.here = MemoryRows(array)
            self.shape, self.dtype = self.here.shape, self.here.dtype

        def _reduce(self, kernel, per_row, pairing):
            return self.here.reduce(kernel, per_row, pairing=pairing)

    model = rp.RobustPhaseRetrieval()
    with checkpointed(folder, model, Remote(world.A), world.y, keep=True) as rows:
        first = model.fit(rows, world.y).signal_
    with checkpointed(folder, model, Remote(world.A), world.y, keep=True) as rows:
        assert_array_equal(model.fit(rows, world.y).signal_, first)
        assert rows.recalled == rows.passes
    other = world.A.copy()
    other[-1] += 1
    with pytest.raises(CheckpointError, match="fingerprint"), checkpointed(folder, model, Remote(other), world.y):
        pass


def test_the_folder_is_about_as_large_as_was_said(tmp_path):
    world = rp.simulate.make_world(n=30, m=6000, contamination=0.1, attack="leverage", seed=0)
    save_samples(tmp_path / "data.npz", world.A, world.y)
    source = rp.rows.as_source(tmp_path / "data.npz")
    attempt(world, tmp_path / "run", interval=3600, keep=True)
    used = sum(path.stat().st_size for path in (tmp_path / "run").iterdir())
    assert 0.8 * used < checkpoint_needed(source) < 3 * used
    assert checkpoint_needed(world.A.astype(complex)) == 2 * checkpoint_needed(source)


# --- passes of other runs ---------------------------------------------------------------------------------------------------


def test_passes_of_another_run_are_made_again_and_not_replayed(world, straight, cut_off, tmp_path):
    """Other data with the same settings: the passes ask for the same until their answers differ."""
    other = tmp_path / "other"
    changed = rp.simulate.make_world(n=8, m=600, contamination=0.1, attack="leverage", noise_mean=1.0, seed=5)
    assert attempt(changed, other, lives=30) is None
    mixed = shutil.copytree(cut_off, tmp_path / "mixed")
    for number in (0, 3, 20):
        shutil.copy(other / f"{number:06d}.pass", mixed)
    model, recalled = attempt(world, mixed)
    assert recalled == 27
    assert_same(model, straight)


def test_passes_of_another_run_on_the_same_data_are_not_taken_for_ours(world, straight, cut_off, tmp_path):
    mine = tmp_path / "mine"
    assert attempt(world, mine, lives=1) is None
    for path in cut_off.glob("*.pass"):
        if path.name != "000000.pass":
            shutil.copy(path, mine)
    assert count_passes(mine) == 1
    model, recalled = attempt(world, mine)
    assert recalled == 1
    assert_same(model, straight)


def test_a_changed_problem_makes_its_passes_void(world, cut_off, tmp_path):
    folder = shutil.copytree(cut_off, tmp_path / "run")
    problem = json.loads((folder / "problem.json").read_text())
    (folder / "problem.json").write_text(json.dumps(problem | {"run": "0" * 32}))
    assert count_passes(cut_off) == 30
    assert count_passes(folder) == 0
    assert attempt(world, folder)[1] == 0


def test_a_single_changed_row_of_large_data_is_noticed(folder):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((90_000, 100)), rng.random(90_000)
    with checkpointed(folder, {"what": "mean"}, A, y, keep=True):
        pass
    A[1500] *= 2
    with pytest.raises(CheckpointError, match="fingerprint was"), checkpointed(folder, {"what": "mean"}, A, y):
        pass


def test_a_single_changed_row_of_data_elsewhere_is_noticed(folder):
    class Elsewhere(rp.rows.RowSource):
        def __init__(self, array):
            self.here = MemoryRows(array)
            self.shape, self.dtype = self.here.shape, self.here.dtype

        def _reduce(self, kernel, per_row, pairing):
            return self.here.reduce(kernel, per_row, pairing=pairing)

    A, y = np.random.default_rng(0).standard_normal((5000, 3)), np.ones(5000)
    with checkpointed(folder, {"what": "mean"}, Elsewhere(A), y, keep=True):
        pass
    with checkpointed(folder, {"what": "mean"}, Elsewhere(A.copy()), y, keep=True):
        pass
    A[77] *= 2
    with (
        pytest.raises(CheckpointError, match="fingerprint was"),
        checkpointed(folder, {"what": "mean"}, Elsewhere(A), y),
    ):
        pass
