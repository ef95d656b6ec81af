"""``fit`` gives what the Python interface gives, says how it went, and leaves whole files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import robustphase as rp
from robustphase.cli import options
from robustphase.files import save_samples
from robustphase.initialise.start import METHODS as LIBRARY_STARTS
from robustphase.means import METHODS as LIBRARY_MEANS
from robustphase.report import load_result

from .conftest import leftovers

PAPER = ("--step", "paper", "--init", "mean", "--mean-estimator", "mmw", "--batches", 3, "--no-polish", "--seed", 5)


def fitted(world: rp.simulate.World, **settings: object) -> rp.RobustPhaseRetrieval:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rp.RobustPhaseRetrieval(**settings).fit(world.A, world.y)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ((), {}),
        (("--noise-mean", "unknown"), {"noise_mean": "unknown"}),
        (("--contamination", "auto", "--noise-mean", "unknown"), {"contamination": "auto", "noise_mean": "unknown"}),
        (("--whiten", "--delta", 0.1), {"whiten": True, "delta": 0.1}),
        (
            PAPER,
            {
                "step": "paper",
                "init": "mean",
                "mean_estimator": "mmw",
                "batches": 3,
                "polish": False,
                "random_state": 5,
            },
        ),
        (("--step", "paper", "--max-iter", 3, "--tol", 0.5), {"step": "paper", "max_iter": 3, "tol": 0.5}),
    ],
    ids=["default", "background", "auto", "whiten", "paper", "limits"],
)
def test_the_result_is_that_of_the_python_interface(run, tmp_path, data, world, options, settings):
    model = fitted(world, **settings)
    run(
        "fit",
        data,
        *options,
        "--out",
        "result.npz",
        code=4 if model.model_check_.severe else 0 if model.converged_ else 3,
    )
    result = load_result(tmp_path / "result.npz")
    np.testing.assert_array_equal(result.signal, model.signal_)
    np.testing.assert_array_equal(result.initial_signal, model.initial_signal_)
    np.testing.assert_array_equal(result.weights, model.weights_)
    assert result.contamination_used == model.contamination_
    assert result.noise_mean == model.noise_mean_
    assert result.converged is model.converged_
    assert result.certificate == model.certificate_
    assert result.passes == model.history_[-1].passes


def test_a_certificate_is_said_to_hold_for_the_contamination_that_it_allows_for(run, data, world):
    assert fitted(world, contamination="auto").contamination_ < 0.2
    for told, allowed in (("auto", "20.0%"), (0.15, "15.0%")):
        said = run("fit", data, "--contamination", told, "--overwrite").output
        assert f"if no more than {allowed} of the samples are bad" in " ".join(said.split()), told


def test_the_choices_are_those_of_the_library():
    assert set(options.STARTS) == set(LIBRARY_STARTS)
    assert set(options.MEAN_ESTIMATORS) == set(LIBRARY_MEANS)
    assert set(options.ATTACKS) == {"none", *rp.simulate.ADVERSARIES}


@pytest.mark.parametrize("name", ["data.h5", "data.zarr", "data.npz"])
def test_every_kind_of_file_gives_the_same_answer(run, tmp_path, world, name):
    save_samples(tmp_path / name, world.A, world.y)
    run("fit", name, "--out", "result.npz")
    np.testing.assert_allclose(load_result(tmp_path / "result.npz").signal, fitted(world).signal_, rtol=1e-8)


def test_a_pair_of_npy_files(run, tmp_path, world):
    np.save(tmp_path / "A.npy", world.A)
    np.save(tmp_path / "y.npy", world.y)
    run("fit", "A.npy", "--responses", "y.npy", "--out", "result.npz")
    np.testing.assert_allclose(load_result(tmp_path / "result.npz").signal, fitted(world).signal_, rtol=1e-8)
    said = run("fit", "A.npy", code=1).stderr
    assert "--responses" in said


def test_arrays_may_have_other_names(run, tmp_path, world):
    np.savez(tmp_path / "other.npz", rows=world.A, counts=world.y)
    run("fit", "other.npz", code=1)
    run("fit", "other.npz", "--covariates-name", "rows", "--responses-name", "counts", "--out", "result.npz")
    np.testing.assert_array_equal(load_result(tmp_path / "result.npz").signal, fitted(world).signal_)


def test_the_start_may_be_in_a_file(run, tmp_path, data, world):
    start = world.truth + 0.1
    np.save(tmp_path / "start.npy", start)
    run("fit", data, "--init", "start.npy", "--out", "result.npz")
    np.testing.assert_array_equal(load_result(tmp_path / "result.npz").signal, fitted(world, init=start).signal_)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"not an array", "not a .npy file"), (b"", "not a .npy file"), (None, "No such file")],
)
def test_a_start_that_cannot_be_read_is_an_error(run, tmp_path, data, content, said):
    if content is not None:
        (tmp_path / "start.npy").write_bytes(content)
    assert said in run("fit", data, "--init", "start.npy", code=1).stderr
    assert not (tmp_path / "data-result.npz").exists()


def test_a_start_of_the_wrong_length_is_an_error(run, tmp_path, data):
    np.save(tmp_path / "start.npy", np.ones(4))
    assert "array of 9 numbers" in run("fit", data, "--init", "start.npy", code=1).stderr


def test_what_was_found_is_told(run, data, world):
    told = run("fit", data, "--noise-mean", "unknown").stdout
    model = fitted(world, noise_mean="unknown")
    for line in (
        "answer                  converged",
        f"samples treated as bad  {model.flag_samples().sum()} of 450",
        f"background              {model.noise_mean_:.3g}",
        "result: data-result.npz",
    ):
        assert line in told


def test_the_truth_in_a_simulated_file_is_only_used_to_say_how_far_off_the_answer_is(run, tmp_path, world):
    save_samples(tmp_path / "known.npz", world.A, world.y, world.truth)
    save_samples(tmp_path / "blind.npz", world.A, world.y)
    known, blind = run("fit", "known.npz"), run("fit", "blind.npz")
    error = rp.distance(fitted(world).signal_, world.truth, relative=True)
    assert f"error                   {error:.2%} of the signal" in known.stdout
    assert "the truth in the file" not in blind.stdout
    np.testing.assert_array_equal(
        load_result(tmp_path / "known-result.npz").signal, load_result(tmp_path / "blind-result.npz").signal
    )


def test_quiet_says_nothing(run, tmp_path, data):
    result = run("fit", data, "--quiet", "--report", "report.html")
    assert result.output == ""
    assert (tmp_path / "data-result.npz").exists()
    assert (tmp_path / "report.html").exists()


def test_an_answer_that_did_not_settle_has_its_own_exit_code_and_is_kept(run, tmp_path, data):
    result = run("fit", data, "--step", "paper", "--max-iter", 2, "--no-polish", "--report", "report.html", code=3)
    assert result.stderr.startswith("warning: stopped after 2 iterations")
    assert len(result.stderr.splitlines()) == 1
    assert "--max-iter 100" in result.stderr
    assert "did not converge" in result.stdout
    kept = load_result(tmp_path / "data-result.npz")
    assert not kept.converged
    assert kept.message.startswith("stopped after 2 iterations")
    assert (tmp_path / "report.html").exists()


def test_the_report_says_how_it_was_made(run, tmp_path, data):
    run("fit", data, "--report", "report.html", "--image-shape", "3x3")
    page = (tmp_path / "report.html").read_text()
    assert f"robustphase fit {data} --report report.html --image-shape 3x3" in page
    assert load_result(tmp_path / "data-result.npz").image_shape == (3, 3)
    assert not leftovers(tmp_path)


def test_bad_usage(case, run, tmp_path, data):
    for arguments, said in [
        (("--image-shape", "4x4"), "16 pixels, but the covariates have 9 columns"),
        (("--image-shape", "4"), "not a height and a width"),
        (("--contamination", "5"), "Did you mean 0.05 (5 percent)?"),
        (("--contamination", "some"), "or auto"),
        (("--init", "best"), "neither one of auto, mean"),
        (("--batches", "0"), "0 is not in the range"),
        (("--delta", "1"), "1.0 is not in the range"),
        (("--out", "data.npz"), "name the same file"),
        (("--out", "same.x", "--report", "same.x"), "name the same file"),
        (("--nope",), "No such option"),
    ]:
        with case(arguments):
            assert said in run("fit", data, *arguments, code=2).stderr
            assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]


def test_samples_that_are_not_numbers_are_refused_with_the_option_that_drops_them(run, tmp_path, world):
    A = world.A.copy()
    A[17, 2] = np.nan
    np.savez(tmp_path / "holes.npz", A=A, y=world.y)
    said = run("fit", "holes.npz", code=1).stderr
    assert "first: row 17" in said
    assert "--nonfinite drop" in said
    assert len(said.splitlines()) == 1
    run("fit", "holes.npz", "--nonfinite", "drop", "--out", "result.npz")
    assert load_result(tmp_path / "result.npz").weights[17] == 0


def test_groups_are_read_from_a_file_and_bad_ones_are_named(run):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), 20)
    A = rng.standard_normal((600, 12))
    y = (A @ np.ones(12)) ** 2 / 12 + 0.2 * rng.standard_t(4, 600)
    wrong = labels % 10 == 4
    y[wrong] = rng.permutation(y[wrong])
    np.savez("data.npz", A=A, y=y)
    np.save("labels.npy", labels)
    model = rp.RobustPhaseRetrieval().fit(A, y, groups=labels)
    assert model.flag_groups()[4::10].all()
    named = f"{model.flag_groups().sum()} of 30 ({', '.join(map(str, np.flatnonzero(model.flag_groups())))})"
    assert named in run("fit", "data.npz", "--groups", "labels.npy", "--resume", "--keep-checkpoint").output
    np.save("labels.npy", labels[::-1])
    refused = run("fit", "data.npz", "--groups", "labels.npy", "--resume", code=1)
    assert "groups" in refused.output
    with open("labels.npy", "wb") as file:
        file.write(b"no labels")
    assert "cannot read labels" in run("fit", "data.npz", "--groups", "labels.npy", "--out", "other.npz", code=1).output


@pytest.fixture
def grouped(tmp_path) -> rp.simulate.World:
    """Samples on disk, with labels of their frames and of pixels beside them; frames in which rows are wrong."""
    world = rp.simulate.make_world(12, 600, groups=30, attack="group_rotated", contamination=0.2, seed=0)
    np.save(tmp_path / "A.npy", world.A)
    np.save(tmp_path / "y.npy", world.y)
    np.save(tmp_path / "labels.npy", world.groups)
    return world


def test_several_columns_of_labels_are_told_one_after_the_other(run, tmp_path, grouped):
    names = np.array([f"frame {label}" for label in grouped.groups])
    np.save(tmp_path / "labels.npy", np.stack((names, np.tile(np.arange(20), 30).astype(str)), axis=1))
    said = run("fit", "A.npy", "--responses", "y.npy", "--groups", "labels.npy", "--contamination", "0.2").output
    wrong = np.unique(names[grouped.touched])
    assert f"6 of 30 ({', '.join(wrong)}); 0 of 20" in said


def test_a_fit_with_groups_goes_on_where_it_was(run, tmp_path, grouped):
    command = ["fit", "A.npy", "--responses", "y.npy", "--groups", "labels.npy", "--contamination", "0.2"]
    run(*command, "--out", "whole.npz", "--checkpoint", "kept", "--resume", "--keep-checkpoint")
    passes = sorted((tmp_path / "kept").glob("*.pass"))
    for late in passes[len(passes) // 2 :]:
        late.unlink()
    run(*command, "--out", "resumed.npz", "--checkpoint", "kept", "--resume")
    whole, resumed = (load_result(tmp_path / f"{name}.npz") for name in ("whole", "resumed"))
    assert_array_equal(resumed.signal, whole.signal)
    assert_array_equal(resumed.weights, whole.weights)
    assert (whole.weights[grouped.touched] < 0.5).mean() > 0.95


@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        (lambda labels: labels[:-1], "A has 600 rows but groups has 599 labels"),
        (lambda labels: labels + 0.5, "numbers with a fraction (first: 0.5 in row 0)"),
        (lambda labels: np.where(labels == 3, np.nan, labels), "20 labels of groups are missing (first: row 60)"),
        (lambda labels: np.zeros((labels.size, 2, 2)), "groups must have shape (m,) or (m, g)"),
    ],
    ids=["short", "fractions", "missing", "too many axes"],
)
def test_bad_labels_are_refused_in_one_line(run, tmp_path, grouped, spoilt, told):
    np.save(tmp_path / "labels.npy", spoilt(grouped.groups))
    said = run("fit", "A.npy", "--responses", "y.npy", "--groups", "labels.npy", code=1).stderr
    assert told in said
    assert len(said.splitlines()) == 1


def test_labels_come_in_a_file_of_their_own(run, tmp_path, grouped):
    np.savez(tmp_path / "labels.npz", labels=grouped.groups)
    said = run("fit", "A.npy", "--responses", "y.npy", "--groups", "labels.npz", code=1).stderr
    assert "Save the labels alone" in said
    assert "No such file" in run("fit", "A.npy", "--responses", "y.npy", "--groups", "none.npy", code=1).stderr


@pytest.mark.parametrize(
    ("world", "told"),
    [
        (rp.simulate.make_counts(8, 800, mean_count=9.0, contamination=0.0, attack="none", seed=0), "counts, dark "),
        (rp.simulate.make_camera(8, 1500, saturated=1e-4, contamination=0.0, attack="none", seed=0), "variance "),
    ],
    ids=["counts", "camera"],
)
def test_noise_that_depends_on_the_signal_is_named(run, tmp_path, world, told):
    save_samples(tmp_path / "detector.npz", world.A, world.y)
    done = run("fit", "detector.npz", "--noise-mean", "unknown", "--out", "result.npz")
    lines = [line.split(maxsplit=1) for line in done.output.splitlines() if line.startswith("noise ")]
    assert any(rest.startswith(told) for _, rest in lines), done.output
