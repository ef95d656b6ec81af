"""Whatever goes wrong: one plain sentence, an honest exit code, and nothing half-written."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

import robustphase.cli.fit as fit_module
import robustphase.cli.fit_outcome as fit_outcome
from robustphase.report import load_result

from .conftest import leftovers


def sentence(result) -> str:
    """The only line on standard error."""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "Traceback" not in result.output
    return line


def test_a_file_that_is_not_there(run, tmp_path):
    said = sentence(run("fit", "nowhere.npz", code=1))
    assert "nowhere.npz" in said
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_something_else(case, run, tmp_path):
    for content in [b"", b"hello", b"PK\x03\x04 but no archive", b"\x93NUMPY\x01\x00 cut off"]:
        for suffix in [".npz", ".h5", ".npy"]:
            with case(content, suffix):
                path = tmp_path / f"odd{suffix}"
                path.write_bytes(content)
                options = ("--responses", path) if suffix == ".npy" else ()
                assert "odd" in sentence(run("fit", path, *options, code=1))
                assert not (tmp_path / "odd-result.npz").exists()


def test_a_folder_instead_of_a_file(run, tmp_path):
    (tmp_path / "folder").mkdir()
    assert "folder" in sentence(run("fit", "folder", code=1))


def test_a_file_that_may_not_be_read(run, tmp_path, data, monkeypatch):
    data.chmod(0)
    if os.access(data, os.R_OK):  # An administrator may read everything: let the system refuse in its place.
        real = open

        def refuse(file, *rest, **settings):
            if str(file) == str(data):
                raise PermissionError(errno.EACCES, "Permission denied", str(data))
            return real(file, *rest, **settings)

        monkeypatch.setattr("builtins.open", refuse)
        monkeypatch.setattr("io.open", refuse)
    assert "ermission" in sentence(run("fit", data, code=1))


def test_arrays_that_do_not_belong_together(case, run, tmp_path):
    for arrays, said in [
        ({"A": np.ones((5, 2)), "y": np.ones(4)}, "4"),
        ({"A": np.ones(5), "y": np.ones(5)}, "A"),
        ({"A": np.ones((5, 2))}, "y"),
        ({"A": np.ones((2, 5)), "y": np.ones(2)}, "fewer samples than unknowns"),
        ({"A": np.ones((0, 5)), "y": np.ones(0)}, "A"),
        ({"A": np.array([["x", "y"]] * 4), "y": np.ones(4)}, "A"),
        ({"A": np.ones((5, 2)), "y": np.ones(5) * 1j}, "y"),
    ]:
        with case(said):
            np.savez(tmp_path / "wrong.npz", **arrays)
            assert said in sentence(run("fit", "wrong.npz", code=1))
            assert not (tmp_path / "wrong-result.npz").exists()


def test_python_objects_are_never_unpickled(run, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    np.savez(tmp_path / "bomb.npz", A=np.array([[Bomb()]], object), y=np.ones(1))
    sentence(run("fit", "bomb.npz", code=1))
    assert not (tmp_path / "exploded").exists()


def test_a_missing_package_is_named_with_the_command_to_install_it(tmp_path, world):
    """In a process of its own: the package must be missing before anything has imported it."""
    import subprocess
    import sys

    from robustphase.files import save_samples

    save_samples(tmp_path / "data.h5", world.A, world.y)
    program = (
        "import sys; sys.modules['h5py'] = None\nfrom robustphase.cli import main\nsys.exit(main(['fit', 'data.h5']))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'robustphase[io]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_output_that_cannot_be_written_is_refused_before_the_work(run, tmp_path, data, monkeypatch, case):
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked.npz").write_text("precious")
    (tmp_path / "locked.npz").chmod(0o444)
    os.mkfifo(tmp_path / "pipe")
    before = sorted(path.name for path in tmp_path.iterdir())

    def no_work(*arguments, **settings):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(fit_module, "open_samples", no_work)
    for target, said in [
        ("missing/file.npz", "the folder missing does not exist"),
        ("folder", "it is a folder"),
        ("folder/x/y.npz", "does not exist"),
        ("locked.npz", "marked read-only"),
        ("pipe", "not an ordinary file"),
        ("/proc/result.npz", "cannot write /proc/result.npz"),
        ("/dev/null", "not an ordinary file"),
        ("n" * 300 + ".npz", "File name too long"),
    ]:
        for option in ("--out", "--report"):
            with case(option, target):
                assert said in sentence(run("fit", data, option, target, code=1))
                assert sorted(path.name for path in tmp_path.iterdir()) == before
                assert (tmp_path / "locked.npz").read_text() == "precious"


def test_a_link_that_leads_out_of_its_folder_is_refused_before_the_work(run, tmp_path, data):
    precious = tmp_path / "precious.npz"
    precious.write_text("years of work")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "result.npz").symlink_to(precious)
    said = sentence(run("fit", data, "--out", "folder/result.npz", code=1))
    assert "leads out of its folder" in said
    assert precious.read_text() == "years of work"


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may write everywhere")
def test_a_folder_that_may_not_be_written_to(run, tmp_path, data):
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "Permission denied" in sentence(run("fit", data, "--out", locked / "result.npz", code=1))


def full_disk(*arguments, **settings):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_leaves_nothing_and_keeps_what_was_there(run, tmp_path, data, monkeypatch):
    (tmp_path / "result.npz").write_text("earlier")
    real = zipfile.ZipFile.close

    def close(archive):
        # The data are read from an archive, too, which needs no room.
        if archive.mode == "r":
            return real(archive)
        archive.fp = None  # Closed, as far as the collector of garbage is concerned.
        return full_disk()

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "close", close)
        said = sentence(run("fit", data, "--out", "result.npz", "--overwrite", code=1))
    assert "space left" in said
    assert "result.npz" in said
    assert (tmp_path / "result.npz").read_text() == "earlier"
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_disk_that_fills_up_in_the_last_moment(run, tmp_path, data, monkeypatch, call):
    monkeypatch.setattr(os, call, full_disk)
    said = sentence(run("fit", data, "--out", "result.npz", code=1))
    assert "space left" in said
    assert "result.npz" in said
    assert not (tmp_path / "result.npz").exists()
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_simulate_on_a_full_disk(run, tmp_path, monkeypatch, call):
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full_disk)
        said = sentence(run("simulate", "data.npz", "--n", 4, "--m", 30, code=1))
    assert "no space left on the disk while writing data.npz" in said
    assert not list(tmp_path.iterdir())


def test_an_error_between_two_files_says_which_was_written(run, tmp_path, monkeypatch):
    real, calls = os.replace, []

    def second_fails(*arguments):
        calls.append(arguments)
        return full_disk() if len(calls) == 2 else real(*arguments)

    monkeypatch.setattr(os, "replace", second_fails)
    said = sentence(run("simulate", "A.npy", "--responses", "y.npy", "--n", 4, "--m", 30, code=1))
    assert said.endswith("while writing y.npy. Before that, A.npy was written.")
    assert [path.name for path in tmp_path.iterdir()] == ["A.npy"]


def test_a_report_that_fails_does_not_take_the_result_with_it(run, tmp_path, data, monkeypatch):
    monkeypatch.setattr(fit_outcome, "write_report", full_disk)
    result = run("fit", data, "--out", "result.npz", "--report", "report.html", code=1)
    said = sentence(result)
    assert "the report was not written: no space left on the disk" in said
    assert "The result is safe in result.npz." in said
    assert load_result(tmp_path / "result.npz").converged
    assert not (tmp_path / "report.html").exists()


def test_debug_shows_the_traceback_as_well(run):
    result = run("fit", "nowhere.npz", "--debug", code=1)
    assert result.stderr.startswith("Traceback (most recent call last)")
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_a_mistake_of_ours_says_so(run, data, monkeypatch):
    def mistaken(*arguments, **settings):
        raise KeyError("weights")

    monkeypatch.setattr(fit_outcome, "save_result", mistaken)
    said = sentence(run("fit", data, code=1))
    assert said == "error: unexpected KeyError: 'weights'. --debug shows where; please report it."


def test_too_little_memory(run, data, monkeypatch):
    def mistaken(*arguments, **settings):
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr(fit_module, "open_samples", mistaken)
    assert sentence(run("fit", data, code=1)) == "error: not enough memory. Unable to allocate 3 TiB"


HOSTILE = [
    "with space.npz",
    "-starts-with-a-dash.npz",
    "[bold red]markup[bold].npz",
    "<script>alert(1)<script>.npz",
    "line\nbreak.npz",
    "escape\x1b[31mred.npz",
    "quote'\"$(touch x)`.npz",
    "snow☃.npz",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_name_is_only_a_name(run, tmp_path, data, name):
    path = tmp_path / name
    data.rename(path)
    result = run("fit", "--report", "report.html", "--", name)
    out = f"{Path(name).stem}-result.npz"
    assert load_result(tmp_path / out).converged
    assert "\x1b" not in result.output
    shown = name.replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert result.stdout.startswith(f"{shown}: 450 samples")
    assert "<script>" not in (tmp_path / "report.html").read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, out, "report.html"])


def test_a_hostile_file_name_in_an_error(case, run):
    for name in [*HOSTILE, b"bytes\xff.npz"]:
        with case(name):
            said = sentence(run("fit", "--", os.fsdecode(name), code=1))
            assert "\x1b" not in said
