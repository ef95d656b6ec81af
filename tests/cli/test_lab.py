"""``fit`` on the files of laboratories, several signals, what is known of the detector; tables and reports."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat

import robustphase as rp
from robustphase.cli import fit as command
from robustphase.report import load_result, render_report

from .conftest import leftovers


def table(path) -> list[dict[str, float]]:
    with open(path, newline="") as file:
        return [{name: float(value) for name, value in line.items()} for line in csv.DictReader(file)]


@pytest.fixture(scope="module")
def frames():
    """Two signals behind patterns of 3 x 3, with a tenth of the samples bad for both."""
    rng = np.random.default_rng(5)
    A, truth = rng.standard_normal((450, 9)), rng.standard_normal((2, 9))
    y = np.abs(A @ truth.T) ** 2 + 0.1 * rng.standard_normal((450, 2))
    y[:45] = rng.exponential(9.0, (45, 2))
    return A, y, truth


def test_a_matlab_stack_gives_the_answer_of_its_matrix(run, tmp_path, world):
    stack = np.moveaxis(world.A.reshape(-1, 3, 3), 0, -1)
    savemat(tmp_path / "lab.mat", {"patterns": stack, "counts": world.y})
    said = run("fit", "lab.mat", code=1).stderr
    assert "--covariates-name" in said
    said = run("fit", "lab.mat", "--covariates-name", "patterns", "--responses-name", "counts", code=1).stderr
    assert "--transpose covariates" in said
    names = ("--covariates-name", "patterns", "--responses-name", "counts", "--transpose", "covariates")
    run("fit", "lab.mat", *names, "--noise-mean", "unknown", "--out", "result.npz")
    found = load_result(tmp_path / "result.npz")
    model = rp.RobustPhaseRetrieval(noise_mean="unknown").fit(world.A, world.y)
    assert_allclose(found.signal, model.signal_, rtol=1e-10)
    assert found.image_shape == (3, 3)


def test_several_signals_and_one_of_them(run, tmp_path, frames):
    A, y, truth = frames
    np.savez(tmp_path / "data.npz", A=A.reshape(450, 3, 3), y=y.reshape(450, 1, 2))
    said = run("fit", "data.npz", "--out", "all.npz", "--flagged", "bad.csv").output
    assert "2 of 2 signals converged" in said
    with np.load(tmp_path / "all.npz") as found:
        assert found["signal"].shape == (2, 9)
        assert_array_equal(found["pattern_shape"], (3, 3))
        assert_array_equal(found["frame_shape"], (1, 2))
        weights = found["weights"]
        for answer, signal in zip(found["signal"], truth, strict=True):
            assert rp.distance(answer, signal, relative=True) < 0.05
    bad = table(tmp_path / "bad.csv")
    assert {(line["sample"], line["signal"]) for line in bad} == set(zip(*np.nonzero(weights < 0.5), strict=True))
    assert all(line["response"] == y[int(line["sample"]), int(line["signal"])] for line in bad)
    run("report", "all.npz", "--flagged", "again.csv", "--image-shape", "3x3")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "bad.csv").read_bytes()
    run("fit", "data.npz", "--out", "x.npz", "--report", "x.html")
    kept = load_result(tmp_path / "x.npz")
    assert (kept.image_shape, kept.frame_shape) == ((3, 3), (1, 2))
    assert (tmp_path / "x.html").read_text() == render_report(kept)
    assert "2 columns" in run("fit", "data.npz", "--out", "other.npz", "--column", 2, code=2).stderr
    for words in (("fit", "data.npz"), ("report", "all.npz")):
        said = run(*words, "--out", "other.npz", "--detector-shape", "15x30", code=2).stderr
        assert "samples of one signal" in said
    run("fit", "data.npz", "--column", 1, "--out", "one.npz")
    assert rp.distance(load_result(tmp_path / "one.npz").signal, truth[1], relative=True) < 0.05
    assert not leftovers(tmp_path)


def _npz(path, A, y):
    """A stack of patterns, and frames."""
    np.savez(path / "lab.npz", A=A.reshape(-1, 3, 3), y=y.reshape(-1, 1, 2))
    return ["lab.npz"]


def _mat(path, A, y):
    """Patterns and frames with the samples last, as MATLAB users have them."""
    stacks = {"A": np.moveaxis(A.reshape(-1, 3, 3), 0, -1), "y": np.moveaxis(y.reshape(-1, 1, 2), 0, -1)}
    savemat(path / "lab.mat", stacks)
    return ["lab.mat", "--transpose", "both"]


def _mat_of_hdf5(path, A, y):
    """The same as MATLAB writes with -v7.3: axes in the opposite order, complex numbers as pairs."""
    h5py = pytest.importorskip("h5py")
    pairs = np.empty(A.shape, [("real", "f8"), ("imag", "f8")])
    pairs["real"], pairs["imag"] = A.real, A.imag
    with h5py.File(path / "lab.mat", "w", userblock_size=512) as file:
        file["A"], file["y"] = (pairs if np.iscomplexobj(A) else A).T, y.T
    with open(path / "lab.mat", "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))
    return ["lab.mat"]


def _csv(path, A, y):
    """Two tables of text."""
    for name, values in (("A", A), ("y", y)):
        lines = (",".join(repr(value).strip("()") for value in row) for row in values.tolist())
        (path / f"{name}.csv").write_text("\n".join(lines))
    return ["A.csv", "--responses", "y.csv"]


def _tiff(path, A, y):
    """Frames of a camera beside patterns."""
    tifffile = pytest.importorskip("tifffile")
    np.save(path / "A.npy", A)
    tifffile.imwrite(path / "frames.tif", y.reshape(-1, 1, 2).astype(np.float32), photometric="minisblack")
    return ["A.npy", "--responses", "frames.tif"]


@pytest.fixture(scope="module", params=["real", "complex"])
def lab(request):
    """Samples of two signals, the signals, and what a fit to arrays finds, with responses of double and of single precision."""
    rng = np.random.default_rng(7)
    A, truth = rng.standard_normal((400, 9)), rng.standard_normal((9, 2))
    if request.param == "complex":
        A, truth = (A + 1j * rng.standard_normal(A.shape)) / np.sqrt(2), truth + 1j * rng.standard_normal(truth.shape)
    y = np.abs(A @ truth) ** 2 + 0.1 * rng.standard_normal((400, 2))
    y[:20] = rng.exponential(9.0, (20, 2))
    found = [rp.RobustPhaseRetrieval(random_state=0).fit(A, one).signal_ for one in (y, y.astype("f4").astype("f8"))]
    return A, y, truth, *found


@pytest.mark.parametrize("write", [_npz, _mat, _mat_of_hdf5, _csv, _tiff])
def test_several_signals_from_every_kind_of_file_are_those_of_the_arrays(run, tmp_path, lab, write):
    A, y, truth, expected, single = lab
    options = write(tmp_path, A, y)
    run("fit", *options, "--out", "result.npz")
    found = load_result(tmp_path / "result.npz")
    # The camera has single precision.
    assert_allclose(found.signal, single if write is _tiff else expected, rtol=1e-9, atol=1e-12)
    for answer, signal in zip(found.signal, truth.T, strict=True):
        assert rp.distance(answer, signal, relative=True) < 0.05


def test_a_wrong_name_shape_or_transposition_says_which_option_cures_it(run, tmp_path, world):
    np.savez(
        tmp_path / "lab.npz",
        patterns=world.A,
        counts=world.y,
        turned=world.A.T,
        frames=world.y.reshape(1, 1, -1),
        few=world.y[:7],
    )
    fit = ("fit", "lab.npz", "--out", "x.npz")
    said = run(*fit, code=1).stderr
    assert "--covariates-name " in said
    assert "patterns" in said
    assert "--responses-name " in run(*fit, "--covariates-name", "patterns", code=1).stderr
    named = ("--covariates-name", "turned", "--responses-name", "counts")
    assert "--transpose covariates" in run(*fit, *named, code=1).stderr
    named = ("--covariates-name", "patterns", "--responses-name", "frames")
    assert "--transpose responses" in run(*fit, *named, code=1).stderr
    named = ("--covariates-name", "patterns", "--responses-name", "few")
    assert "7 responses for 450 rows" in run(*fit, *named, code=1).stderr
    assert not (tmp_path / "x.npz").exists()


def test_a_report_and_a_table_from_a_result(run, tmp_path, data, world):
    run("fit", data, "--noise-mean", "unknown", "--out", "result.npz", "--flagged", "first.csv")
    said = run("report", "result.npz", "--flagged", "second.csv", "--image-shape", "3x3").output
    assert "result.html" in said
    assert (tmp_path / "result.html").read_text().startswith("<!")
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    found, lines = load_result(tmp_path / "result.npz"), table(tmp_path / "first.csv")
    assert [int(line["sample"]) for line in lines] == list(np.flatnonzero(found.weights < 0.5))
    for line in lines:
        row = int(line["sample"])
        assert line["response"] == world.y[row]
        assert line["residual"] == pytest.approx(line["response"] - line["predicted"])
        assert line["weight"] == found.weights[row]
    assert "exists already" in run("report", "result.npz", code=1).stderr
    assert "same file" in run("report", "result.npz", "--out", "result.npz", code=2).stderr
    assert "not a result" in run("report", data, "--out", "other.html", code=1).stderr
    assert not (tmp_path / "other.html").exists()


def test_a_report_shows_the_samples_as_the_detector_lies(run, tmp_path, data):
    shaped = ("--noise-mean", "unknown", "--detector-shape", "2x9x25")
    run("fit", data, *shaped, "--out", "frames.npz", "--report", "frames.html")
    assert load_result(tmp_path / "frames.npz").detector_shape == (2, 9, 25)
    assert "Residuals, on the detector" in (tmp_path / "frames.html").read_text()
    run("report", "frames.npz", "--detector-shape", "18x25", "--out", "one.html")
    assert "Residuals, on the detector" in (tmp_path / "one.html").read_text()
    assert "has 200 readings" in run("fit", data, "--out", "x.npz", "--detector-shape", "10x20", code=2).stderr
    assert "no shape of a detector" in run("fit", data, "--out", "x.npz", "--detector-shape", "450", code=2).stderr
    assert "200 readings" in run("report", "frames.npz", "--detector-shape", "10x20", "--out", "x.html", code=1).stderr


def test_what_is_known_of_the_detector_reaches_the_estimator(run, tmp_path, data, world, monkeypatch):
    dark = np.linspace(0.0, 1.0, 450)
    np.save(tmp_path / "dark.npy", dark)
    limit = float(np.quantile(world.y, 0.95))
    (tmp_path / "limits.csv").write_text("\n".join([repr(limit)] * 450))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = rp.RobustPhaseRetrieval(
            noise_mean="unknown", noise="additive", saturation=limit, background=dark, drift="auto", random_state=0
        ).fit(world.A, world.y)
    options = ("--noise-mean", "unknown", "--noise", "additive", "--background", "dark.npy", "--drift")
    code = 4 if model.model_check_.severe else 0 if model.converged_ else 3
    run("fit", data, *options, "--saturation", limit, "--out", "one.npz", code=code)
    assert_array_equal(load_result(tmp_path / "one.npz").signal, model.signal_)
    told = {}

    def asked(model, *data, **kept):
        told.update(model.get_params())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command.rp.RobustPhaseRetrieval, "fit", asked)
        run("fit", data, *options, "--saturation", "limits.csv", "--out", "two.npz", code=130)
    assert_array_equal(told["saturation"], np.full(450, limit))
    assert_array_equal(told["background"], dark)
    assert (told["noise_mean"], told["noise"], told["drift"]) == ("unknown", "additive", "auto")
    assert "positive number" in run("fit", data, "--saturation", -3, "--out", "x.npz", code=2).stderr
    np.save(tmp_path / "short.npy", dark[:9])
    assert "450" in run("fit", data, "--background", "short.npy", "--out", "x.npz", code=1).stderr


def test_an_interruption_without_a_checkpoint_says_how_to_run_one(run, data, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command.rp.RobustPhaseRetrieval, "fit", stop)
    said = run("fit", data, "--out", "result.npz", code=130).stderr
    assert "nothing was written" in said
    assert f"robustphase fit {data} --out result.npz --resume" in said
