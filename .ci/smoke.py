"""What a user must find in the installed wheel, without any extra; run by ``make wheel`` with the lowest versions allowed.

``python -I -W error .ci/smoke.py requirements.txt``: the file holds the versions to be tested, ``name==version`` in each line.
"""

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import robustphase as rp
from robustphase.cli import main as command_line

EXTRAS = ("h5py", "zarr", "pyarrow", "dask", "distributed", "cloudpickle", "click", "rich", "matplotlib", "jinja2")


def the_installed_wheel_is_tested_with_these_versions(requirements: Path) -> None:
    """Neither the sources nor newer versions are what is tested."""
    assert Path(rp.__file__).is_relative_to(sys.prefix), rp.__file__
    assert version("robustphase") == rp.__version__
    assert (Path(rp.__file__).parent / "py.typed").is_file()
    for line in requirements.read_text("utf-8").split():
        name, asked = line.split("==")
        assert f"{version(name)}.".startswith(f"{asked}."), (
            f"{name} {version(name)} is installed, {asked} was asked for"
        )
    assert not [name for name in EXTRAS if find_spec(name)], "extras are installed"


def a_signal_is_recovered_and_bad_samples_are_flagged() -> None:
    """Real and complex, known and unknown contamination."""
    for field in ("real", "complex"):
        world = rp.simulate.make_world(
            n=20, m=2000, contamination=0.1, attack="leverage", noise="student", field=field, seed=0
        )
        for contamination in (0.1, "auto"):
            model = rp.RobustPhaseRetrieval(contamination=contamination).fit(world.A, world.y)
            error = rp.distance(model.signal_, world.truth, relative=True)
            flags = model.flag_samples()
            found, wrongly = flags[world.touched].mean(), flags[~world.touched].mean()
            print(f"{field}, {contamination}: error {error:.4f}, flagged {found:.3f} of bad, {wrongly:.3f} of good")
            assert model.converged_
            assert error < 0.1, error
            assert found > 0.95, found
            assert wrongly < 0.05, wrongly


def samples_go_to_a_file_and_a_long_fit_can_be_interrupted(folder: Path) -> None:
    """The npz format, checkpoints and result files need no extra."""
    world = rp.simulate.make_world(n=5, m=400, contamination=0.1, attack="decoy", seed=0)
    rp.files.save_samples(folder / "data.npz", world.A, world.y)
    model = rp.RobustPhaseRetrieval(contamination=0.1)
    with (
        rp.files.open_samples(folder / "data.npz") as samples,
        rp.files.checkpointed(folder / "run", model, samples.covariates, samples.responses, interval=0) as rows,
    ):
        model.fit(rows, samples.responses)
    assert np.array_equal(model.signal_, rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, world.y).signal_)


def a_missing_extra_says_how_to_install_it(folder: Path) -> None:
    """Each kind of file, the cluster, and the command line."""
    A, y = np.ones((4, 2)), np.ones(4)
    for name, extra in (("a.h5", "io"), ("a.zarr", "io"), ("a.parquet", "parquet")):
        check_advice(lambda path=folder / name: rp.files.save_samples(path, A, y), extra)
        assert not (folder / name).exists()
    check_advice(lambda: rp.rows.DaskRows(A), "dask")
    model = rp.RobustPhaseRetrieval().fit(*_small())
    check_advice(lambda: rp.plot.history(model), "plot")
    check_advice(lambda: rp.report.render_report(rp.report.FitDiagnostics.of(model, *_small())), "report")
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert command_line(["demo"]) == 1
    assert "pip install 'robustphase[cli]'" in said.getvalue(), said.getvalue()


def _small() -> tuple[np.ndarray, np.ndarray]:
    world = rp.simulate.make_world(n=3, m=200, contamination=0.0, attack="none", seed=0)
    return world.A, world.y


def check_advice(call: Callable[[], object], extra: str) -> None:
    """What needs an extra that is not there raises an error that names the command which installs it."""
    said = None
    try:
        call()
    except ImportError as error:
        said = str(error)
    assert said is not None, f"it works without the extra {extra}"
    assert f"pip install 'robustphase[{extra}]'" in said, said


if __name__ == "__main__":
    the_installed_wheel_is_tested_with_these_versions(Path(sys.argv[1]))
    a_signal_is_recovered_and_bad_samples_are_flagged()
    with tempfile.TemporaryDirectory() as place:
        samples_go_to_a_file_and_a_long_fit_can_be_interrupted(Path(place))
        a_missing_extra_says_how_to_install_it(Path(place))
    print(f"robustphase {rp.__version__} works as installed")
