"""Result files: what is written is what is read, and what cannot be read is refused in words."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustphase.report import ResultFileError, load_result, render_report, save_result
from robustphase.report.results import SCHEMA


def assert_same(one, other):
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        elif field.name == "history":
            assert a.keys() == b.keys()
            for key in a:
                np.testing.assert_array_equal(a[key], b[key])
        else:
            assert a == b, field.name


@pytest.fixture
def saved(tmp_path, diagnostics):
    path = tmp_path / "result.npz"
    save_result(path, diagnostics)
    return path


def test_a_result_survives_the_file_unchanged(saved, diagnostics, plain, tmp_path):
    assert_same(load_result(saved), diagnostics)
    save_result(tmp_path / "plain.npz", plain)
    assert_same(load_result(tmp_path / "plain.npz"), plain)


def test_the_report_of_a_file_is_the_report_of_the_fit(saved, comparisons, page):
    assert render_report(load_result(saved), comparisons) == page


@settings(max_examples=12)
@given(
    certificate=st.floats(allow_nan=False),
    message=st.text(),
    name=st.none() | st.text(st.characters(codec=None)),
    told=st.floats(0, 0.49) | st.just("auto"),
)
def test_any_value_survives(tmp_path_factory, plain, certificate, message, name, told):
    path = tmp_path_factory.mktemp("any") / "result.npz"
    changed = replace(plain, certificate=certificate, message=message, data_name=name, contamination_told=told)
    save_result(path, changed)
    assert_same(load_result(path), changed)


def test_the_same_result_makes_the_same_file(saved, diagnostics, tmp_path):
    save_result(tmp_path / "again.npz", diagnostics)
    assert (tmp_path / "again.npz").read_bytes() == saved.read_bytes()


def test_a_result_is_plain_arrays(saved):
    with np.load(saved, allow_pickle=False) as archive:
        assert all(archive[name].dtype.kind in "fciubU" for name in archive.files)
        assert str(archive["format"]) == "robustphase result"
        assert int(archive["schema"]) == SCHEMA


def test_objects_are_not_written(tmp_path, plain):
    with pytest.raises(TypeError, match="cannot be written without pickle"):
        save_result(tmp_path / "result.npz", replace(plain, truth=plain.signal.astype(object)))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kept", [5, 100, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_refused(saved, kept):
    data = saved.read_bytes()
    saved.write_bytes(data[: kept if kept > 1 else int(kept * len(data))])
    with pytest.raises(ResultFileError, match=r"result\.npz' is damaged or incomplete .* Make it again"):
        load_result(saved)


def test_flipped_bits_are_noticed(saved):
    data = bytearray(saved.read_bytes())
    data[len(data) // 2] ^= 0xFF
    saved.write_bytes(bytes(data))
    with pytest.raises(ResultFileError, match="damaged or incomplete"):
        load_result(saved)


def test_a_foreign_file_is_refused(case, tmp_path):
    for content in [b"", b"hello", pickle.dumps([1]), b"\x93NUMPY"]:
        with case(content):
            path = tmp_path / "other.npz"
            path.write_bytes(content)
            with pytest.raises(ResultFileError, match="not a result file of robustphase"):
                load_result(path)


def test_an_archive_of_something_else_is_refused(tmp_path):
    np.savez(tmp_path / "data.npz", A=np.eye(3), y=np.ones(3))
    with pytest.raises(ResultFileError, match="not a result of robustphase: it holds A, y"):
        load_result(tmp_path / "data.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("a.txt", "text")
    with pytest.raises(ResultFileError):
        load_result(tmp_path / "text.npz")


def rewritten(path, **changes):
    """The same archive with some arrays changed, or left out where they are None."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def test_a_file_of_a_later_version_says_so(saved):
    rewritten(saved, schema=np.array(SCHEMA + 1))
    with pytest.raises(
        ResultFileError, match=f"later version of robustphase .schema {SCHEMA + 1}.* pip install --upgrade"
    ):
        load_result(saved)


def test_stages_of_earlier_files_are_called_as_they_are_now(saved, diagnostics):
    now = [str(stage) for stage in diagnostics.history["stage"]]
    assert {"selection", "likelihood"} <= set(now)
    before = {"selection": "race", "likelihood": "polish"}
    rewritten(saved, history_stage=np.array([before.get(stage, stage) for stage in now]))
    assert [str(stage) for stage in load_result(saved).history["stage"]] == now


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("noise_law", [None, [-0.2, 0.7, 5.0, 1.5]])
def test_a_file_of_the_first_schema_is_read(saved, diagnostics, noise_law):
    with np.load(saved) as archive:
        values = json.loads(str(archive["values"]))
    # It held a noise law fitted to the residuals, with its centre, scale, degrees of freedom and skew.
    del values["noise_model"], values["residual_centre"]
    rewritten(saved, schema=np.array(1), values=np.array(json.dumps(values | {"noise_law": noise_law})))
    found = load_result(saved)
    assert_same(found, replace(diagnostics, residual_centre=found.residual_centre, noise_model=found.noise_model))
    if noise_law is None:
        assert (found.residual_centre, found.noise_model) == (0.0, None)
    else:
        assert found.residual_centre == -0.2
        noise = (found.noise_model.scales, found.noise_model.degrees, found.noise_model.skews)
        np.testing.assert_allclose(noise, (0.7, 5.0, 1.5))
    assert render_report(found)


@pytest.mark.parametrize(
    "changes",
    [
        {"signal": None},
        {"weights": np.ones(3)},
        {"values": np.array("{")},
        {"values": np.array("[]")},
        {"schema": np.array("x")},
    ],
    ids=str,
)
def test_a_file_with_missing_or_foreign_parts_is_refused(saved, changes):
    rewritten(saved, **changes)
    with pytest.raises(ResultFileError, match="damaged or incomplete"):
        load_result(saved)


def test_pickled_objects_are_never_loaded(saved):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    with np.load(saved) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(saved, **arrays | {"signal": np.array([Trap()], dtype=object)})
    with pytest.raises(ResultFileError, match="damaged or incomplete"):
        load_result(saved)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_result(tmp_path / "none.npz")


def test_a_full_disk_keeps_the_old_result(saved, plain, monkeypatch):
    before = saved.read_bytes()

    def full(handle, **_):
        handle.write(b"PK\x03\x04 half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match=r"could not write .*No space left"):
        save_result(saved, plain)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["result.npz"]


@pytest.mark.usefixtures("sketched")
def test_failed_checks_of_the_model_are_kept_and_shown(tmp_path, diagnostics):
    failed = replace(diagnostics, failed_checks={"curvature": "0.01, limit 0.4: <equal rows>."})
    save_result(tmp_path / "result.npz", failed)
    again = load_result(tmp_path / "result.npz")
    assert again.failed_checks == failed.failed_checks
    page = render_report(again)
    assert "model: curvature, look here" in page
    assert "&lt;equal rows&gt;" in page


def replaced(path, name, data):
    """The same archive with another member of a name."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, held in members.items():
            archive.writestr(member, data if member == f"{name}.npy" else held)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("weights", npy(np.zeros(3)).replace(b"(3,)", b"(9000000000000,)")[:-12]),
        ("values", npy(np.array("[" * 100_000))),
        ("values", npy(np.array("[]"))),
        ("values", npy(np.array("7"))),
        ("schema", npy(np.array([2, 2]))),
        ("signal", b"\x93NUMPY\x02\x00\xff\xff\xff\xff"),
    ],
    ids=["huge", "deep", "list", "number", "schemas", "header"],
)
def test_whatever_is_wrong_with_a_file_is_one_kind_of_error(saved, name, data):
    replaced(saved, name, data)
    with pytest.raises(ResultFileError, match="damaged or incomplete") as caught:
        load_result(saved)
    assert len(str(caught.value)) < 500 + len(str(saved))


def test_a_pipe_is_no_result_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(ResultFileError, match="it is a pipe"):
        load_result(tmp_path / "pipe.npz")
